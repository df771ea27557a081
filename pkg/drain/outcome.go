// Package drain decides how pods leave a node: which of them may be evicted and
// when, which are left, which hold the drain up and what would help. It takes
// pods, budgets and an instant, and returns verdicts; who evicts is elsewhere.
package drain

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
)

// maxNamed is how many pods an outcome, a block or a status names; of the others
// it says the number. A journal keeps 64 KiB of a step, a node has some hundred
// pods.
const maxNamed = 50

// Outcome is what became of a node's pods. It names at most fifty of each kind;
// the numbers are of all.
type Outcome struct {
	Evicted int `json:"evicted"`           // left after an eviction of ours
	Forced  int `json:"forced,omitempty"`  // deleted past their budgets
	Gone    int `json:"gone,omitempty"`    // left without us: finished, moved, deleted by others
	Skipped int `json:"skipped,omitempty"` // stay on purpose: DaemonSets, static pods, what was not picked
	Left    int `json:"left,omitempty"`    // should have left, and did not
	Kept    int `json:"kept,omitempty"`    // replicas of surges that were not given back

	EvictedPods []string       `json:"evictedPods,omitempty"`
	ForcedPods  []string       `json:"forcedPods,omitempty"`
	SkippedPods []RemainingPod `json:"skippedPods,omitempty"`
	Agent       *RemainingPod  `json:"agent,omitempty"` // the agent's own pod, where it stays
	LeftPods    []RemainingPod `json:"leftPods,omitempty"`
	// KeptReplicas are the Deployments of Kept, each with why.
	KeptReplicas []string `json:"keptReplicas,omitempty"`
}

// RemainingPod is a pod that stays on its node, and why.
type RemainingPod struct {
	Pod string `json:"pod"` // namespace/name
	Why string `json:"why"`
}

// String is the outcome in one line.
func (o Outcome) String() string {
	text := fmt.Sprintf("%d evicted", o.Evicted)
	for _, n := range []struct {
		count int
		word  string
	}{{o.Forced, "forced"}, {o.Gone, "gone by themselves"}, {o.Skipped, "skipped"}, {o.Left, "left"}} {
		if n.count > 0 {
			text += fmt.Sprintf(", %d %s", n.count, n.word)
		}
	}
	if o.Agent != nil {
		text += "; " + o.Agent.Pod + ": " + o.Agent.Why
	}
	if len(o.LeftPods) > 0 {
		text += ": " + o.LeftPods[0].Pod + " (" + o.LeftPods[0].Why + ")"
	}
	return text + o.StringOfKept()
}

// StringOfKept is what stays of surges in one line that begins with a semicolon; empty: nothing.
func (o Outcome) StringOfKept() string {
	if len(o.KeptReplicas) == 0 {
		return ""
	}
	text := "; the replica that a surge added is not given back yet to " + o.KeptReplicas[0]
	if o.Kept > 1 {
		text += fmt.Sprintf(" and %d more", o.Kept-1)
	}
	return text
}

func named(pods []string) []string {
	pods = slices.Sorted(slices.Values(pods))
	return pods[:min(len(pods), maxNamed)]
}

func stays(list []RemainingPod) []RemainingPod {
	slices.SortFunc(list, func(a, b RemainingPod) int { return cmp.Compare(a.Pod, b.Pod) })
	list = list[:min(len(list), maxNamed)]
	for i := range list {
		list[i].Why = document.Cut(list[i].Why, 300)
	}
	return list
}

// Block is something that keeps pods on their node.
type Block struct {
	Budgets   []string `json:"budgets,omitempty"` // namespace/name; none where no budget is the cause
	Pods      []string `json:"pods"`              // namespace/name, at most fifty
	Count     int      `json:"count"`             // of all pods that it keeps
	Permanent bool     `json:"permanent"`         // waiting alone does not end it
	Refused   bool     `json:"refused,omitempty"` // the pods may not be evicted, nor deleted when time is over
	Why       string   `json:"why"`
	Remedy    string   `json:"remedy"` // what a person can do, one sentence
}

// String is a block as a person reads it.
func (b Block) String() string {
	kind := "for now"
	if b.Permanent {
		kind = "until somebody changes something"
	}
	what := ""
	if len(b.Pods) > 0 {
		what = b.Pods[0]
		if b.Count > 1 {
			what += fmt.Sprintf(" and %d more", b.Count-1)
		}
	}
	if len(b.Budgets) == 1 {
		kind += ": budget " + b.Budgets[0]
	}
	return fmt.Sprintf("%s cannot leave %s: %s; %s", what, kind, b.Why, b.Remedy)
}

// State is where a pod stands in a drain.
type State string

// The states of a pod.
const (
	Queued      State = "Queued"      // its turn comes, as soon as a request is free
	Waiting     State = "Waiting"     // for its budget, its group, its completion, or after a failure
	Surging     State = "Surging"     // a replacement is on its way
	Evicting    State = "Evicting"    // asked for
	Terminating State = "Terminating" // accepted; it shuts down
	Refused     State = "Refused"     // the drain's options do not let it be evicted
	Staying     State = "Staying"     // on purpose, or because time is over
)

// Volumes stands in Progress and Stay for a pod, where all pods have left and their
// volumes are waited for.
const Volumes = "volumes"

// Progress is how one pod stands.
type Progress struct {
	Pod   string `json:"pod"` // namespace/name
	State State  `json:"state"`
	Why   string `json:"why,omitempty"`
}
