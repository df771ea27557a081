package run

import (
	"encoding/json"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// DrainMemory is what the passes of a drain step share: when its attempt began, and
// the nodes, so that one which joins later is not drained too. A cordon and an
// uncordon write their nodes down the same way.
type DrainMemory struct {
	Attempt int           `json:"attempt"`
	Since   time.Time     `json:"since"`
	Nodes   []DrainTarget `json:"nodes"`
	// Elsewhere are the nodes where the step works on another cluster: nothing that counts
	// the nodes of this one looks at them.
	Elsewhere []DrainTarget `json:"elsewhere,omitempty"`
	// Aborting says that the step gives up, and gives its nodes back: none is cordoned any more.
	Aborting *DrainAbort `json:"aborting,omitempty"`
}

// DrainAbort is what is said of a step that gave up, and its output for each node; of too many, none.
type DrainAbort struct {
	Message string          `json:"message"`
	Nodes   json.RawMessage `json:"nodes,omitempty"`
}

// DrainTarget is one of its nodes.
type DrainTarget struct {
	Name     string    `json:"name"`
	UID      string    `json:"uid"`
	Cordoned bool      `json:"cordoned,omitempty"` // seen so, with our record, by this step
	Drained  bool      `json:"drained,omitempty"`  // its drain has ended
	Left     bool      `json:"left,omitempty"`     // it has, and pods that should have left did not
	Blocked  bool      `json:"blocked,omitempty"`  // something stands in its way for good
	Yielded  bool      `json:"yielded,omitempty"`  // others have its slot meanwhile; it stays cordoned, and nothing is evicted
	Why      string    `json:"why,omitempty"`      // what is in its way, for good or for now; of one that yielded, what was
	Since    time.Time `json:"since,omitzero"`     // when its turn came
	// BlockedAt is since when something stands in its way for good before its cordon: of a drain that
	// aborts, the timeout counts from there.
	BlockedAt time.Time `json:"blockedAt,omitzero"`
	// HeldAt is since when a requestor has the node, before its cordon: that time does not count.
	HeldAt time.Time `json:"heldAt,omitzero"`
}

// Hold notes whether a requestor has the node of a drain that has not begun.
func (t *DrainTarget) Hold(held bool, now time.Time) {
	switch {
	case held && t.HeldAt.IsZero():
		t.HeldAt = now.UTC()
	case !held && !t.HeldAt.IsZero():
		if !t.BlockedAt.IsZero() {
			t.BlockedAt = t.BlockedAt.Add(now.Sub(t.HeldAt))
		}
		t.HeldAt = time.Time{}
	}
}

// Block notes that something stands in the way of a drain for good that no requestor keeps from its node.
func (t *DrainTarget) Block(o drain.Options, now time.Time) {
	if t.BlockedAt.IsZero() && t.HeldAt.IsZero() && o.OnTimeout == drain.TimeoutAbort {
		t.BlockedAt = now.UTC()
	}
}

// GivenUpAt is when a drain that something keeps from its cordon is given up; false: it waits without
// end, or for a requestor.
func (t DrainTarget) GivenUpAt(o drain.Options) (time.Time, bool) {
	at, ends := drain.Deadline(o, t.BlockedAt)
	return at, ends && o.OnTimeout == drain.TimeoutAbort && !t.BlockedAt.IsZero() && t.HeldAt.IsZero()
}

// GivenUpBefore is an instant, or an earlier one at which the drain of a node is given up before its
// cordon.
func (m DrainMemory) GivenUpBefore(by time.Time, o drain.Options) time.Time {
	for _, t := range m.Nodes {
		if at, ends := t.GivenUpAt(o); ends && at.Before(by) {
			by = at
		}
	}
	return by
}

// NewlyBlocked are the nodes whose drain is blocked for good by what a drain step
// remembers now, and was not by what it remembered before.
func NewlyBlocked(before, now json.RawMessage) []string {
	var was, is DrainMemory
	if json.Unmarshal(now, &is) != nil {
		return nil
	}
	known := map[string]bool{}
	if json.Unmarshal(before, &was) == nil {
		for _, t := range append(was.Nodes, was.Elsewhere...) {
			known[t.Name] = t.Blocked
		}
	}
	var out []string
	for _, t := range append(is.Nodes, is.Elsewhere...) {
		if t.Blocked && !known[t.Name] {
			out = append(out, t.Name)
		}
	}
	return out
}

// Draining is what a drain step that is at work remembers; of any other, nothing.
func (r Record) Draining() DrainMemory {
	var m DrainMemory
	if r.Type != plan.TypeDrain || r.Phase != StepRunning || json.Unmarshal(r.Memory, &m) != nil {
		return DrainMemory{}
	}
	return m
}

// Drains are the nodes of a drain step that is at work; of any other, none.
func (r Record) Drains() []DrainTarget { return r.Draining().Nodes }
