package write_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
)

func TestLintReadsStepTemplates(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"a template without faults", cmdtest.StepTemplate(), ""},
		{"an unknown field", cmdtest.StepTemplate("required: true", "need: true"), "f.yaml:14: spec.parameters[0].need: unknown field; known are default, description, name, required, type\n"},
		{"an unknown step type", cmdtest.StepTemplate("type: suspend", "type: suspnd"), "f.yaml:17: spec.steps[0].type: unknown step type \"suspnd\"; did you mean \"suspend\"?\n"},
		{"an unknown context", cmdtest.StepTemplate("  labels:", "  annotations:\n    maint.dev/permitted-contexts: nightly\n  labels:"), "f.yaml:6: metadata.annotations[maint.dev/permitted-contexts]: must be maintenance, interactive or both with a comma, is \"nightly\"\n"},
		{"a bare document", "apiVersion: maint.dev/v1alpha1\nkind: StepTemplate\nspec:\n  steps: []\n", "f.yaml:4: spec.steps: is empty: a template needs a step\n"},
		{"no label", cmdtest.StepTemplate("  labels:\n    maint.dev/kind: step-template\n", ""), "f.yaml:3: metadata.labels: lacks maint.dev/kind: step-template, without which no agent looks at it\n"},
		{"somebody else's step.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {step.yaml: 'kind: Step'}\n", ""},
		{"a dash", cmdtest.StepTemplate("- name: hold", "- {name: scale-down, type: suspend}\n      - name: hold\n        if: \"steps.scale-down.phase == 'Succeeded'\""), "f.yaml:18: spec.steps[1].if: \"steps.scale-down.phase == 'Succeeded'\" does not compile: 13: undeclared reference to 'down' (in container ''); a step whose name has a dash is written steps['scale-down']\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmdtest.WriteFiles(t, map[string]string{"f.yaml": c.text})
			if diff := cmp.Diff(c.want, cmdtest.Offline(t, cmd.Run, "", "lint", "-f", "f.yaml").Out); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestLintChecksHowPlansUseTemplates(t *testing.T) {
	beside := func(text string) string { return "---\n" + text }
	scheduled := []string{"      steps:", "      triggers: {schedules: [{cron: '0 2 * * *'}]}\n      steps:"}
	for _, c := range []struct{ name, text, out, err string }{
		{"as it is meant", cmdtest.Using("long: 5m") + beside(cmdtest.StepTemplate()), "", "2 documents without faults\n"},
		{"a parameter that is missing", cmdtest.Using("") + beside(cmdtest.StepTemplate()), "f.yaml:15: spec.steps[0].properties.long: is missing: template \"hush\" needs it\n", ""},
		{"a parameter that it does not have", cmdtest.Using("long: 5m, loud: x") + beside(cmdtest.StepTemplate()), "f.yaml:15: spec.steps[0].properties.loud: template \"hush\" has no such parameter; it has long\n", ""},
		{"a context in which it is not permitted", cmdtest.Using("long: 5m", scheduled...) + beside(cmdtest.StepTemplate()), "f.yaml:15: spec.steps[0].type: step template \"hush\" is permitted in interactive plans, not in maintenance ones\n", ""},
		{"one in the agent's namespace", cmdtest.Using("long: 5m") + beside(cmdtest.StepTemplate("name: hush", "name: hush\n  namespace: maint-system")), "", "2 documents without faults\n"},
		{"one in another namespace", cmdtest.Using("long: 5m") + beside(cmdtest.StepTemplate("name: hush", "name: hush\n  namespace: other")), "", "warning: f.yaml:14: spec.steps[0].type: there is no step template \"hush\" among the files: it must be in the cluster\n2 documents without faults\n"},
		{"one that is not there", cmdtest.Using("long: 5m"), "", "warning: f.yaml:14: spec.steps[0].type: there is no step template \"hush\" among the files: it must be in the cluster\n1 document without faults\n"},
		{
			"one that a template lacks", cmdtest.Using("long: 5m") + beside(cmdtest.StepTemplate("name: hold\n        type: suspend\n        properties:\n          duration: ${params.long}", "name: hold\n        type: template/other")),
			"", "warning: f.yaml:13: spec.steps[0](hush).steps[0].type: there is no step template \"other\" among the files: it must be in the cluster\n2 documents without faults\n",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmdtest.WriteFiles(t, map[string]string{"f.yaml": c.text})
			want := cmdtest.Printed{Code: 0, Out: c.out, Err: c.err}
			if c.out != "" {
				want = cmdtest.Printed{Code: 1, Out: c.out, Err: "error: 1 fault in 2 documents\n"}
			}
			cmdtest.Offline(t, cmd.Run, "", "lint", "-f", "f.yaml").Is(t, want)
		})
	}
}

// What stands beside the plan in its file is named: the plan may not run without it.
func TestScheduleNamesWhatOfAFileItDoesNotWrite(t *testing.T) {
	const account, list = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: maint-runner}\n---\n", "---\napiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Secret, metadata: {name: hush}}\n- {apiVersion: v1, kind: Service, metadata: {name: web}}\n"
	cmdtest.WriteFiles(t, map[string]string{"f.yaml": account + cmdtest.Manifest() + list})
	for line, apply := range map[string]string{"schedule -f f.yaml --dry-run=client": "kubectl apply -f f.yaml", "schedule other -n shop -f f.yaml --dry-run=client": "kubectl -n shop apply -f f.yaml"} {
		got := cmdtest.Offline(t, cmd.Run, "", strings.Fields(line)...)
		if want := "warning: only the plan of the file is written, and not ServiceAccount/maint-runner, Secret/hush, Service/web: '" + apply + "' writes all of it\n"; got.Code != 0 || !strings.HasPrefix(got.Err, want) {
			t.Errorf("%s: %+v, want %s", line, got, want)
		}
	}
}

func TestScheduleChecksATemplateThatStandsBesideThePlan(t *testing.T) {
	cmdtest.WriteFiles(t, map[string]string{"good.yaml": cmdtest.Using("long: 5m") + "---\n" + cmdtest.StepTemplate(), "bad.yaml": cmdtest.Using("") + "---\n" + cmdtest.StepTemplate(), "far.yaml": cmdtest.Using("")})
	cmdtest.Offline(t, cmd.Run, "", "schedule", "-f", "good.yaml", "--dry-run=client").Is(t, cmdtest.Printed{Code: 0, Out: "plan/nightly written (dry run)\n", Err: "warning: only the plan of the file is written, and not ConfigMap/hush: 'kubectl apply -f good.yaml' writes all of it\n"})
	cmdtest.Offline(t, cmd.Run, "", "schedule", "-f", "far.yaml", "--dry-run=client").Is(t, cmdtest.Printed{Code: 0, Out: "plan/nightly written (dry run)\n", Err: ""})
	cmdtest.Offline(t, cmd.Run, "", "schedule", "-f", "bad.yaml", "--dry-run=client").Is(t, cmdtest.Printed{Code: 2, Out: "", Err: "error: the plan is not valid, nothing was written\nerror: bad.yaml:15: spec.steps[0].properties.long: is missing: template \"hush\" needs it\n"})
}

func TestLintLooksIntoStepsThatHoldSteps(t *testing.T) {
	cmdtest.WriteFiles(t, map[string]string{"f.yaml": `apiVersion: maint.dev/v1alpha1
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
	cmdtest.Offline(t, cmd.Run, "", "lint", "-f", "f.yaml").Is(t, cmdtest.Printed{
		Code: 1, Out: "f.yaml:17: spec.steps[1].properties.steps[1].properties.steps[0].if: \"steps.scale-down.phase == 'Succeeded'\" does not compile: 13: undeclared reference to 'down' (in container ''); a step whose name has a dash is written steps['scale-down']\n",
		Err: "warning: f.yaml:10: spec.steps[1].properties.steps[0]: step zero scales to zero, and nothing undoes it when a later step fails: add properties.restoreAfter: true, or a step in finally\nnote: f.yaml is no manifest: kubectl apply takes it as the text under plan.yaml in a ConfigMap with the label maint.dev/kind: plan\nerror: 1 fault in 1 document\n",
	})
}

func TestLintChecksHowPlansUseConnectors(t *testing.T) {
	const planText = `apiVersion: maint.dev/v1alpha1
kind: Plan
spec:
  steps:
  - name: far
    type: scale
    connectorRef: {kind: K8SCluster, name: stg}
    properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: orders}, replicas: 1}
`
	stg := func(namespace, spec string) string {
		return "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: stg, namespace: " + namespace + ", labels: {maint.dev/kind: connector}}\ndata: {connector.yaml: 'apiVersion: maint.dev/v1alpha1\n\n    kind: K8SCluster\n\n    spec: " + spec + "'}\n"
	}
	const plan = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: p, namespace: shop, labels: {maint.dev/kind: plan}}\ndata:\n  plan.yaml: |\n"
	text := plan + "    " + strings.ReplaceAll(strings.TrimSpace(planText), "\n", "\n    ") + "\n"
	for name, c := range map[string]struct {
		more string
		want cmdtest.Printed
	}{
		"beside it":            {stg("shop", "{k8s: {kubeconfigRef: {name: s}}}"), cmdtest.Printed{Err: "2 documents without faults\n"}},
		"not there":            {"", cmdtest.Printed{Err: "warning: f.yaml:12: spec.steps[0].connectorRef: there is no connector stg of kind K8SCluster among the files: it must be in the cluster\n1 document without faults\n"}},
		"in another namespace": {stg("other", "{k8s: {kubeconfigRef: {name: s}}}"), cmdtest.Printed{Err: "warning: f.yaml:12: spec.steps[0].connectorRef: there is no connector stg of kind K8SCluster among the files: it must be in the cluster\n2 documents without faults\n"}},
		"a cluster of EKS":     {stg("shop", "{providerRef: {name: a}, eks: {name: s}}"), cmdtest.Printed{Err: "warning: f.yaml:12: spec.steps[0].connectorRef: there is no connector a of kind CloudProvider among the files: it must be in the cluster\n2 documents without faults\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			cmdtest.WriteFiles(t, map[string]string{"f.yaml": text + c.more})
			cmdtest.Offline(t, cmd.Run, "", "lint", "-f", "f.yaml").Is(t, c.want)
		})
	}
}
