package reference_test

import (
	"strings"
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/reference"
)

// A snapshot is read from an object that somebody may have made up: what cannot be walked is told.
func TestWhetherTheStepsOfASnapshotCanBeWalked(t *testing.T) {
	deep := map[string]any{}
	for range 200 {
		deep = map[string]any{"a": deep}
	}
	use := func(template string) []plan.Step {
		return []plan.Step{{Name: "in", Type: plan.TemplatePrefix + template}}
	}
	pause := []plan.Step{{Name: "wait", Type: "suspend"}}
	for name, c := range map[string]struct {
		spec      plan.Spec
		templates map[string]plan.TemplateSpec
		want      string
	}{
		"no step":                       {},
		"a step of a template":          {spec: plan.Spec{Steps: use("a")}, templates: map[string]plan.TemplateSpec{"a": {Steps: pause}}},
		"a template that is not there":  {spec: plan.Spec{Steps: use("b")}, templates: map[string]plan.TemplateSpec{"a": {Steps: pause}}, want: `spec.steps[0].type: there is no step template "b"`},
		"a template that holds itself":  {spec: plan.Spec{Steps: use("a")}, templates: map[string]plan.TemplateSpec{"a": {Steps: use("a")}}, want: "spec.steps[0]"},
		"properties nested too deep":    {spec: plan.Spec{Finally: []plan.Step{{Name: "x", Type: "suspend", Properties: deep}}}, want: "spec.finally[0].properties: are nested too deep"},
		"those of a step of a template": {templates: map[string]plan.TemplateSpec{"a": {Steps: []plan.Step{{Name: "x", Properties: deep}}}}, want: "templates.a.spec.steps[0].properties: are nested too deep"},
	} {
		faults := reference.CheckTree(c.spec, c.templates)
		if c.want == "" && len(faults) > 0 || c.want != "" && (len(faults) == 0 || !strings.Contains(faults.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, faults, c.want)
		}
	}
}
