package trigger

import (
	"encoding/json"
	"slices"

	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// unasked is the step by which the plan as it stands asks for an approval that the steps of an
// earlier run do not ask for in the same place; empty: there is none, or the whole run waits for one.
// Up to the last step that asks, an earlier run must have the same steps, so that nothing that waits
// now runs unasked. What they do may differ.
func (f Facts) unasked(earlier run.Run) string {
	if f.Plan.Spec.RequiresApproval {
		return ""
	}
	a := approvals{now: plan.Tree{Spec: f.Plan.Spec, Templates: f.Plan.Templates}, then: earlier.Tree()}
	then := plan.Sections(earlier.Spec)
	for i, s := range plan.Sections(f.Plan.Spec) {
		last := -1
		for at, step := range s.Steps {
			if a.asks(a.now, step) {
				last = at
			}
		}
		was := then[i].Steps
		if last >= 0 && (len(was) <= last || !a.same(s.Steps[:last+1], was[:last+1])) {
			return "step " + s.Steps[last].Name
		}
	}
	return ""
}

// approvals compares where the steps of two plans ask for an approval.
type approvals struct{ now, then plan.Tree }

// asks says whether a step is an approval, or holds one.
func (a approvals) asks(t plan.Tree, s plan.Step) bool {
	found := s.Type == plan.TypeApproval
	if s.Holds() {
		t.WalkBelow(s, func(below plan.Step) { found = found || below.Type == plan.TypeApproval })
	}
	return found
}

func (a approvals) same(now, then []plan.Step) bool {
	return slices.EqualFunc(now, then, func(n, t plan.Step) bool {
		switch {
		case n.Name != t.Name || n.Type != t.Type || !slices.Equal(n.DependsOn, t.DependsOn):
			return false
		case !a.asks(a.now, n):
			return true
		case n.If != t.If:
			return false
		case !n.Holds():
			return true
		}
		return equalJSON(n.Own(), t.Own()) && a.same(a.now.Children(n), a.then.Children(t))
	})
}

// equalJSON compares by the text: numbers have other types where they were read from a run.
func equalJSON(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}
