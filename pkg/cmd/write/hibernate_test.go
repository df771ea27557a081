package write_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
)

// sleeps is the manifest of a HibernatePlan without faults: pairs of old and new make it
// another one.
func sleeps(edits ...string) string {
	text := `apiVersion: v1
kind: ConfigMap
metadata:
  name: stg
  namespace: shop
  labels:
    maint.dev/kind: hibernate-plan
data:
  plan.yaml: |
    apiVersion: maint.dev/v1alpha1
    kind: HibernatePlan
    spec:
      schedule:
        offHours:
        - {start: "20:00", end: "06:00"}
      targets:
      - {name: web, type: workload}
`
	return strings.NewReplacer(edits...).Replace(text)
}

// bare is the document alone.
func bare(edits ...string) string {
	_, text, _ := strings.Cut(sleeps(edits...), "plan.yaml: |\n")
	return strings.TrimPrefix(strings.ReplaceAll(text, "\n    ", "\n"), "    ")
}

// clusterByKubeconfig is a connector beside a HibernatePlan.
const clusterByKubeconfig = `---
apiVersion: v1
kind: ConfigMap
metadata:
  name: far
  namespace: shop
  labels: {maint.dev/kind: connector}
data:
  connector.yaml: |
    apiVersion: maint.dev/v1alpha1
    kind: K8SCluster
    spec: {k8s: {kubeconfigRef: {name: stg}}}
`

func TestLintReadsHibernatePlans(t *testing.T) {
	for _, c := range []struct {
		name, text, want string
	}{
		{"one without faults", sleeps(), ""},
		{"a bare document", bare(), ""},
		{"one that says nothing of its version", strings.TrimPrefix(bare(), "apiVersion: maint.dev/v1alpha1\n"), "f.yaml:1: apiVersion: must be maint.dev/v1alpha1, is \"\"\n"},
		{"an unknown field", sleeps("targets:", "tagets:"), "f.yaml:13: spec.targets: is empty: what is to sleep\nf.yaml:16: spec.tagets: unknown field; did you mean \"targets\"?\n"},
		{"two faults", sleeps("workload", "workloads", "06:00", "20:00"), "f.yaml:15: spec.schedule.offHours[0].end: \"20:00\": is the same as start; write another time\nf.yaml:17: spec.targets[0].type: \"workloads\" is no type of target; there are workload, karpenter, ec2, rds, asg, eks, function, noop; did you mean workload?\n"},
		{"a fault in a bare document", bare("type: workload", "type: gke"), "f.yaml:8: spec.targets[0].type: \"gke\" is not supported; there are workload, karpenter, ec2, rds, asg, eks, function, noop\n"},
		{"parameters of another type", sleeps("type: workload}", "type: noop, parameters: {floor: 1}}"), "f.yaml:17: spec.targets[0].parameters.floor: unknown field; known are delay, failShutdown, failWakeUp, timeout\n"},
		{"the label of a plan", sleeps("hibernate-plan", "plan"), "f.yaml:11: kind: must be Plan, is \"HibernatePlan\"\nf.yaml:13: spec.schedule: unknown field"},
		{"no label", sleeps("  labels:\n    maint.dev/kind: hibernate-plan\n", ""), "f.yaml:3: metadata.labels: lacks maint.dev/kind: hibernate-plan, without which no agent looks at it\n"},
		{"an account that its label does not name", sleeps("      targets:", "      serviceAccountName: cloud\n      targets:"), "f.yaml:6: metadata.labels: needs the label maint.dev/service-account: cloud, since it runs as that account, and admission policies see labels only\n"},
		{"a hold that is none", sleeps("  labels:", "  annotations:\n    maint.dev/hold-state: sleeping\n  labels:"), "f.yaml:7: metadata.annotations[maint.dev/hold-state]: \"sleeping\" is neither awake nor asleep: the hold is ignored\n"},
		{"an end of no hold", sleeps("  labels:", "  annotations:\n    maint.dev/hold-until: 2026-03-02T06:00:00Z\n  labels:"), "f.yaml:7: metadata.annotations[maint.dev/hold-until]: has no effect without maint.dev/hold-state\n"},
		{"skip: next in a file", sleeps("  labels:", "  annotations:\n    maint.dev/skip: next\n  labels:"), "f.yaml:7: metadata.annotations[maint.dev/skip]: next is for people"},
		{"a connector of another kind among the files", sleeps("type: workload}", "type: ec2, connectorRef: {kind: CloudProvider, name: far}, parameters: {selector: {tags: {env: stg}}}}") + clusterByKubeconfig, "f.yaml:17: spec.targets[0].connectorRef: the connector far is a K8SCluster, and not a CloudProvider\n"},
		{"a kubeconfig for nodes of EKS", sleeps("type: workload}", "type: eks, connectorRef: {kind: K8SCluster, name: far}, parameters: {managedNodeGroups: {names: [a]}}}") + clusterByKubeconfig, "f.yaml:17: spec.targets[0].connectorRef: the connector far is no cluster of EKS, which a target of type eks needs\n"},
		{"another cluster among the files", sleeps("type: workload}", "type: workload, connectorRef: {kind: K8SCluster, name: far}}") + clusterByKubeconfig, ""},
		{"one after another document", cmdtest.Manifest() + "---\n" + sleeps("workload", "workloads"), "f.yaml:32: spec.targets[0].type: "},
		{"the name of a plan beside it", cmdtest.Manifest("name: nightly", "name: stg\n  namespace: shop") + "---\n" + sleeps(), "f.yaml:20: metadata.name: stg is the name of another document, in f.yaml on line 4\n"},
		{"one with a namespace's switch", "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: shop\n  annotations:\n    maint.dev/pause: tomorrow\n---\n" + sleeps(), "f.yaml:6: metadata.annotations[maint.dev/pause]: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmdtest.WriteFiles(t, map[string]string{"f.yaml": c.text})
			got := cmdtest.Offline(t, cmd.Run, "", "lint", "-f", "f.yaml")
			whole := c.want == "" || strings.HasSuffix(c.want, "\n")
			if whole && got.Out != c.want || !strings.HasPrefix(got.Out, c.want) {
				t.Errorf("(-want +got):\n%s", cmp.Diff(c.want, got.Out))
			}
			if (got.Code == 0) != (c.want == "") || got.Code > 1 {
				t.Errorf("exit code %d\n%s", got.Code, got.Err)
			}
		})
	}
}

func TestLintWarnsOfWhatIsProbablyNotMeant(t *testing.T) {
	hours := func(list string) string { return sleeps(`- {start: "20:00", end: "06:00"}`, list) }
	const workdays = `- {start: "20:00", end: "06:00", daysOfWeek: [MON, TUE, WED, THU, FRI]}`
	for _, c := range []struct {
		name, text string
		want       []string // parts of warnings, each of another
	}{
		{"every night", sleeps(), nil},
		{"the nights of workdays end on Saturday", hours(workdays), []string{`f.yaml:15: spec.schedule.offHours[0].daysOfWeek: wakes on Saturday 06:00, which is none of these days: off-hours belong to the day on which they start; to sleep through the weekend, add {start: "Fri 20:00", end: "Mon 06:00"}`}},
		{"a weekend beside them goes on from there", hours(workdays + "\n        - {start: \"Fri 20:00\", end: \"Mon 06:00\"}"), nil},
		{"a weekend that begins on the day of the last end", hours("- {start: \"20:00\", end: \"06:00\", daysOfWeek: [MON, TUE, WED, THU]}\n        - {start: \"Fri 20:00\", end: \"Mon 06:00\"}"), nil},
		{"one night in the week", hours(`- {start: "23:30", end: "00:30", daysOfWeek: [MON]}`), []string{"wakes on Tuesday 00:30, which is none of these days: off-hours belong to the day on which they start\n"}},
		{"the nights from Sunday on end on workdays", hours(`- {start: "20:00", end: "06:00", daysOfWeek: [SUN, MON, TUE, WED, THU, FRI, SAT]}`), nil},
		{"until the end of the day", hours(`- {start: "20:00", end: "00:00", daysOfWeek: [FRI]}`), nil},
		{"by day", hours(`- {start: "08:00", end: "18:00", daysOfWeek: [SAT]}`), nil},
		{"a minute before midnight", hours(`- {start: "20:00", end: "23:59"}`), []string{"f.yaml:15: spec.schedule.offHours[0].end: 23:59 leaves one minute awake at midnight; write 00:00"}},
		{"a minute before the end of Sunday", hours(`- {start: "Fri 20:00", end: "Sun 23:59"}`), []string{"offHours[0].end: 23:59 leaves one minute awake"}},
		{"in an exception", sleeps("      targets:", "      exceptions:\n      - {type: replace, validFrom: \"2026-03-01T00:00:00Z\", validUntil: \"2026-03-02T00:00:00Z\", offHours: [{start: \"20:00\", end: \"23:59\"}]}\n      targets:"), []string{"f.yaml:17: spec.exceptions[0].offHours[0].end: 23:59"}},
		{"a connector that is not among the files", sleeps("type: workload}", "type: workload, connectorRef: {kind: K8SCluster, name: far}}"), []string{"f.yaml:17: spec.targets[0].connectorRef: there is no connector far of kind K8SCluster among the files: it must be in the cluster"}},
		{"failFast", sleeps("      targets:", "      behavior: {failFast: true}\n      targets:"), []string{"f.yaml:16: spec.behavior.failFast: is accepted and has no effect: behavior.mode decides"}},
		{"off-hours that cannot be read are not guessed at", hours(`- {start: "20", end: "06:00", daysOfWeek: [FRI]}`), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmdtest.WriteFiles(t, map[string]string{"f.yaml": c.text})
			got := cmdtest.Offline(t, cmd.Run, "", "lint", "-f", "f.yaml")
			if n := strings.Count(got.Err, "warning:"); n != len(c.want) {
				t.Errorf("%d warnings, want %d:\n%s", n, len(c.want), got.Err)
			}
			for _, want := range c.want {
				if !strings.Contains(got.Err, want) {
					t.Errorf("lacks %q:\n%s", want, got.Err)
				}
			}
		})
	}
}
