package workflow

import (
	"slices"
	"strings"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// NodeClaims are the nodes that a run has, and those that it would still take, by
// its journal alone: of its rollouts, and of its drains outside of any rollout. The
// agent and whoever explains it look here, so that they cannot disagree.
//
// A want is one of all that a step is still to take; those that may be begun now
// are Next. A drain has its node from its cordon until the pods have left; one that
// yielded its slot keeps the node, and wants the slot back. cordons says whether the steps of a
// rollout cordon or drain, which the journal does not tell of nodes that are through.
func NodeClaims(one run.Run, j run.Journal, cordons func(rollout string) bool) (holds []nodes.Hold, wants []nodes.Candidate) {
	if j.Phase != run.Running {
		return nil, nil
	}
	claimant := nodes.PlanClaimant(one.Namespace, one.Plan)
	for _, r := range j.Rollouts() {
		next, since := len(r.Running) == 0, RolloutWait(j, r.Path)
		for _, item := range j.Record(r.Path).Items {
			switch item.Phase {
			case run.StepRunning, run.StepFailed:
				h := nodes.Hold{Node: item.Name, Claimant: claimant, Path: r.Path, Failed: item.Phase == run.StepFailed}
				h.Cordoned = h.Failed && cordons(r.Path) // whoever uncordoned it since has it in service again
				h.Drain, h.Yielded = drainAlone(j, r.Path+"/"+item.Segment(), item.Name)
				holds = append(holds, h)
			case "":
				wants = append(wants, nodes.Candidate{Node: item.Name, Claimant: claimant, Path: r.Path, Next: next, Since: since})
				next = false
			}
		}
	}
	for i := range j.Steps {
		rec := &j.Steps[i]
		for _, t := range rec.Drains() {
			_, rolls := one.RolloutNode(j, rec.Path)
			switch {
			case (t.Cordoned || t.Yielded) && !t.Drained:
				holds = append(holds, nodes.Hold{Node: t.Name, Claimant: claimant, Path: rec.Path, Drain: rec.Path, Yielded: t.Yielded, Cordoned: true})
			case !t.Cordoned && !rolls:
				since, found := DrainWait(j, rec.Path, t.Name)
				wants = append(wants, nodes.Candidate{Node: t.Name, Claimant: claimant, Path: rec.Path, Next: true, Since: since, Blocked: found})
			}
		}
	}
	return holds, wants
}

// RolloutWait is since when a rollout wants its next node: since its attempt began, or since
// the last of its nodes was through. Zero: there is no such rollout.
func RolloutWait(j run.Journal, path string) time.Time {
	rec := j.Record(path)
	if rec == nil || rec.AttemptAt == nil {
		return time.Time{}
	}
	since := *rec.AttemptAt
	for _, item := range rec.Items {
		if item.At != nil && item.At.After(since) {
			since = *item.At
		}
	}
	return since
}

// DrainWait is since when a drain at work wants a node, and what was found in its way: before
// its cordon, or when it yielded its slot. A drain that wants no such node says nothing.
func DrainWait(j run.Journal, path, node string) (since time.Time, found nodes.Block) {
	rec := j.Record(path)
	if rec == nil {
		return time.Time{}, nodes.Block{}
	}
	m := rec.Draining()
	for _, t := range m.Nodes {
		if t.Name != node {
			continue
		}
		if t.Yielded || t.Blocked && !t.Cordoned && t.Why != "" { // older agents gave no reason before a cordon
			found = nodes.Block{Permanent: true, Text: t.Why}
		}
		return m.Since, found
	}
	return time.Time{}, nodes.Block{}
}

// drainAlone is the path of the drain of a node that is all that is at work on an
// item of a rollout, and whether it yielded its slot.
func drainAlone(j run.Journal, item, node string) (path string, yielded bool) {
	var works []*run.Record
	for i := range j.Steps {
		if rec := &j.Steps[i]; rec.Phase == run.StepRunning && strings.HasPrefix(rec.Path, item+"/") {
			works = append(works, rec)
		}
	}
	works = slices.DeleteFunc(works, func(rec *run.Record) bool { // what only holds other steps
		return slices.ContainsFunc(j.Steps, func(o run.Record) bool {
			return o.Phase == run.StepRunning && strings.HasPrefix(o.Path, rec.Path+"/")
		})
	})
	if len(works) != 1 {
		return "", false
	}
	for _, t := range works[0].Drains() {
		if t.Name == node && (t.Cordoned || t.Yielded || len(works[0].Drains()) == 1) && !t.Drained {
			return works[0].Path, t.Yielded
		}
	}
	return "", false
}
