// Package upgrade replaces the agent of an earlier version by this one and back again,
// with work of every sort in mid-flight: nothing is lost, and nothing is done twice.
//
// It builds the earlier version from the repository's own history, so it runs only where
// it is asked to: `make upgrade-test`, which sets MAINT_UPGRADE=1. Asked, it never skips.
package upgrade

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/test/cluster"
	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

// asked is the variable without which nothing here runs.
const asked = "MAINT_UPGRADE"

// before is the commit of the earlier version; docs/compatibility.md says why this one. What it
// writes stays readable, and what this version writes it must be able to go on with.
const before = "7ad935d"

// unsigned is the commit of the last version that signed nothing of its own, and that no
// admission policy confined.
const unsigned = "4a15860"

// patience is for things that take seconds; a guess for a busy machine.
const patience = 90 * time.Second

// lab is a cluster with work of every sort.
type lab struct {
	*testing.T
	ctx      context.Context
	cluster  *cluster.Cluster
	admin    kubernetes.Interface
	config   string // kubeconfig of the admin
	hooks    *harness.Receiver
	agent    *harness.Process
	old, now version
	slots    int
}

// version are the two programs of one.
type version struct{ agent, plugin string }

const ns = "shop"

// newLab is a cluster in which the version of a commit was installed.
func newLab(t *testing.T, commit string) *lab {
	t.Helper()
	if os.Getenv(asked) == "" {
		t.Skipf("%s is not set: `make upgrade-test` builds the earlier version and replaces it", asked)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 14*time.Minute) // both versions are built first, perhaps from nothing
	t.Cleanup(cancel)
	l := &lab{T: t, ctx: ctx, old: former(ctx, t, commit)}
	var err error
	l.now.agent, l.now.plugin, err = harness.Build(ctx, t.TempDir())
	l.must(err)
	l.cluster, err = cluster.Start(ctx, cluster.Options{ControllerManager: true, Scheduler: true, Kwok: true, Nodes: 3})
	l.must(err)
	t.Cleanup(func() { _ = l.cluster.Stop() })
	l.admin, err = kubernetes.NewForConfig(l.cluster.AdminConfig())
	l.must(err)
	l.config, err = l.cluster.KubeconfigFile("admin", l.cluster.AdminConfig())
	l.must(err)
	l.installs(l.old)
	l.must(harness.Configure(ctx, l.cluster.AdminConfig(), `{outbound: {allow: ["127.0.0.1/32"]}, nodes: {maxParallelOperations: 100%, maxUnavailable: 100%}}`))
	l.hooks, err = harness.NewReceiver(nil)
	l.must(err)
	t.Cleanup(l.hooks.Close)
	_, err = l.admin.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}, metav1.CreateOptions{})
	l.must(err)
	l.rights()
	return l
}

// former builds the programs of the earlier version, from the repository's history.
func former(ctx context.Context, t *testing.T, commit string) version {
	t.Helper()
	root, err := harness.Root()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	v := version{agent: filepath.Join(dir, "agent-of-before"), plugin: filepath.Join(dir, "plugin-of-before")}
	script := fmt.Sprintf("set -o pipefail; git archive %s | tar -x -C %q && cd %q && CGO_ENABLED=0 go build -o %q ./cmd/agent && CGO_ENABLED=0 go build -o %q ./cmd/kubectl-maint", commit, dir, dir, v.agent, v.plugin)
	cmd := exec.CommandContext(ctx, "bash", "-c", script)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build %s (it takes the whole history of the repository): %v\n%s", commit, err, out)
	}
	return v
}

// installs applies what a version brings, as its plugin does, over what another one brought.
// The agents are processes beside the cluster, so an admin scales the Deployment to none; that
// stays, as all does that admins change.
func (l *lab) installs(v version) {
	l.Helper()
	code, out, err := harness.Plugin(l.ctx, v.plugin, l.config, "install", "--apply")
	l.must(err)
	if code != 0 {
		l.Fatalf("install --apply of %s exits %d: %s", filepath.Base(v.plugin), code, out)
	}
	deployments := l.admin.AppsV1().Deployments(annotations.DefaultNamespace)
	d, err := deployments.Get(l.ctx, annotations.AgentName, metav1.GetOptions{})
	l.must(err)
	if l.agent != nil && *d.Spec.Replicas != 0 {
		l.Errorf("install --apply of %s starts %d agents, and an admin wanted none: %s", filepath.Base(v.plugin), *d.Spec.Replicas, out)
	}
	_, err = deployments.Patch(l.ctx, d.Name, types.MergePatchType, []byte(`{"spec":{"replicas":0}}`), metav1.PatchOptions{FieldManager: "kubectl-edit"})
	l.must(err)
	l.eventually("no agent is in the cluster", func() (bool, string) {
		pods, err := l.admin.CoreV1().Pods(annotations.DefaultNamespace).List(l.ctx, metav1.ListOptions{})
		l.must(err)
		return len(pods.Items) == 0, fmt.Sprintf("%d pods", len(pods.Items))
	})
}

func (l *lab) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

// rights are what the plans of this test need.
func (l *lab) rights() {
	l.Helper()
	l.must(harness.Runner(l.ctx, l.admin, ns,
		rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments", "deployments/scale"}, Verbs: []string{"get", "list", "watch", "patch", "update"}},
		rbacv1.PolicyRule{APIGroups: []string{"autoscaling"}, Resources: []string{"horizontalpodautoscalers"}, Verbs: []string{"get", "list", "watch"}}))
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "maint-runner-nodes"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "list", "watch", "patch"}},
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{""}, Resources: []string{"pods/eviction"}, Verbs: []string{"create"}},
		{APIGroups: []string{"apps"}, Resources: []string{"daemonsets"}, Verbs: []string{"get"}},
	}}
	_, err := l.admin.RbacV1().ClusterRoles().Create(l.ctx, role, metav1.CreateOptions{})
	l.must(err)
	_, err = l.admin.RbacV1().ClusterRoleBindings().Create(l.ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "maint-runner", Namespace: ns}},
	}, metav1.CreateOptions{})
	l.must(err)
}

// launch starts an agent and waits until it leads.
func (l *lab) launch(v version) {
	l.Helper()
	agent, err := harness.StartInstalled(l.ctx, l.cluster, annotations.DefaultNamespace, v.agent)
	l.must(err)
	l.agent = agent
	l.Cleanup(func() {
		agent.Kill()
		if l.Failed() {
			log := strings.Split(agent.Log(), "\n")
			l.Log(strings.Join(log[max(0, len(log)-60):], "\n"))
		}
	})
}

// eventually asks again until it holds; the last answer is the failure's text.
func (l *lab) eventually(what string, holds func() (bool, string)) {
	l.Helper()
	limit := time.After(patience)
	for {
		ok, is := holds()
		if ok {
			return
		}
		select {
		case <-l.ctx.Done():
			l.Fatalf("%s: %s: %v", what, is, l.ctx.Err())
		case <-limit:
			l.Fatalf("%s: not within %s: %s", what, patience, is)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (l *lab) document(name, kind, word, spec string, with map[string]string) {
	l.Helper()
	cm := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{annotations.LabelKind: kind}, Annotations: with},
		Data:       map[string]string{annotations.DataPlan: "apiVersion: maint.dev/v1alpha1\nkind: " + word + "\nspec: " + strings.ReplaceAll(spec, "HOOK", l.hooks.URL) + "\n"},
	}
	_, err := l.admin.CoreV1().ConfigMaps(ns).Create(l.ctx, cm, metav1.CreateOptions{})
	l.must(err)
}

// said is an annotation of a document.
func (l *lab) said(name, key string) string {
	l.Helper()
	cm, err := l.admin.CoreV1().ConfigMaps(ns).Get(l.ctx, name, metav1.GetOptions{})
	l.must(err)
	return cm.Annotations[key]
}

func (l *lab) says(name, key, want string) {
	l.Helper()
	l.eventually(fmt.Sprintf("%s says %s=%s", name, key, want), func() (bool, string) {
		cm, err := l.admin.CoreV1().ConfigMaps(ns).Get(l.ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		return cm.Annotations[key] == want, fmt.Sprint(cm.Annotations)
	})
}

func (l *lab) annotate(name, key, value string) {
	l.Helper()
	_, err := l.admin.CoreV1().ConfigMaps(ns).Patch(l.ctx, name, types.MergePatchType, []byte(fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, key, value)), metav1.PatchOptions{FieldManager: annotations.ManagerCLI})
	l.must(err)
}

func (l *lab) deployment(name string, replicas int32, node string) {
	l.Helper()
	labels := map[string]string{"app": name}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Spec: appsv1.DeploymentSpec{
		Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
			NodeSelector: map[string]string{corev1.LabelHostname: node}, Containers: []corev1.Container{{Name: "c", Image: "example.org/none"}},
		}},
	}}
	_, err := l.admin.AppsV1().Deployments(ns).Create(l.ctx, d, metav1.CreateOptions{})
	l.must(err)
	l.eventually(name+" is ready", func() (bool, string) {
		is, err := l.admin.AppsV1().Deployments(ns).Get(l.ctx, name, metav1.GetOptions{})
		return err == nil && is.Status.ReadyReplicas == replicas, fmt.Sprint(err, is.Status)
	})
}

func (l *lab) replicas(name string, want int32) {
	l.Helper()
	l.eventually(fmt.Sprintf("%s has %d replicas", name, want), func() (bool, string) {
		is, err := l.admin.AppsV1().Deployments(ns).Get(l.ctx, name, metav1.GetOptions{})
		return err == nil && *is.Spec.Replicas == want, fmt.Sprint(err, *is.Spec.Replicas)
	})
}

func (l *lab) node(name string) *corev1.Node {
	l.Helper()
	n, err := l.admin.CoreV1().Nodes().Get(l.ctx, name, metav1.GetOptions{})
	l.must(err)
	return n
}

func (l *lab) patchNode(name, patch string) {
	l.Helper()
	_, err := l.admin.CoreV1().Nodes().Patch(l.ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	l.must(err)
}

// phase waits until the request for node-2 is in a phase.
func (l *lab) phase(want string) {
	l.Helper()
	l.eventually("the request is "+want, func() (bool, string) {
		text := l.node("node-2").Annotations[annotations.StatusRequestPrefix+"os"]
		return strings.Contains(text, `"phase":"`+want+`"`), text
	})
}

// once fails unless a path was called with one key, and that as often as agents died in it.
func (l *lab) once(path string, want int) {
	l.Helper()
	if keys := l.hooks.Keys(path); len(keys) != want {
		l.Errorf("%s was called under the keys %q, want %d", path, keys, want)
	}
}

// work is in mid-flight when it returns: a run is suspended, a HibernatePlan sleeps, a
// rollout is on its first node, a requested node is being drained, and slots are to come.
func (l *lab) work() {
	l.Helper()
	l.deployment("batch", 3, "node-0")
	l.deployment("pinned", 1, "node-2")
	none := intstr.FromInt32(0)
	_, err := l.admin.PolicyV1().PodDisruptionBudgets(ns).Create(l.ctx, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "pinned"}, Spec: policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &none, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "pinned"}}},
	}, metav1.CreateOptions{})
	l.must(err)
	for _, name := range []string{"node-0", "node-1"} {
		l.patchNode(name, `{"metadata":{"labels":{"pool":"roll"}}}`)
	}
	l.document("holds", annotations.KindPlan, "Plan", `{triggers: {onCreate: true}, steps: [{name: one, type: webhook, properties: {url: "HOOK/one"}}, {name: hold, type: suspend}, {name: two, type: webhook, properties: {url: "HOOK/two"}}]}`, nil)
	l.document("nights", annotations.KindHibernatePlan, "HibernatePlan",
		`{schedule: {offHours: [{start: "03:00", end: "03:01"}]}, targets: [{name: apps, type: workload, parameters: {kinds: [Deployment], selector: {matchLabels: {app: batch}}}}]}`, map[string]string{annotations.HoldState: "asleep"})
	l.patchNode("node-2", fmt.Sprintf(`{"metadata":{"annotations":{%q:"{\"drain\":{}}"}}}`, annotations.RequestPrefix+"os"))
	l.says("nights", annotations.StatusPhase, "Hibernated")
	l.document("rolls", annotations.KindPlan, "Plan", `{triggers: {onCreate: true}, steps: [{name: roll, type: for-each-node, properties: {selector: {matchLabels: {pool: roll}}, canary: 0, maxUnavailable: 1, steps: [{name: drain, type: drain}, {name: rest, type: suspend, properties: {duration: 15s}}, {name: work, type: webhook, properties: {url: "HOOK/${node.metadata.name}"}}, {name: uncordon, type: uncordon}]}}]}`, nil)
	var at []string
	l.slots = 5
	for i := range l.slots {
		at = append(at, fmt.Sprintf("{at: %q}", time.Now().Add(time.Duration(8+8*i)*time.Second).UTC().Format(time.RFC3339)))
	}
	l.document("slots", annotations.KindPlan, "Plan", `{catchUp: all, concurrencyPolicy: Queue, triggers: {schedules: [`+strings.Join(at, ", ")+`]}, steps: [{name: s, type: webhook, properties: {url: "HOOK/slot"}}]}`, nil)
	l.eventually("the run is suspended", func() (bool, string) {
		text := l.said("holds", annotations.StatusRuns)
		return len(l.hooks.Keys("/one")) == 1 && text != "", text
	})
	l.eventually("the rollout is on its first node", func() (bool, string) {
		return l.node("node-0").Spec.Unschedulable || l.node("node-1").Spec.Unschedulable, l.said("rolls", annotations.StatusMessage)
	})
}

// nothingMoved says that what waits still waits, and sleeps what sleeps.
func (l *lab) nothingMoved() {
	l.Helper()
	l.replicas("batch", 0)
	l.once("/one", 1)
	l.once("/two", 0)
	if phase := l.said("nights", annotations.StatusPhase); phase != "Hibernated" {
		l.Errorf("the HibernatePlan is %s: %s", phase, l.said("nights", annotations.StatusMessage))
	}
}

func TestAnUpgradeAndTheWayBackLoseNothingAndRepeatNothing(t *testing.T) {
	l := newLab(t, before)
	l.launch(l.old)
	l.work()

	l.installs(l.now)
	l.agent.Kill() // the hard way up
	l.launch(l.now)
	l.eventually("the new version leads", func() (bool, string) { return l.leads(), "" })
	l.nothingMoved()
	l.must(l.admin.PolicyV1().PodDisruptionBudgets(ns).Delete(l.ctx, "pinned", metav1.DeleteOptions{}))
	l.phase("Ready")
	if !l.node("node-2").Spec.Unschedulable {
		t.Error("the node that was drained is not cordoned")
	}

	l.installs(l.old)
	l.must(l.agent.Stop()) // and the soft way back
	l.launch(l.old)
	l.eventually("the version before leads", func() (bool, string) { return l.leads(), "" })
	l.nothingMoved()
	l.phase("Ready")
	l.patchNode("node-2", fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, annotations.RequestPrefix+"os"))
	l.eventually("the node is given back", func() (bool, string) {
		return !l.node("node-2").Spec.Unschedulable, fmt.Sprint(l.node("node-2").Annotations)
	})
	l.annotate("holds", annotations.Resume, l.said("holds", annotations.StatusLastRunName))
	l.says("holds", annotations.StatusLastResult, string(run.Succeeded))
	l.says("rolls", annotations.StatusLastResult, string(run.Succeeded))
	l.annotate("nights", annotations.HoldState, "awake")
	l.replicas("batch", 3)
	l.eventually("all slots have run", func() (bool, string) {
		keys := l.hooks.Keys("/slot")
		return len(keys) == l.slots, fmt.Sprint(keys)
	})

	l.installs(l.now)
	l.agent.Kill() // up for good: what was done on the way back is known
	l.launch(l.now)
	l.eventually("the new version leads", func() (bool, string) { return l.leads(), "" })
	l.eventually("the ledger of the slots is whole", func() (bool, string) {
		phase := l.said("slots", annotations.StatusLastResult)
		return phase == string(run.Succeeded), phase
	})
	l.once("/one", 1)
	l.once("/two", 1)
	l.once("/slot", l.slots)
	for _, name := range []string{"node-0", "node-1"} {
		l.once("/"+name, 1)
		if l.node(name).Spec.Unschedulable {
			t.Errorf("%s stays cordoned", name)
		}
	}
	l.replicas("batch", 3)
	l.recorded()
}

// leads says whether the agent that was launched last holds the Lease.
func (l *lab) leads() bool {
	lease, err := l.admin.CoordinationV1().Leases(annotations.DefaultNamespace).Get(l.ctx, annotations.LeaseName, metav1.GetOptions{})
	if err != nil || lease.Spec.HolderIdentity == nil {
		return false
	}
	return strings.Contains(*lease.Spec.HolderIdentity, fmt.Sprintf("-%d-", l.agent.PID()))
}

// recorded reads the ledgers: every slot and every run has one end, and it is Ran.
func (l *lab) recorded() {
	l.Helper()
	for name, want := range map[string]int64{"slots": int64(l.slots), "holds": 1, "rolls": 1} {
		cm, err := l.admin.CoreV1().ConfigMaps(ns).Get(l.ctx, name, metav1.GetOptions{})
		l.must(err)
		object, err := l.admin.CoreV1().ConfigMaps(ns).Get(l.ctx, annotations.LedgerName(name, string(cm.UID)), metav1.GetOptions{})
		l.must(err)
		led, err := annotations.ReadLedger(object, string(cm.UID))
		l.must(err)
		if led.Totals[run.Ran] != want || led.Totals[run.Missed]+led.Totals[run.Skipped] != 0 || len(led.Open) != 0 {
			l.Errorf("the ledger of %s counts %v, with %d open; want %d that ran, and nothing else", name, led.Totals, len(led.Open), want)
		}
	}
}

// A run that was begun by a version that signed nothing goes on after the upgrade, by what
// install --apply brings over what that version brought.
func TestARunOfAVersionThatSignedNothingGoesOnAfterTheUpgrade(t *testing.T) {
	l := newLab(t, unsigned)
	l.launch(l.old)
	l.document("holds", annotations.KindPlan, "Plan", `{triggers: {onCreate: true}, steps: [{name: one, type: webhook, properties: {url: "HOOK/one"}}, {name: hold, type: suspend}, {name: two, type: webhook, properties: {url: "HOOK/two"}}]}`, nil)
	l.eventually("the run is suspended", func() (bool, string) {
		text := l.said("holds", annotations.StatusRuns)
		return len(l.hooks.Keys("/one")) == 1 && text != "", text
	})
	if n := l.signed(); n != 0 {
		t.Fatalf("that version signed %d objects", n)
	}

	l.installs(l.now)
	l.agent.Kill()
	l.launch(l.now)
	l.eventually("the new version leads", func() (bool, string) { return l.leads(), "" })
	l.eventually("the run and its ledger are signed", func() (bool, string) { n := l.signed(); return n == 2, fmt.Sprint(n) })
	l.once("/two", 0)
	l.annotate("holds", annotations.Resume, l.said("holds", annotations.StatusLastRunName))
	l.says("holds", annotations.StatusLastResult, string(run.Succeeded))
	l.once("/one", 1)
	l.once("/two", 1)
	events, err := l.admin.CoreV1().Events(ns).List(l.ctx, metav1.ListOptions{FieldSelector: "type=Warning"})
	l.must(err)
	for _, e := range events.Items {
		t.Errorf("it warns: %s %s", e.Reason, e.Message)
	}
}

// signed counts the runs and ledgers that somebody signed.
func (l *lab) signed() int {
	l.Helper()
	list, err := l.admin.CoreV1().ConfigMaps(ns).List(l.ctx, metav1.ListOptions{LabelSelector: annotations.LabelKind + " in (" + annotations.KindRun + "," + annotations.KindLedger + ")"})
	l.must(err)
	n := 0
	for i := range list.Items {
		if list.Items[i].Annotations[annotations.StatusSignature] != "" {
			n++
		}
	}
	return n
}
