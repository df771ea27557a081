package plan_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/coretest"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/trigger"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

// document is a valid plan; with adds lines to its spec, and steps replaces them.
func planText(with string, steps ...string) string {
	if len(steps) == 0 {
		steps = []string{"- {name: pause, type: suspend}"}
	}
	return "apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec:\n" + indent(with) + "  steps:\n" + indent(strings.Join(steps, "\n"))
}

func indent(text string) string {
	if text == "" {
		return ""
	}
	return "  " + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n  ") + "\n"
}

func faultsOf(text string) []string {
	_, faults := plan.Parse([]byte(text), "orders")
	out := []string{}
	for _, f := range faults {
		out = append(out, f.String())
	}
	return out
}

func wantFaults(t *testing.T, text string, want ...string) {
	t.Helper()
	if want == nil {
		want = []string{}
	}
	if diff := cmp.Diff(want, faultsOf(text)); diff != "" {
		t.Errorf("faults (-want +got):\n%s\nof\n%s", diff, document.Cut(text, 2000))
	}
}

func TestTheBuilderStartsValid(t *testing.T) { wantFaults(t, planText("")) }

// Scalars are what YAML 1.2's core schema says, and nothing else.
func TestScalarsAreWhatTheyLookLike(t *testing.T) {
	for scalar, want := range map[string]any{
		"n": "n", "y": "y", "on": "on", "off": "off", "yes": "yes", "No": "No",
		"010": int64(10), "0o10": int64(8), "0x1F": int64(31), "0b11": "0b11", "0x": "0x", "0x-1": "0x-1", "0o9": "0o9",
		"+5": int64(5), "-5": int64(-5), "1_000": "1_000", "12:30:00": "12:30:00", "1.": 1.0, ".5": 0.5, "1e3": 1000.0, "e5": "e5", ".": ".", "-": nil, "1-2": "1-2", "+-5": "+-5",
		"true": true, "True": true, "tRue": "tRue", "null": nil, "~": nil, `""`: "", "'010'": "010", "'true'": "true", "2026-01-01": "2026-01-01",
		"9223372036854775807": int64(9223372036854775807), "'12345678901234567890'": "12345678901234567890", "!!str 5": "5", "!!str true": "true",
		"inf": "inf", ".nan": ".nan", "1e999": "1e999", "|\n      text": "text",
	} {
		t.Run(scalar, func(t *testing.T) {
			if scalar == "-" {
				t.Skip("a lone dash begins a list")
			}
			text := planText("", fmt.Sprintf("- name: hook\n  type: webhook\n  properties:\n    url: https://example.org\n    body: {v: %s}", scalar))
			if strings.HasPrefix(scalar, "|") {
				text = planText("", "- name: hook\n  type: webhook\n  properties:\n    url: https://example.org\n    body:\n      v: |-\n        text")
			}
			spec, faults := plan.Parse([]byte(text), "orders")
			if len(faults) > 0 {
				t.Fatal(faults)
			}
			got := spec.Steps[0].Properties["body"].(map[string]any)["v"]
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDecodeReportsEveryFaultAtOnceWithLineAndPath(t *testing.T) {
	wantFaults(t, `apiVersion: maint.dev/v1alpha1
kind: Plan
spec:
  triger: {}
  target: {apiVersion: apps/v1, kind: Deployment, name: 7}
  startDeadline: 90
  requiresAproval: true
  steps:
  - name: one
    type: webhook
    properties: {url: https://example.org, metod: POST}
  - name: one
    type: webhok
    timeout: true
    name: two
`,
		`line 4: spec.triger: unknown field; did you mean "triggers"?`,
		`line 5: spec.target.name: must be a string, is the number 7: write it in quotes, "7"`,
		`line 6: spec.startDeadline: "90" is no duration: write it like 90s, 15m, 1h30m or 30d`,
		`line 7: spec.requiresAproval: unknown field; did you mean "requiresApproval"?`,
		`line 11: spec.steps[0].properties.metod: unknown field; did you mean "method"?`,
		`line 13: spec.steps[1].type: unknown step type "webhok"; did you mean "webhook"?`,
		`line 14: spec.steps[1].timeout: "true" is no duration: write it like 90s, 15m, 1h30m or 30d`,
		`line 15: spec.steps[1].name: appears twice, first on line 12`,
	)
}

func TestDecodeRefuses(t *testing.T) {
	long := strings.Repeat("a", 300)
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"nothing":                          {"", []string{"the document is empty"}},
		"white space and remarks":          {" \n# nothing\n", []string{"the document is empty"}},
		"a lone separator":                 {"---\n", []string{"the document is empty"}},
		"null":                             {"null\n", []string{"the document is empty"}},
		"a policy by its name alone":       {"apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec:\n  policies: [weekends]\n  steps:\n  - {name: a, type: suspend}\n", []string{`line 4: spec.policies[0]: must be an object, is "weekends": write {name: weekends}`}},
		"policies that are no list":        {"apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec:\n  policies: weekends\n  steps:\n  - {name: a, type: suspend}\n", []string{`line 4: spec.policies: must be a list, is "weekends": write [{name: weekends}]`}},
		"an object in short":               {"apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec:\n  steps:\n  - {name: a, type: restart, properties: {resource: Deployment/orders}}\n", []string{`line 5: spec.steps[0].properties.resource: must be an object, is "Deployment/orders": write {apiVersion: …, kind: …, name: …}`}},
		"a property beside its type":       {"apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec:\n  steps:\n  - {name: a, restoreAfter: true, type: scale, properties: {replicas: 0, resource: {apiVersion: apps/v1, kind: Deployment, name: orders}}}\n", []string{`line 5: spec.steps[0].restoreAfter: unknown field; did you mean "properties.restoreAfter"?`}},
		"a property of an inner step":      {"apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec:\n  steps:\n  - {name: g, type: step-group, properties: {steps: [{name: a, type: restart, resource: {}}]}}\n", []string{`line 5: spec.steps[0].properties.steps[0].resource: unknown field; did you mean "properties.resource"?`}},
		"text":                             {"just some words\n", []string{`line 1: must be an object, is "just some words"`}},
		"a list":                           {"- a\n- b\n", []string{"line 1: must be an object, is a list"}},
		"two documents":                    {planText("") + "---\n" + planText(""), []string{"line 6: a second document begins here; a ConfigMap holds one document"}},
		"two documents, one of them empty": {planText("") + "---\n", []string{"line 6: a second document begins here; a ConfigMap holds one document"}},
		"an open bracket":                  {"spec: {a: [1, 2\n", []string{"line 1: this is no YAML: did not find expected ',' or ']'"}},
		"a tab":                            {"spec:\n\tsteps: []\n", []string{"line 2: this is no YAML: found character that cannot start any token"}},
		"a NUL":                            {"spec: \x00\n", []string{"this is no YAML: control characters are not allowed"}},
		"binary":                           {"\x7fELF\x02\x01\x01", []string{"this is no YAML: control characters are not allowed"}},
		"broken UTF-8":                     {"spec: \xff\xfe\xfd\n", []string{"this is no YAML: invalid leading UTF-8 octet"}},
		"more than 256 KiB":                {planText("description: " + strings.Repeat("x", document.MaxDocumentBytes)), []string{"the document has 262250 bytes; at most 262144 are allowed"}},
		"an anchor":                        {planText("description: &d text"), []string{"line 4: spec.description: anchors and aliases are not supported: write the value out"}},
		"an alias": {planText("description: &d text\nmirrorPrefix: *d"), []string{
			"line 4: spec.description: anchors and aliases are not supported: write the value out",
			"line 5: spec.mirrorPrefix: anchors and aliases are not supported: write the value out",
		}},
		"an anchor on a key":        {planText("&d description: text"), []string{"line 4: spec.description: anchors and aliases are not supported: write the value out"}},
		"a tag":                     {planText("description: !secret text"), []string{"line 4: spec.description: the tag !secret is not supported: write the value without it"}},
		"a number in quotes by tag": {planText("retryLimit: !!int \"5\""), []string{"line 4: spec.retryLimit: the tag !!int is not supported: write the value without it"}},
		"binary by tag":             {planText("description: !!binary aGVsbG8="), []string{"line 4: spec.description: the tag !!binary is not supported: write the value without it"}},
		"a key that is an object":   {planText("{a: b}: c"), []string{"line 4: spec: a key must be a string, is an object"}},
		"a key in another case":     {planText("Description: text"), []string{`line 4: spec.Description: unknown field; did you mean "description"?`}},
		"an unknown field with nothing near it": {"apiVersion: maint.dev/v1alpha1\nkind: Plan\nzzzzzz: 1\nspec:\n  steps: [{name: a, type: suspend}]\n", []string{
			"line 3: zzzzzz: unknown field; known are apiVersion, kind, spec",
		}},
		"a duplicate in free values": {planText("", "- name: hook\n  type: webhook\n  properties:\n    url: https://example.org\n    body: {a: 1, a: 2}"), []string{
			"line 9: spec.steps[0].properties.body.a: appears twice, first on line 9",
		}},
		"a number beyond 64 bits": {planText("", "- name: hook\n  type: webhook\n  properties:\n    url: https://example.org\n    body: {id: 12345678901234567890}"), []string{
			"line 9: spec.steps[0].properties.body.id: the number 12345678901234567890 does not fit in 64 bits: write it in quotes",
		}},
		"a list for an object, without what follows from it": {planText("target: []\ntriggers: text"), []string{
			"line 4: spec.target: must be an object, is a list: write {apiVersion: …, kind: …, name: …}",
			`line 5: spec.triggers: must be an object, is "text"`,
		}},
		"no list of steps": {"apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec:\n  steps: {name: a}\n", []string{"line 4: spec.steps: must be a list, is an object: write [{name: …, type: …}]"}},
		"another kind": {"apiVersion: v1\nkind: Pod\nspec: {steps: [{name: a, type: suspend}]}\n", []string{
			`line 1: apiVersion: must be maint.dev/v1alpha1, is "v1"`,
			`line 2: kind: must be Plan, is "Pod"`,
		}},
		"an empty step": {planText("", "-"), []string{
			"line 5: spec.steps[0].name: \"\" cannot name a step: at most 63 characters of a-z, 0-9 and '-'",
			"line 5: spec.steps[0].type: is missing; known are label, annotate, patch-object, scale, hold-owners, suspend, wait, webhook, job, apply-object, delete-object, restart, health-check, prometheus, notification, silence, exec, backup, function, pipeline, approval, step-group, for-each, cordon, drain, uncordon, hibernate, wake, for-each-node",
		}},
		"a boolean for a text": {planText("description: true"), []string{`line 4: spec.description: must be a string, is the boolean true: write it in quotes, "true"`}},
		"an empty text":        {planText("description:"), []string{"line 4: spec.description: must be a string, is empty"}},
		"a text for a boolean": {planText("dryRun: \"true\""), []string{`line 4: spec.dryRun: must be true or false, is "true"`}},
		"yes for a boolean":    {planText("dryRun: yes"), []string{`line 4: spec.dryRun: must be true or false, is "yes"`}},
		"a fraction":           {planText("successfulRunsHistoryLimit: 1.5"), []string{"line 4: spec.successfulRunsHistoryLimit: must be a whole number, is the number 1.5"}},
		"a huge key":           {planText(long + long + ": 1"), []string{"line 4: spec." + document.Cut(long+long, 500) + ": unknown field; known are " + specFields}},
	} {
		t.Run(name, func(t *testing.T) { wantFaults(t, c.text, c.want...) })
	}
}

const specFields = "approvalTimeout, catchUp, concurrencyPolicy, connectorRef, description, dryRun, failedRunsHistoryLimit, finally, freezeTarget, holdOwners, maxDuration, mirrorPrefix, onDrift, onFailure, onWindowClose, parameters, policies, requiresApproval, retryLimit, serviceAccountName, startDeadline, steps, successfulRunsHistoryLimit, target, triggers"

// Each of these is a document within its 256 KiB that costs out of proportion
// where depth, paths or faults are not bounded.
func TestDecodeIsBounded(t *testing.T) {
	body := func(v string) string {
		return planText("", "- name: hook\n  type: webhook\n  properties:\n    url: https://example.org\n    body: "+v)
	}
	room := document.MaxDocumentBytes - 400
	for name, text := range map[string]string{
		"brackets nested without end":  body(strings.Repeat("[", room)),
		"brackets nested and closed":   body(strings.Repeat("[", 9000) + strings.Repeat("]", 9000)),
		"objects nested":               body(strings.Repeat("{aaaaaaaaaa: ", 9000) + strings.Repeat("}", 9000)),
		"objects under long keys":      body(strings.Repeat("{"+strings.Repeat("a", 1000)+": ", 90) + "[" + strings.Repeat("a,", 40000) + "]" + strings.Repeat("}", 90)),
		"a long key over a long list":  body("{" + strings.Repeat("a", 100000) + ": [" + strings.Repeat("a,", 70000) + "]}"),
		"unknown fields":               planText(numbered("f%d: 1", 10000)),
		"duplicate keys":               body("{" + strings.Repeat("a: 1, ", room/6-10) + "}"),
		"templates":                    body("[" + strings.Join(coretest.Repeat(func(i int) string { return fmt.Sprintf("'${%d}'", i) }, 10000), ",") + "]"),
		"templates that do not parse":  body("[" + strings.Repeat("'${(}',", 20000) + "]"),
		"a condition nested":           planText("", "- {name: a, type: suspend, if: \""+strings.Repeat("(", 2000)+"true"+strings.Repeat(")", 2000)+"\"}"),
		"steps":                        planText("", coretest.Repeat(func(i int) string { return fmt.Sprintf("- {name: s%d, type: suspend}", i) }, 5000)...),
		"schedules":                    planText("triggers:\n  schedules:\n" + numbered("  - {cron: \"%d * * * *\"}", 3000)),
		"question marks":               body("\n" + strings.Repeat("? ", 5000) + "a"),
		"dashes":                       body("\n      " + strings.Repeat("- ", 5000) + "a"),
		"aliases of aliases":           "a: &a [x]\n" + strings.Join(coretest.Repeat(func(i int) string { return fmt.Sprintf("b%d: &b%d [*a,*a,*a,*a,*a,*a,*a,*a]", i, i) }, 100), "\n"),
		"merge keys":                   body("{<<: {a: 1}, <<: {b: 1}}"),
		"quotes":                       body(strings.Repeat("'", room)),
		"a byte order mark and UTF-16": "\xff\xfe" + strings.Repeat("a\x00", 1000),
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			_, faults := plan.Parse([]byte(text), "orders")
			if len(faults) > document.MaxFaults+1 {
				t.Errorf("%d faults", len(faults))
			}
			if took := time.Since(began); took > 5*time.Second { // an alarm for explosions, not a benchmark
				t.Errorf("took %s", took)
			}
		})
	}
}

func numbered(format string, n int) string {
	return strings.Join(coretest.Repeat(func(i int) string { return fmt.Sprintf(format, i) }, n), "\n")
}

func TestManyFaultsAreCounted(t *testing.T) {
	got := faultsOf(planText(numbered("field%d: 1", 150)))
	if last := got[len(got)-1]; len(got) != 101 || last != "and 50 more faults" {
		t.Errorf("%d faults, the last %q", len(got), last)
	}
}

func TestCloneKeepsNumbersWhole(t *testing.T) {
	m := map[string]any{"id": int64(1234567890123456789), "part": 1.5, "list": []any{int64(3)}}
	if diff := cmp.Diff(m, document.Clone(m)); diff != "" {
		t.Error(diff)
	}
	s := plan.Step{Name: "a", Properties: m}
	if diff := cmp.Diff(s, document.Clone(s)); diff != "" {
		t.Error(diff)
	}
	r := run.Record{Path: "a", Outputs: m}
	if diff := cmp.Diff(r, document.Clone(r)); diff != "" {
		t.Error(diff)
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"", "---", "\x00", "{", planText(""), planText("description: &a x"), planText("triggers:\n  schedules:\n  - {cron: \"* * * * *\", timezone: Europe/Berlin}"),
		planText("", "- {name: w, type: webhook, properties: {url: \"http://${run.name}\", headers: {X: {secretKeyRef: {name: a, key: b}}}}}"),
		planText("", "- {name: w, type: label, if: always, properties: {operation: add, labels: {a: b}}}"),
		planText("target: {apiVersion: apps/v1, kind: Deployment, name: a}\ntriggers: {labels: [a/b]}"),
		"? {a: b}\n: c", "- - - -", "a: !!binary x", "<<: *a", "spec: {steps: [{properties: {patch: ${}}}]}",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		spec, faults := plan.Parse(text, "orders")
		if len(faults) > 0 {
			if faults.Error() == "" {
				t.Error("a fault without words")
			}
			return
		}
		if _, err := plan.ParseSchedules(spec.Triggers.Schedules); err != nil {
			t.Errorf("valid, but its schedules are not: %v", err)
		}
		// What is valid can be decided over and run.
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		spec = spec.Defaulted()
		d := trigger.Decide(trigger.Facts{Now: now, LeadingSince: now, Plan: trigger.Plan{Namespace: "shop", Name: "orders", UID: "u", CreatedAt: now.Add(-time.Hour), EditedAt: now.Add(-time.Hour), Spec: spec}, Ready: trigger.Readiness{OK: true}, NameOf: func(r run.Request) string { return r.Identity("u") }})
		_ = d
		r := run.Run{Name: "r", Namespace: "shop", Plan: "orders", Spec: document.Clone(spec)}
		_, _ = workflow.Advance(r, workflow.NewJournal(r).Start(now), now, workflow.Signals{})
	})
}
