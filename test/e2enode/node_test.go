//go:build linux

// Package e2enode checks on a real node, with a real kubelet and real
// containers, what simulated ones cannot show: grace periods, drains that take
// their time, Jobs that reach the machine.
//
// It needs Linux, root and what `make tools-node` builds and installs, so it
// runs only where it is asked to: `make e2e-node`, which sets MAINT_E2E_NODE=1.
// Asked, it never skips: what is missing fails.
package e2enode

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/test/cluster"
	"github.com/kubectl-maint/kubectl-maint/test/harness"
	"github.com/kubectl-maint/kubectl-maint/test/kubelet"
)

// asked is the variable without which nothing here runs.
const asked = "MAINT_E2E_NODE"

// patience is for things that take seconds; a guess for a busy machine.
const patience = time.Minute

// The web server ends three seconds after SIGTERM, and would be killed after
// ten: a drain that takes less kills, one that takes ten waits for nothing.
const (
	ends  = 3 * time.Second
	grace = 10 * time.Second
)

func TestMain(m *testing.M) {
	var err error
	if programs, err = os.MkdirTemp("", "maint-e2e-node-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(programs)
	os.Exit(code)
}

// programs is the folder of what is built for all tests: the testing package
// hands nothing from TestMain to them.
var programs string

// builds are agent and plugin, in a folder.
type builds struct {
	dir, agent string
	err        error
}

// built builds them for the first who asks.
var built = sync.OnceValue(func() builds {
	agent, _, err := harness.Build(context.Background(), programs)
	return builds{programs, agent, err}
})

func TestANodeComesBackFromAReboot(t *testing.T) {
	w := start(t)
	w.deployment("web", 1)
	before := w.waitReady("web", 1)[0]

	w.node.Reboot(t)

	w.eventually("the same pod runs again, in another container", func(ctx context.Context) (bool, error) {
		pod, err := w.kube.CoreV1().Pods(w.ns).Get(ctx, before.Name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		return pod.UID == before.UID && isReady(pod) && pod.Status.ContainerStatuses[0].RestartCount == 1, nil
	})
}

// world is a cluster with one real node, and a namespace.
type world struct {
	t          *testing.T
	cluster    *cluster.Cluster
	kube       kubernetes.Interface
	node       *kubelet.Node
	ns         string
	kubeconfig string // an admin's
	plugins    string // the folder with kubectl-maint, once there is an agent
	requests   *journal
}

// start brings up a cluster with a real node, both gone when the test ends.
func start(t *testing.T) *world {
	t.Helper()
	if os.Getenv(asked) == "" {
		t.Skipf("NOT RUN: no real node without %s=1; `make e2e-node` sets it and builds what is needed (Linux, root)", asked)
	}
	began := time.Now()
	options := kubelet.Options(t.TempDir())
	options.AuditLog = filepath.Join(t.TempDir(), "audit.log")
	c, err := cluster.Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	t.Logf("the control plane took %s", time.Since(began).Round(time.Millisecond))
	began = time.Now()
	w := &world{t: t, cluster: c, node: kubelet.Start(t, c), ns: c.Namespace(t), requests: &journal{file: options.AuditLog}}
	t.Logf("the node took %s", time.Since(began).Round(time.Millisecond))
	if w.kubeconfig, err = c.KubeconfigFile("admin", c.AdminConfig()); err != nil {
		t.Fatal(err)
	}
	if w.kube, err = kubernetes.NewForConfig(c.AdminConfig()); err != nil {
		t.Fatal(err)
	}
	return w
}

// in is the same world for a part of the test.
func (w *world) in(t *testing.T) *world {
	part := *w
	part.t = t
	return &part
}

// agent installs the agent and starts it, as a process that has its
// ServiceAccount's rights and no others, and builds the plugin.
func (w *world) agent() {
	w.t.Helper()
	began := time.Now()
	b := built()
	w.must(b.err)
	w.t.Logf("agent and plugin took %s to build", time.Since(began).Round(time.Millisecond))
	w.plugins = b.dir
	w.must(harness.Install(w.t.Context(), w.cluster.AdminConfig()))
	agent, err := harness.StartInstalled(w.t.Context(), w.cluster, annotations.DefaultNamespace, b.agent, "--leader-elect=false")
	w.must(err)
	w.t.Cleanup(func() {
		if err := agent.Stop(); err != nil {
			w.t.Error(err)
		}
		if w.t.Failed() {
			w.t.Logf("--- the agent said\n%s", agent.Log())
		}
	})
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// is waits until what is said of the node holds.
func (w *world) is(what string, holds func(*corev1.Node) bool) {
	w.t.Helper()
	w.eventually("the node is "+what, func(ctx context.Context) (bool, error) {
		node, err := w.kube.CoreV1().Nodes().Get(ctx, w.node.Name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		if holds(node) {
			return true, nil
		}
		return false, fmt.Errorf("unschedulable: %t, ready: %t, %v", node.Spec.Unschedulable, nodeReady(node), annotations.OfNode(node.Annotations))
	})
}

func nodeReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// untouched is a node that takes pods and bears no record of ours.
func untouched(node *corev1.Node) bool {
	return !node.Spec.Unschedulable && nodeReady(node) && len(annotations.OfNode(node.Annotations)) == 0
}

// template is a pod that can run on the real node only, and whose container ends
// `ends` after SIGTERM.
func (w *world) template(name string, edits ...func(*corev1.PodSpec)) (*metav1.LabelSelector, corev1.PodTemplateSpec) {
	labels := map[string]string{"app": name}
	spec := corev1.PodSpec{
		NodeSelector:                  map[string]string{corev1.LabelHostname: w.node.Name},
		TerminationGracePeriodSeconds: new(int64(grace.Seconds())),
		AutomountServiceAccountToken:  new(false),
		Containers: []corev1.Container{{
			Name: "main", Image: kubelet.Image, ImagePullPolicy: corev1.PullNever, Args: []string{"serve", ends.String()},
		}},
	}
	for _, edit := range edits {
		edit(&spec)
	}
	return &metav1.LabelSelector{MatchLabels: labels}, corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec}
}

func (w *world) deployment(name string, replicas int32, edits ...func(*corev1.PodSpec)) {
	w.t.Helper()
	selector, template := w.template(name, edits...)
	_, err := w.kube.AppsV1().Deployments(w.ns).Create(w.t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       appsv1.DeploymentSpec{Replicas: &replicas, Selector: selector, Template: template},
	}, metav1.CreateOptions{})
	w.must(err)
}

func (w *world) daemonSet(name string) {
	w.t.Helper()
	selector, template := w.template(name)
	_, err := w.kube.AppsV1().DaemonSets(w.ns).Create(w.t.Context(), &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       appsv1.DaemonSetSpec{Selector: selector, Template: template},
	}, metav1.CreateOptions{})
	w.must(err)
}

// waitReady waits until all pods of a Deployment or DaemonSet are, and returns them.
func (w *world) waitReady(owner string, replicas int) []*corev1.Pod {
	w.t.Helper()
	var ready []*corev1.Pod
	w.eventually(fmt.Sprintf("%d pods of %s are Ready", replicas, owner), func(ctx context.Context) (bool, error) {
		pods, err := w.kube.CoreV1().Pods(w.ns).List(ctx, metav1.ListOptions{LabelSelector: "app=" + owner})
		if err != nil {
			return false, err
		}
		ready = nil
		for i := range pods.Items {
			if isReady(&pods.Items[i]) {
				ready = append(ready, &pods.Items[i])
			}
		}
		return len(ready) == replicas, nil
	})
	return ready
}

// follow reads what a pod says, through API server and kubelet, until it ends.
func (w *world) follow(pod *corev1.Pod) <-chan []string {
	w.t.Helper()
	stream, err := w.kube.CoreV1().Pods(w.ns).GetLogs(pod.Name, &corev1.PodLogOptions{Follow: true}).Stream(w.t.Context())
	if err != nil {
		w.t.Fatalf("read the log of %s: %v", pod.Name, err)
	}
	said := make(chan []string, 1)
	go func() {
		defer stream.Close()
		var lines []string
		for s := bufio.NewScanner(stream); s.Scan(); {
			lines = append(lines, s.Text())
		}
		said <- lines
	}()
	return said
}

// kubectl runs kubectl, which finds the plugin as users have it find it.
func (w *world) kubectl(args ...string) string {
	w.t.Helper()
	binary, err := cluster.Asset("kubectl")
	w.must(err)
	cmd := exec.CommandContext(w.t.Context(), binary, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+w.kubeconfig, "PATH="+w.plugins+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func (w *world) exists(pod *corev1.Pod) bool {
	w.t.Helper()
	got, err := w.kube.CoreV1().Pods(w.ns).Get(w.t.Context(), pod.Name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		w.t.Fatal(err)
	}
	return err == nil && got.UID == pod.UID
}

// eventually asks until the answer is yes.
func (w *world) eventually(what string, done func(context.Context) (bool, error)) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	var last error
	for {
		yes, err := done(ctx)
		if yes && err == nil {
			return
		}
		if ctx.Err() == nil { // else it only says that time is up
			last = err
		}
		select {
		case <-ctx.Done():
			w.t.Fatalf("waited %s: %s: %v", patience, what, last)
		case <-tick.C:
		}
	}
}

func isReady(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
