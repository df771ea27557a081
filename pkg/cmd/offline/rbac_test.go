package offline_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
)

const rolledUp = `apiVersion: maint.dev/v1alpha1
kind: Plan
spec:
  steps:
  - {name: one, type: restart, properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: orders}}}
  - {name: two, type: restart, properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: carts}}}
  - {name: web, type: label, properties: {operation: add, labels: {a: b}, object: {apiVersion: v1, kind: Service, name: web, namespace: front}}}
`

func TestRBACBringsRightsTogether(t *testing.T) {
	got := cmdtest.Offline(t, cmd.Run, rolledUp, "-n", "shop", "rbac", "-f", "-")
	if got.Code != 0 || got.Err != "" {
		t.Fatalf("exit code %d\n%s", got.Code, got.Err)
	}
	const orders = `- apiGroups:
  - apps
  resourceNames:
  - carts
  - orders
  resources:
  - deployments
  verbs:
  - get
  - patch
`
	for _, want := range []string{"kind: ServiceAccount\nmetadata:\n  name: maint-runner\n  namespace: shop\n", orders, "  - deployments\n  verbs:\n  - list\n  - watch\n", "  name: maint:shop:maint-runner\n  namespace: front\n"} {
		if !strings.Contains(got.Out, want) {
			t.Errorf("lacks\n%s\nin\n%s", want, got.Out)
		}
	}
	if n := strings.Count(got.Out, "\nkind: Role\n"); n != 2 {
		t.Errorf("%d roles", n)
	}
}

func TestRBACForScripts(t *testing.T) {
	for format, want := range map[string]string{
		"name": "serviceaccount/maint-runner\nrole.rbac.authorization.k8s.io/maint:shop:maint-runner\nrolebinding.rbac.authorization.k8s.io/maint:shop:maint-runner\nrole.rbac.authorization.k8s.io/maint:maint-runner\nrolebinding.rbac.authorization.k8s.io/maint:maint-runner\n",
		"jsonpath={.kind} {.items[*].kind} {.items[1].metadata.namespace}":    "List ServiceAccount Role RoleBinding Role RoleBinding front",
		"custom-columns=KIND:.kind,NAME:.metadata.name,VERBS:.rules[0].verbs": "KIND             NAME                      VERBS\nServiceAccount   maint-runner              <none>\nRole             maint:shop:maint-runner   [get patch]\nRoleBinding      maint:shop:maint-runner   <none>\nRole             maint:maint-runner        [list watch]\nRoleBinding      maint:maint-runner        <none>\n",
	} {
		cmdtest.Offline(t, cmd.Run, rolledUp, "-n", "shop", "rbac", "-f", "-", "-o", format).Is(t, cmdtest.Printed{Out: want})
	}
}

// Each may be applied without the other, and neither replaces what the other is given.
func TestRBACOfTwoPlansOfOneAccount(t *testing.T) {
	restarts := func(name, deployment string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", namespace: shop, labels: {maint.dev/kind: plan}}\ndata:\n  plan.yaml: '{apiVersion: maint.dev/v1alpha1, kind: Plan, spec: {steps: [{name: a, type: restart, properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: " + deployment + "}}}]}}'\n"
	}
	const columns = "custom-columns=KIND:.kind,NAME:.metadata.name,ON:.rules[*].resourceNames,ROLE:.roleRef.name"
	rolesOf := func(name, deployment string) string {
		return "Role maint:" + name + " [" + deployment + "] <none> RoleBinding maint:" + name + " <none> maint:" + name
	}
	const account = "KIND NAME ON ROLE ServiceAccount maint-runner <none> <none> "
	for in, want := range map[string]string{
		restarts("carts", "cart"): account + rolesOf("carts", "cart"),
		restarts("orders", "order") + "---\n" + restarts("carts", "cart"): account + rolesOf("carts", "cart") + " " + rolesOf("orders", "order"),
	} {
		got := cmdtest.Offline(t, cmd.Run, in, "rbac", "-f", "-", "-o", columns)
		if printed := strings.Join(strings.Fields(got.Out), " "); got.Code != 0 || printed != want {
			t.Errorf("exit code %d, %s\nprinted %s\nwant    %s", got.Code, got.Err, printed, want)
		}
	}
}

func TestRBACOfWhatSleeps(t *testing.T) {
	const nights = `apiVersion: v1
kind: ConfigMap
metadata: {name: nights, namespace: dev, labels: {maint.dev/kind: hibernate-plan}}
data:
  plan.yaml: |
    apiVersion: maint.dev/v1alpha1
    kind: HibernatePlan
    spec:
      schedule: {offHours: [{start: '20:00', end: '06:00'}]}
      targets: [{name: apps, type: workload, parameters: {kinds: [Deployment, CronJob]}}, {name: far, type: workload, connectorRef: {kind: K8SCluster, name: far}}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: far, namespace: dev, labels: {maint.dev/kind: connector}}
data:
  connector.yaml: |
    apiVersion: maint.dev/v1alpha1
    kind: K8SCluster
    spec: {k8s: {kubeconfigRef: {name: far-config}}}
`
	got := cmdtest.Offline(t, cmd.Run, nights, "rbac", "-f", "-", "-o", "custom-columns=KIND:.kind,IN:.metadata.namespace,ON:.rules[*].resources,VERBS:.rules[*].verbs,NAMES:.rules[*].resourceNames")
	const want = "KIND IN ON VERBS NAMES ServiceAccount dev <none> <none> <none> " +
		"Role dev [secrets],[deployments],[deployments/scale],[cronjobs] [get],[get list watch],[get patch],[get list patch watch] [far-config] " +
		"RoleBinding dev <none> <none> <none>"
	if printed := strings.Join(strings.Fields(got.Out), " "); got.Code != 0 || printed != want {
		t.Errorf("exit code %d, printed %s", got.Code, printed)
	}
	if want := "HibernatePlan nights, target apps: get, list, watch, patch on scaledobjects.keda.sh, where KEDA is installed\nHibernatePlan nights, target far: its rights are those of the account on the other cluster, far\n"; got.Err != want {
		t.Errorf("said %q", got.Err)
	}
}

// Documents that name no namespace are where kubectl apply would put them, for every command that
// reads files.
func TestDocumentsInFilesAreInTheNamespaceOfTheContext(t *testing.T) {
	const in = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: hold, labels: {maint.dev/kind: plan}}\ndata:\n  plan.yaml: '{apiVersion: maint.dev/v1alpha1, kind: Plan, spec: {triggers: {schedules: [{cron: \"0 2 * * *\"}]}, steps: [{name: hold, type: suspend, properties: {duration: 1m}}]}}'\n"
	config := filepath.Join(t.TempDir(), "config")
	err := os.WriteFile(config, []byte("{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, namespace: dev}}, {name: other, context: {cluster: c}}], clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]}"), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"dev":     {"--kubeconfig", config},
		"shop":    {"--kubeconfig", config, "-n", "shop"},
		"default": {"--kubeconfig", config, "--context", "other"},
	} {
		got := cmdtest.Offline(t, cmd.Run, in, append(args, "rbac", "-f", "-", "-o", "jsonpath={.items[0].metadata.namespace}")...)
		got.Is(t, cmdtest.Printed{Out: want})
		simulated := cmdtest.Offline(t, cmd.Run, in, append(args, "simulate", "-f", "-", "--to", "24h", "-o", "jsonpath={.items[*].plan}")...)
		if simulated.Code != 0 || !strings.HasPrefix(simulated.Out, want+"/") {
			t.Errorf("simulate of %s: %+v", want, simulated)
		}
	}
	got := cmdtest.Offline(t, cmd.Run, in, "--kubeconfig", config+".gone", "rbac", "-f", "-", "-o", "jsonpath={.items[0].metadata.namespace}")
	got.Is(t, cmdtest.Printed{Out: "default"})
}

func TestRBACTellsWhatItCannotSay(t *testing.T) {
	for _, c := range []struct {
		name, in string
		args     []string
		code     int
		err      string
	}{
		{name: "no files", code: 2, err: "error: -f is missing: name the files that hold the plans\n"},
		{name: "no plan", in: "apiVersion: maint.dev/v1alpha1\nkind: Policy\nspec: {strategy: Permissive}\n", args: []string{"-f", "-"}, code: 1, err: "error: the files hold no plan, and no policy with gates\n"},
		{name: "what sleeps", in: "apiVersion: maint.dev/v1alpha1\nkind: HibernatePlan\nspec: {schedule: {offHours: [{start: '20:00', end: '06:00'}]}, targets: [{name: apps, type: workload}]}\n", args: []string{"-f", "-"}, err: "target apps: get, list, watch, patch on scaledobjects.keda.sh, where KEDA is installed\n"},
		{name: "a function", in: "apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec: {steps: [{name: ask, type: function, properties: {endpoint: 'f:9443'}}]}\n", args: []string{"-f", "-"}, err: "step ask: get and list on what the function requires, get, create and patch on what it desires\n"},
		{
			name: "gates on kinds that may be cluster-scoped", args: []string{"-f", "-"},
			in:  "apiVersion: maint.dev/v1alpha1\nkind: Policy\nspec: {strategy: Permissive, gates: [{apiVersion: s3.aws.upbound.io/v1beta1, kind: Bucket, knob: crossplane}, {apiVersion: batch/v1, kind: CronJob, knob: {path: /spec/suspend, closed: true, open: false}}]}\n",
			err: "gate every Bucket: a ClusterRole and its binding in place of the Role, if Bucket of s3.aws.upbound.io/v1beta1 is cluster-scoped; if it is not, the gate may name its namespace\n",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := cmdtest.Offline(t, cmd.Run, c.in, append([]string{"rbac"}, c.args...)...)
			if got.Code != c.code || got.Err != c.err {
				t.Errorf("exit code %d, said %q", got.Code, got.Err)
			}
		})
	}
}

// A policy closes and opens its gates as its account.
func TestRBACOfGates(t *testing.T) {
	const in = "apiVersion: maint.dev/v1alpha1\nkind: Policy\nspec: {strategy: Restrictive, serviceAccountName: gates, gates: [{apiVersion: apps/v1, kind: Deployment, name: web, knob: deployment}, {apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, knob: flux}]}\n"
	got := cmdtest.Offline(t, cmd.Run, in, "rbac", "-n", "shop", "-f", "-", "-o", "custom-columns=KIND:.kind,ON:.rules[*].resources,VERBS:.rules[*].verbs")
	got.Is(t, cmdtest.Printed{
		Out: "KIND             ON                                                                                           VERBS\nServiceAccount   <none>                                                                                       <none>\nRole             [deployments],[deployments],[kustomizations],[buckets],[gitrepositories],[ocirepositories]   [patch],[list watch],[list patch watch],[get],[get],[get]\nRoleBinding      <none>                                                                                       <none>\n",
		Err: "gate every Kustomization: get on its source (GitRepository, OCIRepository, Bucket), if that is in another namespace\n",
	})
}

// A step that holds a HibernatePlan overrides its schedule, and that of no other.
func TestRBACOfAStepThatHolds(t *testing.T) {
	const holds = "apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec: {steps: [{name: sleep, type: hibernate, properties: {plan: nights}}]}\n"
	got := cmdtest.Offline(t, cmd.Run, holds, "-n", "shop", "rbac", "-f", "-", "-o", "jsonpath={.items[1].rules}")
	const want = `[{"apiGroups":[""],"resources":["configmaps"],"verbs":["list","watch"]},{"apiGroups":[""],"resourceNames":["nights"],"resources":["configmaps"],"verbs":["get","patch"]},{"apiGroups":["maint.dev"],"resourceNames":["nights"],"resources":["plans"],"verbs":["override"]}]`
	if got.Code != 0 || got.Out != want {
		t.Errorf("exit code %d, %s\nprinted %s\nwant    %s", got.Code, got.Err, got.Out, want)
	}
}
