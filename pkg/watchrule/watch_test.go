package watchrule_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/selector"
)

func TestWatchRulesAreChecked(t *testing.T) {
	many := strings.Repeat("{apiVersion: v1, kind: Pod, namespace: a}, ", 20)
	for text, want := range map[string]string{
		"[{apiVersion: v1, kind: Pod}]": "",
		"[{apiVersion: v1, kind: Pod, namespace: '*', events: [create, update, delete]}]": "",
		"[{apiVersion: example.org/v1, kind: App, selector: {matchLabels: {role: db}}, fields: [spec.size, \"metadata.labels['a.b/c']\", 'spec.list[*].name', '{.spec.x}', '$.a[0]', 'a\\.b'], when: object.spec.size > oldObject.spec.size}]": "",
		"[{kind: Pod}]":                                                                         "spec.triggers.watch[0].apiVersion: must be <group>/<version>",
		"[{apiVersion: v1}]":                                                                    "spec.triggers.watch[0].kind: is missing",
		"[{apiVersion: a/b/c, kind: Pod}]":                                                      "spec.triggers.watch[0].apiVersion: must be",
		"[{apiVersion: v1, kind: Pod, namespace: 'A B'}]":                                       `spec.triggers.watch[0].namespace: "A B" cannot name a namespace`,
		"[{apiVersion: v1, kind: Pod, events: [updated]}]":                                      `spec.triggers.watch[0].events[0]: must be one of create, update, delete, is "updated"; did you mean update?`,
		"[{apiVersion: v1, kind: Pod, fields: ['spec..size']}]":                                 `spec.triggers.watch[0].fields[0]: "spec..size" is no path: a name is empty`,
		"[{apiVersion: v1, kind: Pod, fields: ['spec.list[?(@.a)]']}]":                          "neither an index",
		"[{apiVersion: v1, kind: Pod, fields: ['spec.list[-1]']}]":                              "neither an index",
		"[{apiVersion: v1, kind: Pod, fields: ['']}]":                                           "names nothing",
		"[{apiVersion: v1, kind: Pod, fields: ['{.spec']}]":                                     "brace is not closed",
		"[{apiVersion: v1, kind: Pod, fields: [\"spec['a]\"]}]":                                 "not closed",
		"[{apiVersion: v1, kind: Pod, fields: [metadata.resourceVersion]}]":                     "changes with every write",
		"[{apiVersion: v1, kind: Pod, when: 'object.x +'}]":                                     "spec.triggers.watch[0].when: ",
		"[{apiVersion: v1, kind: Pod, when: '1'}]":                                              "must give bool",
		"[{apiVersion: v1, kind: Pod, when: target.x}]":                                         "undeclared reference to 'target'",
		"[{apiVersion: v1, kind: Pod, selector: {matchExpressions: [{key: a, operator: Is}]}}]": "selector.matchExpressions[0].operator: must be one of",
		"[{apiVersion: v1, kind: Pod}, {apiVersion: v1, kind: Pod}]":                            "spec.triggers.watch[1]: is the same as watch[0]",
		"[" + many + "{apiVersion: v1, kind: Pod}]":                                             "has 21 rules; at most 20",
	} {
		_, faults := plan.Parse([]byte("apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec:\n  triggers: {watch: "+text+"}\n  steps: [{name: a, type: suspend}]\n"), "p")
		got := ""
		for _, f := range faults {
			got += f.String() + "\n"
		}
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s:\n got  %s want %s", text, got, want)
		}
	}
}

// A rule's id is all that it says: an edited rule is another rule.
func TestRuleIDsTellRulesApart(t *testing.T) {
	base := plan.Watch{APIVersion: "v1", Kind: "Pod"}
	edits := map[string]func(*plan.Watch){
		"kind":     func(w *plan.Watch) { w.Kind = "Node" },
		"ns":       func(w *plan.Watch) { w.Namespace = "*" },
		"selector": func(w *plan.Watch) { w.Selector = &selector.LabelSelector{MatchLabels: map[string]string{"a": "b"}} },
		"fields":   func(w *plan.Watch) { w.Fields = []string{"spec"} },
		"events":   func(w *plan.Watch) { w.Events = []string{"create"} },
		"when":     func(w *plan.Watch) { w.When = "true" },
	}
	seen := map[string]string{plan.RuleID(base, ""): "base", plan.RuleID(base, "other.example.org"): "prefix"}
	for name, edit := range edits {
		w := base
		edit(&w)
		id := plan.RuleID(w, plan.DefaultMirrorPrefix)
		if other, twice := seen[id]; twice {
			t.Errorf("%s has the id of %s", name, other)
		}
		seen[id] = name
	}
	if plan.RuleID(base, "") != plan.RuleID(base, plan.DefaultMirrorPrefix) {
		t.Error("the default prefix spelled out makes another rule")
	}
}

// What equals is no event, whatever else was written on the object.
func TestWhatIsNoChange(t *testing.T) {
	for name, c := range map[string]struct {
		rule    plan.Watch
		edit    func(map[string]any)
		changes bool
	}{
		"status":     {edit: func(o map[string]any) { o["status"] = map[string]any{"ready": int64(1)} }},
		"generation": {edit: func(o map[string]any) { meta(o)["generation"] = int64(9) }},
		"our annotation": {edit: func(o map[string]any) {
			meta(o)["annotations"] = map[string]any{"status.maint.dev/handled-x": "1", "maint.dev/x": "y"}
		}},
		"our label": {edit: func(o map[string]any) { meta(o)["labels"].(map[string]any)["maint.dev/system"] = "db" }},
		"the mirror": {edit: func(o map[string]any) {
			meta(o)["annotations"] = map[string]any{"mirror.maint.dev/p-status": "x", "flow.example.org/p-last-run": "x", "flow.example.org/q-step": "x 1/2"}
		}},
		"another key of its prefix": {edit: func(o map[string]any) { meta(o)["annotations"] = map[string]any{"flow.example.org/pause": "x"} }, changes: true},
		"a label":                   {edit: func(o map[string]any) { meta(o)["labels"].(map[string]any)["b"] = "c" }, changes: true},
		"spec":                      {edit: func(o map[string]any) { o["spec"].(map[string]any)["size"] = int64(2) }, changes: true},
		"a whole number as a float": {edit: func(o map[string]any) { o["spec"].(map[string]any)["size"] = float64(1) }},
		"not the field":             {rule: fields("spec.size"), edit: func(o map[string]any) { o["spec"].(map[string]any)["color"] = "red" }},
		"the field":                 {rule: fields("spec.size"), edit: func(o map[string]any) { o["spec"].(map[string]any)["size"] = int64(2) }, changes: true},
		"the field goes":            {rule: fields("spec.size"), edit: func(o map[string]any) { delete(o["spec"].(map[string]any), "size") }, changes: true},
		"a status field":            {rule: fields("status.ready"), edit: func(o map[string]any) { o["status"] = map[string]any{"ready": int64(1)} }, changes: true},
		"an item's field":           {rule: fields("spec.list[*].n"), edit: func(o map[string]any) { o["spec"].(map[string]any)["list"].([]any)[1].(map[string]any)["n"] = "z" }, changes: true},
		"an item's other field":     {rule: fields("spec.list[*].n"), edit: func(o map[string]any) { o["spec"].(map[string]any)["list"].([]any)[1].(map[string]any)["m"] = "z" }},
		"another item":              {rule: fields("spec.list[0]"), edit: func(o map[string]any) { o["spec"].(map[string]any)["list"].([]any)[1].(map[string]any)["n"] = "z" }},
		"a quoted key":              {rule: fields("metadata.labels['a.b/c']"), edit: func(o map[string]any) { meta(o)["labels"].(map[string]any)["a.b/c"] = "z" }, changes: true},
		"an escaped key":            {rule: fields(`metadata.labels.a\.b/c`), edit: func(o map[string]any) { meta(o)["labels"].(map[string]any)["a.b/c"] = "z" }, changes: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newField(c.rule)
			w.create("a", 1)
			w.begin()
			w.write(foreigner, "a", c.edit)
			w.expect(t, map[bool]string{true: "update a", false: ""}[c.changes])
		})
	}
}

func fields(paths ...string) plan.Watch { return plan.Watch{Fields: paths} }

func meta(o map[string]any) map[string]any { return o["metadata"].(map[string]any) }

func TestWatchedObjectsAreCutToSize(t *testing.T) {
	object := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a", "uid": "u", "managedFields": []any{}}, "data": map[string]any{"n": int64(9007199254740993)}}
	want := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a", "uid": "u"}, "data": map[string]any{"n": int64(9007199254740993)}}
	if diff := cmp.Diff(want, run.WatchedObject(object, 1000)); diff != "" {
		t.Error(diff)
	}
	delete(want, "data")
	want["truncated"] = true
	object["data"] = strings.Repeat("x", 2000)
	if diff := cmp.Diff(want, run.WatchedObject(object, 1000)); diff != "" {
		t.Error(diff)
	}
	object["metadata"].(map[string]any)["annotations"] = map[string]any{"a": strings.Repeat("x", 2000)}
	if diff := cmp.Diff(want, run.WatchedObject(object, 1000)); diff != "" {
		t.Error(diff)
	}
	object["kind"], object["data"] = "Secret", map[string]any{"password": "c2VjcmV0"}
	object["metadata"].(map[string]any)["annotations"] = map[string]any{"kubectl.kubernetes.io/last-applied-configuration": "c2VjcmV0", "x": "y"}
	if text := fmt.Sprint(run.WatchedObject(object, 10000)); strings.Contains(text, "c2VjcmV0") || !strings.Contains(text, "x:y") {
		t.Error("a Secret is handed on as", text)
	}
}

func TestAConditionOverASecretTellsNothingOfIt(t *testing.T) {
	w := plan.Watch{APIVersion: "v1", Kind: "Secret", When: "int(object.data.n) > 1"}
	_, err := w.Holds(map[string]any{"data": map[string]any{"n": "hidden"}}, nil)
	if err == nil || strings.Contains(err.Error(), "hidden") {
		t.Error(err)
	}
}

// What a condition sees of a Secret ends in its error, in an Event and in the choice of
// what runs: it sees no data. The digest does, since a rotated password is a change.
func TestAConditionSeesNoDataOfASecret(t *testing.T) {
	const hidden = "aHVudGVyMg=="
	for name, c := range map[string]struct {
		when string
		told []string
	}{
		"its data":                          {"has(object.data) || has(object.stringData)", nil},
		"its data before":                   {"oldObject != null && has(oldObject.data)", nil},
		"a word of its data":                {"object.data.password == '" + hidden + "' || oldObject.data.password == '" + hidden + "'", []string{"failed update a"}},
		"its last applied configuration":    {"'kubectl.kubernetes.io/last-applied-configuration' in object.metadata.annotations", nil},
		"other annotations":                 {"object.metadata.annotations['note'] == 'stays' && oldObject.metadata.annotations['note'] == 'stays'", []string{"update a"}},
		"the kind, the name and the labels": {"object.kind == 'Secret' && object.metadata.name == 'a' && object.metadata.labels.role == 'db'", []string{"update a"}},
	} {
		w := newField(plan.Watch{APIVersion: "v1", Kind: "Secret", When: c.when, Fields: []string{"data"}})
		w.create("a", 1)
		w.quietly(foreigner, "a", func(o map[string]any) {
			delete(o, "spec")
			o["apiVersion"], o["kind"], o["type"] = "v1", "Secret", "Opaque"
			o["data"], o["stringData"] = map[string]any{"password": hidden}, map[string]any{"password": hidden}
			meta(o)["annotations"] = map[string]any{"kubectl.kubernetes.io/last-applied-configuration": hidden, "note": "stays"}
		})
		w.begin()
		w.write(foreigner, "a", func(o map[string]any) { o["data"] = map[string]any{"password": "cm90YXRlZA=="} })
		w.look()
		if diff := cmp.Diff(c.told, w.told); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
		if strings.Contains(fmt.Sprint(w.tracker.Body(w.ids()[0], w.objects["a"].uid)), "cm90YXRlZA") {
			t.Errorf("%s: the data is kept", name)
		}
	}
}
