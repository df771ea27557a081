package plan_test

import (
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// Who adds a type of step says here what it does: nobody else would think of it.
func TestWhatAStepOfEachTypeDoes(t *testing.T) {
	type effect struct {
		nothing, lasts bool
		object         string
		orTarget       bool
	}
	want := map[string]effect{
		"label":              {object: "object", orTarget: true},
		"annotate":           {object: "object", orTarget: true},
		"patch-object":       {object: "resource"},
		plan.TypeScale:       {lasts: true, object: "resource"},
		plan.TypeHoldOwners:  {},
		"suspend":            {nothing: true},
		"wait":               {nothing: true},
		"webhook":            {},
		"job":                {},
		plan.TypeApply:       {lasts: true, object: "object"},
		plan.TypeDelete:      {},
		"restart":            {},
		"health-check":       {nothing: true},
		"prometheus":         {nothing: true},
		"notification":       {nothing: true},
		"silence":            {},
		"exec":               {},
		plan.TypeBackup:      {},
		plan.TypeFunction:    {},
		plan.TypePipeline:    {},
		plan.TypeApproval:    {nothing: true},
		plan.TypeGroup:       {},
		plan.TypeForEach:     {},
		plan.TypeCordon:      {},
		plan.TypeDrain:       {},
		plan.TypeUncordon:    {},
		plan.TypeHibernate:   {},
		plan.TypeWake:        {},
		plan.TypeForEachNode: {},
	}
	known := 0
	for _, kind := range plan.StepTypes() {
		known++
		is, told := want[kind.Name]
		if !told {
			t.Errorf("%s has no row here: say what a step of it does, and in pkg/plan/effects.go", kind.Name)
			continue
		}
		got := effect{nothing: plan.ChangesNothing(kind.Name), lasts: plan.KeepsEffect(kind.Name)}
		got.object, got.orTarget = plan.ChangedObject(kind.Name)
		if got != is {
			t.Errorf("%s: %+v, not %+v", kind.Name, got, is)
		}
	}
	if known != len(want) {
		t.Errorf("%d types, and %d rows", known, len(want))
	}
}
