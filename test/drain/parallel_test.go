package drain_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
)

// observer counts the healthy pods of each app at every event of a watch of its
// own, and says where they were fewer than they may be.
type observer struct {
	mu      sync.Mutex
	healthy map[string]map[string]bool // app → pod
	least   map[string]int
	deleted map[string]int // uid → times its deletion was seen to begin
}

func (w *world) observe(t *testing.T) *observer {
	t.Helper()
	o := &observer{healthy: map[string]map[string]bool{}, least: map[string]int{}, deleted: map[string]int{}}
	list, err := w.kube.CoreV1().Pods(w.ns).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range list.Items {
		o.see(watch.Added, &p)
	}
	for app, pods := range o.healthy {
		o.least[app] = len(pods)
	}
	events, err := w.kube.CoreV1().Pods(w.ns).Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(events.Stop)
	go func() {
		for e := range events.ResultChan() {
			if p, ok := e.Object.(*corev1.Pod); ok {
				o.mu.Lock()
				o.see(e.Type, p)
				for app, pods := range o.healthy {
					o.least[app] = min(o.least[app], len(pods))
				}
				o.mu.Unlock()
			}
		}
	}()
	return o
}

func (o *observer) see(what watch.EventType, p *corev1.Pod) {
	app := p.Labels["app"]
	if o.healthy[app] == nil {
		o.healthy[app] = map[string]bool{}
	}
	if p.DeletionTimestamp != nil {
		o.deleted[string(p.UID)]++
	}
	if what == watch.Deleted || !podReady(*p) {
		delete(o.healthy[app], string(p.UID))
		return
	}
	o.healthy[app][string(p.UID)] = true
}

func TestParallelDrainsShareTheirBudgets(t *testing.T) {
	for name, c := range map[string]struct {
		nodes, apps, replicas, unavailable int
		grace                              time.Duration
	}{
		"20 nodes of 20 pods":                          {20, 20, 20, 2, 0},
		"8 nodes of 5 pods that shut down for a while": {8, 4, 10, 2, 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.nodes)
			var options []podOption
			if c.grace > 0 {
				options = append(options, finalized)
				w.endAfter(t, c.grace)
			}
			for i := range c.apps {
				w.deployment(t, fmt.Sprintf("app-%d", i), int32(c.replicas), options...)
			}
			for i := range c.apps {
				app := fmt.Sprintf("app-%d", i)
				w.running(t, app, c.replicas)
				w.budget(t, app, maxUnavailable(c.unavailable))
			}
			drained := w.nodes
			w.addNodes(t, 5)
			w.cordon(t, drained...)
			o := w.observe(t)
			counted := &wire{}
			d := w.drainer(t, w.client(t, counted.wrap))
			begun := time.Now()
			options2 := drain.Options{Timeout: seconds(0)}
			for _, n := range drained {
				d.Ensure(t.Context(), d.order(n, options2))
			}
			evicted := 0
			for _, n := range drained {
				st := d.until(t, n, options2, "drained", ended)
				evicted += st.Outcome.Evicted
				if st.Left != 0 || st.Outcome.Gone != 0 || len(w.on(t, n)) != 0 {
					t.Errorf("%s: %+v", n, st)
				}
			}
			pods, requests := counted.counts()
			t.Logf("%d pods evicted from %d nodes in %s; %d requests for %d pods: %.3f a pod; %d rings",
				evicted, len(drained), time.Since(begun).Round(100*time.Millisecond), requests, pods, float64(requests)/float64(max(evicted, 1)), d.rings.Load())
			if evicted != c.apps*c.replicas || float64(requests) > 1.2*float64(evicted) {
				t.Errorf("%d evicted, %d requests", evicted, requests)
			}
			if counted.lists != len(drained) {
				t.Errorf("%d requests for the pods of %d nodes", counted.lists, len(drained))
			}
			o.never(t, c.replicas-c.unavailable)
		})
	}
}

// never fails a test in which an app had fewer healthy pods at one time.
func (o *observer) never(t *testing.T, than int) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	for app, least := range o.least {
		if least < than {
			t.Errorf("%s had %d healthy pods at one time, %d must be", app, least, than)
		}
	}
}

// Two drainers that do not know of one another, as an agent and somebody's
// kubectl, take the room from under each other's feet.
func TestASecondDrainerFightsForTheSameBudget(t *testing.T) {
	w := newWorld(t, 4)
	w.deployment(t, "web", 24)
	w.running(t, "web", 24)
	w.budget(t, "web", maxUnavailable(2))
	drained := w.nodes
	w.addNodes(t, 2)
	w.cordon(t, drained...)
	o := w.observe(t)
	counted := &wire{}
	kube := w.client(t, counted.wrap)
	drainers := []*draining{w.drainer(t, kube), w.drainer(t, kube)}
	options := drain.Options{Timeout: seconds(0)}
	for i, n := range drained {
		drainers[i%2].Ensure(t.Context(), drainers[i%2].order(n, options))
	}
	evicted := 0
	for i, n := range drained {
		evicted += drainers[i%2].until(t, n, options, "drained", ended).Outcome.Evicted
	}
	_, requests := counted.counts()
	t.Logf("%d requests for %d pods", requests, evicted)
	if evicted != 24 || requests > 3*evicted {
		t.Errorf("%d requests for %d pods", requests, evicted)
	}
	o.never(t, 22)
}

// endAfter plays a pod that takes its time to shut down: it takes the finalizer
// away once a pod was being deleted for so long.
func (w *world) endAfter(t *testing.T, grace time.Duration) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() { w.unfinalize(); cancel() })
	first := map[types.UID]time.Time{}
	go func() {
		for ctx.Err() == nil {
			time.Sleep(100 * time.Millisecond)
			list, err := w.kube.CoreV1().Pods(w.ns).List(ctx, metav1.ListOptions{})
			if err != nil {
				continue
			}
			for _, p := range list.Items {
				if p.DeletionTimestamp == nil || len(p.Finalizers) == 0 {
					continue
				}
				if first[p.UID].IsZero() {
					first[p.UID] = time.Now()
				}
				if time.Since(first[p.UID]) > grace {
					_, _ = w.kube.CoreV1().Pods(w.ns).Patch(ctx, p.Name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
				}
			}
		}
	}()
}

func (w *world) unfinalize() {
	ctx := context.Background()
	_ = w.kube.AppsV1().Deployments(w.ns).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
	list, err := w.kube.CoreV1().Pods(w.ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	for _, p := range list.Items {
		_, _ = w.kube.CoreV1().Pods(w.ns).Patch(ctx, p.Name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	}
}

var _ http.RoundTripper = (*wire)(nil)
