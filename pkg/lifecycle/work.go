package lifecycle

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// Work is what a run has to do with a node.
type Work struct {
	Node, Claimant string
	Planned        bool // a rollout lists it, or a drain is to take it
	AtWork         bool // steps of a rollout are at work on it, other than a drain alone
	Draining       bool
	Blocked        bool // its drain could not end
	Why            string
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
		out = append(out, Work{Node: w.Node, Claimant: claimant, Planned: true})
	}
	for _, h := range holds {
		if !h.Failed && h.Drain == "" {
			out = append(out, Work{Node: h.Node, Claimant: claimant, AtWork: true})
		}
	}
	for i := range j.Steps {
		out = append(out, ofDrain(&j.Steps[i], claimant)...)
	}
	return out
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
			w.Draining, w.Blocked, w.Why = true, t.Blocked || t.Yielded, t.Why
		default:
			continue
		}
		out = append(out, w)
	}
	return out
}
