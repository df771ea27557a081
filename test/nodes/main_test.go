// Package nodes_test proves what the agent promises of nodes on a real API server
// with the real scheduler and disruption controller; KWOK plays the kubelets. The
// agent runs as a process of its own, with its own ServiceAccount.
package nodes_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/test/cluster"
	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

// fleet is how many nodes there are.
const fleet = 12

func TestMain(m *testing.M) {
	code := 1
	defer func() { os.Exit(code) }()
	defer world.stop()
	code = m.Run()
	if code == 0 && world.cluster != nil {
		if err := harness.CheckConfined(world.audit); err != nil {
			fmt.Fprintln(os.Stderr, "--- FAIL: the policies that confine the agent let it do its work\n"+err.Error())
			code = 1
		}
	}
	if code == 0 && flag.Lookup("test.run").Value.String() == "" && world.cluster != nil {
		if err := harness.CheckRights(world.audit, []string{"maint-agent-drains", "maint-agent-nodes", "maint-agent-force", "maint-agent-volumes", "maint-agent-conditions", "maint-surge"}, []string{"maint-agent", "maint-agent-key"}); err != nil {
			fmt.Fprintln(os.Stderr, "--- FAIL: the agent's rights over nodes are exactly those that it used\n"+err.Error())
			code = 1
		}
	}
}

// world is what the tests of this binary share: one cluster. The testing package
// hands nothing from TestMain to tests.
var world shared //nolint:gochecknoglobals // see above

type shared struct {
	once    sync.Once
	err     error
	cluster *cluster.Cluster
	admin   kubernetes.Interface
	bin     string
	plugin  string
	config  string // kubeconfig of an admin
	agent   string // kubeconfig of the agent
	dir     string
	audit   string
	proxy   *harness.Proxy
}

func (s *shared) start() error {
	s.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute) // the two commands are built first, perhaps from nothing
		defer cancel()
		s.err = s.prepare(ctx)
	})
	return s.err
}

func (s *shared) prepare(ctx context.Context) (err error) {
	if s.dir, err = os.MkdirTemp("", "maint-nodes-test-"); err != nil {
		return err
	}
	if s.bin, s.plugin, err = harness.Build(ctx, s.dir); err != nil {
		return err
	}
	s.audit = filepath.Join(s.dir, "audit.log")
	if s.cluster, err = cluster.Start(ctx, cluster.Options{ControllerManager: true, Scheduler: true, Kwok: true, Nodes: fleet, AuditLog: s.audit}); err != nil {
		return err
	}
	if s.admin, err = kubernetes.NewForConfig(s.cluster.AdminConfig()); err != nil {
		return err
	}
	if err = harness.Install(ctx, s.cluster.AdminConfig()); err != nil {
		return err
	}
	if s.config, err = s.cluster.KubeconfigFile("admin", s.cluster.AdminConfig()); err != nil {
		return err
	}
	own, err := s.cluster.ServiceAccountConfig(ctx, annotations.DefaultNamespace, "maint-agent")
	if err != nil {
		return err
	}
	if s.proxy, err = harness.NewProxy(own); err != nil {
		return err
	}
	s.agent, err = s.cluster.KubeconfigFile("agent", s.proxy.Config(own))
	return err
}

func (s *shared) stop() {
	if s.cluster != nil {
		_ = s.cluster.Stop()
	}
	if s.proxy != nil {
		s.proxy.CloseClientConnections()
	}
	_ = os.RemoveAll(s.dir)
}

// lab is one test's agent, its namespace, and the fleet as it was.
type lab struct {
	*testing.T
	ctx   context.Context
	admin kubernetes.Interface
	ns    string
	agent *harness.Process
}

// newLab starts an agent under a configuration's spec, and ends it with the test.
// Nodes are one for all, so tests take turns.
func newLab(t *testing.T, spec string) *lab {
	t.Helper()
	if err := world.start(); err != nil {
		t.Fatalf("start the cluster: %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	l := &lab{T: t, ctx: ctx, admin: world.admin, ns: world.cluster.Namespace(t)}
	t.Cleanup(func() {
		if t.Failed() {
			l.explain()
		}
		if l.agent != nil {
			_ = l.agent.Stop()
		}
		l.tidy()
		cancel()
	})
	l.must(harness.Configure(ctx, world.cluster.AdminConfig(), spec))
	l.start()
	return l
}

func (l *lab) start() {
	l.Helper()
	var err error
	l.agent, err = harness.StartAgent(world.bin, world.agent, "--leader-elect=false")
	l.must(err)
}

// tidy leaves the nodes as a new cluster has them.
func (l *lab) tidy() {
	list, err := l.admin.CoreV1().Nodes().List(context.Background(), metav1.ListOptions{})
	if err != nil {
		l.Errorf("nothing is tidied: %v", err)
		return
	}
	for i := range list.Items {
		name := list.Items[i].Name
		if err := retry.RetryOnConflict(retry.DefaultBackoff, func() error { return l.asNew(name) }); err != nil {
			l.Errorf("%s stays as this test left it: %v", name, err)
		}
		l.withoutLifecycle(name)
	}
}

// asNew takes from a node what a test may have left on it.
func (l *lab) asNew(name string) error {
	n, err := l.admin.CoreV1().Nodes().Get(context.Background(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	maps.DeleteFunc(n.Annotations, func(key, _ string) bool { return strings.Contains(key, "maint.dev/") })
	delete(n.Labels, corev1.LabelTopologyZone)
	delete(n.Labels, "pool")
	n.Spec.Unschedulable = false
	_, err = l.admin.CoreV1().Nodes().Update(context.Background(), n, metav1.UpdateOptions{})
	return err
}

// explain prints what a person would look at first.
func (l *lab) explain() {
	list, err := l.admin.CoreV1().Nodes().List(context.Background(), metav1.ListOptions{})
	if err != nil {
		return
	}
	for _, n := range list.Items {
		if of := annotations.OfNode(n.Annotations); len(of) > 0 || n.Spec.Unschedulable {
			l.Logf("%s unschedulable=%v %v", n.Name, n.Spec.Unschedulable, of)
		}
	}
	documents, err := l.admin.CoreV1().ConfigMaps(l.ns).List(context.Background(), metav1.ListOptions{LabelSelector: annotations.LabelKind})
	if err != nil {
		return
	}
	for _, cm := range documents.Items {
		l.Logf("%s %v %s", cm.Name, annotations.OfNode(cm.Annotations), cm.Data[annotations.DataJournal])
	}
	lines := strings.Split(l.agent.Log(), "\n")
	l.Log(strings.Join(lines[max(0, len(lines)-40):], "\n"))
}

func (l *lab) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

func (l *lab) eventually(what string, holds func() (bool, string)) {
	l.Helper()
	l.within(30, what, holds)
}

func (l *lab) within(seconds int, what string, holds func() (bool, string)) {
	l.Helper()
	limit := time.After(time.Duration(seconds) * time.Second)
	for {
		ok, now := holds()
		if ok {
			return
		}
		select {
		case <-l.ctx.Done():
			l.Fatalf("%s: %s: %v", what, now, l.ctx.Err())
		case <-limit:
			l.Fatalf("%s: not within %d s: %s", what, seconds, now)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (l *lab) node(name string) *corev1.Node {
	l.Helper()
	n, err := l.admin.CoreV1().Nodes().Get(l.ctx, name, metav1.GetOptions{})
	l.must(err)
	return n
}

// edit merges a patch into a node.
func (l *lab) edit(name string, patch map[string]any) {
	l.Helper()
	b, err := json.Marshal(patch)
	l.must(err)
	_, err = l.admin.CoreV1().Nodes().Patch(l.ctx, name, types.MergePatchType, b, metav1.PatchOptions{FieldManager: "someone"})
	l.must(err)
}

// annotate sets annotations of a node; nil takes one away.
func (l *lab) annotate(name string, values map[string]any) {
	l.Helper()
	l.edit(name, map[string]any{"metadata": map[string]any{"annotations": values}})
}

func (l *lab) request(node, requestor, value string) {
	l.Helper()
	l.annotate(node, map[string]any{annotations.RequestPrefix + requestor: value})
}

func (l *lab) release(node, requestor string) {
	l.Helper()
	l.annotate(node, map[string]any{annotations.RequestPrefix + requestor: nil})
}

func (l *lab) cordon(node string, on bool) {
	l.Helper()
	l.edit(node, map[string]any{"spec": map[string]any{"unschedulable": on}})
}

func (l *lab) label(node, key, value string) {
	l.Helper()
	l.edit(node, map[string]any{"metadata": map[string]any{"labels": map[string]any{key: value}}})
}

// status is what the agent says of a request.
func (l *lab) status(node, requestor string) (nodes.Status, bool) {
	l.Helper()
	text, there := l.node(node).Annotations[annotations.StatusRequestPrefix+requestor]
	if !there {
		return nodes.Status{}, false
	}
	s, ok := nodes.ParseStatus(text)
	if !ok {
		l.Fatalf("the status of %s on %s cannot be read: %s", requestor, node, text)
	}
	return s, true
}

// phase waits until a request is in a phase.
func (l *lab) phase(node, requestor string, want nodes.Phase) nodes.Status {
	l.Helper()
	var got nodes.Status
	l.eventually(fmt.Sprintf("%s on %s is %s", requestor, node, want), func() (bool, string) {
		var there bool
		got, there = l.status(node, requestor)
		return there && got.Phase == want, fmt.Sprintf("%+v", got)
	})
	return got
}

// gone waits until nothing is left of a request.
func (l *lab) gone(node, requestor string) {
	l.Helper()
	l.eventually(fmt.Sprintf("the status of %s on %s goes", requestor, node), func() (bool, string) {
		s, there := l.status(node, requestor)
		return !there, fmt.Sprintf("%+v", s)
	})
}

// schedulable says whether a node takes pods and bears no record of ours.
func (l *lab) schedulable(node string, want bool) {
	l.Helper()
	l.eventually(fmt.Sprintf("%s schedulable: %v", node, want), func() (bool, string) {
		n := l.node(node)
		return n.Spec.Unschedulable != want, fmt.Sprint(annotations.OfNode(n.Annotations))
	})
}

// deployment creates a Deployment whose pods run on the given nodes' fleet.
func (l *lab) deployment(name string, replicas int32, edits ...func(*appsv1.Deployment)) *appsv1.Deployment {
	l.Helper()
	labels := map[string]string{"app": name}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "example.org/none"}}},
			},
		},
	}
	for _, edit := range edits {
		edit(d)
	}
	d, err := l.admin.AppsV1().Deployments(l.ns).Create(l.ctx, d, metav1.CreateOptions{})
	l.must(err)
	l.eventually(name+" is ready", func() (bool, string) {
		now, err := l.admin.AppsV1().Deployments(l.ns).Get(l.ctx, name, metav1.GetOptions{})
		l.must(err)
		return now.Status.ReadyReplicas == replicas, fmt.Sprint(now.Status.ReadyReplicas)
	})
	return d
}

// only pins a Deployment's pods to nodes with a label pool.
func only(pool string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Spec.Template.Spec.NodeSelector = map[string]string{"pool": pool} }
}

func (l *lab) budget(name string, maxUnavailable intstr.IntOrString) {
	l.Helper()
	_, err := l.admin.PolicyV1().PodDisruptionBudgets(l.ns).Create(l.ctx, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &maxUnavailable, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}},
	}, metav1.CreateOptions{})
	l.must(err)
	l.eventually("the budget is looked at", func() (bool, string) {
		b, err := l.admin.PolicyV1().PodDisruptionBudgets(l.ns).Get(l.ctx, name, metav1.GetOptions{})
		l.must(err)
		return b.Status.ObservedGeneration == b.Generation && b.Status.ExpectedPods > 0, ""
	})
}

// podsOn are the names of the test's pods on a node.
func (l *lab) podsOn(node string) []string {
	l.Helper()
	list, err := l.admin.CoreV1().Pods(l.ns).List(l.ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
	l.must(err)
	var out []string
	for _, p := range list.Items {
		out = append(out, p.Name)
	}
	return out
}

func deleteNow() metav1.DeleteOptions { return metav1.DeleteOptions{} }
