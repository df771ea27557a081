package write_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
)

func TestLintNamesEachFaultWhereItStands(t *testing.T) {
	for _, c := range []struct {
		name, text, want string
	}{
		{"a plan without faults", cmdtest.Manifest(), ""},
		{"somebody else's ConfigMap", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {a: b}\n", ""},
		{"another kind altogether", "apiVersion: v1\nkind: Secret\nmetadata: {name: x}\n", ""},
		{"an unknown field", cmdtest.Manifest("      steps:", "      stepps: []\n      steps:"), "f.yaml:12: spec.stepps: unknown field; did you mean \"steps\"?\n"},
		{"a wrong type", cmdtest.Manifest("      steps:", "      dryRun: maybe\n      steps:"), "f.yaml:12: spec.dryRun: must be true or false, is \"maybe\"\n"},
		{"two faults", cmdtest.Manifest("hold", "Hold", "suspend", "suspnd"), "f.yaml:13: spec.steps[0].name: \"Hold\" cannot name a step: at most 63 characters of a-z, 0-9 and '-'\nf.yaml:14: spec.steps[0].type: unknown step type \"suspnd\"; did you mean \"suspend\"?\n"},
		{"YAML that is none", "# a comment\na: [1,\nb: 2\n", "f.yaml:2: this is no YAML: did not find expected ',' or ']'\n"},
		{"a document that is no YAML", cmdtest.Manifest("      - name: hold", "      - name: [hold"), "f.yaml:13: this is no YAML: did not find expected ',' or ']'\n"},
		{"two documents in one ConfigMap", cmdtest.Manifest("        type: suspend\n", "        type: suspend\n    ---\n    kind: Plan\n"), "f.yaml:15: a second document begins here; a ConfigMap holds one document\n"},
		{"a missing data key", cmdtest.Manifest("plan.yaml", "plan.yml"), "f.yaml:7: data: the key plan.yaml is missing; found plan.yml\n"},
		{"no data", strings.Split(cmdtest.Manifest(), "\ndata:")[0] + "\n", "f.yaml:1: data: the key plan.yaml is missing: the document stands there\n"},
		{"more data than a document", cmdtest.Manifest("\ndata:\n", "\ndata:\n  more: x\n"), "f.yaml:7: data: holds more, plan.yaml; a ConfigMap of this kind holds plan.yaml alone\n"},
		{"data that is no text", cmdtest.Manifest("\ndata:\n", "\ndata:\n  more: {a: b}\n"), "f.yaml:1: this is no ConfigMap: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal object into Go struct field ConfigMap.data of type string\n"},
		{"an unknown field of the ConfigMap", cmdtest.Manifest("\ndata:\n", "\ndta: {}\ndata:\n"), "f.yaml:1: this is no ConfigMap: error unmarshaling JSON: while decoding JSON: json: unknown field \"dta\"\n"},
		{"no name", cmdtest.Manifest("  name: nightly\n", ""), "f.yaml:3: metadata.name: is missing: a document is called by its name\n"},
		{"a name that is too long", cmdtest.Manifest("nightly", strings.Repeat("n", 64)), "f.yaml:4: metadata.name: \"" + strings.Repeat("n", 64) + "\" cannot name a plan: at most 63 characters of a-z, 0-9 and '-'\n"},
		{"no label", cmdtest.Manifest("  labels:\n    maint.dev/kind: plan\n", ""), "f.yaml:3: metadata.labels: lacks maint.dev/kind: plan, without which no agent looks at it\n"},
		{"an unknown label", cmdtest.Manifest("kind: plan", "kind: plann"), "f.yaml:6: metadata.labels[maint.dev/kind]: \"plann\" is no kind of document; available are plan, hibernate-plan, policy, calendar, step-template, connector, prices and agent-config\n"},
		{"what the agent alone writes", cmdtest.Manifest("kind: plan", "kind: run"), "f.yaml:6: metadata.labels[maint.dev/kind]: a run is written by the agent alone\n"},
		{"an account that its label does not name", cmdtest.Manifest("      steps:", "      serviceAccountName: other\n      steps:"), "f.yaml:5: metadata.labels: needs the label maint.dev/service-account: other, since it runs as that account, and admission policies see labels only\n"},
		{"an annotation that is no instant", cmdtest.Manifest("  labels:", "  annotations:\n    maint.dev/pause: tomorrow\n  labels:"), "f.yaml:6: metadata.annotations[maint.dev/pause]: \"tomorrow\" is neither true nor an RFC 3339 instant like 2026-12-01T06:00:00Z; it pauses until it is removed\n"},
		{"skip: next in a file", cmdtest.Manifest("  labels:", "  annotations:\n    maint.dev/skip: next\n  labels:"), "f.yaml:6: metadata.annotations[maint.dev/skip]: next is for people: a file would bring it back each time it is applied; name the slot, or until:<instant>\n"},
		{"a bare document", "apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec:\n  step: []\n  steps: [{name: hold, type: suspend}]\n", "f.yaml:4: spec.step: unknown field; did you mean \"steps\"?\n"},
		{"an apiVersion that is none of ours", "apiVersion: maint.dev/v1\nkind: Plan\nspec: {steps: [{name: hold, type: suspend}]}\n", "f.yaml:1: apiVersion: must be maint.dev/v1alpha1, is \"maint.dev/v1\"\n"},
		{"a kind that is none of ours", "apiVersion: maint.dev/v1alpha1\nkind: Plann\nspec: {steps: [{name: hold, type: suspend}]}\n", "f.yaml:2: kind: must be Plan, is \"Plann\"\n"},
		{"a connector", "apiVersion: maint.dev/v1alpha1\nkind: CloudProvider\nspec:\n  type: aws\n  aws:\n    accountId: \"1\"\n    region: eu-central-1\n    auth: {}\n", "f.yaml:6: spec.aws.accountId: \"1\" is no account of AWS: write its 12 digits, in quotes\nf.yaml:8: spec.aws.auth: is empty; write serviceAccount: {} or static: {secretRef: {name: …}}\n"},
		{"a connector's ConfigMap", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: other\n  labels:\n    maint.dev/kind: connector\ndata:\n  connector.yaml: |\n    apiVersion: maint.dev/v1alpha1\n    kind: K8SCluster\n    spec: {eks: {name: stg}}\n", "f.yaml:11: spec.providerRef: is missing: the CloudProvider in whose account the cluster is\n"},
		{"a connector without its label", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: other\ndata:\n  connector.yaml: |\n    apiVersion: maint.dev/v1alpha1\n    kind: K8SCluster\n    spec: {k8s: {kubeconfigRef: {name: other}}}\n", "f.yaml:3: metadata.labels: lacks maint.dev/kind: connector, without which no agent looks at it\n"},
		{"the agent's configuration", "apiVersion: maint.dev/v1alpha1\nkind: AgentConfig\nspec:\n  logLevel: loud\n", "f.yaml:4: spec.logLevel: must be one of debug, info, warn, error, is \"loud\"\n"},
		{"many documents", cmdtest.Manifest() + "---\n# a comment\n---\n" + cmdtest.Manifest("nightly", "second", "suspend", "suspnd"), "f.yaml:31: spec.steps[0].type: unknown step type \"suspnd\"; did you mean \"suspend\"?\n"},
		{"one name twice", cmdtest.Manifest() + "---\n" + cmdtest.Manifest(), "f.yaml:19: metadata.name: nightly is the name of another document, in f.yaml on line 4\n"},
		{"a list", "apiVersion: v1\nkind: List\nitems:\n- " + strings.ReplaceAll(cmdtest.Manifest("suspend", "suspnd"), "\n", "\n  "), "f.yaml:17: spec.steps[0].type: unknown step type \"suspnd\"; did you mean \"suspend\"?\n"},
		{"a list with a fault before others", "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, date: {}, metadata: {name: a, labels: {maint.dev/kind: plan}}}\n- {apiVersion: v1, kind: ConfigMap, date: {}, metadata: {name: b, labels: {maint.dev/kind: plan}}}\n- " + strings.ReplaceAll(cmdtest.Manifest("suspend", "suspnd"), "\n", "\n  "), "f.yaml:4: this is no ConfigMap: error unmarshaling JSON: while decoding JSON: json: unknown field \"date\"\nf.yaml:5: this is no ConfigMap: error unmarshaling JSON: while decoding JSON: json: unknown field \"date\"\nf.yaml:19: spec.steps[0].type: unknown step type \"suspnd\"; did you mean \"suspend\"?\n"},
		{"the name of a policy", cmdtest.PolicyOf("prod.weekends", "", "{strategy: Permissive}"), "f.yaml:4: metadata.name: \"prod.weekends\" cannot name a policy: at most 63 characters of a-z, 0-9 and '-'\n"},
		{"the name of a calendar", documentOf("calendar", "all.holidays", "calendar.yaml", "[]"), "f.yaml:3: metadata.name: \"all.holidays\" cannot name a calendar: at most 63 characters of a-z, 0-9 and '-'\n"},
		{"the name of prices", documentOf("prices", "list.prices", "prices.yaml", "{currency: USD, hourly: {ec2: {m5.large: 0.1}}}"), "f.yaml:3: metadata.name: \"list.prices\" cannot name a document: at most 63 characters of a-z, 0-9 and '-'\n"},
		{"prices under another key", documentOf("prices", "prices", "price.yaml", "{currency: USD, hourly: {ec2: {m5.large: 0.1}}}"), "f.yaml:4: data: the key prices.yaml is missing; found price.yaml\n"},
		{"the agent's configuration under another key", documentOf("agent-config", "maint-agent", "agent.yaml", "{apiVersion: maint.dev/v1alpha1, kind: AgentConfig, spec: {}}"), "f.yaml:4: data: the key config.yaml is missing; found agent.yaml\n"},
		{"a gate record", cmdtest.Manifest("kind: plan", "kind: gate"), "f.yaml:6: metadata.labels[maint.dev/kind]: a gate is written by the agent alone\n"},
		{"a document in quotes", cmdtest.Manifest("|\n    apiVersion: maint.dev/v1alpha1\n    kind: Plan\n    spec:\n      steps:\n      - name: hold\n        type: suspend\n", `"apiVersion: maint.dev/v1alpha1\nkind: Plann\nspec: {steps: [{name: hold, type: suspend}]}"`+"\n"), "f.yaml:8: kind: must be Plan, is \"Plann\"\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmdtest.WriteFiles(t, map[string]string{"f.yaml": c.text})
			got := cmdtest.Offline(t, cmd.Run, "", "lint", "-f", "f.yaml")
			if diff := cmp.Diff(c.want, got.Out); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if (got.Code == 0) != (c.want == "") || got.Code > 1 {
				t.Errorf("exit code %d\n%s", got.Code, got.Err)
			}
		})
	}
}

// documentOf is the manifest of a document of a kind, of one line under a key.
func documentOf(kind, name, key, text string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", labels: {maint.dev/kind: " + kind + "}}\ndata: {" + key + ": '" + text + "'}\n"
}

// Each example is a file that people take alone.
func TestTheExamplesHaveNoFaults(t *testing.T) {
	files, err := filepath.Glob("../../../examples/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"dev-namespace-sleeps", "staging-account-sleeps", "eks-cluster-sleeps", "prices"} {
		if !slices.Contains(files, "../../../examples/"+name+".yaml") {
			t.Errorf("there is no example %s", name)
		}
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			if got := cmdtest.Offline(t, cmd.Run, "", "lint", "-f", file); got.Code != 0 || got.Out != "" || !strings.HasSuffix(got.Err, "without faults\n") {
				t.Errorf("exit code %d: %s%s", got.Code, got.Out, got.Err)
			}
		})
	}
}

func TestLintSaysHowAStepWithADashIsWritten(t *testing.T) {
	cmdtest.WriteFiles(t, map[string]string{"f.yaml": `apiVersion: maint.dev/v1alpha1
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
	cmdtest.Offline(t, cmd.Run, "", "lint", "-f", "f.yaml").Is(t, cmdtest.Printed{Code: 1, Out: `f.yaml:7: spec.steps[2].if: "steps.scale-down.phase == 'Succeeded'" does not compile: 13: undeclared reference to 'down' (in container ''); a step whose name has a dash is written steps['scale-down']
f.yaml:8: spec.steps[3].if: a step whose name has a dash is written steps['wait-run']
f.yaml:10: spec.steps[5].properties.body.said: "steps.scale-down.message" does not compile: 13: undeclared reference to 'down' (in container ''); a step whose name has a dash is written steps['scale-down']
`, Err: "note: f.yaml is no manifest: kubectl apply takes it as the text under plan.yaml in a ConfigMap with the label maint.dev/kind: plan\nerror: 3 faults in 1 document\n"})
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
		{"a pause by a patch of annotations", "{name: s, type: patch-object, properties: {" + deployment + ", patch: {metadata: {annotations: {company.org/paused: \"true\", other: null}}}}}", "", "pauses its object"},
		{"an object that is suspended", "{name: s, type: apply-object, properties: {object: {apiVersion: batch/v1, kind: CronJob, metadata: {name: x}, spec: {suspend: true}}}}", "", "pauses its object"},
		{"an object of no replicas", "{name: s, type: apply-object, properties: {object: {apiVersion: apps/v1, kind: Deployment, metadata: {name: x}, spec: {replicas: 0}}}}", "", "scales to zero"},
		{"an object at work", "{name: s, type: apply-object, properties: {object: {apiVersion: apps/v1, kind: Deployment, metadata: {name: x}, spec: {replicas: 2}}}}", "", ""},
		{"a pause label", "{name: s, type: label, properties: {operation: add, labels: {company.org/paused: \"true\"}, object: {apiVersion: apps/v1, kind: Deployment, name: orders}}}", "", "pauses its object"},
		{"another label", "{name: s, type: label, properties: {operation: add, labels: {company.org/team: x}, object: {apiVersion: apps/v1, kind: Deployment, name: orders}}}", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := cmdtest.Offline(t, cmd.Run, "apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec:\n  steps:\n  - {name: first, type: suspend}\n  - "+c.step+"\n"+c.finally, "lint", "-f", "-")
			want, help := bareNote+"1 document without faults\n", "add properties.restoreAfter: true, or a step in finally"
			if strings.Contains(c.step, "apply-object") {
				help = "add a step in finally"
			}
			if c.want != "" {
				want = "warning: -:6: spec.steps[1]: step s " + c.want + ", and nothing undoes it when a later step fails: " + help + "\n" + want
			}
			got.Is(t, cmdtest.Printed{Code: 0, Out: "", Err: want})
		})
	}
}

func TestLintWarnsOfALimitThatIsNone(t *testing.T) {
	for most, want := range map[string]string{
		"1":  "",
		"0":  "warning: -:7: spec.steps[0].properties.maxUnavailable: is 0, but one node may be unavailable all the same: a rollout has at least one place\n",
		"0%": "warning: -:7: spec.steps[0].properties.maxUnavailable: is 0%, but one node may be unavailable all the same: a rollout has at least one place\n",
	} {
		got := cmdtest.Offline(t, cmd.Run, "apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec:\n  steps:\n  - name: roll\n    type: for-each-node\n    properties: {maxUnavailable: "+most+", steps: [{name: c, type: cordon}]}\n  finally: [{name: f, type: suspend, properties: {duration: 1s}}]\n", "lint", "-f", "-")
		got.Is(t, cmdtest.Printed{Code: 0, Out: "", Err: want + bareNote + "1 document without faults\n"})
	}
}

// updatedReplicas and availableReplicas are as wanted while a Deployment still has old pods: readers
// copy what examples wait for.
func TestExamplesWaitForOldPodsToo(t *testing.T) {
	files, err := filepath.Glob("../../../examples/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "status.updatedReplicas") && !strings.Contains(string(text), "status.replicas ==") {
			t.Errorf("%s waits for updated pods, and not for old ones to be gone: use a step of type restart or health-check", file)
		}
	}
}

func TestLintReadsFoldersAndSpeaksToMachines(t *testing.T) {
	cmdtest.WriteFiles(t, map[string]string{"dir/a.yaml": cmdtest.Manifest("suspend", "suspnd"), "dir/deep/b.yml": cmdtest.Manifest("nightly", "b", "hold", "B"), "dir/README.md": "a: [", "dir/c.json": `{"apiVersion":"v1","kind":"Service"}`})
	if got := cmdtest.Offline(t, cmd.Run, "", "lint", "-f", "dir", "-o", "name"); got.Out != "dir/a.yaml:14\ndir/deep/b.yml:13\n" || got.Code != 1 {
		t.Errorf("by name: %+v", got)
	}
	got := cmdtest.Offline(t, cmd.Run, "", "lint", "-f", "dir", "-o", "json")
	want := cmdtest.JSON(`{"apiVersion":"maint.dev/v1alpha1","items":[{"file":"dir/a.yaml","line":14,"path":"spec.steps[0].type","message":"unknown step type \"suspnd\"; did you mean \"suspend\"?"},{"file":"dir/deep/b.yml","line":13,"path":"spec.steps[0].name","message":"\"B\" cannot name a step: at most 63 characters of a-z, 0-9 and '-'"}],"kind":"FaultList"}`)
	got.Is(t, cmdtest.Printed{Code: 1, Out: want, Err: "error: 2 faults in 2 documents\n"})
	cmdtest.WriteFiles(t, map[string]string{"dir/a.yaml": cmdtest.Manifest()})
	cmdtest.Offline(t, cmd.Run, "", "lint", "-f", "dir", "-o", "jsonpath={.kind}:{.items}").Is(t, cmdtest.Printed{Code: 0, Out: "FaultList:[]", Err: "1 document without faults\n"})
	cmdtest.Offline(t, cmd.Run, "", "lint", "-f", "dir", "-o", "json").Is(t, cmdtest.Printed{Code: 0, Out: cmdtest.JSON(`{"apiVersion":"maint.dev/v1alpha1","items":[],"kind":"FaultList"}`), Err: "1 document without faults\n"})
	cmdtest.Offline(t, cmd.Run, "", "lint", "-f", "absent").Is(t, cmdtest.Printed{Code: 1, Out: "", Err: "error: the path \"absent\" does not exist\n"})
	cmdtest.Offline(t, cmd.Run, "", "lint", "-f", "-").Is(t, cmdtest.Printed{Code: 0, Out: "", Err: "warning: no document was found in -: one is a ConfigMap with the label maint.dev/kind; 'kubectl maint new' prints a plan\n0 documents without faults\n"})
}

// bareNote is what lint says of a plan on standard input that is in no manifest.
const bareNote = "note: what standard input holds is no manifest: kubectl apply takes it as the text under plan.yaml in a ConfigMap with the label maint.dev/kind: plan\n"

func TestLintSaysHowABareDocumentIsApplied(t *testing.T) {
	plan := "apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec: {steps: [{name: hold, type: suspend}]}\n"
	policy := "apiVersion: maint.dev/v1alpha1\nkind: Policy\nspec: {strategy: MaintenanceSchedule, maintenanceSchedule: {windows: [{days: [Sat], start: '02:00', end: '06:00'}]}}\n"
	const note = "note: f.yaml is no manifest: kubectl apply takes it as the text under "
	for _, c := range []struct{ name, text, err string }{
		{"a plan", plan, note + "plan.yaml in a ConfigMap with the label maint.dev/kind: plan\n"},
		{"a HibernatePlan", bare(), note + "plan.yaml in a ConfigMap with the label maint.dev/kind: hibernate-plan\n"},
		{"a policy", policy, note + "policy.yaml in a ConfigMap with the label maint.dev/kind: policy\n"},
		{"a template", "apiVersion: maint.dev/v1alpha1\nkind: StepTemplate\nspec:\n  steps: [{name: hold, type: suspend}]\n", ""},
		{"a ConfigMap", cmdtest.Manifest(), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmdtest.WriteFiles(t, map[string]string{"f.yaml": c.text})
			cmdtest.Offline(t, cmd.Run, "", "lint", "-f", "f.yaml").Is(t, cmdtest.Printed{Code: 0, Out: "", Err: c.err + "1 document without faults\n"})
		})
	}
	cmdtest.Offline(t, cmd.Run, plan, "lint", "-f", "-").Is(t, cmdtest.Printed{Code: 0, Out: "", Err: bareNote + "1 document without faults\n"})
	for kind, under := range map[string]string{"Plan": "plan.yaml in a ConfigMap with the label maint.dev/kind: plan", "StepTemplate": "step.yaml in a ConfigMap with the label maint.dev/kind: step-template"} {
		cmdtest.WriteFiles(t, map[string]string{"f.yaml": "apiVersion: maint.dev/v1alpha1\nkind: " + kind + "\nmetadata: {name: nightly}\nspec: {steps: [{name: hold, type: suspend}]}\n"})
		cmdtest.Offline(t, cmd.Run, "", "lint", "-f", "f.yaml").Is(t, cmdtest.Printed{
			Code: 1, Out: "f.yaml:3: metadata: unknown field; known are apiVersion, kind, spec\n", Err: note + under + "\nerror: 1 fault in 1 document\n",
		})
	}
}

func TestLintLooksAtDocumentsTogether(t *testing.T) {
	policy := "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: saturdays, labels: {maint.dev/kind: policy}}\ndata:\n  policy.yaml: |\n    apiVersion: maint.dev/v1alpha1\n    kind: Policy\n    spec: {strategy: MaintenanceSchedule, maintenanceSchedule: {windows: [{days: [Sat], start: '02:00', end: '06:00'}]}}\n"
	gated := func(cron string) string {
		return cmdtest.Manifest("      steps:", "      policies: [{name: saturdays}]\n      triggers:\n        schedules: [{cron: \""+cron+"\"}]\n      steps:") + policy
	}
	for _, c := range []struct{ name, text, want string }{
		{"slots in the window", gated("0 3 * * *"), ""},
		{"slots shortly before the window", gated("30 1 * * 6"), ""},
		{"slots that never meet a window", gated("0 12 * * *"), "warning: f.yaml:14: spec.triggers.schedules: each of the next 731 slots is Missed: no window opens within startDeadline 1h0m0s of it\n"},
		{
			"two plans on one target", cmdtest.Manifest("      steps:", "      target: {apiVersion: apps/v1, kind: Deployment, name: orders}\n      steps:") + "---\n" + cmdtest.Manifest("nightly", "other", "      steps:", "      target: {apiVersion: apps/v1, kind: Deployment, name: orders}\n      steps:"),
			"warning: f.yaml:28: spec.target: Deployment/orders is the target of plan nightly in f.yaml, too: their runs wait for each other\n",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmdtest.WriteFiles(t, map[string]string{"f.yaml": c.text})
			cmdtest.Offline(t, cmd.Run, "", "lint", "-f", "f.yaml").Is(t, cmdtest.Printed{Code: 0, Out: "", Err: c.want + "2 documents without faults\n"})
		})
	}
}
