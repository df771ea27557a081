package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/coretest"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

func TestATemplateIsCheckedLikeAPlan(t *testing.T) {
	steps := "steps: [{name: a, type: suspend}]"
	many := func(n int) string {
		return "{steps: [" + strings.Join(coretest.Repeat(func(i int) string { return fmt.Sprintf("{name: s%d, type: suspend}", i) }, n), ", ") + "]}"
	}
	for _, c := range []struct{ name, of, spec, want string }{
		{"a template", "t", "{description: d, parameters: [{name: a, type: integer, default: 3}, {name: b, required: true}], " + steps + "}", ""},
		{"a default of each type", "t", "{parameters: [{name: a, default: x}, {name: b, type: string, default: x}, {name: c, type: number, default: 1.5}, {name: d, type: number, default: 1}, {name: e, type: integer, default: 1}, {name: f, type: boolean, default: true}, {name: g, type: object, default: {a: b}}, {name: h, type: array, default: [a]}], " + steps + "}", ""},
		{"what speaks of its parameters", "t", "{steps: [{name: a, type: suspend, if: 'params.x == 1', properties: {duration: '${params.y}'}}]}", ""},
		{"a step about nodes may be of a rollout", "t", "{steps: [{name: a, type: drain}, {name: w, type: wait, properties: {condition: Ready}}, {name: l, type: label, properties: {operation: add, labels: {a: b}}}]}", ""},
		{"a template without a name of its own", "", "{" + steps + "}", ""},
		{"a name that is none", "A_b", "{" + steps + "}", `metadata.name: "A_b" cannot name a template`},
		{"no steps", "t", "{}", "spec.steps: is empty: a template needs a step"},
		{"an empty list of steps", "t", "{steps: []}", "spec.steps: is empty: a template needs a step"},
		{"as many steps as a plan may have", "t", many(plan.MaxSteps), ""},
		{"one step more", "t", many(plan.MaxSteps + 1), "spec.steps: a template may have 100 steps, this one has 101"},
		{"another kind of step", "t", "{steps: [{name: a, type: nobody}]}", `spec.steps[0].type: unknown step type "nobody"`},
		{"a parameter that cannot be named", "t", "{parameters: [{name: 'a b'}], " + steps + "}", `spec.parameters[0].name: "a b" cannot name a parameter`},
		{"a parameter that appears twice", "t", "{parameters: [{name: a}, {name: a}], " + steps + "}", `spec.parameters[1].name: "a" appears twice`},
		{"a type that is none", "t", "{parameters: [{name: a, type: text, default: 1}], " + steps + "}", `spec.parameters[0].type: must be string, number, integer, boolean, object or array, is "text"`},
		{"a default of another type", "t", "{parameters: [{name: a, type: integer, default: x}], " + steps + "}", "spec.parameters[0].default: must be of type integer"},
		{"a broken number as a whole one", "t", "{parameters: [{name: a, type: integer, default: 1.5}], " + steps + "}", "spec.parameters[0].default: must be of type integer"},
		{"a number as a text", "t", "{parameters: [{name: a, default: 1}], " + steps + "}", "spec.parameters[0].default: must be of type string"},
		{"a text as a number", "t", "{parameters: [{name: a, type: number, default: x}], " + steps + "}", "spec.parameters[0].default: must be of type number"},
		{"an unknown field", "t", "{parametres: [], " + steps + "}", `spec.parametres: unknown field; did you mean "parameters"?`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, faults := plan.ParseTemplate([]byte("apiVersion: maint.dev/v1alpha1\nkind: StepTemplate\nspec: "+c.spec+"\n"), c.of)
			if c.want == "" && len(faults) > 0 || c.want != "" && (len(faults) != 1 || !strings.Contains(faults[0].String(), c.want)) {
				t.Errorf("got %v, want %q", faults, c.want)
			}
		})
	}
	if _, faults := plan.ParseTemplate([]byte("["), "t"); len(faults) != 1 {
		t.Errorf("no YAML: %v", faults)
	}
	if _, faults := plan.ParseTemplate([]byte("apiVersion: v1\nkind: Plan\nspec: {"+steps+"}\n"), "t"); len(faults) != 2 {
		t.Errorf("another envelope: %v", faults)
	}
}

func TestTheParametersOfATemplate(t *testing.T) {
	tree := plan.Tree{Templates: map[string]plan.TemplateSpec{"t": templateOf(t, "{parameters: [{name: size, type: integer, default: 3}, {name: who}, {name: share, type: number}, {name: on, type: boolean}, {name: o, type: object, default: {a: 1}}, {name: l, type: array}], steps: [{name: a, type: suspend}]}")}}
	step := plan.Step{Type: "template/t"}
	defaults := func(more map[string]any) map[string]any {
		out := map[string]any{"size": int64(3), "o": map[string]any{"a": int64(1)}}
		for key, value := range more {
			out[key] = value
		}
		return out
	}
	for _, c := range []struct {
		name  string
		given map[string]any
		want  map[string]any
		fails string
	}{
		{"none are given", nil, defaults(nil), ""},
		{"all are given", map[string]any{"size": int64(5), "who": "jane", "share": 0.5, "on": true, "o": map[string]any{}, "l": []any{}}, map[string]any{"size": int64(5), "who": "jane", "share": 0.5, "on": true, "o": map[string]any{}, "l": []any{}}, ""},
		{"a whole number is a number", map[string]any{"share": int64(1)}, defaults(map[string]any{"share": int64(1)}), ""},
		{"what it has not is left out", map[string]any{"more": "x"}, defaults(nil), ""},
		{"another type", map[string]any{"size": "five"}, nil, "parameter size of template t must be of type integer, is string"},
		{"a number as a text", map[string]any{"who": int64(5)}, nil, "parameter who of template t must be of type string, is int64"},
		{"a text as a list", map[string]any{"l": "a"}, nil, "parameter l of template t must be of type array, is string"},
		{"a list as an object", map[string]any{"o": []any{}}, nil, "parameter o of template t must be of type object, is []interface {}"},
		{"a text as a boolean", map[string]any{"on": "true"}, nil, "parameter on of template t must be of type boolean, is string"},
	} {
		got, err := tree.Params(step, c.given)
		if diff := cmp.Diff(c.want, got); diff != "" || fmt.Sprint(err) != map[bool]string{true: "<nil>", false: c.fails}[c.fails == ""] {
			t.Errorf("%s: %v, %s", c.name, err, diff)
		}
	}
	first, _ := tree.Params(step, nil)
	first["o"].(map[string]any)["a"] = "changed"
	if second, _ := tree.Params(step, nil); second["o"].(map[string]any)["a"] != int64(1) {
		t.Error("a default was changed by who was given it")
	}
}
