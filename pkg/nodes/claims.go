package nodes

import (
	"slices"
	"strings"

	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// NodeClaims are the nodes that a run has, and those that it would still take, by
// its journal alone: of its rollouts, and of its drains outside of any rollout. The
// agent and whoever explains it look here, so that they cannot disagree.
//
// A want is one of all that a step is still to take; those that may be begun now
// are Next. A drain has its node from its cordon until the pods have left; one that
// yielded its slot keeps the node, and wants the slot back.
func NodeClaims(run plan.Run, j plan.Journal) (holds []Hold, wants []Want) {
	if j.Phase != plan.RunRunning {
		return nil, nil
	}
	claimant := PlanClaimant(run.Namespace, run.Plan)
	for _, r := range j.Rollouts() {
		next := len(r.Running) == 0
		for _, item := range j.Record(r.Path).Items {
			switch item.Phase {
			case plan.StepRunning, plan.StepFailed:
				h := Hold{Node: item.Name, Claimant: claimant, Path: r.Path, Failed: item.Phase == plan.StepFailed}
				h.Drain, h.Yielded = drainAlone(j, r.Path+"/"+item.Segment(), item.Name)
				holds = append(holds, h)
			case "":
				wants = append(wants, Want{Node: item.Name, Claimant: claimant, Path: r.Path, Next: next})
				next = false
			}
		}
	}
	for i := range j.Steps {
		rec := &j.Steps[i]
		for _, t := range rec.Drains() {
			_, rolls := run.RolloutNode(j, rec.Path)
			switch {
			case (t.Cordoned || t.Yielded) && !t.Drained:
				holds = append(holds, Hold{Node: t.Name, Claimant: claimant, Path: rec.Path, Drain: rec.Path, Yielded: t.Yielded})
			case !t.Cordoned && !rolls:
				wants = append(wants, Want{Node: t.Name, Claimant: claimant, Path: rec.Path, Next: true})
			}
		}
	}
	return holds, wants
}

// drainAlone is the path of the drain of a node that is all that is at work on an
// item of a rollout, and whether it yielded its slot.
func drainAlone(j plan.Journal, item, node string) (path string, yielded bool) {
	var works []*plan.Record
	for i := range j.Steps {
		if rec := &j.Steps[i]; rec.Phase == plan.StepRunning && strings.HasPrefix(rec.Path, item+"/") {
			works = append(works, rec)
		}
	}
	works = slices.DeleteFunc(works, func(rec *plan.Record) bool { // what only holds other steps
		return slices.ContainsFunc(j.Steps, func(o plan.Record) bool {
			return o.Phase == plan.StepRunning && strings.HasPrefix(o.Path, rec.Path+"/")
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
