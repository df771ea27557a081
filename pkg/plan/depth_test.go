package plan_test

import (
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// Validation refuses such a tree; whoever walks one that nobody validated comes to an end
// all the same.
func TestATreeThatHoldsItselfIsWalkedToAnEnd(t *testing.T) {
	hook := plan.Step{Name: "hook", Type: "webhook"}
	for name, steps := range map[string][]plan.Step{
		"a template that stands for itself": {{Name: "again", Type: "template/round"}},
		"beside a step":                     {hook, {Name: "again", Type: "template/round"}},
		"in a group":                        {{Name: "g", Type: "step-group", Inner: []plan.Step{{Name: "again", Type: "template/round"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			first := plan.Step{Name: "a", Type: "template/round"}
			tree := plan.Tree{Spec: plan.Spec{Steps: []plan.Step{first}}, Templates: map[string]plan.TemplateSpec{"round": {Steps: steps}}}
			visited := 0
			tree.Walk(func(plan.Step) { visited++ })
			if visited == 0 || visited > 1000 {
				t.Errorf("%d steps were visited", visited)
			}
			if tree.Loops() {
				t.Error("it has no loop")
			}
			if !tree.Disruptive(first) {
				t.Error("what is too deep to be looked at counts as disruptive")
			}
			tree.RollsOut()
			long := "a"
			for range 10_000 {
				long += "/again"
			}
			tree.Find(long)
		})
	}
}
