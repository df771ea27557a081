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

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

// BenchmarkWrites measures what the policies cost: the same patches, a few at a time,
// with the policies and without. See docs/admission.md.
func BenchmarkWrites(b *testing.B) {
	if err := world.start(); err != nil {
		b.Fatal(err)
	}
	ctx := context.Background()
	ns := world.cluster.Namespace(b)
	must := func(err error) {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
	}
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "bench"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"}, Subjects: subject(editor())}
	_, err := world.admin.RbacV1().RoleBindings(ns).Create(ctx, binding, metav1.CreateOptions{})
	must(err)
	must(world.may(ctx, editor(), ns, "write", "maint.dev", "plans", "x"))
	for _, policies := range []struct {
		name string
		turn func(context.Context) error
	}{{"off", world.switchOff}, {"on", world.switchOn}} {
		must(policies.turn(ctx))
		for _, w := range []writes{
			{"ordinary-ConfigMap", plain(""), editor(), `{"data":{"a":"%d"}}`},
			{"plan", document(annotations.KindPlan, ""), editor(), `{"data":{"plan.yaml":"%d"}}`},
			{"intent", document(annotations.KindPlan, ""), editor(), `{"metadata":{"annotations":{"maint.dev/trigger":"%d"}}}`},
			{"journal-by-the-agent", document(annotations.KindRun, ""), agent(), `{"data":{"journal.json":"%d"}}`},
		} {
			b.Run(w.what+"/policies-"+policies.name, func(b *testing.B) { w.measure(ctx, b, ns) })
		}
		b.Run("node-status-by-its-kubelet/policies-"+policies.name, func(b *testing.B) { heartbeats(ctx, b) })
	}
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
