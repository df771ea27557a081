package plan

import "slices"

// MovesTarget is the first step that changes the plan's target, so that who keeps the target
// as Git has it may undo that while the run lives; false where there is none, or where the
// plan holds that one.
func MovesTarget(s Spec) (step Step, moves bool) {
	if s.Target == nil || s.HoldOwners || s.ConnectorRef != nil { // no owner is looked for on another cluster
		return Step{}, false
	}
	held := false
	Tree{Spec: s}.Walk(func(at Step) {
		held = held || at.Type == TypeHoldOwners
		if !moves && changes(at, *s.Target) {
			step, moves = at, true
		}
	})
	if held {
		return Step{}, false
	}
	return step, moves
}

// changes says whether a step sets a field of an object that it leaves so.
func changes(s Step, target ObjectRef) bool {
	key := map[string]string{TypeScale: "resource", "patch-object": "resource", "label": "object", "annotate": "object", TypeApply: "object"}[s.Type]
	if key == "" {
		return false
	}
	given, named := s.Properties[key].(map[string]any)
	if !named {
		return slices.Contains([]string{"label", "annotate"}, s.Type)
	}
	name := given["name"]
	if meta, applied := given["metadata"].(map[string]any); applied && s.Type == TypeApply {
		name = meta["name"]
	}
	return given["kind"] == target.Kind && name == target.Name
}
