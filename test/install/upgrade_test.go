package install_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/lifecycle"
	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

// former are the manifests of the first version, and the ways to apply them.
func (l *lab) former() []byte {
	l.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "v0.1.0.yaml"))
	l.must(err)
	return text
}

type way struct {
	name    string
	install func(l *lab, manifests []byte)
}

func ways() []way {
	return []way{
		{"install --apply of that version", func(l *lab, text []byte) { l.must(harness.Apply(l.ctx, l.cluster.AdminConfig(), "", text, nil)) }},
		{"install | kubectl apply", func(l *lab, text []byte) { l.kubectl(text, "apply", "-f", "-") }},
		{"install | kubectl apply --server-side", func(l *lab, text []byte) { l.kubectl(text, "apply", "--server-side", "-f", "-") }},
		{"install | kubectl create", func(l *lab, text []byte) {
			l.run(filepath.Join(l.root, "bin", "kubectl"), text, "--kubeconfig", l.config, "create", "-f", "-") // the namespace may be there
		}},
	}
}

func TestAnUpgradeGivesWhatAFreshInstallationHas(t *testing.T) {
	l := newLab(t)
	l.install(nextVersion)
	fresh := l.installed()
	for _, w := range ways() {
		t.Run(w.name, func(t *testing.T) {
			l := newLab(t)
			w.install(l, l.former())
			l.install(nextVersion)
			if diff := cmp.Diff(fresh, l.installed()); diff != "" {
				t.Errorf("the upgrade differs from a fresh installation (-fresh +upgraded):\n%s", diff)
			}
			l.changesNothing(nextVersion)
		})
	}
}

// changesNothing applies a version that is there.
func (l *lab) changesNothing(version string, flags ...string) {
	l.Helper()
	before := l.versions()
	out := l.install(version, flags...)
	for _, line := range strings.Split(strings.TrimSpace(out), "\n") {
		if !strings.HasSuffix(line, " unchanged") && !strings.HasPrefix(line, "  kept: ") {
			l.Errorf("the second time it says %q", line)
		}
	}
	if diff := cmp.Diff(before, l.versions()); diff != "" {
		l.Errorf("the second time it wrote (-before +after):\n%s", diff)
	}
	if p := l.maint(version, append([]string{"install", "--diff"}, flags...)...); p.code != 0 || p.out != "" {
		l.Errorf("afterwards --diff exits %d and prints\n%s", p.code, p.out)
	}
}

// wish is a change of an admin's, and how it is seen that it is still there.
type wish struct {
	name         string
	kind, object string
	patch        string // strategic where the kind has one
	at           []string
	want         any
	told         string
}

func wishes() []wish {
	container := []string{"spec", "template", "spec", "containers"}
	deployment := func(name, patch, told string, want any, at ...string) wish {
		return wish{name, "Deployment", "maint-agent", patch, at, want, told}
	}
	inContainer := func(name, fields, told, field string, want any) wish {
		return wish{name, "Deployment", "maint-agent", `{"spec":{"template":{"spec":{"containers":[{"name":"agent",` + fields + `}]}}}}`, append(slices.Clone(container), field), want, told}
	}
	return []wish{
		{"the configuration", "ConfigMap", "maint-agent", `{"data":{"config.yaml":"spec: {logLevel: debug}"},"metadata":{"annotations":{"example.org/owner":"ops"}}}`, []string{"data", "config.yaml"}, "spec: {logLevel: debug}", "the configuration"},
		{"an annotation of the configuration", "ConfigMap", "maint-agent", `{"metadata":{"annotations":{"maint.dev/pause":"true"}}}`, []string{"metadata", "annotations", "maint.dev/pause"}, "true", ""},
		deployment("replicas", `{"spec":{"replicas":3}}`, "spec.replicas: 3", int64(3), "spec", "replicas"),
		inContainer("resources", `"resources":{"limits":{"memory":"1Gi"}}`, "resources.limits.memory", "resources", map[string]any{"requests": map[string]any{"cpu": "10m", "memory": "64Mi"}, "limits": map[string]any{"memory": "1Gi"}}),
		inContainer("the registry", `"image":"registry.example.org/mirror/agent:v0.1.0"`, "", "image", "registry.example.org/mirror/agent:"+nextVersion),
		inContainer("an argument", `"args":["--namespace=maint-system","--leader-elect=true","--log-level=debug"]`, "the arguments --log-level=debug", "args", []any{"--namespace=maint-system", "--leader-elect=true", "--log-level=debug"}),
		deployment("tolerations", `{"spec":{"template":{"spec":{"tolerations":[{"key":"infra","operator":"Exists"}]}}}}`, "", []any{map[string]any{"key": "infra", "operator": "Exists"}}, "spec", "template", "spec", "tolerations"),
		deployment("a node selector", `{"spec":{"template":{"spec":{"nodeSelector":{"infra":"true"}}}}}`, "", map[string]any{"infra": "true"}, "spec", "template", "spec", "nodeSelector"),
		deployment("a priority", `{"spec":{"template":{"spec":{"priorityClassName":"system-cluster-critical"}}}}`, "", "system-cluster-critical", "spec", "template", "spec", "priorityClassName"),
		deployment("a secret to pull with", `{"spec":{"template":{"spec":{"imagePullSecrets":[{"name":"pull"}]}}}}`, "", []any{map[string]any{"name": "pull"}}, "spec", "template", "spec", "imagePullSecrets"),
		deployment("an annotation of the pods", `{"spec":{"template":{"metadata":{"annotations":{"example.org/scrape":"true"}}}}}`, "", map[string]any{"example.org/scrape": "true"}, "spec", "template", "metadata", "annotations"),
		{"a role of the cloud", "ServiceAccount", "maint-agent", `{"metadata":{"annotations":{"eks.amazonaws.com/role-arn":"arn"}}}`, []string{"metadata", "annotations", "eks.amazonaws.com/role-arn"}, "arn", ""},
		{"the standard of pod security", "Namespace", "maint-system", `{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"baseline"}}}`, []string{"metadata", "labels", "pod-security.kubernetes.io/enforce"}, "baseline", `"baseline"`},
		{
			"a subject", "ClusterRoleBinding", "maint-agent", `{"subjects":[{"kind":"ServiceAccount","name":"maint-agent","namespace":"maint-system"},{"kind":"ServiceAccount","name":"auditor","namespace":"ops"}]}`,
			[]string{"subjects"},
			[]any{map[string]any{"kind": "ServiceAccount", "name": "maint-agent", "namespace": "maint-system"}, map[string]any{"kind": "ServiceAccount", "name": "auditor", "namespace": "ops"}},
			"the subject ServiceAccount ops/auditor",
		},
	}
}

func TestWhatAnAdminChangedSurvivesTheUpgrade(t *testing.T) {
	for _, w := range ways() {
		t.Run(w.name, func(t *testing.T) {
			l := newLab(t)
			w.install(l, l.former())
			for _, x := range wishes() {
				l.patch("kubectl-edit", types.StrategicMergePatchType, x.kind, x.object, x.patch)
			}
			l.actsAsToo("deployer")
			l.survives(l.install(nextVersion))
			l.changesNothing(nextVersion)
		})
	}
	t.Run("edited in the printed manifests, before kubectl apply", func(t *testing.T) {
		l := newLab(t)
		text := strings.NewReplacer("replicas: 2", "replicas: 3", "memory: 256Mi", "memory: 1Gi", "periodSeconds: 5", "periodSeconds: 7", "kubectl-maint/agent:", "registry.example.org/mirror/agent:",
			"logLevel: info", "logLevel: debug").Replace(string(l.former()))
		l.kubectl([]byte(text), "apply", "-f", "-")
		l.install(nextVersion)
		got := l.installed()["Deployment/maint-agent"].(map[string]any)
		agent := containerOf(t, got)
		probe, _, _ := unstructured.NestedInt64(agent, "readinessProbe", "periodSeconds")
		memory, _, _ := unstructured.NestedString(agent, "resources", "limits", "memory")
		replicas, _, _ := unstructured.NestedInt64(got, "spec", "replicas")
		if said := fmt.Sprintf("%d %s %d %s", probe, memory, replicas, agent["image"]); said != "7 1Gi 3 registry.example.org/mirror/agent:"+nextVersion {
			t.Errorf("after the upgrade: %s", said)
		}
		if data, _, _ := unstructured.NestedString(l.get("ConfigMap", "maint-agent").Object, "data", "config.yaml"); !strings.Contains(data, "logLevel: debug") {
			t.Errorf("the configuration is now %s", data)
		}
		l.changesNothing(nextVersion)
	})
}

// A policy that had one binding in an earlier version has three today. An admin who had it
// warn alone wants no refusal from the two that are new.
func TestAPolicyThatAnAdminHasWarnRefusesNothingAfterTheUpgrade(t *testing.T) {
	for _, manager := range []string{"kubectl-edit", annotations.ManagerCLI} {
		t.Run("set by "+manager, func(t *testing.T) {
			l := newLab(t)
			const binding = "ValidatingAdmissionPolicyBinding"
			added := []string{"maint-agent-configmaps-made", "maint-agent-configmaps-kube-system"}
			l.install(thisVersion)
			for _, name := range added {
				l.remove(binding, name)
			}
			l.edit(manager, binding, "maint-agent-configmaps", `{"spec":{"validationActions":["Warn"],"matchResources":null}}`)
			p := l.maint(nextVersion, "install", "--diff")
			if !strings.Contains(p.err, `validatingadmissionpolicybinding/maint-agent-configmaps-made keeps spec.validationActions: ["Warn"] (as validatingadmissionpolicybinding/maint-agent-configmaps has)`) {
				t.Errorf("--diff does not tell what it keeps:\n%s", p.err)
			}
			l.install(nextVersion)
			for _, name := range append(added, "maint-agent-configmaps") {
				actions, _, _ := unstructured.NestedStringSlice(l.get(binding, name).Object, "spec", "validationActions")
				if !slices.Equal(actions, []string{"Warn"}) {
					t.Errorf("after the upgrade %s does %v", name, actions)
				}
			}
			l.changesNothing(nextVersion)
		})
	}
}

// actsAsToo adds an account to those that the agent may act as, as a person would.
func (l *lab) actsAsToo(name string) {
	l.Helper()
	role := l.get("ClusterRole", "maint-agent")
	rules, _, err := unstructured.NestedSlice(role.Object, "rules")
	l.must(err)
	for i, r := range rules {
		if names, _, _ := unstructured.NestedStringSlice(r.(map[string]any), "resourceNames"); slices.Contains(names, "maint-runner") {
			l.patch("kubectl-edit", types.JSONPatchType, "ClusterRole", "maint-agent", fmt.Sprintf(`[{"op":"add","path":"/rules/%d/resourceNames/-","value":%q}]`, i, name))
			return
		}
	}
	l.Fatal("the agent may act as nobody")
}

func containerOf(t *testing.T, deployment map[string]any) map[string]any {
	t.Helper()
	list, _, err := unstructured.NestedSlice(deployment, "spec", "template", "spec", "containers")
	if err != nil || len(list) == 0 {
		t.Fatal("no containers", err)
	}
	return list[0].(map[string]any)
}

// survives checks every wish, and that what was kept is told.
func (l *lab) survives(said string) {
	l.Helper()
	for _, x := range wishes() {
		l.Run(x.name, func(t *testing.T) {
			object := l.get(x.kind, x.object).Object
			path := x.at
			if slices.Contains(path, "containers") {
				object, path = containerOf(t, object), path[len(path)-1:]
			}
			got, _, err := unstructured.NestedFieldNoCopy(object, path...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(x.want, got); diff != "" {
				t.Errorf("after the upgrade (-want +got):\n%s", diff)
			}
			if !strings.Contains(said, x.told) {
				t.Errorf("it does not tell that it keeps %q:\n%s", x.told, said)
			}
		})
	}
	l.Run("an account that the agent may act as", func(t *testing.T) {
		if got := l.mayActAs(); !slices.Equal(got, []string{"maint-runner", "deployer"}) {
			t.Errorf("after the upgrade it may act as %v", got)
		}
	})
}

func (l *lab) mayActAs() []string {
	l.Helper()
	rules, _, err := unstructured.NestedSlice(l.get("ClusterRole", "maint-agent").Object, "rules")
	l.must(err)
	for _, r := range rules {
		fields := r.(map[string]any)
		verbs, _, _ := unstructured.NestedStringSlice(fields, "verbs")
		resources, _, _ := unstructured.NestedStringSlice(fields, "resources")
		if slices.Equal(verbs, []string{"impersonate"}) && slices.Equal(resources, []string{"serviceaccounts"}) {
			names, _, err := unstructured.NestedStringSlice(fields, "resourceNames")
			l.must(err)
			return names
		}
	}
	return nil
}

func TestWhatInstallIsToldIsRememberedUntilItIsToldOtherwise(t *testing.T) {
	l := newLab(t)
	there := func(want bool, kind string, names ...string) {
		t.Helper()
		for _, name := range names {
			if got := l.get(kind, name) != nil; got != want {
				t.Errorf("%s %s is there: %v, want %v", kind, name, got, want)
			}
		}
	}
	l.install(thisVersion, "--without", "force,confinement", "--replicas", "1", "--impersonate", "deployer")
	l.install(nextVersion)
	there(false, "ClusterRole", "maint-agent-force")
	there(false, "ClusterRoleBinding", "maint-agent-force")
	there(false, "ValidatingAdmissionPolicy", "maint-agent-configmaps", "maint-agent-nodes", "maint-agent-secrets")
	there(true, "ClusterRoleBinding", "maint-agent-nodes", "maint-agent-volumes", "maint-agent-conditions")
	if got := l.mayActAs(); !slices.Equal(got, []string{"maint-runner", "deployer"}) {
		t.Errorf("it may act as %v", got)
	}
	if got, _, _ := unstructured.NestedInt64(l.get("Deployment", "maint-agent").Object, "spec", "replicas"); got != 1 {
		t.Errorf("there are %d replicas", got)
	}
	l.changesNothing(nextVersion)

	l.remove("ClusterRoleBinding", "maint-agent-volumes") // as the documentation says
	l.install(nextVersion)
	there(false, "ClusterRoleBinding", "maint-agent-volumes")

	l.install(nextVersion, "--without", "none")
	there(true, "ClusterRoleBinding", "maint-agent-force", "maint-agent-volumes")
	there(true, "ValidatingAdmissionPolicyBinding", "maint-agent-configmaps", "maint-agent-nodes", "maint-agent-secrets")

	out := l.install(nextVersion, "--without", "requests")
	there(false, "ClusterRoleBinding", "maint-agent-nodes", "maint-agent-force")
	if !strings.Contains(out, "clusterrolebinding/maint-agent-nodes deleted\n") {
		t.Errorf("it does not tell what it deleted:\n%s", out)
	}
	l.install(nextVersion, "--read-only")
	l.install(nextVersion)
	if got := l.mayActAs(); got != nil {
		t.Errorf("an agent that is to act as nobody may act as %v", got)
	}
	l.install(nextVersion, "--read-only=false")
	if got := l.mayActAs(); !slices.Equal(got, []string{"maint-runner"}) {
		t.Errorf("it may act as %v", got)
	}
}

func TestTheDifferenceIsShownAndNothingIsChanged(t *testing.T) {
	l := newLab(t)
	p := l.maint(thisVersion, "install", "--diff")
	if p.code != 1 || !strings.Contains(p.out, "+++ install/deployment/maint-agent\n") || l.get("Deployment", "maint-agent") != nil {
		t.Errorf("before an installation it exits %d and prints\n%s%s", p.code, p.out, p.err)
	}
	l.install(thisVersion)
	l.edit("kubectl-edit", "Deployment", "maint-agent", `{"spec":{"replicas":5}}`)
	before := l.versions()
	p = l.maint(nextVersion, "install", "--diff")
	want := []string{"--- cluster/deployment/maint-agent\n+++ install/deployment/maint-agent\n", "\n-        image: kubectl-maint/agent:v0.1.0\n", "\n+        image: kubectl-maint/agent:v0.2.0\n"}
	for _, part := range want {
		if !strings.Contains(p.out, part) {
			t.Errorf("%q is not in what it prints:\n%s", part, p.out)
		}
	}
	if p.code != 1 || strings.Count(p.out, "+++ ") != 1 || !strings.Contains(p.err, "deployment/maint-agent keeps spec.replicas: 5 (set by kubectl-edit)\n") {
		t.Errorf("it exits %d and prints\n%s%s", p.code, p.out, p.err)
	}
	if diff := cmp.Diff(before, l.versions()); diff != "" {
		t.Errorf("it wrote (-before +after):\n%s", diff)
	}
	if p := l.maint(thisVersion, "install", "--diff"); p.code != 0 || p.out != "" {
		t.Errorf("without a difference it exits %d and prints\n%s%s", p.code, p.out, p.err)
	}
}

func TestADryRunOfInstallNamesWhatWouldChangeAndChangesNothing(t *testing.T) {
	l := newLab(t)
	marks := map[string]string{"client": " (dry run)", "server": " (server dry run)"}
	names := func(text, did string) []string {
		var out []string
		for line := range strings.SplitSeq(text, "\n") {
			if name, is := strings.CutSuffix(line, did); is {
				out = append(out, name)
			}
		}
		return out
	}
	tried := func(version, did string, flags ...string) map[string][]string {
		out, before := map[string][]string{}, l.versions()
		for mode, mark := range marks {
			p := l.maint(version, append([]string{"install", "--apply", "--dry-run=" + mode}, flags...)...)
			if p.code != 0 {
				t.Fatalf("--dry-run=%s exits %d: %s%s", mode, p.code, p.out, p.err)
			}
			out[mode] = names(p.out, " "+did+mark)
		}
		if diff := cmp.Diff(before, l.versions()); diff != "" {
			t.Errorf("a dry run wrote (-before +after):\n%s", diff)
		}
		return out
	}
	named := tried(thisVersion, "created")
	if l.get("Deployment", "maint-agent") != nil {
		t.Error("a dry run installed the agent")
	}
	created := names(l.install(thisVersion), " created")
	for mode, list := range named {
		if diff := cmp.Diff(list, created); diff != "" || len(created) == 0 {
			t.Errorf("it creates another thing than --dry-run=%s names (-named +created):\n%s", mode, diff)
		}
	}
	for mode, list := range tried(thisVersion, "configured") {
		if len(list) > 0 {
			t.Errorf("--dry-run=%s would configure what is so already: %v", mode, list)
		}
	}
	for mode, list := range tried(nextVersion, "configured") {
		if !slices.Equal(list, []string{"deployment/maint-agent"}) {
			t.Errorf("--dry-run=%s of an upgrade would configure %v", mode, list)
		}
	}
	for mode, list := range tried(thisVersion, "deleted", "--without", "kubelets") {
		if len(list) == 0 {
			t.Errorf("--dry-run=%s of --without would delete nothing", mode)
		}
	}
}

func TestAnAgentInAnotherNamespaceIsNotDoubled(t *testing.T) {
	l := newLab(t)
	l.install(thisVersion)
	p := l.maint(nextVersion, "install", "--apply", "--namespace", "elsewhere")
	if p.code != 1 || !strings.Contains(p.err, "an agent is installed in namespace maint-system") || l.get("Namespace", "elsewhere") != nil {
		t.Errorf("it exits %d: %s%s", p.code, p.out, p.err)
	}
}

// planned makes a node that the agent has said maintenance is planned for.
func (l *lab) planned(name string) string {
	l.Helper()
	nodes := l.kube.CoreV1().Nodes()
	n, err := nodes.Create(l.ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"pool": "gpu"}}}, metav1.CreateOptions{})
	l.must(err) // of a node without a field of somebody's the API server notes no managers
	l.Cleanup(func() { _ = nodes.Delete(context.Background(), name, metav1.DeleteOptions{}) })
	patch, err := annotations.LifecyclePatch(n.UID, n.ResourceVersion, nil, []lifecycle.Condition{{Type: lifecycle.Planned, True: true, Reason: lifecycle.ReasonRequested, Message: "gpu: waits for the node"}}, time.Now())
	l.must(err)
	_, err = nodes.Patch(l.ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{FieldManager: annotations.ManagerAgent}, "status")
	l.must(err)
	return name
}

func (l *lab) mayAskForTokensOf() []string {
	l.Helper()
	rules, _, err := unstructured.NestedSlice(l.get("ClusterRole", "maint-agent-cloud").Object, "rules")
	l.must(err)
	names, _, err := unstructured.NestedStringSlice(rules[0].(map[string]any), "resourceNames")
	l.must(err)
	return names
}

func TestTokensAreForTheAccountsThatTheAgentActsAs(t *testing.T) {
	want := []string{"maint-runner", "deployer", "dba"}
	t.Run("after an upgrade", func(t *testing.T) {
		l := newLab(t)
		l.install(thisVersion, "--cloud", "--impersonate", "deployer,dba")
		l.install(nextVersion)
		if got := l.mayAskForTokensOf(); !slices.Equal(got, want) {
			t.Errorf("the agent may ask for tokens of %v, want %v", got, want)
		}
		l.changesNothing(nextVersion)
	})
	t.Run("by a later --cloud", func(t *testing.T) {
		l := newLab(t)
		l.install(thisVersion, "--impersonate", "deployer")
		l.install(nextVersion, "--cloud", "--impersonate", "dba")
		got := l.mayAskForTokensOf()
		if slices.Sort(got); !slices.Equal(got, []string{"dba", "deployer", "maint-runner"}) {
			t.Errorf("the agent may ask for tokens of %v", got)
		}
		l.changesNothing(nextVersion)
	})
}

func TestAFlagThatContradictsAnEarlierOneIsRefused(t *testing.T) {
	l := newLab(t)
	l.install(thisVersion, "--cloud")
	before := l.versions()
	p := l.maint(nextVersion, "install", "--apply", "--read-only")
	if p.code != 2 || !strings.Contains(p.err, "--cloud is for an agent that acts as accounts, and --read-only lets it act as none") || !strings.Contains(p.err, "--cloud=false") {
		t.Errorf("it exits %d: %s%s", p.code, p.out, p.err)
	}
	if diff := cmp.Diff(before, l.versions()); diff != "" {
		t.Errorf("it wrote (-before +after):\n%s", diff)
	}
	l.install(nextVersion, "--read-only", "--cloud=false")
	if l.get("ClusterRole", "maint-agent-cloud") != nil {
		t.Error("an agent that acts as nobody may ask for tokens")
	}
}

func TestAccountsStayWhereTheAgentGetsItsRightsAnotherWay(t *testing.T) {
	l := newLab(t)
	l.install(thisVersion, "--impersonate", "deployer")
	l.install(thisVersion, "--single-namespace")
	if rules := fmt.Sprint(l.get("Role", "maint-agent-documents").Object["rules"]); !strings.Contains(rules, "[maint-runner deployer]") {
		t.Errorf("in its namespace it may %s", rules)
	}
	l.changesNothing(thisVersion)
	l.install(thisVersion, "--single-namespace=false")
	if got := l.mayActAs(); !slices.Equal(got, []string{"maint-runner", "deployer"}) {
		t.Errorf("in the cluster it may act as %v", got)
	}
	l.changesNothing(thisVersion)
}

// A team's namespace has pods of the team's own.
func TestANamespaceThatIsThereGetsNoStandardOfPodSecurity(t *testing.T) {
	l := newLab(t)
	_, err := l.kube.CoreV1().Namespaces().Create(l.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, metav1.CreateOptions{})
	l.must(err)
	out := l.install(thisVersion, "--single-namespace", "--namespace", "shop")
	if labels := l.get("Namespace", "shop").GetLabels(); len(labels) != 1 {
		t.Errorf("the namespace of a team has the labels %v", labels)
	}
	if !strings.Contains(out, "namespace/shop unchanged\n  kept: without metadata.labels.pod-security.kubernetes.io/enforce\n") {
		t.Errorf("it says\n%s", out)
	}
	if p := l.maint(thisVersion, "uninstall", "--yes", "--namespace", "shop"); p.code != 0 {
		t.Errorf("uninstall exits %d: %s%s", p.code, p.out, p.err)
	}
}

// Somebody who may do nearly everything, and not make a ClusterRole.
func TestWhoMayNotInstallAllOfItInstallsNothing(t *testing.T) {
	l := newLab(t)
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "nearly-all"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{"", "apps"}, Resources: []string{"*"}, Verbs: []string{"*"}},
	}}
	_, err := l.kube.RbacV1().ClusterRoles().Create(l.ctx, role, metav1.CreateOptions{})
	l.must(err)
	_, err = l.kube.RbacV1().ClusterRoleBindings().Create(l.ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "nearly"}},
	}, metav1.CreateOptions{})
	l.must(err)
	refused := func(when string) {
		t.Helper()
		before := l.versions()
		p := l.maint(nextVersion, "install", "--apply", "--as", "nearly")
		if p.code != 1 || !strings.Contains(p.err, "nothing was changed: apply clusterrole/maint-agent: ") || p.out != "" {
			t.Errorf("%s it exits %d: %s%s", when, p.code, p.out, p.err)
		}
		if diff := cmp.Diff(before, l.versions()); diff != "" {
			t.Errorf("%s it wrote (-before +after):\n%s", when, diff)
		}
	}
	refused("in an empty cluster")
	l.install(thisVersion)
	l.edit("kubectl-edit", "ClusterRole", "maint-agent", `{"rules":[]}`)
	refused("as an upgrade")
}

// ours are all objects of the cluster that may be the agent's.
func (l *lab) ours() []string {
	l.Helper()
	var out []string
	for _, kinds := range [][]string{
		{"clusterroles,clusterrolebindings,validatingadmissionpolicies,validatingadmissionpolicybindings,mutatingadmissionpolicies,mutatingadmissionpolicybindings"},
		{"services,secrets,configmaps,serviceaccounts,roles,rolebindings,deployments,leases,poddisruptionbudgets", "-A"},
	} {
		p := l.run(filepath.Join(l.root, "bin", "kubectl"), nil, append([]string{"--kubeconfig", l.config, "get", "-o", "name"}, kinds...)...)
		if p.code != 0 {
			l.Fatal(p.err)
		}
		out = append(out, strings.Fields(p.out)...)
	}
	return slices.DeleteFunc(out, func(name string) bool { return !strings.Contains(name, "maint") })
}

// deletions are what uninstall says that it deletes, with a mark behind.
func deletions(out, mark string) []string {
	var names []string
	for _, line := range strings.Split(strings.TrimSpace(out), "\n") {
		if name, is := strings.CutSuffix(line, " deleted"+mark); is {
			names = append(names, name)
		}
	}
	return names
}

func TestUninstallDeletesWhatItsDryRunNamesAndLeavesNothing(t *testing.T) {
	l := newLab(t)
	before := l.ours()
	l.Cleanup(func() { l.maint(thisVersion, "uninstall", "--yes") })
	l.install(thisVersion, "--with-admission", "--cloud", "--metrics-auth")
	_, err := l.kube.CoreV1().ConfigMaps(home).Create(l.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: annotations.HeartbeatName, Labels: map[string]string{annotations.LabelKind: annotations.KindHeartbeat}}}, metav1.CreateOptions{})
	l.must(err)
	_, err = l.kube.CoordinationV1().Leases(home).Create(l.ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: annotations.LeaseName}}, metav1.CreateOptions{})
	l.must(err)
	standing := l.ours()
	var named [][]string
	for mode, mark := range map[string]string{"client": " (dry run)", "server": " (server dry run)"} {
		p := l.maint(thisVersion, "uninstall", "--dry-run="+mode)
		if p.code != 0 {
			t.Fatalf("--dry-run=%s exits %d: %s%s", mode, p.code, p.out, p.err)
		}
		named = append(named, deletions(p.out, mark))
	}
	if diff := cmp.Diff(standing, l.ours()); diff != "" {
		t.Errorf("dry runs changed (-before +after):\n%s", diff)
	}
	p := l.maint(thisVersion, "uninstall", "--yes")
	if p.code != 0 {
		t.Fatalf("uninstall exits %d: %s%s", p.code, p.out, p.err)
	}
	deleted := deletions(p.out, "")
	if len(deleted) != len(standing)-len(before) {
		t.Errorf("it deletes %d objects, and %d stood there: %v", len(deleted), len(standing)-len(before), deleted)
	}
	for _, names := range named {
		if diff := cmp.Diff(names, deleted); diff != "" {
			t.Errorf("it deletes another thing than its dry run names (-named +deleted):\n%s", diff)
		}
	}
	if diff := cmp.Diff(before, l.ours()); diff != "" {
		t.Errorf("afterwards there is (-before +after):\n%s", diff)
	}
}

func TestUninstallLeavesNothingThatInstallApplied(t *testing.T) {
	l := newLab(t)
	l.install(thisVersion)
	planned := l.planned("waits-for-maintenance")
	budget, err := os.ReadFile(filepath.Join(l.root, "manifests", "kustomize", "components", "ha", "budget.yaml"))
	l.must(err)
	l.kubectl(budget, "apply", "-f", "-")
	if p := l.maint(thisVersion, "uninstall", "--yes"); p.code != 0 || !strings.Contains(p.out, "node/"+planned+" condition MaintenancePlanned ended\n") {
		t.Fatalf("it exits %d: %s%s", p.code, p.out, p.err)
	}
	n, err := l.kube.CoreV1().Nodes().Get(l.ctx, planned, metav1.GetOptions{})
	l.must(err)
	if conditions := annotations.Lifecycle(n); len(conditions) != 1 || conditions[0].True || conditions[0].Reason != "MaintenanceCanceled" {
		t.Errorf("the node says %+v", conditions)
	}
	left := l.installed()
	delete(left, "Namespace/"+annotations.DefaultNamespace)
	budgets, err := l.kube.PolicyV1().PodDisruptionBudgets(home).List(l.ctx, metav1.ListOptions{})
	if l.must(err); len(budgets.Items) > 0 {
		t.Error("the budget for the pods of the agent is left")
	}
	if len(left) > 0 {
		t.Errorf("this is left: %v", left)
	}
}
