package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// ownedPlan is a plan of a Deployment with these fields and steps.
func ownedPlan(t *testing.T, fields string, steps ...string) (plan.Spec, []string) {
	t.Helper()
	text := "apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec:\n  target: {apiVersion: apps/v1, kind: Deployment, name: web}\n" + fields + "  steps:\n  - " + strings.Join(steps, "\n  - ") + "\n"
	spec, faults := plan.Parse([]byte(text), "p")
	var said []string
	for _, f := range faults {
		said = append(said, f.Path+": "+f.Message)
	}
	return spec, said
}

const rests = "{name: rest, type: suspend}"

func TestHoldOwnersIsTheFirstStep(t *testing.T) {
	spec, faults := ownedPlan(t, "  holdOwners: true\n", rests)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	twice := spec.Defaulted().Defaulted()
	if len(twice.Steps) != 2 || twice.Steps[0].Name != "hold-owners" || !plan.Restores(twice.Steps[0]) || twice.Steps[1].Name != "rest" {
		t.Errorf("%+v", twice.Steps)
	}
	if found := plan.CheckSnapshot(twice, nil); len(found) > 0 {
		t.Errorf("a run's snapshot is not valid: %v", found)
	}
	if plain, _ := ownedPlan(t, "", rests); len(plain.Defaulted().Steps) != 1 {
		t.Error("a plan that does not ask for it has the step")
	}
}

func TestHoldOwnersRefuses(t *testing.T) {
	var most []string
	for i := range plan.MaxSteps {
		most = append(most, fmt.Sprintf("{name: s%d, type: suspend}", i))
	}
	for name, c := range map[string]struct {
		fields string
		steps  []string
		want   string
	}{
		"as many steps as a plan may have": {"  holdOwners: true\n", most, ""},
		"a step of its name":               {"  holdOwners: true\n", []string{rests, "{name: hold-owners, type: suspend}"}, `spec.steps[1].name: "hold-owners" is already the name of the step that spec.holdOwners puts first`},
		"a step that does not give back":   {"", []string{"{name: hold, type: hold-owners, properties: {restoreAfter: false}}"}, "spec.steps[0].properties.restoreAfter: must be true"},
		"a step of its own":                {"", []string{"{name: hold, type: hold-owners, properties: {restoreAfter: true, object: {apiVersion: v1, kind: Service, name: web}}}"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			spec, faults := ownedPlan(t, c.fields, c.steps...)
			if got := strings.Join(faults, "; "); !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
				t.Errorf("%s, want %s", got, c.want)
			}
			if c.want == "" {
				if found := plan.CheckSnapshot(spec.Defaulted(), nil); len(found) > 0 {
					t.Errorf("a run's snapshot is not valid: %v", found)
				}
			}
		})
	}
	_, faults := plan.Parse([]byte("apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec: {holdOwners: true, steps: ["+rests+"]}\n"), "p")
	if len(faults) != 1 || faults[0].Message != "needs spec.target: the owner of that is suspended" {
		t.Errorf("%v", faults)
	}
}
