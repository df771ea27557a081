package agent

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// crier takes notifications instead of a sink.
type crier struct {
	mu     sync.Mutex
	told   []string
	answer executors.Outcome
}

func (c *crier) Pass(_ context.Context, call executors.Call) executors.Outcome {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := call.Properties.(*plan.NotificationProperties)
	c.told = append(c.told, strings.Join(p.Sinks, ",")+": "+p.Title+": "+p.Message)
	return c.answer
}

func sinksOf(on ...plan.NotifyFor) plan.AgentConfig {
	return plan.AgentConfig{Notifications: plan.Notifications{On: on, Sinks: []plan.Sink{
		{Name: "ops", URLSecretRef: plan.SecretKeyRef{Name: "sinks", Key: "ops"}}, {Name: "dba", URLSecretRef: plan.SecretKeyRef{Name: "others", Key: "dba"}},
	}}}
}

// counted is how many messages ended so.
func counted(t *testing.T, h *herald, result string) float64 {
	t.Helper()
	families, err := h.config.metrics.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "maint_notifications_total" && m.GetLabel()[0].GetValue() == result {
				return m.GetCounter().GetValue()
			}
		}
	}
	return 0
}

func newTestHerald(c *crier, config plan.AgentConfig, dryRun bool) *herald {
	o := Options{
		Namespace: "maint-system", DryRun: dryRun, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		HTTPClient: func(plan.Outbound) *http.Client { return nil }, Executor: func(string) (executors.Executor, bool) { return c, true },
	}
	a := &Agent{options: o, log: o.Log, now: time.Now, metrics: newMetrics("v0")}
	a.fence = client.NewFence(time.Minute, time.Now)
	a.config = newConfig(o, a.metrics, a.fence)
	a.config.use(config)
	return newHerald(a)
}

func endedRun(dryRun bool) *liveRun {
	return &liveRun{object: &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Labels: map[string]string{annotations.LabelPlan: "orders"}}}, run: plan.Run{Name: "maint-run-orders-abc", Namespace: "shop", Plan: "orders", Request: plan.Request{DryRun: dryRun}}}
}

func TestWhatTheAgentTellsByItself(t *testing.T) {
	slot := time.Date(2026, 3, 1, 2, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		on     []plan.NotifyFor
		dryRun bool
		happen func(*herald)
		want   string // how its one message begins; empty: none
	}{
		"a run that failed":                {on: []plan.NotifyFor{"RunFailed"}, happen: func(h *herald) { h.ended(endedRun(false), plan.Journal{Phase: plan.RunFailed, Message: "step x"}) }, want: "Plan shop/orders failed: Run maint-run-orders-abc ("},
		"a run that succeeded":             {on: []plan.NotifyFor{"RunFailed", "RunSucceeded"}, happen: func(h *herald) { h.ended(endedRun(false), plan.Journal{Phase: plan.RunSucceeded}) }, want: "Plan shop/orders succeeded: "},
		"a run of which nobody wants word": {on: []plan.NotifyFor{"RunFailed"}, happen: func(h *herald) { h.ended(endedRun(false), plan.Journal{Phase: plan.RunSucceeded}) }},
		"a run that was aborted":           {on: []plan.NotifyFor{"RunFailed", "RunSucceeded"}, happen: func(h *herald) { h.ended(endedRun(false), plan.Journal{Phase: plan.RunAborted}) }},
		"a rehearsal":                      {on: []plan.NotifyFor{"RunFailed"}, happen: func(h *herald) { h.ended(endedRun(true), plan.Journal{Phase: plan.RunFailed}) }},
		"slots that were missed": {on: []plan.NotifyFor{"SlotMissed"}, happen: func(h *herald) {
			h.missed(types.NamespacedName{Namespace: "shop", Name: "orders"}, 3, plan.Entry{Slot: &slot, Reason: "Deadline"})
		}, want: "Plan shop/orders missed its slot: 3 slot(s) missed up to 2026-03-01T02:00:00Z: Deadline"},
		"a window that opens": {on: []plan.NotifyFor{"WindowOpening"}, happen: func(h *herald) {
			h.opens(types.NamespacedName{Namespace: "shop", Name: "weekends"}, schedule.Verdict{Permitted: true, Ready: true, Reason: "window Sat 22:00", Until: &slot})
		}, want: "Policy shop/weekends permits change: change is permitted until 2026-03-01T02:00:00Z (window Sat 22:00)"},
		"a drain that is blocked": {on: []plan.NotifyFor{"DrainBlocked"}, happen: func(h *herald) {
			h.blocked(types.NamespacedName{Name: "worker-1"}, "", "worker-1", "gpu: budget web allows none")
		}, want: "The drain of node worker-1 is blocked: gpu: budget web allows none"},
		"slots that an agent missed that only rehearses": {on: []plan.NotifyFor{"SlotMissed"}, dryRun: true, happen: func(h *herald) {
			h.missed(types.NamespacedName{Namespace: "shop", Name: "orders"}, 3, plan.Entry{Slot: &slot})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newTestHerald(&crier{}, sinksOf(c.on...), c.dryRun)
			c.happen(h)
			got := ""
			if len(h.waiting) > 0 {
				n := <-h.waiting
				got = n.title + ": " + n.words
			}
			if !strings.HasPrefix(got, c.want) || c.want == "" && got != "" || len(h.waiting) > 0 {
				t.Errorf("tells %q, want %q", got, c.want)
			}
		})
	}
}

func TestEverySinkIsToldAlsoWhenOneFails(t *testing.T) {
	c := &crier{answer: executors.Fail("Sink", "away")}
	h := newTestHerald(c, sinksOf(plan.NotifyRunFailed), false)
	h.tell(news{on: plan.NotifyRunFailed, about: types.NamespacedName{Namespace: "shop", Name: "orders"}, title: "a", words: "b"})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	ended := make(chan struct{})
	go func() { h.work(ctx); close(ended) }()
	for counted(t, h, "failed") < 2 && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	cancel()
	<-ended
	if diff := cmp.Diff([]string{"ops: a: b", "dba: a: b"}, c.told); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestNewsNeverWait(t *testing.T) {
	h := newTestHerald(&crier{}, sinksOf(plan.NotifyRunFailed), false)
	for range mostNews + 3 {
		h.tell(news{on: plan.NotifyRunFailed})
	}
	if got := counted(t, h, "dropped"); got != 3 || len(h.waiting) != mostNews {
		t.Errorf("%v dropped, %d wait", got, len(h.waiting))
	}
}

func TestWhereASinkHasItsURL(t *testing.T) {
	const secretURL = "slack://t0ken@channel"
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "maint-system", Name: "sinks"}, Data: map[string][]byte{"ops": []byte(secretURL + "\n"), "blank": []byte(" \n")}}
	for name, c := range map[string]struct {
		sink   string
		config plan.AgentConfig
		answer error // of the API server
		want   string
		fault  string // of the admin's
	}{
		"a URL and the line break behind it": {sink: "ops", config: sinksOf(), want: secretURL},
		"a name that is not configured":      {sink: "opps", config: sinksOf(), fault: `"opps": is not among spec.notifications.sinks of the AgentConfig; it names ops, dba`},
		"no configuration":                   {sink: "ops", fault: "it names none"},
		"no Secret":                          {sink: "dba", config: sinksOf(), fault: `"dba": its Secret maint-system/others is not there`},
		"no right": {
			sink: "ops", config: sinksOf(), answer: apierrors.NewForbidden(corev1.Resource("secrets"), "sinks", nil), fault: "grant it get on secrets there",
		},
		"a Secret without its key": {
			sink: "ops", fault: `holds no URL under the key "blank"`,
			config: plan.AgentConfig{Notifications: plan.Notifications{Sinks: []plan.Sink{{Name: "ops", URLSecretRef: plan.SecretKeyRef{Name: "sinks", Key: "blank"}}}}},
		},
		"an API server that is away": {sink: "ops", config: sinksOf(), answer: errors.New("connection refused")},
	} {
		t.Run(name, func(t *testing.T) {
			h := newTestHerald(&crier{}, c.config, false)
			kube := fake.NewClientset(secret)
			if c.answer != nil {
				kube.PrependReactor("get", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, c.answer })
			}
			h.config.kube = kube
			got, err := h.config.sink(t.Context(), c.sink)
			var fault *plan.SinkError
			if got != c.want || (err == nil) != (c.want != "") || errors.As(err, &fault) != (c.fault != "") || err != nil && !strings.Contains(err.Error(), c.fault) {
				t.Errorf("%q, %v, want %q %q", got, err, c.want, c.fault)
			}
		})
	}
}
