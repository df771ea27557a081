package plan_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/coretest"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// treeOf is what a plan does, with the templates that it names.
func treeOf(t *testing.T, spec string, templates ...string) plan.Tree {
	t.Helper()
	tree := coretest.RunOf(t, spec).Tree()
	tree.Templates = map[string]plan.TemplateSpec{}
	for _, text := range templates {
		name, spec, _ := strings.Cut(text, ": ")
		tree.Templates[name] = templateOf(t, "{steps: ["+spec+"]}")
	}
	return tree
}

func templateOf(t *testing.T, spec string) plan.TemplateSpec {
	t.Helper()
	parsed, faults := plan.ParseTemplate([]byte("apiVersion: maint.dev/v1alpha1\nkind: StepTemplate\nspec: "+spec+"\n"), "t")
	if len(faults) > 0 {
		t.Fatalf("%s\nof\n%s", faults.Error(), spec)
	}
	return parsed
}

const wholeTree = `steps:
- {name: first, type: suspend}
- {name: g, type: step-group, properties: {steps: [{name: in, type: suspend}, {name: deep, type: step-group, properties: {steps: [{name: deepest, type: suspend}]}}]}}
- {name: each, type: for-each, properties: {apiVersion: v1, kind: Pod, steps: [{name: work, type: suspend}]}}
- {name: box, type: template/tidy}
finally:
- {name: last, type: suspend}
- {name: fg, type: step-group, properties: {steps: [{name: fin, type: suspend}]}}
onFailure:
- {name: sorry, type: suspend}
`

func TestTheWayToAStep(t *testing.T) {
	tree := treeOf(t, wholeTree, "tidy: {name: sweep, type: suspend}, {name: inner, type: template/other}", "other: {name: mop, type: suspend}")
	for path, want := range map[string]string{
		"first":                  "first",
		"g":                      "g",
		"g/in":                   "g > g/in",
		"g/deep/deepest":         "g > g/deep > g/deep/deepest",
		"each":                   "each",
		"each/shop:p":            "each[shop:p]",
		"each/shop:p/work":       "each[shop:p] > each/shop:p/work",
		"box/sweep":              "box > box/sweep",
		"box/inner/mop":          "box > box/inner > box/inner/mop",
		"finally/last":           "finally/last",
		"finally/fg/fin":         "finally/fg > finally/fg/fin",
		"onFailure/sorry":        "onFailure/sorry",
		"last":                   "",
		"onFailure/last":         "",
		"g/absent":               "",
		"first/in":               "",
		"absent/in":              "",
		"each/shop:p/absent":     "",
		"each/shop:p/work/below": "",
		"":                       "",
	} {
		var links []string
		for _, l := range tree.Chain(path) {
			text := l.Path
			if l.Item != "" {
				text += "[" + l.Item + "]"
			}
			links = append(links, text)
		}
		if got := strings.Join(links, " > "); got != want {
			t.Errorf("%q: %s, want %s", path, got, want)
		}
	}
	for path, want := range map[string]string{"g/in": "in", "box/inner/mop": "mop", "each/shop:p/work": "work", "each/shop:p": "", "g/absent": "", "": ""} {
		step, found := tree.Find(path)
		if found != (want != "") || found && step.Name != want {
			t.Errorf("at %q stands %q, %t; want %q", path, step.Name, found, want)
		}
	}
	for path, want := range map[string]string{"box/sweep": "box", "box/inner/mop": "box/inner", "box/inner": "box", "box": "", "g/in": "", "absent": ""} {
		step, at, in := tree.TemplateOf(path)
		if at != want || in != (want != "") || in && !strings.HasPrefix(step.Type, plan.TemplatePrefix) {
			t.Errorf("%q stands in the template at %q, want %q", path, at, want)
		}
	}
	var names []string
	tree.Walk(func(s plan.Step) { names = append(names, s.Name) })
	if want := "first g in deep deepest each work box sweep inner mop sorry last fg fin"; strings.Join(names, " ") != want {
		t.Errorf("visited %s, want %s", strings.Join(names, " "), want)
	}
}

func TestWhichSectionAPathLiesIn(t *testing.T) {
	for path, want := range map[string]plan.Section{
		"a": plan.SectionSteps, "a/b": plan.SectionSteps, "finally": plan.SectionSteps, "finally/a": plan.SectionFinally, "onFailure/a/b": plan.SectionOnFailure, "restore/a": plan.SectionRestore, "steps/a": plan.SectionSteps,
	} {
		if got := plan.SectionOf(path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	if got := plan.StepPath(plan.SectionFinally, "a") + " " + plan.StepPath(plan.SectionSteps, "a"); got != "finally/a a" {
		t.Error(got)
	}
}

func TestWhatATreeHolds(t *testing.T) {
	suspend, loop := "{name: a, type: suspend}", "{name: e, type: for-each, properties: {apiVersion: v1, kind: Pod, steps: [{name: s, type: suspend}]}}"
	rollout := "{name: r, type: for-each-node, properties: {steps: [{name: d, type: drain}]}}"
	grouped := func(step string) string {
		return "{name: g, type: step-group, properties: {steps: [" + step + "]}}"
	}
	for _, c := range []struct {
		name, spec, template string
		loops, rollsOut      bool
	}{
		{"neither", "steps: [" + suspend + "]", "", false, false},
		{"a group of neither", "steps: [" + grouped(suspend) + "]", "", false, false},
		{"a loop", "steps: [" + loop + "]", "", true, false},
		{"a loop in a group", "steps: [" + suspend + ", " + grouped(loop) + "]", "", true, false},
		{"a loop in finally", "steps: [" + suspend + "]\nfinally: [" + loop + "]", "", true, false},
		{"a loop in a template", "steps: [{name: t, type: template/x}]", "x: " + loop, true, false},
		{"a rollout", "steps: [" + rollout + ", {name: z, type: suspend}]", "", true, true},
		{"a rollout in a group", "steps: [" + grouped(rollout) + "]", "", true, true},
		{"a rollout in a template", "steps: [{name: t, type: template/x}]", "x: " + rollout, true, true},
	} {
		tree := treeOf(t, c.spec)
		if c.template != "" {
			tree = treeOf(t, c.spec, c.template)
		}
		if got := tree.Loops(); got != c.loops {
			t.Errorf("%s: loops %t", c.name, got)
		}
		if got := tree.RollsOut(); got != c.rollsOut {
			t.Errorf("%s: rolls out %t", c.name, got)
		}
	}
}

// Validation refuses such a tree long before anybody walks it. What walks one all the same ends.
func TestATreeThatHoldsItselfHasAnEnd(t *testing.T) {
	step := func(template string) plan.Step { return plan.Step{Name: "in", Type: plan.TemplatePrefix + template} }
	var wide []plan.Step
	for range plan.MaxSteps {
		wide = append(wide, step("a"))
	}
	for name, templates := range map[string]map[string]plan.TemplateSpec{
		"a template a hundred times in itself":         {"a": {Steps: wide}},
		"a template in itself in a group":              {"a": {Steps: []plan.Step{{Name: "in", Type: "step-group", Inner: []plan.Step{step("a")}}}}},
		"a template in itself":                         {"a": {Steps: []plan.Step{step("a")}}},
		"two templates, each of which is in the other": {"a": {Steps: []plan.Step{step("b")}}, "b": {Steps: []plan.Step{step("a")}}},
	} {
		t.Run(name, func(t *testing.T) {
			tree := plan.Tree{Spec: plan.Spec{Steps: []plan.Step{step("a")}}, Templates: templates}
			const most = 10 * plan.MaxSteps
			all, below := 0, 0
			tree.Walk(func(plan.Step) { all++ })
			tree.WalkBelow(step("a"), func(plan.Step) { below++ })
			if all != most || below != most {
				t.Errorf("%d steps are visited, and %d below the first", all, below)
			}
			if !tree.Disruptive(step("a")) { // doubt asks the gate
				t.Error("it does not ask the gate")
			}
			if tree.Loops() || tree.RollsOut() || tree.Keeps(step("a")) != 0 {
				t.Errorf("loops %t, rolls out %t, keeps %d", tree.Loops(), tree.RollsOut(), tree.Keeps(step("a")))
			}
			if _, found := tree.Find(strings.Repeat("in/", 2*most) + "else"); found {
				t.Error("a step is found that is not there")
			}
		})
	}
}

func TestWhichStepsAskTheGate(t *testing.T) {
	for _, c := range []struct {
		name, step string
		want       bool
	}{
		{"any", "{name: a, type: suspend}", true},
		{"one that says that it does not", "{name: a, type: suspend, disruptive: false}", false},
		{"a group with one that does", "{name: g, type: step-group, properties: {steps: [{name: a, type: suspend, disruptive: false}, {name: b, type: suspend}]}}", true},
		{"a group with none that does", "{name: g, type: step-group, properties: {steps: [{name: a, type: suspend, disruptive: false}]}}", false},
		{"a group that says so itself", "{name: g, type: step-group, disruptive: false, properties: {steps: [{name: a, type: suspend}]}}", false},
		{"a group that says that it does", "{name: g, type: step-group, disruptive: true, properties: {steps: [{name: a, type: suspend, disruptive: false}]}}", true},
		{"a template that nobody knows", "{name: t, type: template/absent}", true},
		{"a template of which none does", "{name: t, type: template/x}", false},
	} {
		tree := treeOf(t, "steps: ["+c.step+"]", "x: {name: a, type: suspend, disruptive: false}")
		if got := tree.Disruptive(tree.Spec.Steps[0]); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}

func TestHowManyStepsLeaveSomethingToBeRestored(t *testing.T) {
	scale := func(name, restore string) string {
		return "{name: " + name + ", type: scale, properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: x}, replicas: 0" + restore + "}}"
	}
	tree := treeOf(t, "steps: [{name: g, type: step-group, properties: {steps: ["+scale("a", ", restoreAfter: true")+", "+scale("b", ", restoreAfter: false")+", "+scale("c", "")+
		", {name: gg, type: step-group, properties: {steps: ["+scale("d", ", restoreAfter: '${run.dryRun}'")+"]}}]}}]")
	if got := tree.Keeps(tree.Spec.Steps[0]); got != 2 {
		t.Errorf("%d, want 2", got)
	}
	if plan.Restores(plan.Step{Properties: map[string]any{"restoreAfter": ""}}) {
		t.Error("an empty text restores")
	}
}

func TestWhatAStepSaysItself(t *testing.T) {
	tree := treeOf(t, "steps: [{name: e, type: for-each, properties: {apiVersion: v1, kind: Pod, order: newest, steps: [{name: s, type: suspend}]}}, {name: j, type: job, properties: {image: b, command: [ls]}}, {name: t, type: template/x, properties: {steps: many, size: 1}}]", "x: {name: a, type: suspend}")
	for i, want := range []map[string]any{
		{"apiVersion": "v1", "kind": "Pod", "order": "newest"},
		{"image": "b", "command": []any{"ls"}},
	} {
		if diff := cmp.Diff(want, tree.Spec.Steps[i].Own()); diff != "" {
			t.Error(diff)
		}
	}
	if len(tree.Spec.Steps[0].Properties) != 4 {
		t.Error("the step itself has changed")
	}
}

func TestTheEndsOfBatches(t *testing.T) {
	for _, c := range []struct {
		name    string
		batches []any
		n       int
		want    []int
	}{
		{"none", nil, 5, []int{5}},
		{"of nothing", nil, 0, []int{0}},
		{"numbers", []any{int64(1), int64(3)}, 5, []int{1, 3, 5}},
		{"shares are rounded up", []any{"10%", "50%"}, 5, []int{1, 3, 5}},
		{"shares of a hundred", []any{"1%", "50%"}, 100, []int{1, 50, 100}},
		{"shares that come to the same", []any{"10%", "20%"}, 5, []int{1, 5}},
		{"more than there are", []any{int64(3), int64(9)}, 5, []int{3, 5}},
		{"as many as there are", []any{int64(5)}, 5, []int{5}},
		{"the last is all", []any{"50%", "100%"}, 4, []int{2, 4}},
		{"a number that is larger than the share after it", []any{int64(10), "50%", "100%"}, 12, []int{10, 12}},
		{"a number and a share of many", []any{int64(1), int64(150), "100%"}, 300, []int{1, 150, 300}},
		{"a share that is larger than the number after it", []any{"50%", int64(2), int64(7)}, 8, []int{4, 7, 8}},
		{"what is no batch does not make one of all", []any{int64(1), "many", int64(3)}, 5, []int{1, 3, 5}},
	} {
		if diff := cmp.Diff(c.want, plan.BatchEnds(c.batches, c.n)); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

func TestAWatchSaysWhatItWants(t *testing.T) {
	all, deletes := plan.Watch{Kind: "App"}, plan.Watch{Kind: "App", Events: []string{plan.EventDelete}}
	if !all.Asks(plan.EventUpdate) || deletes.Asks(plan.EventUpdate) || !deletes.Asks(plan.EventDelete) {
		t.Error("a rule that names no event wants them all, one that names some wants those")
	}
	for _, c := range []struct {
		name  string
		watch plan.Watch
		want  bool
	}{
		{"without a condition nothing is kept", plan.Watch{}, false},
		{"with one, for deletions", plan.Watch{When: "object.x"}, true},
		{"with one over new objects alone", plan.Watch{When: "object.x", Events: []string{plan.EventUpdate}}, false},
		{"with one over the old ones", plan.Watch{When: "object.x != oldObject.x", Events: []string{plan.EventUpdate}}, true},
	} {
		if got := c.watch.Keeps(); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
	for want, w := range map[string]plan.Watch{"App": all, "App in all namespaces": {Kind: "App", Namespace: "*"}, "App in namespace shop": {Kind: "App", Namespace: "shop"}} {
		if got := w.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	mirrored := plan.RuleID(all, "mirror.example.org")
	if plan.RuleID(all, "") != plan.RuleID(all, plan.DefaultMirrorPrefix) || mirrored == plan.RuleID(all, "") || plan.RuleID(deletes, "") == plan.RuleID(all, "") {
		t.Error("a rule is the same as long as it says the same, with the default's prefix or none")
	}
}

func TestWhetherTheConditionOfAWatchHolds(t *testing.T) {
	object, old := map[string]any{"n": int64(2)}, map[string]any{"n": int64(1)}
	for _, c := range []struct {
		name, when  string
		kind        string
		object, old map[string]any
		want        bool
		fails       string
	}{
		{"none", "", "App", object, old, true, ""},
		{"one that holds", "object.n > oldObject.n", "App", object, old, true, ""},
		{"one that does not", "object.n < oldObject.n", "App", object, old, false, ""},
		{"there was no object before", "oldObject == null", "App", object, nil, true, ""},
		{"there is none any more", "object == null", "App", nil, old, true, ""},
		{"a field that is missing", "object.absent == 1", "App", object, nil, false, "no such key: absent"},
		{"of a Secret nothing is told", "object.absent == 1", "Secret", object, nil, false, "object.absent == 1: cannot be evaluated"},
		{"one that holds of a Secret", "object.n == 2", "Secret", object, nil, true, ""},
	} {
		version := map[string]string{"Secret": "v1", "App": "v1"}[c.kind]
		got, err := plan.Watch{APIVersion: version, Kind: c.kind, When: c.when}.Holds(c.object, c.old)
		if got != c.want || (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) {
			t.Errorf("%s: %t, %v", c.name, got, err)
		}
		if err != nil && c.kind == "Secret" && err.Error() != c.fails {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	_, err := plan.Watch{APIVersion: "example.org/v1", Kind: "Secret", When: "object.absent == 1"}.Holds(object, nil)
	if err == nil || !strings.Contains(err.Error(), "no such key") {
		t.Errorf("a Secret of another group is none: %v", err)
	}
}

func TestWhichDrainsAreLookedAtBeforeTheirCordon(t *testing.T) {
	drain := &plan.DrainProperties{}
	skips := &plan.DrainProperties{}
	skips.OnTimeout = "skip"
	for name, c := range map[string]struct {
		properties any
		dryRun     bool
		want       bool
	}{
		"a drain":                       {drain, false, true},
		"a drain that goes on":          {skips, false, false},
		"a rehearsal":                   {drain, true, false},
		"a cordon":                      {&plan.CordonProperties{}, false, false},
		"a rehearsal of something else": {&plan.CordonProperties{}, true, false},
	} {
		if got := plan.DrainToPreview(c.properties, c.dryRun) != nil; got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	for _, c := range []struct {
		given plan.NodeProperties
		want  string
	}{
		{plan.NodeProperties{}, "n0"}, {plan.NodeProperties{Node: "n1"}, "n1"},
	} {
		c.given.OnNode("n0")
		if c.given.Node != c.want {
			t.Errorf("a step is about %q, want %q", c.given.Node, c.want)
		}
	}
	picks := plan.HealthProperties{Selector: &plan.ObjectSelector{MatchLabels: map[string]string{"a": "b"}}}
	labels := picks.Selector.Labels()
	several := plan.NodeProperties{Selector: &labels}
	if several.OnNode("n0"); several.Node != "" {
		t.Errorf("one that picks several is about %q", several.Node)
	}
}

func TestAConditionOnMetricsMayBeginWithItsComparison(t *testing.T) {
	for text, want := range map[string]string{
		">= 3": "value >= 3", " < 3 ": "value < 3", "== 3": "value == 3", "!= 3": "value != 3", "value > 3": "value > 3", "series.size() == 0": "series.size() == 0", "!has(series[0].x)": "!has(series[0].x)",
	} {
		if got := plan.PrometheusCondition(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}
