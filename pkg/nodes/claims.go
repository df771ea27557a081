package nodes

import "github.com/kubectl-maint/kubectl-maint/pkg/plan"

// NodeClaims are the nodes that a run has, and those that it would still take, by
// its journal alone: of its rollouts, and of its drains outside of any rollout. The
// agent and whoever explains it look here, so that they cannot disagree.
//
// A want is one of all that a step is still to take; those that may be begun now
// are Next. A drain has its node from its cordon until the pods have left.
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
				holds = append(holds, Hold{Node: item.Name, Claimant: claimant, Path: r.Path, Failed: item.Phase == plan.StepFailed})
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
			case t.Cordoned && !t.Drained:
				holds = append(holds, Hold{Node: t.Name, Claimant: claimant, Path: rec.Path})
			case !t.Cordoned && !rolls:
				wants = append(wants, Want{Node: t.Name, Claimant: claimant, Path: rec.Path, Next: true})
			}
		}
	}
	return holds, wants
}
