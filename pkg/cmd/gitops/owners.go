package gitops

import (
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// MovesTarget is the first step that changes the plan's target. A GitOps tool that reconciles the
// target may undo that while the run lives. It is false if no step does, or if the plan suspends
// that tool.
func MovesTarget(t plan.Tree) (step plan.Step, moves bool) {
	s := t.Spec
	if s.Target == nil || s.HoldOwners || s.ConnectorRef != nil { // on another cluster, no owner is looked for
		return plan.Step{}, false
	}
	held := false
	t.Walk(func(at plan.Step) {
		held = held || at.Type == plan.TypeHoldOwners
		if !moves && changes(at, *s.Target) {
			step, moves = at, true
		}
	})
	if held {
		return plan.Step{}, false
	}
	return step, moves
}

// changes says whether a step changes a field of an object without restoring it.
func changes(s plan.Step, target plan.ObjectRef) bool {
	key, orTarget := plan.ChangedObject(s.Type)
	if key == "" {
		return false
	}
	given, named := s.Properties[key].(map[string]any)
	if !named {
		return orTarget
	}
	name := given["name"]
	if meta, applied := given["metadata"].(map[string]any); applied && s.Type == plan.TypeApply {
		name = meta["name"]
	}
	return given["kind"] == target.Kind && name == target.Name
}
