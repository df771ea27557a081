package lifecycle

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// Work is what a run has to do with a node.
type Work struct {
	Node, Claimant string
	Planned        bool       // a rollout lists it, or a drain is to take it
	Begun          bool       // of a planned one: its turn in the rollout has come, and no window keeps it from its cordon
	Opens          *time.Time // of a planned one: when the window of the run opens; nil: not known, or it is open
	Closed         string     // of a planned one: why the run may not begin with it yet; empty: it may
	AtWork         bool       // steps of a rollout are at work on it
	Draining       bool
	Blocked        bool      // something is in the way of its drain
	Why            string    // what that is
	Drained        bool      // its drain has ended, and its pods have left
	Incomplete     bool      // its drain has ended, and left pods
	Since          time.Time // when its drain had the node
}

// of says whether the drain of a run is one of the cordon that stands.
func (w Work) of(record *nodes.Cordon) bool {
	return slices.Contains(record.By, w.Claimant) && !w.Since.Before(record.At.Truncate(time.Second))
}

// OfRun are the works of a run that is at work on nodes: by what it claims of them, as
// workflow.NodeClaims says it, and by its journal.
func OfRun(claimant string, j run.Journal, holds []nodes.Hold, wants []nodes.Candidate) []Work {
	var out []Work
	for _, w := range wants {
		one := Work{Node: w.Node, Claimant: claimant, Planned: true}
		if rec := j.Record(w.Path); rec != nil && rec.Window != nil {
			one.Opens, one.Closed = rec.Window.Opens, rec.Window.Why
		}
		out = append(out, one)
	}
	for _, h := range holds {
		switch {
		case h.Failed || h.Drain != "" && h.Drain == h.Path: // a drain outside of a rollout
		case h.Drain != "" && waits(j, h):
			out = append(out, Work{Node: h.Node, Claimant: claimant, Planned: true, Begun: true})
		default:
			out = append(out, Work{Node: h.Node, Claimant: claimant, AtWork: true})
		}
	}
	for i := range j.Steps {
		out = append(out, ofDrain(&j.Steps[i], claimant)...)
	}
	return out
}

// waits says whether nothing of a rollout has been at work on its node but a drain that is still to
// cordon it.
func waits(j run.Journal, h nodes.Hold) bool {
	segment, _, _ := strings.Cut(strings.TrimPrefix(h.Drain, h.Path+"/"), "/")
	for i := range j.Steps {
		switch rec := &j.Steps[i]; {
		case rec.Path == h.Drain:
			if slices.ContainsFunc(rec.Drains(), func(t run.DrainTarget) bool { return t.Name == h.Node && t.Cordoned }) {
				return false
			}
		case rec.Holds() || rec.Phase == run.StepPending || rec.Phase == run.StepSkipped:
		case plan.Below(rec.Path, h.Path+"/"+segment):
			return false
		}
	}
	return true
}

// ofDrain are the works of a drain that is at work, or has ended well.
func ofDrain(rec *run.Record, claimant string) []Work {
	var m run.DrainMemory
	working := rec.Phase == run.StepRunning
	if rec.Type != plan.TypeDrain || !working && rec.Phase != run.StepSucceeded || json.Unmarshal(rec.Memory, &m) != nil {
		return nil
	}
	var out []Work
	for _, t := range m.Nodes {
		w := Work{Node: t.Name, Claimant: claimant, Since: t.Since}
		switch {
		case !t.Cordoned:
			continue
		case t.Drained:
			w.Drained, w.Incomplete = !t.Left, t.Left
		case working:
			w.Draining, w.Blocked, w.Why = true, t.Blocked || t.Yielded || t.Why != "", t.Why
		default:
			continue
		}
		out = append(out, w)
	}
	return out
}
