package gitops_test

import (
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/gitops"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

func TestWhichStepMovesTheTarget(t *testing.T) {
	const web, other = "{apiVersion: apps/v1, kind: Deployment, name: web}", "{apiVersion: apps/v1, kind: Deployment, name: other}"
	for name, c := range map[string]struct{ fields, step, want string }{
		"scale":                    {"", "{name: s, type: scale, properties: {resource: " + web + ", replicas: 0}}", "s"},
		"scale of another":         {"", "{name: s, type: scale, properties: {resource: " + other + ", replicas: 0}}", ""},
		"a patch in a group":       {"", "{name: g, type: step-group, properties: {steps: [{name: s, type: patch-object, properties: {resource: " + web + ", patch: {spec: {paused: true}}}}]}}", "s"},
		"its own labels":           {"", "{name: s, type: label, properties: {operation: add, labels: {a: b}}}", "s"},
		"labels of another":        {"", "{name: s, type: label, properties: {operation: add, labels: {a: b}, object: " + other + "}}", ""},
		"an apply":                 {"", "{name: s, type: apply-object, properties: {object: {apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 1}}}}", "s"},
		"a restart":                {"", "{name: s, type: restart, properties: {resource: " + web + "}}", ""},
		"with holdOwners":          {"  holdOwners: true\n", "{name: s, type: scale, properties: {resource: " + web + ", replicas: 0}}", ""},
		"in a template":            {"", "{name: t, type: template/down}", "inner"},
		"behind one that holds it": {"", "{name: h, type: hold-owners, properties: {restoreAfter: true}}\n  - {name: s, type: scale, properties: {resource: " + web + ", replicas: 0}}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			text := "apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec:\n  target: " + web + "\n" + c.fields + "  steps:\n  - " + c.step + "\n"
			spec, faults := plan.Parse([]byte(text), "p")
			if len(faults) > 0 {
				t.Fatal(faults)
			}
			step, moves := gitops.MovesTarget(plan.Tree{Spec: spec, Templates: map[string]plan.TemplateSpec{"down": {Steps: []plan.Step{{Name: "inner", Type: plan.TypeScale, Properties: map[string]any{"resource": map[string]any{"kind": "Deployment", "name": "web"}}}}}}})
			if step.Name != c.want || moves != (c.want != "") {
				t.Errorf("%q, %t", step.Name, moves)
			}
		})
	}
}
