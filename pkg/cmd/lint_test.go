package cmd

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// manifest is a plan's ConfigMap; edits are pairs of what stands there and what
// shall stand there instead.
func manifest(edits ...string) string {
	text := `apiVersion: v1
kind: ConfigMap
metadata:
  name: nightly
  labels:
    maint.dev/kind: plan
data:
  plan.yaml: |
    apiVersion: maint.dev/v1alpha1
    kind: Plan
    spec:
      steps:
      - name: hold
        type: suspend
`
	for i := 0; i < len(edits); i += 2 {
		if !strings.Contains(text, edits[i]) {
			panic("the manifest holds no " + edits[i])
		}
		text = strings.Replace(text, edits[i], edits[i+1], 1)
	}
	return text
}

func TestLintNamesEachFaultWhereItStands(t *testing.T) {
	for _, c := range []struct {
		name, text, want string
	}{
		{"a plan without faults", manifest(), ""},
		{"somebody else's ConfigMap", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {a: b}\n", ""},
		{"another kind altogether", "apiVersion: v1\nkind: Secret\nmetadata: {name: x}\n", ""},
		{"an unknown field", manifest("      steps:", "      stepps: []\n      steps:"), "f.yaml:12: spec.stepps: unknown field; did you mean \"steps\"?\n"},
		{"a wrong type", manifest("      steps:", "      dryRun: maybe\n      steps:"), "f.yaml:12: spec.dryRun: must be true or false, is \"maybe\"\n"},
		{"two faults", manifest("hold", "Hold", "suspend", "suspnd"), "f.yaml:13: spec.steps[0].name: \"Hold\" cannot name a step: at most 63 characters of a-z, 0-9 and '-'\nf.yaml:14: spec.steps[0].type: unknown step type \"suspnd\"; did you mean \"suspend\"?\n"},
		{"YAML that is none", "# a comment\na: [1,\nb: 2\n", "f.yaml:2: this is no YAML: did not find expected ',' or ']'\n"},
		{"a document that is no YAML", manifest("      - name: hold", "      - name: [hold"), "f.yaml:13: this is no YAML: did not find expected ',' or ']'\n"},
		{"two documents in one ConfigMap", manifest("        type: suspend\n", "        type: suspend\n    ---\n    kind: Plan\n"), "f.yaml:15: a second document begins here; a ConfigMap holds one document\n"},
		{"a missing data key", manifest("plan.yaml", "plan.yml"), "f.yaml:7: data: the key plan.yaml is missing; found plan.yml\n"},
		{"no data", strings.Split(manifest(), "\ndata:")[0] + "\n", "f.yaml:1: data: the key plan.yaml is missing: the document stands there\n"},
		{"more data than a document", manifest("\ndata:\n", "\ndata:\n  more: x\n"), "f.yaml:7: data: holds more, plan.yaml; a ConfigMap of this kind holds plan.yaml alone\n"},
		{"data that is no text", manifest("\ndata:\n", "\ndata:\n  more: {a: b}\n"), "f.yaml:1: this is no ConfigMap: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal object into Go struct field ConfigMap.data of type string\n"},
		{"an unknown field of the ConfigMap", manifest("\ndata:\n", "\ndta: {}\ndata:\n"), "f.yaml:1: this is no ConfigMap: error unmarshaling JSON: while decoding JSON: json: unknown field \"dta\"\n"},
		{"no name", manifest("  name: nightly\n", ""), "f.yaml:3: metadata.name: is missing: a document is called by its name\n"},
		{"a name that is too long", manifest("nightly", strings.Repeat("n", 64)), "f.yaml:4: metadata.name: \"" + strings.Repeat("n", 64) + "\" cannot name a plan: at most 63 characters of a-z, 0-9 and '-'\n"},
		{"no label", manifest("  labels:\n    maint.dev/kind: plan\n", ""), "f.yaml:3: metadata.labels: lacks maint.dev/kind: plan, without which no agent looks at it\n"},
		{"an unknown label", manifest("kind: plan", "kind: plann"), "f.yaml:6: metadata.labels[maint.dev/kind]: \"plann\" is no kind of document; available are plan, policy, calendar, step-template and agent-config\n"},
		{"a kind of a later version", manifest("kind: plan", "kind: hibernate-plan"), "f.yaml:6: metadata.labels[maint.dev/kind]: a hibernate plan is not available in this version; available are Plan, Policy, Calendar, StepTemplate and AgentConfig\n"},
		{"what the agent alone writes", manifest("kind: plan", "kind: run"), "f.yaml:6: metadata.labels[maint.dev/kind]: a run is written by the agent alone\n"},
		{"an account that its label does not name", manifest("      steps:", "      serviceAccountName: other\n      steps:"), "f.yaml:5: metadata.labels: needs the label maint.dev/service-account: other, since the document names that account and admission cannot read YAML\n"},
		{"an annotation that is no instant", manifest("  labels:", "  annotations:\n    maint.dev/pause: tomorrow\n  labels:"), "f.yaml:6: metadata.annotations[maint.dev/pause]: \"tomorrow\" is neither true nor an RFC 3339 instant like 2026-12-01T06:00:00Z; it pauses until it is removed\n"},
		{"skip: next in a file", manifest("  labels:", "  annotations:\n    maint.dev/skip: next\n  labels:"), "f.yaml:6: metadata.annotations[maint.dev/skip]: next is for people: a file would bring it back each time it is applied; name the slot, or until:<instant>\n"},
		{"a bare document", "apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec:\n  step: []\n  steps: [{name: hold, type: suspend}]\n", "f.yaml:4: spec.step: unknown field; did you mean \"steps\"?\n"},
		{"an apiVersion that is none of ours", "apiVersion: maint.dev/v1\nkind: Plan\nspec: {steps: [{name: hold, type: suspend}]}\n", "f.yaml:1: apiVersion: must be maint.dev/v1alpha1, is \"maint.dev/v1\"\n"},
		{"a kind that is none of ours", "apiVersion: maint.dev/v1alpha1\nkind: Plann\nspec: {steps: [{name: hold, type: suspend}]}\n", "f.yaml:2: kind: must be Plan, is \"Plann\"\n"},
		{"the agent's configuration", "apiVersion: maint.dev/v1alpha1\nkind: AgentConfig\nspec:\n  logLevel: loud\n", "f.yaml:4: spec.logLevel: must be one of debug, info, warn, error, is \"loud\"\n"},
		{"many documents", manifest() + "---\n# a comment\n---\n" + manifest("nightly", "second", "suspend", "suspnd"), "f.yaml:31: spec.steps[0].type: unknown step type \"suspnd\"; did you mean \"suspend\"?\n"},
		{"one name twice", manifest() + "---\n" + manifest(), "f.yaml:19: metadata.name: nightly is the name of another document, in f.yaml on line 4\n"},
		{"a list", "apiVersion: v1\nkind: List\nitems:\n- " + strings.ReplaceAll(manifest("suspend", "suspnd"), "\n", "\n  "), "f.yaml:17: spec.steps[0].type: unknown step type \"suspnd\"; did you mean \"suspend\"?\n"},
		{"a document in quotes", manifest("|\n    apiVersion: maint.dev/v1alpha1\n    kind: Plan\n    spec:\n      steps:\n      - name: hold\n        type: suspend\n", `"apiVersion: maint.dev/v1alpha1\nkind: Plann\nspec: {steps: [{name: hold, type: suspend}]}"`+"\n"), "f.yaml:8: kind: must be Plan, is \"Plann\"\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			write(t, map[string]string{"f.yaml": c.text})
			got := offline(t, Run, "", "lint", "-f", "f.yaml")
			if diff := cmp.Diff(c.want, got.out); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if (got.code == 0) != (c.want == "") || got.code > 1 {
				t.Errorf("exit code %d\n%s", got.code, got.err)
			}
		})
	}
}

func TestLintSaysHowAStepWithADashIsWritten(t *testing.T) {
	write(t, map[string]string{"f.yaml": `apiVersion: maint.dev/v1alpha1
kind: Plan
spec:
  steps:
  - {name: scale-down, type: suspend}
  - {name: wait-run, type: suspend}
  - {name: a, type: suspend, if: "steps.scale-down.phase == 'Succeeded'"}
  - {name: b, type: suspend, if: "steps.wait-run.phase == 'Succeeded'"}
  - {name: c, type: suspend, if: "steps['wait-run'].phase == 'Succeeded' && steps.a.phase == 'Succeeded'"}
  - {name: d, type: webhook, properties: {url: https://example.org/, body: {said: "${steps.scale-down.message}"}}}
`})
	offline(t, Run, "", "lint", "-f", "f.yaml").is(t, printed{code: 1, out: `f.yaml:7: spec.steps[2].if: "steps.scale-down.phase == 'Succeeded'" does not compile: 13: undeclared reference to 'down' (in container ''); a step whose name has a dash is written steps['scale-down']
f.yaml:8: spec.steps[3].if: a step whose name has a dash is written steps['wait-run']
f.yaml:10: spec.steps[5].properties.body.said: "steps.scale-down.message" does not compile: 13: undeclared reference to 'down' (in container ''); a step whose name has a dash is written steps['scale-down']
`, err: "error: 3 faults in 1 document\n"})
}

func TestLintWarnsOfWhatNothingUndoes(t *testing.T) {
	const deployment = "resource: {apiVersion: apps/v1, kind: Deployment, name: orders}"
	for _, c := range []struct{ name, step, finally, want string }{
		{"a scale to zero", "{name: s, type: scale, properties: {" + deployment + ", replicas: 0}}", "", "scales to zero"},
		{"a scale to one", "{name: s, type: scale, properties: {" + deployment + ", replicas: 1}}", "", ""},
		{"a scale to zero that is restored", "{name: s, type: scale, properties: {" + deployment + ", replicas: 0, restoreAfter: true}}", "", ""},
		{"a scale to zero with a finally", "{name: s, type: scale, properties: {" + deployment + ", replicas: 0}}", "  finally: [{name: back, type: suspend, properties: {duration: 1s}}]\n", ""},
		{"a patch to zero", "{name: s, type: patch-object, properties: {" + deployment + ", patch: {spec: {replicas: 0}}}}", "", "scales to zero"},
		{"a JSON patch to zero", "{name: s, type: patch-object, properties: {" + deployment + ", patchType: json, patch: [{op: replace, path: /spec/replicas, value: 0}]}}", "", "scales to zero"},
		{"a pause by patch", "{name: s, type: patch-object, properties: {" + deployment + ", patch: {spec: {paused: true}}}}", "", "pauses its object"},
		{"the end of a pause", "{name: s, type: patch-object, properties: {" + deployment + ", patch: {spec: {paused: false}}}}", "", ""},
		{"a pause label", "{name: s, type: label, properties: {operation: add, labels: {company.org/paused: \"true\"}, object: {apiVersion: apps/v1, kind: Deployment, name: orders}}}", "", "pauses its object"},
		{"another label", "{name: s, type: label, properties: {operation: add, labels: {company.org/team: x}, object: {apiVersion: apps/v1, kind: Deployment, name: orders}}}", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := offline(t, Run, "apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec:\n  steps:\n  - {name: first, type: suspend}\n  - "+c.step+"\n"+c.finally, "lint", "-f", "-")
			want := "1 document without faults\n"
			if c.want != "" {
				want = "warning: -:6: spec.steps[1]: step s " + c.want + ", and nothing undoes it when a later step fails: add restoreAfter: true, or a step in finally\n" + want
			}
			got.is(t, printed{code: 0, out: "", err: want})
		})
	}
}

func TestLintReadsFoldersAndSpeaksToMachines(t *testing.T) {
	write(t, map[string]string{"dir/a.yaml": manifest("suspend", "suspnd"), "dir/deep/b.yml": manifest("nightly", "b", "hold", "B"), "dir/README.md": "a: [", "dir/c.json": `{"apiVersion":"v1","kind":"Service"}`})
	got := offline(t, Run, "", "lint", "-f", "dir", "-o", "json")
	want := `{"items":[{"file":"dir/a.yaml","line":14,"path":"spec.steps[0].type","message":"unknown step type \"suspnd\"; did you mean \"suspend\"?"},{"file":"dir/deep/b.yml","line":13,"path":"spec.steps[0].name","message":"\"B\" cannot name a step: at most 63 characters of a-z, 0-9 and '-'"}],"kind":"FaultList"}` + "\n"
	got.is(t, printed{code: 1, out: want, err: "error: 2 faults in 2 documents\n"})
	write(t, map[string]string{"dir/a.yaml": manifest()})
	offline(t, Run, "", "lint", "-f", "dir", "-o", "json").is(t, printed{code: 0, out: `{"items":[],"kind":"FaultList"}` + "\n", err: "1 document without faults\n"})
	offline(t, Run, "", "lint", "-f", "absent").is(t, printed{code: 1, out: "", err: "error: read absent: lstat absent: no such file or directory\n"})
	offline(t, Run, "", "lint", "-f", "-").is(t, printed{code: 0, out: "", err: "warning: no document of ours was found\n0 documents without faults\n"})
}

func TestLintLooksAtDocumentsTogether(t *testing.T) {
	policy := "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: saturdays, labels: {maint.dev/kind: policy}}\ndata:\n  policy.yaml: |\n    apiVersion: maint.dev/v1alpha1\n    kind: Policy\n    spec: {strategy: MaintenanceSchedule, maintenanceSchedule: {windows: [{days: [Sat], start: '02:00', end: '06:00'}]}}\n"
	gated := func(cron string) string {
		return manifest("      steps:", "      policies: [{name: saturdays}]\n      triggers:\n        schedules: [{cron: \""+cron+"\"}]\n      steps:") + policy
	}
	for _, c := range []struct{ name, text, want string }{
		{"slots in the window", gated("0 3 * * *"), ""},
		{"slots shortly before the window", gated("30 1 * * 6"), ""},
		{"slots that never meet a window", gated("0 12 * * *"), "warning: f.yaml:14: spec.triggers.schedules: each of the next 731 slots is Missed: no window opens within startDeadline 1h0m0s of it\n"},
		{
			"two plans on one target", manifest("      steps:", "      target: {apiVersion: apps/v1, kind: Deployment, name: orders}\n      steps:") + "---\n" + manifest("nightly", "other", "      steps:", "      target: {apiVersion: apps/v1, kind: Deployment, name: orders}\n      steps:"),
			"warning: f.yaml:28: spec.target: Deployment/orders is the target of plan nightly in f.yaml, too: their runs wait for each other\n",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			write(t, map[string]string{"f.yaml": c.text})
			offline(t, Run, "", "lint", "-f", "f.yaml").is(t, printed{code: 0, out: "", err: c.want + "2 documents without faults\n"})
		})
	}
}

func FuzzLint(f *testing.F) {
	f.Add(manifest())
	f.Add("kind: List\nitems: [{kind: ConfigMap, apiVersion: v1, data: {plan.yaml: x}}]")
	f.Add("kind: Plan\nspec: [")
	f.Add(using("long: 5m") + "---\n" + hush())
	f.Fuzz(func(t *testing.T, text string) {
		lines := strings.Count(text, "\n") + 1
		docs, faults := splitDocuments("f", []byte(text))
		for _, d := range docs {
			faults = append(faults, d.check()...)
			warnings(d)
		}
		for _, fault := range faults {
			if fault.Line < 1 || fault.Line > lines+1 {
				t.Errorf("a fault on line %d of %d: %s", fault.Line, lines, fault)
			}
		}
		if _, err := json.Marshal(faults); err != nil {
			t.Error(err)
		}
	})
}
