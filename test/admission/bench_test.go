package admission_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

// BenchmarkWrites measures what the policies cost: the same patches, a few at a time,
// without any policy, with those that are always installed, and with all of them. See
// docs/admission.md.
func BenchmarkWrites(b *testing.B) {
	h := newBench(b)
	for _, set := range []policySet{{"without", none}, {"confined", confining}, {"all", all}} {
		h.round(set)
	}
}

// BenchmarkPolicies measures each policy alone, by kind of write, beside none and all.
func BenchmarkPolicies(b *testing.B) {
	h := newBench(b)
	h.round(policySet{"none", none})
	for _, name := range h.bindings.policies() {
		h.round(policySet{name, func(have string) bool { return have == name }})
	}
	h.round(policySet{"all", all})
}

// policySet is the policies that are in force in one round.
type policySet struct {
	name string
	has  func(policy string) bool
}

func none(string) bool           { return false }
func all(string) bool            { return true }
func confining(name string) bool { return strings.HasPrefix(name, annotations.AgentName) }

// bench is the cluster, the namespace in which all rounds write, and all bindings.
type bench struct {
	*testing.B
	ctx      context.Context
	ns       string
	bindings *bindings
}

func newBench(b *testing.B) *bench {
	if err := world.start(); err != nil {
		b.Fatal(err)
	}
	h := &bench{B: b, ctx: context.Background(), ns: world.cluster.Namespace(b)}
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "bench"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"}, Subjects: subject(editor())}
	_, err := world.admin.RbacV1().RoleBindings(h.ns).Create(h.ctx, binding, metav1.CreateOptions{})
	h.must(err)
	h.must(world.may(h.ctx, editor(), h.ns, "write", "maint.dev", "plans", "x"))
	h.must(world.switchOn(h.ctx))
	h.bindings, err = readBindings(h.ctx, world.admin)
	h.must(err)
	return h
}

func (h *bench) must(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

// round measures every kind of write while one set of policies is in force.
func (h *bench) round(set policySet) {
	h.must(h.bindings.keep(h.ctx, set.has))
	for _, w := range []writes{
		{"ordinary-ConfigMap", plain(""), editor(), `{"data":{"a":"%d"}}`},
		{"plan", document(annotations.KindPlan, ""), editor(), `{"data":{"plan.yaml":"%d"}}`},
		{"intent", document(annotations.KindPlan, ""), editor(), `{"metadata":{"annotations":{"maint.dev/trigger":"%d"}}}`},
		{"journal-by-the-agent", document(annotations.KindRun, ""), agent(), `{"data":{"journal.json":"%d"}}`},
		{"status-by-the-agent", document(annotations.KindPlan, ""), agent(), `{"metadata":{"annotations":{"status.maint.dev/message":"%d"}}}`},
	} {
		h.Run(w.what+"/"+set.name, func(b *testing.B) { w.measure(h.ctx, b, h.ns) })
	}
	h.Run("run-made-by-the-agent/"+set.name, func(b *testing.B) { runs(h.ctx, b, h.ns) })
	h.Run("Service/"+set.name, func(b *testing.B) { services(h.ctx, b, h.ns) })
	h.Run("Deployment-status-by-its-controller/"+set.name, func(b *testing.B) { deploymentStatuses(h.ctx, b, h.ns) })
	h.Run("node-status-by-its-kubelet/"+set.name, func(b *testing.B) { heartbeats(h.ctx, b) })
}

// runs makes one run after the other, as the agent does.
func runs(ctx context.Context, b *testing.B, ns string) {
	maps, prefix := world.as(agent()).CoreV1().ConfigMaps(ns), "maint-run-bench-"+rand.String(6)
	each(b, func(_, n int64) error {
		cm := document(annotations.KindRun, "")
		cm.Name, cm.Namespace = fmt.Sprintf("%s-%d", prefix, n), ns
		_, err := maps.Create(ctx, cm, metav1.CreateOptions{FieldManager: annotations.ManagerAgent})
		return err
	})
}

// services changes objects of a kind that could be frozen, where nothing is.
func services(ctx context.Context, b *testing.B, ns string) {
	services, prefix := world.as(editor()).CoreV1().Services(ns), "bench-"+rand.String(6)
	for i := range atOnce {
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", prefix, i)}, Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Selector: map[string]string{"n": "0"}}}
		if _, err := world.admin.CoreV1().Services(ns).Create(ctx, s, metav1.CreateOptions{}); err != nil {
			b.Fatal(err)
		}
		defer func() { _ = world.admin.CoreV1().Services(ns).Delete(ctx, s.Name, metav1.DeleteOptions{}) }()
	}
	each(b, func(client, n int64) error {
		patch := fmt.Appendf(nil, `{"spec":{"selector":{"n":"%d"}}}`, n)
		_, err := services.Patch(ctx, fmt.Sprintf("%s-%d", prefix, client), types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	})
}

// deploymentStatuses says how Deployments are, as the cluster's controller does all the time.
func deploymentStatuses(ctx context.Context, b *testing.B, ns string) {
	all := world.as(withMasters(account("kube-system", "deployment-controller"))).AppsV1().Deployments(ns)
	prefix, app := "bench-"+rand.String(6), map[string]string{"app": "bench"}
	for i := range atOnce {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", prefix, i)}, Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: app},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: app}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "example.org/c:1"}}}},
		}}
		if _, err := world.admin.AppsV1().Deployments(ns).Create(ctx, d, metav1.CreateOptions{}); err != nil {
			b.Fatal(err)
		}
		defer func() { _ = world.admin.AppsV1().Deployments(ns).Delete(ctx, d.Name, metav1.DeleteOptions{}) }()
	}
	each(b, func(client, n int64) error {
		patch := fmt.Appendf(nil, `{"status":{"observedGeneration":%d}}`, n)
		_, err := all.Patch(ctx, fmt.Sprintf("%s-%d", prefix, client), types.MergePatchType, patch, metav1.PatchOptions{}, "status")
		return err
	})
}

// atOnce is how many clients write, each its own object.
const atOnce = 8

type writes struct {
	what   string
	object *corev1.ConfigMap
	who    person
	patch  string
}

func (w writes) measure(ctx context.Context, b *testing.B, ns string) {
	maps := world.as(w.who).CoreV1().ConfigMaps(ns)
	prefix, by := "bench-"+rand.String(6), admin()
	if w.object.Labels[annotations.LabelKind] == annotations.KindRun {
		prefix, by = "maint-run-"+prefix, agent()
	}
	for i := range atOnce {
		cm := w.object.DeepCopy()
		cm.Name, cm.Namespace = fmt.Sprintf("%s-%d", prefix, i), ns
		if _, err := world.as(by).CoreV1().ConfigMaps(ns).Create(ctx, cm, metav1.CreateOptions{}); err != nil {
			b.Fatal(err)
		}
	}
	each(b, func(client, n int64) error {
		_, err := maps.Patch(ctx, fmt.Sprintf("%s-%d", prefix, client), types.MergePatchType, fmt.Appendf(nil, w.patch, n), metav1.PatchOptions{})
		return err
	})
}

func heartbeats(ctx context.Context, b *testing.B) {
	nodes := world.as(withMasters(kubelet())).CoreV1().Nodes()
	prefix := "bench-" + rand.String(6)
	for i := range atOnce {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", prefix, i)}}
		if _, err := world.admin.CoreV1().Nodes().Create(ctx, n, metav1.CreateOptions{}); err != nil {
			b.Fatal(err)
		}
		defer func() { _ = world.admin.CoreV1().Nodes().Delete(ctx, n.Name, metav1.DeleteOptions{}) }()
	}
	each(b, func(client, n int64) error {
		patch := fmt.Appendf(nil, `{"status":{"nodeInfo":{"kernelVersion":"%d"}}}`, n)
		_, err := nodes.Patch(ctx, fmt.Sprintf("%s-%d", prefix, client), types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
		return err
	})
}

// each writes with all clients at once, and reports how many writes a second went in.
func each(b *testing.B, write func(client, n int64) error) {
	var clients, count atomic.Int64
	b.SetParallelism((atOnce + 1) / 2) // on two processors
	made, held := serverAllocs(b)
	b.ResetTimer()
	before := serverCPU(b)
	b.RunParallel(func(pb *testing.PB) {
		client := (clients.Add(1) - 1) % atOnce
		for pb.Next() {
			if err := write(client, count.Add(1)); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(count.Load())/b.Elapsed().Seconds(), "writes/s")
	b.ReportMetric(float64((serverCPU(b)-before).Microseconds())/float64(count.Load()), "server-µs/write")
	b.StopTimer()
	madeSince, heldSince := serverAllocs(b)
	b.ReportMetric((madeSince-made)/float64(count.Load()), "server-allocs/write")
	b.ReportMetric((heldSince-held)/float64(count.Load())/1024, "server-KiB/write")
}

// serverAllocs is how many objects the API server has made in memory since it started, and
// of how many bytes: unlike its time, neither depends on what else the machine does.
func serverAllocs(b *testing.B) (objects, bytes float64) {
	b.Helper()
	text, err := world.admin.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.SplitSeq(string(text), "\n") {
		name, value, _ := strings.Cut(line, " ")
		switch name {
		case "go_memstats_mallocs_total":
			objects, err = strconv.ParseFloat(value, 64)
		case "go_memstats_alloc_bytes_total":
			bytes, err = strconv.ParseFloat(value, 64)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	return objects, bytes
}

// serverCPU is the processor time that the API server has used: unlike the time that
// passes, it does not depend on what else the machine does. Linux alone tells it.
func serverCPU(b *testing.B) time.Duration {
	b.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		b.Fatal(err)
	}
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		_, rest, _ := strings.Cut(string(text), ") ")
		fields := strings.Fields(rest)
		if !strings.Contains(string(text), "(kube-apiserver)") || len(fields) < 13 || fields[1] != strconv.Itoa(os.Getpid()) {
			continue
		}
		user, _ := strconv.Atoi(fields[11])
		system, _ := strconv.Atoi(fields[12])
		return time.Duration(user+system) * 10 * time.Millisecond // a hundred ticks a second
	}
	return 0
}
