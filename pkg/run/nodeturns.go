package run

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// Bounds of what a plan remembers of nodes.
const (
	// MaxNodeTurns is more than one rollout takes: a plan may hold several.
	MaxNodeTurns = 2 * plan.MaxItems
	// uidPrefix tells two nodes of one name apart, and saves most of a uid's bytes.
	uidPrefix = 8
)

// NodeTurn is when the rollouts of a plan were last through with a node. Instants
// have whole seconds.
type NodeTurn struct {
	UID     string `json:"u,omitempty"` // how the node's uid begins
	Last    int64  `json:"t"`           // whatever came of it
	Success int64  `json:"s,omitempty"` // its last success; 0: none yet
	Failed  int64  `json:"f,omitempty"` // the first turn since then that was no success; 0: none, or written by an agent that did not note it
}

// Of says whether the turn was this very node's, and not that of one that was
// there under its name before.
func (t NodeTurn) Of(uid string) bool { return t.UID == "" || uid == "" || t.UID == shortUID(uid) }

// Compare is the order of turns: the older success first. A node that never had a turn, the zero
// turn, comes before all. A node whose last turn failed keeps its place, and so is tried again early;
// where that fails too, it goes behind all that had their turn before it. So a node that always fails
// has at most one turn more than others between two of theirs, and keeps nobody from it.
func (t NodeTurn) Compare(o NodeTurn) int {
	return cmp.Or(cmp.Compare(t.place(), o.place()), cmp.Compare(t.Last, o.Last))
}

func (t NodeTurn) place() int64 {
	if failed := t.failed(); failed > 0 && t.Last > failed {
		return t.Last
	}
	return t.Success
}

// failed is the first turn since the last success that was none, as far as is known; 0: there is none.
func (t NodeTurn) failed() int64 {
	switch {
	case t.Last <= t.Success:
		return 0
	case t.Failed > t.Success:
		return t.Failed
	}
	return t.Last
}

func shortUID(uid string) string { return uid[:min(len(uid), uidPrefix)] }

// NodeTurns are the turns that a plan remembers, by the node's name.
type NodeTurns map[string]NodeTurn

// Turns are those that the rollouts of a run have given, until now. A node that is
// still at work when the run ends had its turn: else one that never comes to an end
// would be the first of every run.
func (j Journal) Turns(now time.Time) NodeTurns {
	out := NodeTurns{}
	for i := range j.Steps {
		rec := &j.Steps[i]
		if rec.Type != plan.TypeForEachNode {
			continue
		}
		for _, item := range rec.Items {
			turn := NodeTurn{UID: shortUID(item.UID)}
			switch {
			case item.At != nil:
				turn.Last = item.At.Unix()
			case item.Phase == StepRunning:
				turn.Last = now.Unix()
			default: // not begun, or with nothing to do
				continue
			}
			if item.Phase == StepSucceeded {
				turn.Success = turn.Last
			} else {
				turn.Failed = turn.Last
			}
			out.add(item.Name, turn)
		}
	}
	return out
}

// add takes in a turn. Of another node under the name nothing stays.
func (t NodeTurns) add(name string, turn NodeTurn) {
	was, known := t[name]
	if known && was.Of(turn.UID) {
		both := NodeTurn{UID: cmp.Or(turn.UID, was.UID), Last: max(was.Last, turn.Last), Success: max(was.Success, turn.Success)}
		for _, failed := range []int64{was.failed(), turn.failed()} {
			if failed > both.Success && (both.Failed == 0 || failed < both.Failed) {
				both.Failed = failed
			}
		}
		turn = both
	}
	t[name] = turn
}

// With are the turns with others taken in, without those of nodes that are gone.
// Taking in the same twice changes nothing. Past MaxNodeTurns the oldest go.
func (t NodeTurns) With(more NodeTurns, gone func(name string) bool) NodeTurns {
	out := maps.Clone(t)
	if out == nil {
		out = NodeTurns{}
	}
	for name, turn := range more {
		out.add(name, turn)
	}
	maps.DeleteFunc(out, func(name string, _ NodeTurn) bool { return gone(name) })
	return out.Newest(MaxNodeTurns)
}

// Newest are the newest of the turns, at most so many.
func (t NodeTurns) Newest(most int) NodeTurns {
	if len(t) <= most {
		return t
	}
	names := slices.SortedFunc(maps.Keys(t), func(a, b string) int {
		return cmp.Or(cmp.Compare(t[b].Last, t[a].Last), cmp.Compare(a, b))
	})
	out := NodeTurns{}
	for _, name := range names[:most] {
		out[name] = t[name]
	}
	return out
}
