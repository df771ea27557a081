package drain_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
)

func TestAPodThatMovedIsLeftAlone(t *testing.T) {
	w := newWorld(t, 2)
	old, other := w.nodes[0], w.nodes[1]
	w.cordon(t, other)
	one := int32(1)
	_, err := w.kube.AppsV1().StatefulSets(w.ns).Create(t.Context(), &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "db"},
		Spec: appsv1.StatefulSetSpec{
			Replicas: &one, ServiceName: "db",
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}, Template: w.template("db"),
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w.running(t, "db", 1)
	w.unschedulable(t, false, other)
	w.cordon(t, old)
	// On the way of the first request, the pod moves.
	var moved types.UID
	broken := &wire{}
	kube := w.client(t, broken.wrap)
	broken.fault = func(_ *http.Request, _ string, n int, send func() (*http.Response, error)) (*http.Response, error) {
		if n == 1 {
			if err := w.kube.CoreV1().Pods(w.ns).Delete(context.Background(), "db-0", metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
			deadline := time.Now().Add(30 * time.Second)
			for time.Now().Before(deadline) {
				p, err := w.kube.CoreV1().Pods(w.ns).Get(context.Background(), "db-0", metav1.GetOptions{})
				if err == nil && p.Spec.NodeName == other && podReady(*p) {
					moved = p.UID
					break
				}
				time.Sleep(20 * time.Millisecond)
			}
		}
		return send()
	}
	d := w.drainer(t, kube)
	st := d.until(t, old, drain.Options{}, "drained", ended)
	p, err := w.kube.CoreV1().Pods(w.ns).Get(t.Context(), "db-0", metav1.GetOptions{})
	if err != nil || p.UID != moved || p.DeletionTimestamp != nil || st.Outcome.Evicted != 0 || st.Outcome.Gone != 1 {
		t.Errorf("%v %v (moved %s), %+v", err, p.UID, moved, st.Outcome)
	}
}

// status is an answer of an API server, or of what stands before it.
func status(code int, body string, header ...string) *http.Response {
	r := &http.Response{StatusCode: code, Header: http.Header{}, Body: http.NoBody}
	if body != "" {
		r.Body = readCloser{strings.NewReader(body)}
		r.Header.Set("Content-Type", "text/plain")
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return r
}

type readCloser struct{ *strings.Reader }

func (readCloser) Close() error { return nil }

func TestAnswersThatAreNoAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		fault    func(r *http.Request, _ string, n int, send func() (*http.Response, error)) (*http.Response, error)
		requests int
		least    time.Duration
	}{
		"429 of a busy server": {func(r *http.Request, _ string, n int, send func() (*http.Response, error)) (*http.Response, error) {
			if n == 1 {
				resp := status(http.StatusTooManyRequests, "too many requests, please try again later", "Retry-After", "2")
				resp.Request = r
				return resp, nil
			}
			return send()
		}, 2, 2 * time.Second},
		"503 twice": {func(r *http.Request, _ string, n int, send func() (*http.Response, error)) (*http.Response, error) {
			if n <= 2 {
				resp := status(http.StatusServiceUnavailable, "no endpoints")
				resp.Request = r
				return resp, nil
			}
			return send()
		}, 3, 0},
		"a connection that breaks before": {func(_ *http.Request, _ string, n int, send func() (*http.Response, error)) (*http.Response, error) {
			if n == 1 {
				return nil, errLost
			}
			return send()
		}, 2, 0},
		"an answer that is lost": {func(_ *http.Request, _ string, n int, send func() (*http.Response, error)) (*http.Response, error) {
			if n == 1 {
				if resp, err := send(); err == nil {
					_ = resp.Body.Close()
				}
				return nil, errLost
			}
			return send()
		}, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := crowded(t, 4)
			o := w.observe(t)
			broken := &wire{}
			kube := w.client(t, broken.wrap)
			broken.fault = c.fault
			d := w.drainer(t, kube)
			st := d.until(t, w.nodes[0], drain.Options{}, "drained", ended)
			pods, requests := broken.counts()
			took := time.Since(d.since)
			if st.Outcome.Evicted != 4 || pods != 4 || requests != 4*c.requests || took < c.least {
				t.Errorf("%d requests for %d pods in %s: %+v", requests, pods, took, st.Outcome)
			}
			o.mu.Lock()
			defer o.mu.Unlock()
			if o.least["web"] < 3 || len(o.deleted) != 4 {
				t.Errorf("%d healthy at one time; %d pods were deleted", o.least["web"], len(o.deleted))
			}
		})
	}
}

func TestAnAPIServerThatRestarts(t *testing.T) {
	w := crowded(t, 20)
	d := w.drainer(t, w.client(t, nil))
	o := drain.Options{Timeout: seconds(0)}
	d.until(t, w.nodes[0], o, "begun", func(st executors.DrainStatus) bool { return st.Evicted >= 3 })
	if err := w.RestartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	st := d.until(t, w.nodes[0], o, "drained", ended)
	if !st.Done || st.Outcome.Evicted+st.Outcome.Gone != 20 {
		t.Errorf("%+v", st)
	}
	t.Logf("%s", st.Message)
	w.running(t, "web", 20)
}

func TestAnotherDrainerGoesOn(t *testing.T) {
	w := crowded(t, 10)
	first := w.drainer(t, w.client(t, nil))
	st := first.until(t, w.nodes[0], drain.Options{}, "begun", func(st executors.DrainStatus) bool { return st.Evicted >= 2 })
	first.Stop(w.nodes[0], "test")
	second := w.drainer(t, w.client(t, nil))
	second.since = first.since
	after := second.until(t, w.nodes[0], drain.Options{}, "drained", ended)
	if !after.Done || after.Evicted >= 10 || after.Evicted+st.Evicted < 7 {
		t.Errorf("%+v then %+v", st.Outcome, after.Outcome)
	}
}

func TestABlockSaysWhatAndForHowLong(t *testing.T) {
	two := func(w *world, t *testing.T) {
		w.budget(t, "web", maxUnavailable(1))
		spec := maxUnavailable(1)
		spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
		_, err := w.kube.PolicyV1().PodDisruptionBudgets(w.ns).Create(t.Context(), &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "web-again"}, Spec: spec}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		w.computed(t, "web-again")
	}
	for name, c := range map[string]struct {
		setup     func(w *world, t *testing.T)
		permanent bool
		why       string
		mend      func(w *world, t *testing.T)
	}{
		"minAvailable is all": {func(w *world, t *testing.T) { w.budget(t, "web", minAvailable(2)) }, true, "minAvailable is 2, and there are 2 pods", (*world).dropBudgets},
		"nobody may leave":    {func(w *world, t *testing.T) { w.budget(t, "web", maxUnavailable(0)) }, true, "maxUnavailable is 0", (*world).dropBudgets},
		"two budgets":         {two, true, "more than one PodDisruptionBudget", (*world).dropBudgets},
		"a pod without budget or controller": {func(w *world, t *testing.T) {
			w.pod(t, "bare", onNode(w.nodes[0]))
			w.running(t, "bare", 1)
		}, true, "Pods that declare no controller (use --force to override)", func(w *world, t *testing.T) {
			if err := w.kube.CoreV1().Pods(w.ns).Delete(t.Context(), "bare", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 2)
			w.cordon(t, w.nodes[1])
			w.deployment(t, "web", 2)
			w.running(t, "web", 2)
			c.setup(w, t)
			w.unschedulable(t, false, w.nodes[1])
			w.cordon(t, w.nodes[0])
			counted := &wire{}
			d := w.drainer(t, w.client(t, counted.wrap))
			st := d.until(t, w.nodes[0], drain.Options{}, "blocked", blocked)
			b := st.Blocks[0]
			if b.Permanent != c.permanent || !strings.Contains(b.Why, c.why) || b.Remedy == "" || b.Count == 0 {
				t.Errorf("%+v", st)
			}
			if _, requests := counted.counts(); requests != 0 {
				t.Errorf("%d requests though it was known", requests)
			}
			t.Log(st.Message)
			c.mend(w, t)
			d.until(t, w.nodes[0], drain.Options{}, "drained", ended)
		})
	}
}

func (w *world) dropBudgets(t *testing.T) {
	t.Helper()
	if err := w.kube.PolicyV1().PodDisruptionBudgets(w.ns).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestWhenTimeIsOver(t *testing.T) {
	for name, c := range map[string]struct {
		options drain.Options
		is      func(executors.DrainStatus) bool
		check   func(executors.DrainStatus) bool
		there   int
	}{
		"retry goes on, late":   {drain.Options{Timeout: seconds(1)}, func(st executors.DrainStatus) bool { return st.Late }, func(st executors.DrainStatus) bool { return !st.Done && st.Left == 2 && len(st.Blocks) == 1 }, 2},
		"skip leaves them":      {drain.Options{Timeout: seconds(2), OnTimeout: drain.TimeoutSkip}, ended, func(st executors.DrainStatus) bool { return st.Done && st.Outcome.Left == 2 && st.Outcome.Evicted == 2 }, 2},
		"force deletes them":    {drain.Options{Timeout: seconds(2), OnTimeout: drain.TimeoutForce}, ended, func(st executors.DrainStatus) bool { return st.Done && st.Outcome.Forced == 2 && st.Outcome.Left == 0 }, 0},
		"abort gives up":        {drain.Options{Timeout: seconds(2), OnTimeout: drain.TimeoutAbort}, ended, func(st executors.DrainStatus) bool { return st.Aborted && st.Outcome.Left == 2 }, 2},
		"a pod that is skipped": {drain.Options{PodTimeout: seconds(1), OnTimeout: drain.TimeoutSkip}, ended, func(st executors.DrainStatus) bool { return st.Done && st.Outcome.Left == 2 && st.Outcome.Evicted == 2 }, 2},
		"a pod that is forced":  {drain.Options{PodTimeout: seconds(1), OnTimeout: drain.TimeoutForce}, ended, func(st executors.DrainStatus) bool { return st.Done && st.Outcome.Forced == 2 }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 2)
			w.cordon(t, w.nodes[1])
			w.deployment(t, "stuck", 2)
			w.deployment(t, "web", 2)
			w.running(t, "stuck", 2)
			w.running(t, "web", 2)
			w.budget(t, "stuck", maxUnavailable(0))
			w.unschedulable(t, false, w.nodes[1])
			w.cordon(t, w.nodes[0])
			d := w.drainer(t, w.client(t, nil))
			st := d.until(t, w.nodes[0], c.options, "ended", c.is)
			there := w.on(t, w.nodes[0])
			if !c.check(st) || len(there) != c.there {
				t.Errorf("there %v: %+v", there, st)
			}
			t.Log(st.Message)
		})
	}
}

func TestOrderGroups(t *testing.T) {
	w := newWorld(t, 1)
	w.endAfter(t, 300*time.Millisecond)
	for _, g := range []string{"-1", "0", "5"} {
		options := []podOption{finalized}
		if g != "0" {
			options = append(options, annotated("maint.dev/drain-order", g))
		}
		w.deployment(t, "g"+g, 3, options...)
		w.running(t, "g"+g, 3)
	}
	w.addNodes(t, 1)
	w.cordon(t, w.nodes[0])
	events, err := w.kube.CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=" + w.nodes[0]})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	d := w.drainer(t, w.client(t, nil))
	d.until(t, w.nodes[0], drain.Options{}, "drained", ended)
	var order []string
	for len(order) < 18 {
		e := <-events.ResultChan()
		p, ok := e.Object.(*corev1.Pod)
		if !ok {
			continue
		}
		name := strings.SplitN(p.Name, "-", 3)[0] + p.Annotations["maint.dev/drain-order"]
		begins := p.DeletionTimestamp != nil && e.Type == "MODIFIED" && len(p.Finalizers) > 0 && !slices.Contains(order, "begin "+p.Name)
		switch {
		case begins:
			order = append(order, "begin "+p.Name)
		case e.Type == "DELETED":
			order = append(order, "end "+p.Name)
		}
		_ = name
	}
	group := func(s string) int {
		return slices.IndexFunc([]string{"g-1", "g0", "g5"}, func(g string) bool { return strings.Contains(s, g) })
	}
	for i := 1; i < len(order); i++ {
		if group(order[i]) < group(order[i-1]) {
			t.Errorf("out of order: %v", order)
			break
		}
	}
}

func TestPodsThatAreWaitedForAndPodsThatStay(t *testing.T) {
	w := newWorld(t, 1)
	n := w.nodes[0]
	w.pod(t, "job", onNode(n), annotated("maint.dev/drain", "wait-completed"))
	w.pod(t, "stays", onNode(n), annotated("maint.dev/drain", "skip"))
	w.pod(t, "capi", onNode(n), func(p *corev1.PodTemplateSpec) { p.Labels["cluster.x-k8s.io/drain"] = "Skip" })
	w.deployment(t, "web", 1)
	w.running(t, "web", 1)
	w.addNodes(t, 1)
	w.cordon(t, n)
	d := w.drainer(t, w.client(t, nil))
	st := d.until(t, n, drain.Options{}, "waiting", func(st executors.DrainStatus) bool { return st.Evicted == 1 })
	if st.Done || st.Left != 1 {
		t.Errorf("%+v", st)
	}
	w.phase(t, "job", corev1.PodSucceeded)
	st = d.until(t, n, drain.Options{}, "drained", ended)
	if there := w.on(t, n); len(there) != 3 || st.Outcome.Skipped != 3 || st.Outcome.Evicted != 1 {
		t.Errorf("there %v: %+v", there, st.Outcome)
	}
}

func TestPodsThatKeepComingBack(t *testing.T) {
	w := newWorld(t, 1)
	n := w.nodes[0]
	w.deployment(t, "back", 2, tolerant, selecting(corev1.LabelHostname, n))
	w.running(t, "back", 2)
	w.cordon(t, n)
	counted := &wire{}
	d := w.drainer(t, w.client(t, counted.wrap))
	st := d.until(t, n, drain.Options{}, "drained", ended)
	if _, requests := counted.counts(); !st.Done || st.Outcome.Left != 2 || st.Outcome.Evicted != 4 || requests != 4 {
		t.Errorf("%d requests: %+v", requests, st.Outcome)
	}
	if !strings.Contains(fmt.Sprint(st.Outcome.LeftPods), "came back to this node 2 times") {
		t.Errorf("%+v", st.Outcome.LeftPods)
	}
}
