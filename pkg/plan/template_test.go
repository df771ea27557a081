package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/coretest"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
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

// used are the faults of a plan that names templates.
func used(t *testing.T, spec string, templates map[string]*plan.Template) []string {
	t.Helper()
	text := "apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec:\n" + indent(spec)
	parsed, faults := plan.Parse([]byte(text), "orders")
	if len(faults) > 0 {
		t.Fatalf("%s\nof\n%s", faults.Error(), text)
	}
	_, faults = plan.UseTemplates(parsed, func(name string) *plan.Template { return templates[name] })
	var out []string
	for _, f := range faults {
		out = append(out, f.String())
	}
	return out
}

func TestHowATemplateIsUsed(t *testing.T) {
	both := []string{plan.ContextInteractive, plan.ContextMaintenance}
	of := func(spec string, contexts ...string) *plan.Template {
		return &plan.Template{Spec: templateOf(t, spec), Contexts: contexts}
	}
	suspend := "steps: [{name: s, type: suspend}]"
	templates := map[string]*plan.Template{
		"plain":   of("{"+suspend+"}", both...),
		"unsaid":  of("{" + suspend + "}"),
		"nightly": of("{"+suspend+"}", plan.ContextMaintenance),
		"sized":   of("{parameters: [{name: size, type: integer, required: true}, {name: who}, {name: given, required: true, default: x}], "+suspend+"}", both...),
		"outer":   of("{steps: [{name: s, type: template/plain}]}", both...),
		"broken":  {Faults: document.Faults{{Path: "spec.steps", Message: "is empty: a template needs a step"}}},
		"itself":  of("{steps: [{name: s, type: template/itself}]}", both...),
		"ping":    of("{steps: [{name: s, type: template/pong}]}", both...),
		"pong":    of("{steps: [{name: s, type: template/ping}]}", both...),
		"lost":    of("{steps: [{name: s, type: template/absent}]}", both...),
		"group":   of("{steps: [{name: g, type: step-group, properties: {steps: [{name: s, type: template/absent}]}}]}", both...),
		"hundred": of("{steps: ["+strings.Join(coretest.Repeat(func(i int) string { return fmt.Sprintf("{name: s%d, type: suspend}", i) }, 99), ", ")+"]}", both...),
	}
	for i := range plan.MaxDepth + 2 {
		templates[fmt.Sprintf("deep%d", i)] = of(fmt.Sprintf("{steps: [{name: s, type: template/deep%d}]}", i+1), both...)
	}
	templates[fmt.Sprintf("deep%d", plan.MaxDepth+1)] = templates["plain"]
	scheduled := "triggers: {schedules: [{cron: '0 2 * * *'}]}\n"
	one := func(kind, properties string) string {
		return "steps:\n- {name: a, type: template/" + kind + ", properties: {" + properties + "}}\n"
	}
	for _, c := range []struct {
		name, spec string
		want       []string
	}{
		{"as it is", one("plain", ""), nil},
		{"in a group", "steps:\n- {name: g, type: step-group, properties: {steps: [{name: a, type: template/plain}]}}\n", nil},
		{"one that is not there", one("absent", ""), []string{`spec.steps[0].type: there is no step template "absent"`}},
		{"one that is not there in a group", "steps:\n- {name: g, type: step-group, properties: {steps: [{name: a, type: template/absent}]}}\n", []string{`spec.steps[0].properties.steps[0].type: there is no step template "absent"`}},
		{"one in finally", "steps:\n- {name: a, type: suspend}\nfinally:\n- {name: b, type: template/absent}\n", []string{`spec.finally[0].type: there is no step template "absent"`}},
		{"one that is not valid", one("broken", ""), []string{`spec.steps[0].type: step template "broken" is not valid: spec.steps: is empty: a template needs a step`}},
		{"one that uses another", one("outer", ""), nil},
		{"one that uses one that is not there", one("lost", ""), []string{`spec.steps[0](lost).steps[0].type: there is no step template "absent"`}},
		{"in a group of its own, too", one("group", ""), []string{`spec.steps[0](group).steps[0].properties.steps[0].type: there is no step template "absent"`}},
		{"one that stands for itself", one("itself", ""), []string{`spec.steps[0](itself).steps[0].type: template "itself" stands for itself through itself`}},
		{"two that stand for each other", one("ping", ""), []string{`spec.steps[0](ping).steps[0](pong).steps[0].type: template "ping" stands for itself through ping, pong`}},
		{"twice is not through itself", "steps:\n- {name: a, type: template/plain}\n- {name: b, type: template/plain}\n", nil},

		{"one for plans that people start, in such a plan", one("unsaid", ""), nil},
		{"in one by a schedule", scheduled + one("unsaid", ""), []string{`spec.steps[0].type: step template "unsaid" is permitted in interactive plans, not in maintenance ones`}},
		{"in one by a watch", "triggers: {watch: [{apiVersion: v1, kind: A}]}\n" + one("unsaid", ""), []string{`spec.steps[0].type: step template "unsaid" is permitted in interactive plans, not in maintenance ones`}},
		{"in one by a label", "target: {apiVersion: v1, kind: A, name: b}\ntriggers: {labels: [x]}\n" + one("unsaid", ""), []string{`spec.steps[0].type: step template "unsaid" is permitted in interactive plans, not in maintenance ones`}},
		{"one for maintenance", scheduled + one("nightly", ""), nil},
		{"one for maintenance that people start", one("nightly", ""), []string{`spec.steps[0].type: step template "nightly" is permitted in maintenance plans, not in interactive ones`}},
		{"one for both", scheduled + one("plain", ""), nil},

		{"what it needs", one("sized", "size: 3"), nil},
		{"what an expression gives it", one("sized", "size: '${1 + 1}'"), nil},
		{"without what it needs", one("sized", "who: jane"), []string{`spec.steps[0].properties.size: is missing: template "sized" needs it`}},
		{"of another type", one("sized", "size: large"), []string{"spec.steps[0].properties.size: must be of type integer"}},
		{"a number as a text", one("sized", "size: 3, who: 7"), []string{"spec.steps[0].properties.who: must be of type string"}},
		{"what it has not", one("sized", "size: 3, more: x"), []string{`spec.steps[0].properties.more: template "sized" has no such parameter; it has given, size, who`}},

		{"as deep as steps may be", one("deep2", ""), nil},
		{"deeper", one("deep1", ""), []string{"spec.steps[0]" + deepPath(1, plan.MaxDepth+1) + ".type: is too deep: steps may hold steps 5 times"}},
		{"as many steps as are run", "steps:\n- {name: a, type: template/hundred}\n- {name: b, type: template/hundred}\n", nil},
		{"one step more", "steps:\n- {name: a, type: template/hundred}\n- {name: b, type: template/hundred}\n- {name: c, type: suspend}\n", []string{"spec.steps: with their templates they are 201; at most 200 are run"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, used(t, c.spec, templates)); diff != "" {
				t.Error(diff)
			}
		})
	}
	parsed, _ := plan.Parse([]byte("apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec: {steps: [{name: a, type: template/outer}]}\n"), "orders")
	found, _ := plan.UseTemplates(parsed, func(name string) *plan.Template { return templates[name] })
	if len(found) != 2 || len(found["outer"].Steps) != 1 || len(found["plain"].Steps) != 1 {
		t.Errorf("a run holds those that it names, and those that these name: %v", found)
	}
}

func deepPath(from, to int) string {
	path := ""
	for i := from; i < to; i++ {
		path += fmt.Sprintf("(deep%d).steps[0]", i)
	}
	return path
}
