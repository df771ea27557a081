package cmd

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// hush is a step template's ConfigMap; edits are as manifest's.
func hush(edits ...string) string {
	text := `apiVersion: v1
kind: ConfigMap
metadata:
  name: hush
  labels:
    maint.dev/kind: step-template
data:
  step.yaml: |
    apiVersion: maint.dev/v1alpha1
    kind: StepTemplate
    spec:
      parameters:
      - name: long
        required: true
      steps:
      - name: hold
        type: suspend
        properties:
          duration: ${params.long}
`
	for i := 0; i < len(edits); i += 2 {
		if !strings.Contains(text, edits[i]) {
			panic("the template holds no " + edits[i])
		}
		text = strings.Replace(text, edits[i], edits[i+1], 1)
	}
	return text
}

// using is a plan whose step stands for the template.
func using(properties string, edits ...string) string {
	return manifest(append([]string{"type: suspend\n", "type: template/hush\n        properties: {" + properties + "}\n"}, edits...)...)
}

func TestLintReadsStepTemplates(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"a template without faults", hush(), ""},
		{"an unknown field", hush("required: true", "need: true"), "f.yaml:14: spec.parameters[0].need: unknown field; known are default, description, name, required, type\n"},
		{"an unknown step type", hush("type: suspend", "type: suspnd"), "f.yaml:17: spec.steps[0].type: unknown step type \"suspnd\"; did you mean \"suspend\"?\n"},
		{"an unknown context", hush("  labels:", "  annotations:\n    maint.dev/permitted-contexts: nightly\n  labels:"), "f.yaml:6: metadata.annotations[maint.dev/permitted-contexts]: must be maintenance, interactive or both with a comma, is \"nightly\"\n"},
		{"a bare document", "apiVersion: maint.dev/v1alpha1\nkind: StepTemplate\nspec:\n  steps: []\n", "f.yaml:4: spec.steps: is empty: a template needs a step\n"},
		{"no label", hush("  labels:\n    maint.dev/kind: step-template\n", ""), "f.yaml:3: metadata.labels: lacks maint.dev/kind: step-template, without which no agent looks at it\n"},
		{"somebody else's step.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {step.yaml: 'kind: Step'}\n", ""},
		{"a dash", hush("- name: hold", "- {name: scale-down, type: suspend}\n      - name: hold\n        if: \"steps.scale-down.phase == 'Succeeded'\""), "f.yaml:18: spec.steps[1].if: \"steps.scale-down.phase == 'Succeeded'\" does not compile: 13: undeclared reference to 'down' (in container ''); a step whose name has a dash is written steps['scale-down']\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			write(t, map[string]string{"f.yaml": c.text})
			if diff := cmp.Diff(c.want, offline(t, Run, "", "lint", "-f", "f.yaml").out); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestLintChecksHowPlansUseTemplates(t *testing.T) {
	beside := func(text string) string { return "---\n" + text }
	scheduled := []string{"      steps:", "      triggers: {schedules: [{cron: '0 2 * * *'}]}\n      steps:"}
	for _, c := range []struct{ name, text, out, err string }{
		{"as it is meant", using("long: 5m") + beside(hush()), "", "2 documents without faults\n"},
		{"a parameter that is missing", using("") + beside(hush()), "f.yaml:15: spec.steps[0].properties.long: is missing: template \"hush\" needs it\n", ""},
		{"a parameter that it does not have", using("long: 5m, loud: x") + beside(hush()), "f.yaml:15: spec.steps[0].properties.loud: template \"hush\" has no such parameter; it has long\n", ""},
		{"a context in which it is not permitted", using("long: 5m", scheduled...) + beside(hush()), "f.yaml:15: spec.steps[0].type: step template \"hush\" is permitted in interactive plans, not in maintenance ones\n", ""},
		{"one in the agent's namespace", using("long: 5m") + beside(hush("name: hush", "name: hush\n  namespace: maint-system")), "", "2 documents without faults\n"},
		{"one in another namespace", using("long: 5m") + beside(hush("name: hush", "name: hush\n  namespace: other")), "", "warning: f.yaml:14: spec.steps[0].type: there is no step template \"hush\" among the files: it must be in the cluster\n2 documents without faults\n"},
		{"one that is not there", using("long: 5m"), "", "warning: f.yaml:14: spec.steps[0].type: there is no step template \"hush\" among the files: it must be in the cluster\n1 document without faults\n"},
		{
			"one that a template lacks", using("long: 5m") + beside(hush("name: hold\n        type: suspend\n        properties:\n          duration: ${params.long}", "name: hold\n        type: template/other")),
			"", "warning: f.yaml:13: spec.steps[0](hush).steps[0].type: there is no step template \"other\" among the files: it must be in the cluster\n2 documents without faults\n",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			write(t, map[string]string{"f.yaml": c.text})
			want := printed{code: 0, out: c.out, err: c.err}
			if c.out != "" {
				want = printed{code: 1, out: c.out, err: "error: 1 fault in 2 documents\n"}
			}
			offline(t, Run, "", "lint", "-f", "f.yaml").is(t, want)
		})
	}
}

func TestScheduleChecksATemplateThatStandsBesideThePlan(t *testing.T) {
	write(t, map[string]string{"good.yaml": using("long: 5m") + "---\n" + hush(), "bad.yaml": using("") + "---\n" + hush(), "far.yaml": using("")})
	offline(t, Run, "", "schedule", "-f", "good.yaml", "--dry-run=client").is(t, printed{code: 0, out: "plan/nightly written (dry run)\n", err: ""})
	offline(t, Run, "", "schedule", "-f", "far.yaml", "--dry-run=client").is(t, printed{code: 0, out: "plan/nightly written (dry run)\n", err: ""})
	offline(t, Run, "", "schedule", "-f", "bad.yaml", "--dry-run=client").is(t, printed{code: 2, out: "", err: "error: the plan is not valid, nothing was written\nerror: bad.yaml:15: spec.steps[0].properties.long: is missing: template \"hush\" needs it\n"})
}

func TestSimulatePlaysTemplates(t *testing.T) {
	hourly := []string{"      steps:", "      triggers: {schedules: [{cron: '0 * * * *'}]}\n      maxDuration: 3h\n      steps:"}
	both := "---\n" + hush("  labels:", "  annotations: {maint.dev/permitted-contexts: 'maintenance'}\n  labels:")
	write(t, map[string]string{"f.yaml": using("long: 90m", hourly...) + both, "g.yaml": using("long: 90m", hourly...)})
	const span = "from Sat 2026-11-21 01:00 CET (2026-11-21T00:00:00Z) to Sat 2026-11-21 05:00 CET (2026-11-21T04:00:00Z)\n"
	got := offline(t, Run, "", "simulate", "-f", "f.yaml", "--to", "4h")
	if want := span + "2 ran, 2 skipped, 0 missed\n"; got.code != 0 || got.err != want {
		t.Errorf("%d, %s", got.code, got.err)
	}
	got = offline(t, Run, "", "simulate", "-f", "g.yaml", "--to", "4h")
	if want := "warning: g.yaml:16: spec.steps[0].type: there is no step template \"hush\" among the files: it must be in the cluster; its steps count as done at once\n" + span + "4 ran, 0 skipped, 0 missed\n"; got.code != 0 || got.err != want {
		t.Errorf("%d, %s", got.code, got.err)
	}
}

func TestLintLooksIntoStepsThatHoldSteps(t *testing.T) {
	write(t, map[string]string{"f.yaml": `apiVersion: maint.dev/v1alpha1
kind: Plan
spec:
  steps:
  - {name: scale-down, type: suspend}
  - name: all
    type: step-group
    properties:
      steps:
      - {name: zero, type: scale, properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: orders}, replicas: 0}}
      - name: roll
        type: for-each
        properties:
          apiVersion: apps/v1
          kind: Deployment
          steps:
          - {name: call, type: webhook, if: "steps.scale-down.phase == 'Succeeded'", properties: {url: https://example.org/}}
`})
	offline(t, Run, "", "lint", "-f", "f.yaml").is(t, printed{
		code: 1, out: "f.yaml:17: spec.steps[1].properties.steps[1].properties.steps[0].if: \"steps.scale-down.phase == 'Succeeded'\" does not compile: 13: undeclared reference to 'down' (in container ''); a step whose name has a dash is written steps['scale-down']\n",
		err: "warning: f.yaml:10: spec.steps[1].properties.steps[0]: step zero scales to zero, and nothing undoes it when a later step fails: add restoreAfter: true, or a step in finally\nerror: 1 fault in 1 document\n",
	})
}
