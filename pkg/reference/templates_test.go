package reference_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/coretest"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/reference"
)

func templateOf(t *testing.T, spec string) plan.TemplateSpec {
	t.Helper()
	parsed, faults := plan.ParseTemplate([]byte("apiVersion: maint.dev/v1alpha1\nkind: StepTemplate\nspec: "+spec+"\n"), "t")
	if len(faults) > 0 {
		t.Fatalf("%s\nof\n%s", faults.Error(), spec)
	}
	return parsed
}

// used are the faults of a plan that names templates.
func used(t *testing.T, spec string, templates map[string]*plan.Template) []string {
	t.Helper()
	text := "apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec:\n  " + strings.ReplaceAll(strings.TrimSuffix(spec, "\n"), "\n", "\n  ") + "\n"
	parsed, faults := plan.Parse([]byte(text), "orders")
	if len(faults) > 0 {
		t.Fatalf("%s\nof\n%s", faults.Error(), text)
	}
	_, faults = reference.UseTemplates(parsed, func(name string) *plan.Template { return templates[name] })
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
	found, _ := reference.UseTemplates(parsed, func(name string) *plan.Template { return templates[name] })
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
