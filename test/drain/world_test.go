// Package drain_test drains simulated nodes of a real control plane: evictions,
// budgets, controllers and the scheduler are Kubernetes' own.
package drain_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/node"
	"github.com/kubectl-maint/kubectl-maint/test/cluster"
	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

var theCluster struct {
	once sync.Once
	c    *cluster.Cluster
	err  error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if c := theCluster.c; c != nil {
		if err := c.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stop cluster:", err)
		}
	}
	os.Exit(code)
}

// world is a namespace and nodes of its own.
type world struct {
	*cluster.Cluster
	ns    string
	kube  kubernetes.Interface
	nodes []string
}

// newWorld has nodes of its own; what is made with it runs on them.
// The garbage collector is switched off: it would take away the pods whose
// controllers are missing.
func newWorld(t *testing.T, nodes int) *world {
	t.Helper()
	theCluster.once.Do(func() {
		theCluster.c, theCluster.err = cluster.Start(context.Background(), cluster.Options{
			ControllerManager: true, Scheduler: true, Kwok: true,
			ControllerManagerArgs: []string{"--controllers=*,-garbage-collector-controller"},
		})
	})
	if theCluster.err != nil {
		t.Fatal(theCluster.err)
	}
	w := &world{Cluster: theCluster.c}
	w.kube = w.client(t, nil)
	w.ns = w.Namespace(t)
	w.addNodes(t, nodes)
	return w
}

func (w *world) client(t *testing.T, wrap func(http.RoundTripper) http.RoundTripper) kubernetes.Interface {
	t.Helper()
	config := rest.CopyConfig(w.AdminConfig())
	if wrap != nil {
		config.Wrap(wrap)
	}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return kube
}

func (w *world) addNodes(t *testing.T, n int) {
	t.Helper()
	from := len(w.nodes)
	for i := range n {
		name := fmt.Sprintf("n%s-%d", w.ns[len(w.ns)-5:], from+i)
		_, err := w.kube.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{"pool": w.ns, corev1.LabelHostname: name, "type": "kwok"},
			Annotations: map[string]string{"kwok.x-k8s.io/node": "fake", "node.alpha.kubernetes.io/ttl": "0"},
		}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		w.nodes = append(w.nodes, name)
		t.Cleanup(func() {
			_ = w.kube.CoreV1().Nodes().Delete(context.Background(), name, metav1.DeleteOptions{})
		})
	}
	eventually(t, "nodes are Ready", func(ctx context.Context) bool {
		list, err := w.kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: "pool=" + w.ns})
		ready := 0
		for _, n := range list.Items {
			for _, c := range n.Status.Conditions {
				if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue && (len(n.Spec.Taints) == 0 || n.Spec.Unschedulable) {
					ready++
				}
			}
		}
		return err == nil && ready >= len(w.nodes)
	})
}

func eventually(t *testing.T, what string, is func(ctx context.Context) bool) {
	t.Helper()
	deadline := time.Now().Add(90 * time.Second)
	for !is(t.Context()) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (w *world) cordon(t *testing.T, nodes ...string) { w.unschedulable(t, true, nodes...) }

func (w *world) unschedulable(t *testing.T, yes bool, nodes ...string) {
	t.Helper()
	for _, n := range nodes {
		patch := fmt.Sprintf(`{"spec":{"unschedulable":%t}}`, yes)
		if _, err := w.kube.CoreV1().Nodes().Patch(t.Context(), n, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

type podOption func(*corev1.PodTemplateSpec)

func annotated(key, value string) podOption {
	return func(p *corev1.PodTemplateSpec) {
		if p.Annotations == nil {
			p.Annotations = map[string]string{}
		}
		p.Annotations[key] = value
	}
}

func onNode(name string) podOption {
	return func(p *corev1.PodTemplateSpec) { p.Spec.NodeName = name }
}

func tolerant(p *corev1.PodTemplateSpec) {
	p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Operator: corev1.TolerationOpExists})
}

func selecting(key, value string) podOption {
	return func(p *corev1.PodTemplateSpec) { p.Spec.NodeSelector[key] = value }
}

func finalized(p *corev1.PodTemplateSpec) { p.Finalizers = []string{"example.org/grace"} }

func emptyDir(p *corev1.PodTemplateSpec) {
	p.Spec.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
}

func (w *world) template(app string, options ...podOption) corev1.PodTemplateSpec {
	p := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app}},
		Spec: corev1.PodSpec{
			NodeSelector: map[string]string{"pool": w.ns},
			Containers: []corev1.Container{{Name: "c", Image: "example.org/c:1", Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")},
			}}},
		},
	}
	for _, o := range options {
		o(&p)
	}
	return p
}

func (w *world) deployment(t *testing.T, app string, replicas int32, options ...podOption) {
	t.Helper()
	_, err := w.kube.AppsV1().Deployments(w.ns).Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: app},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}, Template: w.template(app, options...),
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

func (w *world) pod(t *testing.T, name string, options ...podOption) *corev1.Pod {
	t.Helper()
	tpl := w.template(name, options...)
	tpl.ObjectMeta.Name = name
	p, err := w.kube.CoreV1().Pods(w.ns).Create(t.Context(), &corev1.Pod{ObjectMeta: tpl.ObjectMeta, Spec: tpl.Spec}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func ownedBy(version, kind, name, uid string) podOption {
	return func(p *corev1.PodTemplateSpec) {
		yes := true
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: name, UID: types.UID(uid), Controller: &yes}}
	}
}

func (w *world) budget(t *testing.T, app string, spec policyv1.PodDisruptionBudgetSpec) {
	t.Helper()
	spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
	_, err := w.kube.PolicyV1().PodDisruptionBudgets(w.ns).Create(t.Context(), &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: app}, Spec: spec}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w.computed(t, app)
}

func (w *world) computed(t *testing.T, budget string) {
	t.Helper()
	eventually(t, "budget "+budget+" is computed", func(ctx context.Context) bool {
		b, err := w.kube.PolicyV1().PodDisruptionBudgets(w.ns).Get(ctx, budget, metav1.GetOptions{})
		return err == nil && b.Status.ObservedGeneration == b.Generation && b.Status.ExpectedPods > 0
	})
}

// crowded has all pods of "web", under a budget of one, on its first node, which is
// cordoned; the second is free.
func crowded(t *testing.T, replicas int32) *world {
	t.Helper()
	w := newWorld(t, 2)
	w.cordon(t, w.nodes[1])
	w.deployment(t, "web", replicas)
	w.running(t, "web", int(replicas))
	w.budget(t, "web", maxUnavailable(1))
	w.unschedulable(t, false, w.nodes[1])
	w.cordon(t, w.nodes[0])
	return w
}

func maxUnavailable(n int) policyv1.PodDisruptionBudgetSpec {
	v := intstr.FromInt(n)
	return policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &v}
}

func minAvailable(n int) policyv1.PodDisruptionBudgetSpec {
	v := intstr.FromInt(n)
	return policyv1.PodDisruptionBudgetSpec{MinAvailable: &v}
}

func podReady(p corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue && p.DeletionTimestamp == nil
		}
	}
	return false
}

func (w *world) pods(t *testing.T, selector string) []corev1.Pod {
	t.Helper()
	list, err := w.kube.CoreV1().Pods(w.ns).List(t.Context(), metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

func (w *world) on(t *testing.T, nodeName string) []string {
	t.Helper()
	list, err := w.kube.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=" + nodeName})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, p := range list.Items {
		out = append(out, p.Name)
	}
	return out
}

// running waits until so many pods of an app are Ready.
func (w *world) running(t *testing.T, app string, n int) []corev1.Pod {
	t.Helper()
	var out []corev1.Pod
	eventually(t, fmt.Sprintf("%d pods of %s are Ready", n, app), func(ctx context.Context) bool {
		list, err := w.kube.CoreV1().Pods(w.ns).List(ctx, metav1.ListOptions{LabelSelector: "app=" + app})
		if err != nil {
			return false
		}
		out = nil
		for _, p := range list.Items {
			if podReady(p) {
				out = append(out, p)
			}
		}
		return len(out) >= n
	})
	return out
}

// draining is a drainer and what it rings for.
type draining struct {
	*node.Drainer
	w     *world
	kube  kubernetes.Interface
	rings atomic.Int64
	bell  chan struct{}
	since time.Time
}

func (w *world) drainer(t *testing.T, kube kubernetes.Interface) *draining {
	t.Helper()
	d := &draining{w: w, kube: kube, bell: make(chan struct{}, 1), since: time.Now()}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	d.Drainer = node.New(ctx, node.Config{Reads: w.kube, SurgeFor: 4 * time.Second, OnChange: func(string, string) {
		d.rings.Add(1)
		select {
		case d.bell <- struct{}{}:
		default:
		}
	}})
	return d
}

func (d *draining) order(nodeName string, o drain.Options) executors.DrainOrder {
	return executors.DrainOrder{Node: nodeName, By: "test", Options: o, Since: d.since, Clients: executors.Clients{Kube: d.kube}, Manager: "maint-test"}
}

// until waits for a drain to be in some state.
func (d *draining) until(t *testing.T, nodeName string, o drain.Options, what string, is func(executors.DrainStatus) bool) executors.DrainStatus {
	t.Helper()
	var st executors.DrainStatus
	deadline := time.Now().Add(120 * time.Second)
	for {
		st = d.Ensure(t.Context(), d.order(nodeName, o))
		if is(st) {
			return st
		}
		if time.Now().After(deadline) {
			pods, _ := d.w.kube.CoreV1().Pods(d.w.ns).List(t.Context(), metav1.ListOptions{})
			for _, p := range pods.Items {
				t.Logf("%s on %s %s deleting %v %v", p.Name, p.Spec.NodeName, p.Status.Phase, p.DeletionTimestamp, p.Status.Conditions)
			}
			pdbs, _ := d.w.kube.PolicyV1().PodDisruptionBudgets(d.w.ns).List(t.Context(), metav1.ListOptions{})
			for _, p := range pdbs.Items {
				t.Logf("%+v", p.Status)
			}
			t.Fatalf("node %s never %s: %+v\nthere: %v", nodeName, what, st, d.w.on(t, nodeName))
		}
		select {
		case <-d.bell:
		case <-time.After(500 * time.Millisecond):
		}
	}
}

func ended(st executors.DrainStatus) bool   { return st.Done || st.Aborted }
func blocked(st executors.DrainStatus) bool { return st.Reason == executors.DrainBlocked }

// wire looks at every request, and may break it.
type wire struct {
	next  http.RoundTripper
	mu    sync.Mutex
	pods  map[string]int // requests that name a pod, by namespace/name
	lists int            // requests for the pods of a node
	fault func(r *http.Request, pod string, n int, send func() (*http.Response, error)) (*http.Response, error)
}

func (c *wire) wrap(next http.RoundTripper) http.RoundTripper {
	c.next, c.pods = next, map[string]int{}
	return c
}

func (c *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	pod := podOf(r)
	send := func() (*http.Response, error) { return c.next.RoundTrip(r) }
	if pod == "" {
		if r.URL.Path == "/api/v1/pods" {
			c.mu.Lock()
			c.lists++
			c.mu.Unlock()
		}
		return send()
	}
	c.mu.Lock()
	c.pods[pod]++
	n, fault := c.pods[pod], c.fault
	c.mu.Unlock()
	if fault != nil {
		return fault(r, pod, n, send)
	}
	return send()
}

func podOf(r *http.Request) string {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/") // api v1 namespaces NS pods NAME eviction
	if len(parts) < 6 || parts[4] != "pods" {
		return ""
	}
	return parts[3] + "/" + parts[5]
}

func (c *wire) counts() (pods, requests int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.pods {
		pods, requests = pods+1, requests+n
	}
	return pods, requests
}

func root(t *testing.T) string {
	t.Helper()
	dir, err := harness.Root()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func seconds(n float64) *document.Duration {
	return &document.Duration{Duration: time.Duration(n * float64(time.Second))}
}

var errLost = errors.New("the answer was lost")

func (w *world) quantity(text string) *resource.Quantity {
	q := resource.MustParse(text)
	return &q
}
