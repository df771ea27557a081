package run

import (
	"cmp"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/expr"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// ClosedNodes are the nodes that a step relies on to be closed: an earlier step of
// the run has cordoned or drained them, and none has opened them since. Such a step
// looks at them before the first pass of each attempt: what takes them for empty must
// not run where somebody lets pods in again. A step that opens a node needs no look,
// and neither does what cleans up.
func (r Run) ClosedNodes(j Journal, path string) []ClosedNode {
	rec := j.Record(path)
	if rec == nil || rec.Type == plan.TypeUncordon || rec.NodeSeen == rec.Attempt || r.Request.DryRun {
		return nil
	}
	var out []ClosedNode
	if n, closed := r.closedItem(j, path); closed {
		out = append(out, n)
	}
	if plan.SectionOf(path) == plan.SectionSteps && !r.afterFailure(j, path) {
		out = append(out, r.closedBefore(j, rec)...)
	}
	return out
}

// ClosedNode is a node that a step relies on to be closed.
type ClosedNode struct {
	Name, UID string // the UID of the node that was closed; empty: not known
	Elsewhere string // path of the step that closed it, where that works on another cluster
}

// closedItem is the node of the rollout's item that a step lies in, where an earlier
// step of the item closed it. It may be another one than was listed, made anew since.
func (r Run) closedItem(j Journal, path string) (ClosedNode, bool) {
	for _, l := range r.Tree().Chain(path) {
		if l.Item == "" || l.Step.Type != plan.TypeForEachNode {
			continue
		}
		if loop := j.Record(l.Path); loop != nil {
			for _, item := range loop.Items {
				if item.Segment() == l.Item {
					uid, closed := r.closed(j, l.Path+"/"+l.Item, item.Name)
					return ClosedNode{Name: item.Name, UID: cmp.Or(uid, item.UID)}, closed
				}
			}
		}
	}
	return ClosedNode{}, false
}

// closed says whether the last step below a path that was about a node closed it, and the
// UID of the node that it closed, as far as it wrote that down.
func (r Run) closed(j Journal, under, node string) (uid string, closed bool) {
	var last *Record
	for i := range j.Steps {
		rec := &j.Steps[i]
		if rec.Phase != StepSucceeded || rec.FinishedAt == nil || !plan.Below(rec.Path, under) || !r.about(rec, node) {
			continue
		}
		if last == nil || !rec.FinishedAt.Before(*last.FinishedAt) {
			last = rec
		}
	}
	if last == nil || last.Type != plan.TypeCordon && last.Type != plan.TypeDrain {
		return "", false
	}
	for _, t := range last.nodes() {
		if t.Name == node {
			uid = t.UID
		}
	}
	return uid, true
}

// about says whether a step cordons, drains, uncordons or deletes the node of its item: one
// that names none means it, and a template may.
func (r Run) about(rec *Record, node string) bool {
	if !slices.Contains([]string{plan.TypeCordon, plan.TypeDrain, plan.TypeUncordon, plan.TypeDelete}, rec.Type) {
		return false
	}
	step, found := r.Tree().Find(rec.Path)
	if !found || r.cluster(rec.Path) != "" {
		return false
	}
	if rec.Type == plan.TypeDelete {
		return mayOpen(step, node)
	}
	name, _ := step.Own()["node"].(string)
	return name == node || expr.IsTemplate(name) || name == "" && step.Own()["selector"] == nil
}

// afterFailure says whether a step is there for what went wrong: it, or what holds
// it, runs whatever failed before, or by a condition after something did.
func (r Run) afterFailure(j Journal, path string) bool {
	failed := slices.ContainsFunc(j.Steps, func(rec Record) bool { return rec.Phase == StepFailed })
	return slices.ContainsFunc(r.Tree().Chain(path), func(l plan.Link) bool { return l.Step.If == plan.IfAlways || l.Step.If != "" && failed })
}

// closedBefore are the nodes that cordons and drains outside of rollouts closed
// before an attempt of a step began. Of a node that several closed the last one counts: it may
// have been made anew between them.
func (r Run) closedBefore(j Journal, step *Record) []ClosedNode {
	var out []ClosedNode
	for _, rec := range r.closers(j, step) {
		cluster, elsewhere := r.cluster(rec.Path), ""
		if cluster != "" {
			elsewhere = rec.Path
		}
		for _, t := range rec.nodes() {
			same := func(n ClosedNode) bool {
				return n.Name == t.Name && (n.Elsewhere == "" && cluster == "" || n.Elsewhere != "" && r.cluster(n.Elsewhere) == cluster)
			}
			out = slices.DeleteFunc(out, same)
			if !r.opened(j, *rec, t.Name) {
				out = append(out, ClosedNode{Name: t.Name, UID: t.UID, Elsewhere: elsewhere})
			}
		}
	}
	return out
}

// closers are the cordons and drains that a step relies on, in the order in which they ended.
func (r Run) closers(j Journal, step *Record) []*Record {
	var out []*Record
	for i := range j.Steps {
		rec := &j.Steps[i]
		if (rec.Type == plan.TypeCordon || rec.Type == plan.TypeDrain) && rec.Phase == StepSucceeded && rec.FinishedAt != nil && r.earlier(rec, step) {
			out = append(out, rec)
		}
	}
	slices.SortStableFunc(out, func(a, b *Record) int { return a.FinishedAt.Compare(*b.FinishedAt) })
	return out
}

// earlier says whether a step that closed nodes had ended before an attempt of
// another began, and is not of a rollout or of another item of a loop.
func (r Run) earlier(closes, step *Record) bool {
	if step.AttemptAt != nil && closes.FinishedAt.After(*step.AttemptAt) {
		return false
	}
	for _, l := range r.Tree().Chain(closes.Path) {
		if l.Item != "" && (l.Step.Type == plan.TypeForEachNode || !plan.Below(step.Path, l.Path+"/"+l.Item)) {
			return false
		}
	}
	return plan.SectionOf(closes.Path) == plan.SectionSteps
}

// ClosedFor are the nodes that steps of the run cordoned or drained, and that another is to open now:
// by the same selector, as their labels may have changed since, or by their name, as they may be gone.
// Of loops only the steps of the same item count.
func (r Run) ClosedFor(j Journal, path string) []DrainTarget {
	opens, found := r.Tree().Find(path)
	if !found {
		return nil
	}
	selector := opens.Own()["selector"]
	var out []DrainTarget
	for i := range j.Steps {
		rec := &j.Steps[i]
		if rec.Type != plan.TypeCordon && rec.Type != plan.TypeDrain || !r.besides(rec.Path, path) || r.cluster(rec.Path) != r.cluster(path) {
			continue
		}
		closes, found := r.Tree().Find(rec.Path)
		if !found || selector != nil && !reflect.DeepEqual(closes.Own()["selector"], selector) {
			continue
		}
		for _, t := range rec.nodes() {
			if (selector != nil || means(opens.Own()["node"], t.Name)) && !slices.ContainsFunc(out, func(o DrainTarget) bool { return o.Name == t.Name && o.UID == t.UID }) {
				out = append(out, DrainTarget{Name: t.Name, UID: t.UID})
			}
		}
	}
	return out
}

// CordonInterruptedAt is when the run was ended in the middle of a step that cordons, of which no pass had an
// outcome; zero: it was not. A cordon that was asked for may still arrive.
func (j Journal) CordonInterruptedAt() (at time.Time) {
	if j.End == nil || j.End.Phase != Aborted && j.End.Phase != Replaced && j.End.Reason != "Timeout" {
		return at
	}
	for i := range j.Steps {
		rec := &j.Steps[i]
		cordons := rec.Type == plan.TypeCordon || rec.Type == plan.TypeDrain
		if cordons && rec.Phase == StepFailed && len(rec.Memory) == 0 && rec.FinishedAt != nil && rec.FinishedAt.After(at) {
			at = *rec.FinishedAt
		}
	}
	return at
}

// besides says whether a step lies in no item of a loop that another lies outside of.
func (r Run) besides(path, other string) bool {
	return !slices.ContainsFunc(r.Tree().Chain(path), func(l plan.Link) bool {
		return l.Item != "" && !plan.Below(other, l.Path+"/"+l.Item)
	})
}

// nodes are those that a step about nodes wrote down, of whatever cluster.
func (r Record) nodes() []DrainTarget {
	var m DrainMemory
	if json.Unmarshal(r.Memory, &m) != nil {
		return nil
	}
	return append(m.Nodes, m.Elsewhere...)
}

// cluster is the connector of the cluster that the step at a path works on; empty: the
// plan's own.
func (r Run) cluster(path string) string {
	ref, _ := r.Tree().ConnectorAt(path)
	return ref.Name
}

// opened says whether a step of the run has opened a node since another closed it, or
// may have, or is at it: then the run itself wants it so.
func (r Run) opened(j Journal, closes Record, node string) bool {
	for i := range j.Steps {
		rec := &j.Steps[i]
		began := rec.Phase == StepRunning || rec.Phase == StepSucceeded || rec.Phase == StepFailed
		over := rec.FinishedAt != nil && rec.FinishedAt.Before(*closes.FinishedAt)
		around := rec.Holds() && (!plan.IsLoop(rec.Type) || plan.Below(closes.Path, rec.Path)) // the steps in it tell
		if began && !over && !around && r.opens(rec, node) && (rec.Holds() || r.cluster(rec.Path) == r.cluster(closes.Path)) {
			return true
		}
	}
	return false
}

// opens says whether a step opens a node. Of a loop it is enough that one of its
// steps may: the records of its items do not stay.
func (r Run) opens(rec *Record, node string) bool {
	if rec.Type == plan.TypeUncordon && rec.Phase == StepSucceeded && rec.Memory != nil {
		return slices.ContainsFunc(rec.nodes(), func(t DrainTarget) bool { return t.Name == node })
	}
	step, found := r.Tree().Find(rec.Path)
	if rec.Type == plan.TypeDrain { // one that failed may have undone the cordon
		return found && rec.Phase == StepFailed && means(step.Own()["node"], node)
	}
	return found && r.mayOpen(step, node)
}

func (r Run) mayOpen(step plan.Step, node string) bool {
	may := mayOpen(step, node)
	r.Tree().WalkBelow(step, func(s plan.Step) { may = may || mayOpen(s, node) })
	return may
}

func mayOpen(step plan.Step, node string) bool {
	switch step.Type {
	case plan.TypeUncordon:
		return means(step.Own()["node"], node)
	case plan.TypeDelete: // what comes after it knows that the node is gone
		resource, _ := step.Properties["resource"].(map[string]any)
		return isNode(resource["kind"]) && means(resource["name"], node)
	case "patch-object":
		patch, err := json.Marshal(step.Properties["patch"])
		speaks := err != nil || strings.Contains(string(patch), "unschedulable") || strings.Contains(string(patch), "${")
		resource, _ := step.Properties["resource"].(map[string]any)
		return speaks && isNode(resource["kind"]) && means(resource["name"], node)
	case "apply-object": // a field that it leaves out goes, too
		object, _ := step.Properties["object"].(map[string]any)
		meta, _ := object["metadata"].(map[string]any)
		return isNode(object["kind"]) && means(meta["name"], node)
	}
	return false
}

func isNode(kind any) bool {
	text, _ := kind.(string)
	return text == "Node" || expr.IsTemplate(text)
}

// means says whether what a step names may be a node: no name stands for the item's,
// or for those of a selector.
func means(name any, node string) bool {
	text, _ := name.(string)
	return text == "" || text == node || expr.IsTemplate(text)
}

// Cordons says whether a step below the one at a path is there to cordon or drain a node. What
// became of it is not known of an item that is through: its records do not stay.
func (r Run) Cordons(path string) bool {
	cordons := false
	if step, found := r.Tree().Find(path); found {
		r.Tree().WalkBelow(step, func(s plan.Step) { cordons = cordons || s.Type == plan.TypeCordon || s.Type == plan.TypeDrain })
	}
	return cordons
}

// RolloutNode is the node that the for-each-node around a path has come to.
func (r Run) RolloutNode(j Journal, path string) (string, bool) {
	for _, l := range r.Tree().Chain(path) {
		if l.Item == "" || l.Step.Type != plan.TypeForEachNode {
			continue
		}
		if rec := j.Record(l.Path); rec != nil {
			for _, item := range rec.Items {
				if item.Segment() == l.Item {
					return item.Name, true
				}
			}
		}
	}
	return "", false
}

// Rollout is one for-each-node of a run that has listed its nodes: who is at work,
// and who failed and was left as it was.
type Rollout struct {
	Path            string
	Running, Failed []string
	Left            int // not begun
}

// TakesNodes says whether a run has a step that takes nodes: a for-each-node or a drain.
func (j Journal) TakesNodes() bool {
	return slices.ContainsFunc(j.Steps, func(r Record) bool { return r.Type == plan.TypeForEachNode || r.Type == plan.TypeDrain })
}

// Rollouts are the for-each-nodes of a run that have listed their nodes and have
// not ended.
func (j Journal) Rollouts() []Rollout {
	var out []Rollout
	for i := range j.Steps {
		rec := &j.Steps[i]
		if rec.Type != plan.TypeForEachNode || !rec.Listed || rec.Phase != StepRunning {
			continue
		}
		r := Rollout{Path: rec.Path}
		for _, item := range rec.Items {
			switch item.Phase {
			case StepRunning:
				r.Running = append(r.Running, item.Name)
			case StepFailed:
				r.Failed = append(r.Failed, item.Name)
			case "":
				r.Left++
			}
		}
		out = append(out, r)
	}
	return out
}

// NodesWait begins what a for-each-node says of nodes that it does not begin yet; why follows.
const NodesWait = "waits: "
