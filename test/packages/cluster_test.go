package packages_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/test/cluster"
	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

// asked has the chart installed on a cluster of its own: `make chart-test`.
const asked = "MAINT_CHART"

// lab is a cluster with nodes whose pods become Ready, and an agent's binary.
type lab struct {
	*testing.T
	cluster *cluster.Cluster
	config  string // kubeconfig of an admin
	kube    kubernetes.Interface
	agent   string
	plugin  string
}

func newLab(t *testing.T) *lab {
	t.Helper()
	if os.Getenv(asked) == "" {
		t.Skipf("%s is not set: make chart-test installs the chart", asked)
	}
	l := &lab{T: t}
	var err error
	l.agent, l.plugin, err = harness.Build(t.Context(), t.TempDir())
	l.must(err)
	l.cluster, err = cluster.Start(t.Context(), cluster.Options{ControllerManager: true, Scheduler: true, Kwok: true, Nodes: 2})
	l.must(err)
	t.Cleanup(func() { _ = l.cluster.Stop() })
	l.config, err = l.cluster.KubeconfigFile("admin", l.cluster.AdminConfig())
	l.must(err)
	l.kube, err = kubernetes.NewForConfig(l.cluster.AdminConfig())
	l.must(err)
	return l
}

func (l *lab) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

// helm runs it, and fails with what it says.
func (l *lab) helm(args ...string) string {
	l.Helper()
	out, said, err := tool(l.T, "helm", append(args, "--kubeconfig", l.config)...)
	if err != nil {
		l.Fatalf("helm %s: %v: %s", strings.Join(args, " "), err, said)
	}
	return out
}

// refused runs helm and has it fail with these words.
func (l *lab) refused(words string, args ...string) {
	l.Helper()
	out, said, err := tool(l.T, "helm", append(args, "--kubeconfig", l.config)...)
	if err == nil || !strings.Contains(said, words) {
		l.Errorf("helm %s: %v; it says %q, without %q\n%s", strings.Join(args, " "), err, said, words, out)
	}
}

func (l *lab) kubectl(in string, args ...string) string {
	l.Helper()
	cmd := exec.CommandContext(l.Context(), path(l.T, "bin", "kubectl"), append(args, "--kubeconfig", l.config)...)
	var stderr bytes.Buffer
	cmd.Stdin, cmd.Stderr = strings.NewReader(in), &stderr
	out, err := cmd.Output()
	if err != nil {
		l.Fatalf("kubectl %s: %v: %s", strings.Join(args, " "), err, &stderr)
	}
	return string(out)
}

// jsonpath is a field of an object in the cluster.
func (l *lab) jsonpath(of, field string) string {
	l.Helper()
	return l.kubectl("", append([]string{"get", "-o", "jsonpath={" + field + "}"}, strings.Fields(of)...)...)
}

// ours are the names of all objects that may be the agent's.
func (l *lab) ours() []string {
	l.Helper()
	kinds := "clusterroles,clusterrolebindings,validatingadmissionpolicies,validatingadmissionpolicybindings,mutatingadmissionpolicies,mutatingadmissionpolicybindings"
	out := strings.Fields(l.kubectl("", "get", kinds, "-o", "name"))
	namespaced := "configmaps,secrets,serviceaccounts,roles,rolebindings,deployments,leases,poddisruptionbudgets"
	out = append(out, strings.Fields(l.kubectl("", "get", namespaced, "-A", "-o", "name"))...)
	return slices.DeleteFunc(out, func(name string) bool { return !strings.Contains(name, "maint") })
}

// work starts an agent with the token of the account that was installed, and returns when
// it leads.
func (l *lab) work(namespace string) *harness.Process {
	l.Helper()
	config, err := l.cluster.ServiceAccountConfig(l.Context(), namespace, annotations.AgentName)
	l.must(err)
	file, err := l.cluster.KubeconfigFile("agent-"+namespace, config)
	l.must(err)
	var args []string
	l.must(json.Unmarshal([]byte(l.jsonpath("deployment/maint-agent -n "+namespace, ".spec.template.spec.containers[0].args")), &args))
	agent, err := harness.StartAgent(l.agent, file, args...)
	l.must(err)
	l.Cleanup(agent.Kill)
	l.eventually("a heartbeat\n"+agent.Log(), func() bool {
		_, err := l.kube.CoreV1().ConfigMaps(namespace).Get(l.Context(), annotations.HeartbeatName, metav1.GetOptions{})
		return err == nil
	})
	return agent
}

func (l *lab) eventually(what string, holds func() bool) {
	l.Helper()
	ctx, cancel := context.WithTimeout(l.Context(), time.Minute)
	defer cancel()
	for !holds() {
		select {
		case <-ctx.Done():
			l.Fatalf("%s: not within a minute", what)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// newer packs the chart as another version.
func (l *lab) newer(version string) string {
	l.Helper()
	dir := l.TempDir()
	l.helm("package", path(l.T, "manifests", "chart"), "--version", strings.TrimPrefix(version, "v"), "--app-version", version, "-d", dir)
	return filepath.Join(dir, "kubectl-maint-"+strings.TrimPrefix(version, "v")+".tgz")
}

// An admin edits what stands in the cluster, as people do, and says nothing in values.
func TestTheChartIsInstalledUpgradedRolledBackAndUninstalled(t *testing.T) {
	l := newLab(t)
	chart := path(t, "manifests", "chart")
	if out := l.helm("lint", "--strict", chart); !strings.Contains(out, "0 chart(s) failed") {
		t.Error(out)
	}
	before := l.ours()
	notes := l.helm("install", "maint", chart, "-n", home, "--create-namespace", "--wait", "--timeout", "2m")
	if !strings.Contains(notes, "The agent of kubectl maint v0.1.0 is in namespace maint-system.") {
		t.Errorf("its notes are\n%s", notes)
	}
	agent := l.work(home)

	t.Log("an admin edits the configuration, adds an account, and gives the agent more memory")
	edit := func(args ...string) {
		l.kubectl("", append([]string{"--field-manager=kubectl-edit", "patch", "-n", home}, args...)...)
	}
	edit("configmap", "maint-agent", "--type=merge", "-p", `{"data":{"config.yaml":"apiVersion: maint.dev/v1alpha1\nkind: AgentConfig\nspec: {logLevel: debug}\n"}}`)
	edit("deployment", "maint-agent", "-p", `{"spec":{"replicas":3,"template":{"spec":{"containers":[{"name":"agent","resources":{"limits":{"memory":"1Gi"}}}]}}}}`)
	edit("clusterrole", "maint-agent", "--type=json", "-p", `[{"op":"add","path":"/rules/`+l.ruleOf("impersonate")+`/resourceNames/-","value":"deployer"}]`)
	kept := func(when string) {
		t.Helper()
		if config := l.jsonpath("configmap/maint-agent -n "+home, ".data.config\\.yaml"); !strings.Contains(config, "logLevel: debug") {
			t.Errorf("%s the configuration is\n%s", when, config)
		}
	}
	key := l.jsonpath("secret/maint-agent-key -n "+home, ".data.key")
	if b, err := base64.StdEncoding.DecodeString(key); err != nil || len(b) < 32 {
		t.Fatalf("the agent's key is %q", key)
	}

	t.Log("an upgrade")
	l.helm("upgrade", "maint", l.newer("v0.2.0"), "-n", home, "--wait", "--timeout", "2m")
	kept("after the upgrade")
	for of, want := range map[string]string{
		"deployment/maint-agent .spec.replicas":                                            "3",
		"deployment/maint-agent .spec.template.spec.containers[0].resources.limits.memory": "1Gi",
		"deployment/maint-agent .spec.template.spec.containers[0].image":                   "kubectl-maint/agent:v0.2.0",
		"clusterrole/maint-agent .rules[?(@.verbs[0]==\"impersonate\")].resourceNames":     `["maint-runner","deployer"]`,
		"secret/maint-agent-key .data.key":                                                 key,
		"configmap/maint-agent-status .metadata.labels.maint\\.dev/kind":                   annotations.KindHeartbeat,
	} {
		object, field, _ := strings.Cut(of, " ")
		if got := l.jsonpath(object+" -n "+home, field); got != want {
			t.Errorf("after the upgrade %s is %s, want %s", of, got, want)
		}
	}

	t.Log("a second one elsewhere, and values that cannot be")
	l.refused("an agent is installed in namespace maint-system: give --namespace maint-system to upgrade it", "install", "second", chart, "-n", "default")
	l.refused("got string, want", "upgrade", "maint", chart, "-n", home, "--set", "replicas=two")

	t.Log("values that say another thing than an admin did are refused, and count where that is forced")
	l.refused("conflict", "upgrade", "maint", l.newer("v0.3.0"), "-n", home, "--set", "replicas=1")
	l.helm("upgrade", "maint", l.newer("v0.3.0"), "-n", home, "--set", "replicas=1", "--force-conflicts")
	if got := l.jsonpath("deployment/maint-agent -n "+home, ".spec.replicas"); got != "1" {
		t.Errorf("there are %s replicas", got)
	}
	kept("after a forced upgrade")

	t.Log("the way back")
	l.helm("rollback", "maint", "1", "-n", home, "--force-conflicts", "--wait", "--timeout", "2m")
	kept("after the rollback")
	if got := l.jsonpath("deployment/maint-agent -n "+home, ".spec.template.spec.containers[0].image"); got != "kubectl-maint/agent:v0.1.0" {
		t.Errorf("after the rollback the image is %s", got)
	}
	if got := l.jsonpath("secret/maint-agent-key -n "+home, ".data.key"); got != key {
		t.Error("the key is another after the rollback")
	}

	t.Log("the end")
	l.must(agent.Stop())
	l.helm("uninstall", "maint", "-n", home, "--wait", "--timeout", "2m")
	left := slices.DeleteFunc(l.ours(), func(name string) bool { return slices.Contains(before, name) || name == "secret/maint-agent-key" })
	if len(left) > 0 {
		t.Errorf("of the release are left: %v", left)
	}

	t.Log("with the policies that bind everybody, it comes and goes as well, and what never becomes ready is taken back")
	l.helm("install", "maint", chart, "-n", home, "--set", "admission=true", "--wait", "--timeout", "2m")
	l.must(l.work(home).Stop())
	l.helm("uninstall", "maint", "-n", home, "--wait", "--timeout", "2m")
	l.refused("not ready", "install", "maint", chart, "-n", home, "--set", "nodeSelector.nowhere=yes", "--wait", "--timeout", "10s", "--rollback-on-failure")
	left = slices.DeleteFunc(l.ours(), func(name string) bool { return slices.Contains(before, name) || name == "secret/maint-agent-key" })
	if len(left) > 0 {
		t.Errorf("of releases that are gone are left: %v", left)
	}
	l.alone()
}

// ruleOf is the index of the agent's rule with a verb.
func (l *lab) ruleOf(verb string) string {
	l.Helper()
	role, err := l.kube.RbacV1().ClusterRoles().Get(l.Context(), "maint-agent", metav1.GetOptions{})
	l.must(err)
	return string(rune('0' + slices.IndexFunc(role.Rules, func(r rbacv1.PolicyRule) bool { return slices.Contains(r.Verbs, verb) })))
}

// alone runs a plan by an agent that has the rights of one namespace, by the overlay of
// kustomize.
func (l *lab) alone() {
	l.Helper()
	l.Log("an agent with the rights of one namespace runs a plan there")
	l.kubectl(l.kubectl("", "kustomize", path(l.T, "manifests", "kustomize", "overlays", "single-namespace")), "apply", "-f", "-")
	l.must(harness.Runner(l.Context(), l.kube, "team", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "patch"}}))
	agent := l.work("team")
	l.kubectl(aPlan, "apply", "-f", "-")
	cmd := exec.CommandContext(l.Context(), l.plugin, "--kubeconfig", l.config, "-n", "team", "trigger", "mark", "--wait", "--timeout", "60s")
	cmd.Env = append(os.Environ(), "KUBECACHEDIR="+l.TempDir())
	if out, err := cmd.CombinedOutput(); err != nil {
		l.Errorf("the run: %v\n%s\n%s", err, out, agent.Log())
	}
	if got := l.jsonpath("configmap/shop -n team", ".data.marked"); got != "yes" {
		l.Errorf("the plan's step left %q", got)
	}
	for _, line := range strings.Split(agent.Log(), "\n") {
		if strings.Contains(line, "forbidden") || strings.Contains(line, "level=ERROR") {
			l.Errorf("the agent lacks a right: %s", line)
		}
	}
}

const aPlan = `apiVersion: v1
kind: ConfigMap
metadata: {name: shop, namespace: team}
data: {marked: "no"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: mark, namespace: team, labels: {maint.dev/kind: plan}}
data:
  plan.yaml: |
    apiVersion: maint.dev/v1alpha1
    kind: Plan
    spec:
      steps:
      - name: mark
        type: patch-object
        properties:
          resource: {apiVersion: v1, kind: ConfigMap, name: shop}
          patch: {data: {marked: "yes"}}
`
