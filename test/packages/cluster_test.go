package packages_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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
	before  []string // what is called maint in the cluster before anything is installed
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

const (
	clusterKinds    = "clusterroles,clusterrolebindings,validatingadmissionpolicies,validatingadmissionpolicybindings,mutatingadmissionpolicies,mutatingadmissionpolicybindings"
	namespacedKinds = "services,secrets,configmaps,serviceaccounts,roles,rolebindings,deployments,leases,poddisruptionbudgets"
)

// ours are the names of all objects that may be the agent's.
func (l *lab) ours() []string {
	l.Helper()
	out := strings.Fields(l.kubectl("", "get", clusterKinds, "-o", "name"))
	out = append(out, strings.Fields(l.kubectl("", "get", namespacedKinds, "-A", "-o", "name"))...)
	return slices.DeleteFunc(out, func(name string) bool { return !strings.Contains(name, "maint") })
}

// work starts an agent with the token of the account that was installed, and returns when
// it leads.
func (l *lab) work(namespace string) *harness.Process {
	l.Helper()
	var args []string
	l.must(json.Unmarshal([]byte(l.jsonpath("deployment/maint-agent -n "+namespace, ".spec.template.spec.containers[0].args")), &args))
	agent, err := harness.StartInstalled(l.Context(), l.cluster, namespace, l.agent, args...)
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

// story is one part of the test, on the cluster that all share.
func (l *lab) story(name string, tell func(l *lab)) {
	l.Run(name, func(t *testing.T) {
		own := *l
		own.T = t
		tell(&own)
	})
}

func TestTheChartOnACluster(t *testing.T) {
	l := newLab(t)
	l.before = l.ours()
	l.story("it is installed, upgraded, rolled back and uninstalled, and what an admin set stays", (*lab).everyday)
	l.story("what is refused leaves nothing half done", (*lab).refusals)
	l.story("an image that cannot be pulled is taken back, or named", (*lab).noSuchImage)
	l.story("with the policies that bind everybody, it comes and goes as well", (*lab).withAdmission)
	l.story("with labels, a budget and monitoring, it comes, is upgraded with the values of the former release, and goes", (*lab).wishes)
	l.story("it takes over what install brought", (*lab).takeOver)
	l.story("on an API server without admission policies", (*lab).withoutAdmission)
	l.story("an agent with the rights of one namespace runs a plan there", (*lab).alone)
}

func (l *lab) chart() string { return path(l.T, "manifests", "chart") }

// nothingLeft fails where something stands of releases that are gone. The key stays.
func (l *lab) nothingLeft() {
	l.Helper()
	left := slices.DeleteFunc(l.ours(), func(name string) bool { return slices.Contains(l.before, name) || name == "secret/maint-agent-key" })
	if len(left) > 0 {
		l.Errorf("of releases that are gone are left: %v", left)
	}
}

// An admin edits what stands in the cluster, as people do, and says nothing in values.
func (l *lab) everyday() {
	notes := l.helm("install", "maint", l.chart(), "-n", home, "--create-namespace", "--wait", "--timeout", "2m")
	if !strings.Contains(notes, "The agent of kubectl maint v0.1.0 is in namespace maint-system.") {
		l.Errorf("its notes are\n%s", notes)
	}
	agent := l.work(home)

	l.Log("an admin edits the configuration, adds an account, gives the agent more memory, and has a policy warn that had one binding in an earlier version")
	edit := func(args ...string) {
		l.kubectl("", append([]string{"--field-manager=kubectl-edit", "patch", "-n", home}, args...)...)
	}
	edit("configmap", "maint-agent", "--type=merge", "-p", `{"data":{"config.yaml":"apiVersion: maint.dev/v1alpha1\nkind: AgentConfig\nspec: {logLevel: debug}\n"}}`)
	edit("deployment", "maint-agent", "-p", `{"spec":{"replicas":3,"template":{"spec":{"containers":[{"name":"agent","resources":{"limits":{"memory":"1Gi"}}}]}}}}`)
	edit("clusterrole", "maint-agent", "--type=json", "-p", `[{"op":"add","path":"/rules/`+l.ruleOf("impersonate")+`/resourceNames/-","value":"deployer"}]`)
	l.kubectl("", "delete", "validatingadmissionpolicybinding", "maint-agent-configmaps-made")
	edit("validatingadmissionpolicybinding", "maint-agent-configmaps", "--type=merge", "-p", `{"spec":{"validationActions":["Warn"]}}`)
	kept := func(when string) {
		l.Helper()
		if config := l.jsonpath("configmap/maint-agent -n "+home, ".data.config\\.yaml"); !strings.Contains(config, "logLevel: debug") {
			l.Errorf("%s the configuration is\n%s", when, config)
		}
	}
	key := l.jsonpath("secret/maint-agent-key -n "+home, ".data.key")
	if b, err := base64.StdEncoding.DecodeString(key); err != nil || len(b) < 32 {
		l.Fatalf("the agent's key is %q", key)
	}

	l.Log("an upgrade")
	l.helm("upgrade", "maint", l.newer("v0.2.0"), "-n", home, "--wait", "--timeout", "2m")
	kept("after the upgrade")
	for of, want := range map[string]string{
		"deployment/maint-agent .spec.replicas":                                                       "3",
		"deployment/maint-agent .spec.template.spec.containers[0].resources.limits.memory":            "1Gi",
		"deployment/maint-agent .spec.template.spec.containers[0].image":                              "kubectl-maint/agent:v0.2.0",
		"clusterrole/maint-agent .rules[?(@.verbs[0]==\"impersonate\")].resourceNames":                `["maint-runner","deployer"]`,
		"secret/maint-agent-key .data.key":                                                            key,
		"configmap/maint-agent-status .metadata.labels.maint\\.dev/kind":                              annotations.KindHeartbeat,
		"validatingadmissionpolicybinding/maint-agent-configmaps .spec.validationActions":             `["Warn"]`,
		"validatingadmissionpolicybinding/maint-agent-configmaps-made .spec.validationActions":        `["Warn"]`,
		"validatingadmissionpolicybinding/maint-agent-configmaps-kube-system .spec.validationActions": `["Deny"]`,
	} {
		object, field, _ := strings.Cut(of, " ")
		if got := l.jsonpath(object+" -n "+home, field); got != want {
			l.Errorf("after the upgrade %s is %s, want %s", of, got, want)
		}
	}
	edit("validatingadmissionpolicybinding", "maint-agent-configmaps", "--type=merge", "-p", `{"spec":{"validationActions":["Deny"]}}`)

	l.Log("values that say another thing than an admin did are refused, and count where that is forced")
	l.refused("conflict", "upgrade", "maint", l.newer("v0.3.0"), "-n", home, "--set", "replicas=1")
	l.helm("upgrade", "maint", l.newer("v0.3.0"), "-n", home, "--set", "replicas=1", "--force-conflicts")
	if got := l.jsonpath("deployment/maint-agent -n "+home, ".spec.replicas"); got != "1" {
		l.Errorf("there are %s replicas", got)
	}
	kept("after a forced upgrade")

	l.Log("the way back")
	l.helm("rollback", "maint", "1", "-n", home, "--force-conflicts", "--wait", "--timeout", "2m")
	kept("after the rollback")
	if got := l.jsonpath("deployment/maint-agent -n "+home, ".spec.template.spec.containers[0].image"); got != "kubectl-maint/agent:v0.1.0" {
		l.Errorf("after the rollback the image is %s", got)
	}
	if got := l.jsonpath("secret/maint-agent-key -n "+home, ".data.key"); got != key {
		l.Error("the key is another after the rollback")
	}

	l.Log("the end")
	l.must(agent.Stop())
	l.helm("uninstall", "maint", "-n", home, "--wait", "--timeout", "2m")
	l.nothingLeft()
}

// refusals are tried in an empty cluster, and beside an installation.
func (l *lab) refusals() {
	l.refused("got string, want", "install", "maint", l.chart(), "-n", home, "--set", "replicas=two")
	l.refused("does not match pattern", "install", "maint", l.chart(), "-n", home, "--set", "image.repository=my image")
	l.nothingLeft()

	l.helm("install", "maint", l.chart(), "-n", home, "--wait", "--timeout", "2m")
	standing := l.versions()
	l.refused("got string, want", "upgrade", "maint", l.newer("v0.2.0"), "-n", home, "--set-string", "readOnly=yes")
	const doubled = "an agent is installed in namespace maint-system: give --namespace maint-system to upgrade it"
	l.refused(doubled, "install", "second", l.chart(), "-n", "default")
	l.refused(doubled, "install", "second", l.chart(), "-n", "second", "--create-namespace", "--set", "singleNamespace=true", "--set", "readOnly=true")
	l.refused("cannot be imported into the current release", "install", "second", l.chart(), "-n", home)
	if out, code := l.maint("install", "--apply", "--namespace", "second"); code != 1 || !strings.Contains(out, "an agent is installed in namespace maint-system") {
		l.Errorf("install --apply beside the chart exits %d: %s", code, out)
	}
	if diff := cmp.Diff(standing, l.versions()); diff != "" {
		l.Errorf("what was refused left (-before +after):\n%s", diff)
	}
	if made := l.kubectl("", "get", "namespace", "second", "--ignore-not-found"); made != "" {
		l.Errorf("what was refused left a namespace: %s", made)
	}
	agent := l.work(home)
	l.eventually("the agent shows itself", func() bool {
		return l.kubectl("", "get", "configmap", "maint-agent-status", "-n", home, "--ignore-not-found", "-o", "name") != ""
	})
	l.kubectl("", "delete", "deployment", "maint-agent", "-n", home, "--wait")
	l.refused(doubled, "install", "second", l.chart(), "-n", "default")
	if out, code := l.maint("install", "--apply", "--namespace", "second"); code != 1 || !strings.Contains(out, "an agent runs in namespace maint-system, where it has no Deployment") {
		l.Errorf("install --apply beside an agent without a Deployment exits %d: %s", code, out)
	}
	l.must(agent.Stop())
	l.helm("uninstall", "maint", "-n", home, "--wait", "--timeout", "2m")
	l.nothingLeft()
}

// missing cannot be pulled: the simulated nodes know that of registry.invalid.
const missing = "registry.invalid/maint-agent"

func (l *lab) noSuchImage() {
	l.refused("not ready", "install", "maint", l.chart(), "-n", home, "--set", "image.repository="+missing, "--wait", "--timeout", "10s", "--rollback-on-failure")
	l.nothingLeft()

	l.helm("install", "maint", l.chart(), "-n", home, "--wait", "--timeout", "2m")
	l.refused("not ready", "upgrade", "maint", l.newer("v0.2.0"), "-n", home, "--set", "image.repository="+missing, "--wait", "--timeout", "10s", "--rollback-on-failure")
	if got := l.jsonpath("deployment/maint-agent -n "+home, ".spec.template.spec.containers[0].image"); got != "kubectl-maint/agent:v0.1.0" {
		l.Errorf("after an upgrade that was taken back the image is %s", got)
	}
	l.helm("uninstall", "maint", "-n", home, "--wait", "--timeout", "2m")
	l.nothingLeft()

	if out, code := l.maint("install", "--apply", "--image", missing+":v0.1.0"); code != 0 {
		l.Fatalf("install --apply exits %d: %s", code, out)
	}
	l.eventually("'kubectl maint version' says what ails the pods", func() bool {
		out, _ := l.maint("version")
		return strings.Contains(out, "ImagePullBackOff: Back-off pulling image "+missing+":v0.1.0")
	})
	if out, code := l.maint("uninstall", "--yes"); code != 0 {
		l.Errorf("uninstall exits %d: %s", code, out)
	}
	l.nothingLeft()
}

func (l *lab) withAdmission() {
	l.helm("install", "maint", l.chart(), "-n", home, "--create-namespace", "--set", "admission=true", "--wait", "--timeout", "2m")
	l.must(l.work(home).Stop())
	l.Log("an admin tries freezes in the audit log, in a version that had one policy for them, and upgrades")
	l.kubectl("", "--field-manager=kubectl-edit", "patch", "validatingadmissionpolicybinding", "maint-freeze", "--type=merge", "-p", `{"spec":{"validationActions":["Audit"]}}`)
	l.kubectl("", "delete", "validatingadmissionpolicybinding", "maint-freeze-autoscalers", "maint-freeze-status")
	l.helm("upgrade", "maint", l.newer("v0.2.0"), "-n", home, "--set", "admission=true", "--wait", "--timeout", "2m")
	for name, want := range map[string]string{"maint-freeze": `["Audit"]`, "maint-freeze-autoscalers": `["Audit"]`, "maint-freeze-status": `["Audit"]`, "maint-intents": `["Deny"]`} {
		if got := l.jsonpath("validatingadmissionpolicybinding/"+name, ".spec.validationActions"); got != want {
			l.Errorf("after the upgrade %s does %s, want %s", name, got, want)
		}
	}
	l.helm("uninstall", "maint", "-n", home, "--wait", "--timeout", "2m")
	l.nothingLeft()
	l.refused("not ready", "install", "maint", l.chart(), "-n", home, "--set", "nodeSelector.nowhere=yes", "--wait", "--timeout", "10s", "--rollback-on-failure")
	l.nothingLeft()
}

// operatorKinds are those of the Prometheus Operator, without their schemas.
func operatorKinds() string {
	out := ""
	for plural, kind := range map[string]string{"servicemonitors": "ServiceMonitor", "prometheusrules": "PrometheusRule"} {
		out += `---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ` + plural + `.monitoring.coreos.com}
spec:
  group: monitoring.coreos.com
  scope: Namespaced
  names: {plural: ` + plural + `, kind: ` + kind + `}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`
	}
	return out
}

// wishes are what people commonly set.
func (l *lab) wishes() {
	values := []string{
		"monitoring.serviceMonitor=true", "monitoring.rules=true", "monitoring.labels.release=prometheus", "podDisruptionBudget.maxUnavailable=1", "labels.team=platform",
		"podLabels.team=platform", "podAnnotations.owner=ops", "env[0].name=GOMEMLIMIT", "env[0].value=200MiB", "serviceAccount.annotations.owner=ops",
	}
	install := []string{"install", "maint", l.chart(), "-n", home, "--wait", "--timeout", "2m"}
	for _, v := range values {
		install = append(install, "--set", v)
	}
	l.refused(`no matches for kind "ServiceMonitor"`, install...)
	l.nothingLeft()

	l.kubectl(operatorKinds(), "apply", "-f", "-")
	for _, kind := range []string{"servicemonitors", "prometheusrules"} {
		l.kubectl("", "wait", "--for=condition=Established", "crd/"+kind+".monitoring.coreos.com")
	}
	l.helm(install...)
	holds := func(when string) {
		l.Helper()
		for of, want := range map[string]string{
			"deployment/maint-agent .spec.template.spec.containers[0].env[1].value":         "200MiB",
			"deployment/maint-agent .spec.template.metadata.labels.team":                    "platform",
			"deployment/maint-agent .spec.template.metadata.annotations.owner":              "ops",
			"clusterrole/maint-agent .metadata.labels.team":                                 "platform",
			"serviceaccount/maint-agent .metadata.annotations.owner":                        "ops",
			"configmap/maint-agent .metadata.labels.team":                                   "platform",
			"poddisruptionbudget/maint-agent .status.expectedPods":                          "2",
			"service/maint-agent-metrics .spec.clusterIP":                                   "None",
			"servicemonitor/maint-agent .metadata.labels.release":                           "prometheus",
			"prometheusrule/maint .spec.groups[1].rules[0].alert":                           "MaintAgentAbsent",
			"validatingadmissionpolicy/maint-agent-configmaps .metadata.labels.team":        "platform",
			"validatingadmissionpolicybinding/maint-agent-configmaps .metadata.labels.team": "platform",
		} {
			object, field, _ := strings.Cut(of, " ")
			if got := l.jsonpath(object+" -n "+home, field); got != want {
				l.Errorf("%s %s is %s, want %s", when, of, got, want)
			}
		}
	}
	holds("installed")
	l.must(l.work(home).Stop())
	l.helm("upgrade", "maint", l.newer("v0.2.0"), "-n", home, "--reuse-values", "--wait", "--timeout", "2m")
	holds("upgraded with the values of the former release")
	l.helm("uninstall", "maint", "-n", home, "--wait", "--timeout", "2m")
	l.nothingLeft()
	if left := l.kubectl("", "get", "servicemonitors,prometheusrules", "-A", "-o", "name"); left != "" {
		l.Errorf("these are left: %s", left)
	}
}

// takeOver does as docs/install.md says.
func (l *lab) takeOver() {
	if out, code := l.maint("install", "--apply", "--cloud", "--impersonate", "deployer"); code != 0 {
		l.Fatalf("install --apply exits %d: %s", code, out)
	}
	l.kubectl("", "--field-manager=kubectl-edit", "patch", "-n", home, "configmap", "maint-agent", "--type=merge", "-p", `{"data":{"config.yaml":"apiVersion: maint.dev/v1alpha1\nkind: AgentConfig\nspec: {logLevel: debug}\n"}}`)
	l.helm("install", "maint", l.chart(), "-n", home, "--take-ownership", "--force-conflicts", "--set", "cloud=true", "--wait", "--timeout", "2m")
	for of, want := range map[string]string{
		"clusterrole/maint-agent .rules[?(@.verbs[0]==\"impersonate\")].resourceNames": `["maint-runner","deployer"]`,
		"clusterrole/maint-agent-cloud .rules[0].resourceNames":                        `["maint-runner","deployer"]`,
		"configmap/maint-agent .data.config\\.yaml":                                    "apiVersion: maint.dev/v1alpha1\nkind: AgentConfig\nspec: {logLevel: debug}\n",
	} {
		object, field, _ := strings.Cut(of, " ")
		if got := l.jsonpath(object+" -n "+home, field); got != want {
			l.Errorf("taken over, %s is %s, want %s", of, got, want)
		}
	}
	l.helm("upgrade", "maint", l.newer("v0.2.0"), "-n", home, "--reset-then-reuse-values", "--wait", "--timeout", "2m")
	l.helm("uninstall", "maint", "-n", home, "--wait", "--timeout", "2m")
	l.nothingLeft()
}

func (l *lab) withoutAdmission() {
	older := *l
	older.config = filepath.Join(l.TempDir(), "older.yaml")
	stop, err := harness.Older(l.cluster.AdminConfig(), older.config)
	l.must(err)
	l.Cleanup(stop)
	const lacks = "this API server has no ValidatingAdmissionPolicy"
	older.refused(lacks, "install", "maint", l.chart(), "-n", home, "--set", "admission=true")
	older.refused(lacks, "install", "maint", l.chart(), "-n", home, "--set", "cloud=true")
	l.nothingLeft()

	notes := older.helm("install", "maint", l.chart(), "-n", home, "--wait", "--timeout", "2m")
	if !strings.Contains(notes, "This API server has no ValidatingAdmissionPolicy (Kubernetes 1.30 and later do): nothing but its own code confines the agent's token.") {
		l.Errorf("its notes are\n%s", notes)
	}
	policies := func() string {
		return l.kubectl("", "get", "validatingadmissionpolicies,validatingadmissionpolicybindings", "-o", "name")
	}
	if is := policies(); strings.Contains(is, "maint") {
		l.Errorf("these policies are there: %s", is)
	}
	l.Log("the cluster is upgraded, and the release after it")
	notes = l.helm("upgrade", "maint", l.chart(), "-n", home, "--wait", "--timeout", "2m")
	if is := policies(); strings.Contains(notes, "has no ValidatingAdmissionPolicy") || !strings.Contains(is, "validatingadmissionpolicybinding.admissionregistration.k8s.io/maint-agent-secrets") {
		l.Errorf("these policies are there: %s; the notes are\n%s", is, notes)
	}
	l.helm("uninstall", "maint", "-n", home, "--wait", "--timeout", "2m")
	l.nothingLeft()
}

// versions are the objects that may be the agent's, as they stand. What Helm keeps of a
// release is none of them, and the status of a Deployment goes on changing.
func (l *lab) versions() map[string]string {
	l.Helper()
	out := map[string]string{}
	for _, args := range [][]string{{clusterKinds}, {strings.ReplaceAll(namespacedKinds, "secrets,", ""), "-A"}} {
		said := l.kubectl("", append([]string{"get", "-o", `jsonpath={range .items[*]}{.kind}/{.metadata.name} {.metadata.generation} {.metadata.resourceVersion}{"\n"}{end}`}, args...)...)
		for _, line := range strings.Split(strings.TrimSpace(said), "\n") {
			f := strings.SplitN(line, " ", 3)
			switch {
			case !strings.Contains(f[0], "maint"):
			case strings.HasPrefix(f[0], "Deployment/"):
				out[f[0]] = f[1]
			default:
				out[f[0]] = f[2]
			}
		}
	}
	return out
}

// maint runs the plugin, and returns all that it printed.
func (l *lab) maint(args ...string) (string, int) {
	l.Helper()
	cmd := exec.CommandContext(l.Context(), l.plugin, append([]string{"--kubeconfig", l.config}, args...)...)
	cmd.Env = append(os.Environ(), "KUBECACHEDIR="+l.TempDir())
	out, err := cmd.CombinedOutput()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		l.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// ruleOf is the index of the agent's rule with a verb.
func (l *lab) ruleOf(verb string) string {
	l.Helper()
	role, err := l.kube.RbacV1().ClusterRoles().Get(l.Context(), "maint-agent", metav1.GetOptions{})
	l.must(err)
	return string(rune('0' + slices.IndexFunc(role.Rules, func(r rbacv1.PolicyRule) bool { return slices.Contains(r.Verbs, verb) })))
}

// alone installs by the overlay of kustomize.
func (l *lab) alone() {
	l.kubectl(l.kubectl("", "kustomize", path(l.T, "manifests", "kustomize", "overlays", "single-namespace")), "apply", "-f", "-")
	l.must(harness.Runner(l.Context(), l.kube, "team", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "patch"}}))
	agent := l.work("team")
	l.kubectl(aPlan, "apply", "-f", "-")
	if out, code := l.maint("-n", "team", "trigger", "mark", "--wait", "--timeout", "60s"); code != 0 {
		l.Errorf("the run: exit %d\n%s\n%s", code, out, agent.Log())
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
