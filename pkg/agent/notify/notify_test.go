package notify

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agentconfig"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// fakeExecutor takes notifications instead of a sink.
type fakeExecutor struct {
	mu     sync.Mutex
	told   []string
	answer executors.Outcome
}

func (c *fakeExecutor) Pass(_ context.Context, call executors.Call) executors.Outcome {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := call.Properties.(*plan.NotificationProperties)
	if !call.Own {
		c.told = append(c.told, "in the name of a plan")
	}
	c.told = append(c.told, strings.Join(p.Sinks, ",")+": "+p.Title+": "+p.Message)
	return c.answer
}

func sinksOf(on ...agentconfig.NotifyFor) agentconfig.AgentConfig {
	return agentconfig.AgentConfig{Notifications: agentconfig.Notifications{On: on, Sinks: []agentconfig.Sink{
		{Name: "ops", URLSecretRef: document.SecretKeyRef{Name: "sinks", Key: "ops"}}, {Name: "dba", URLSecretRef: document.SecretKeyRef{Name: "others", Key: "dba"}},
	}}}
}

// testNotifier is a notifier with what it has counted.
type testNotifier struct {
	*Notifier
	registry *prometheus.Registry
}

// counted is how many messages ended so.
func counted(t *testing.T, h testNotifier, result string) float64 {
	t.Helper()
	families, err := h.registry.Gather()
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

func newTestNotifier(c *fakeExecutor, config agentconfig.AgentConfig, dryRun bool) testNotifier {
	registry := prometheus.NewRegistry()
	h := New(Config{
		Settings: func() agentconfig.Notifications { return config.Notifications }, DryRun: dryRun, Log: slog.New(slog.DiscardHandler), Now: time.Now,
		Executor: func(string) (executors.Executor, bool) { return c, true }, Fence: func() error { return nil }, Register: func(c prometheus.Collector) { registry.MustRegister(c) },
	})
	return testNotifier{h, registry}
}

func endedRun(dryRun bool) run.Run {
	return run.Run{Name: "maint-run-orders-abc", Namespace: "shop", Plan: "orders", Request: run.Request{DryRun: dryRun}}
}

func TestWhatTheAgentTellsByItself(t *testing.T) {
	slot := time.Date(2026, 3, 1, 2, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		on     []agentconfig.NotifyFor
		dryRun bool
		happen func(testNotifier)
		want   string // how its one message begins; empty: none
	}{
		"a run that failed": {on: []agentconfig.NotifyFor{"RunFailed"}, happen: func(h testNotifier) {
			h.RunEnded(types.NamespacedName{Namespace: "shop", Name: "orders"}, endedRun(false), run.Journal{Phase: run.Failed, Message: "step x"})
		}, want: "Plan shop/orders failed: Run maint-run-orders-abc ("},
		"a run that succeeded": {on: []agentconfig.NotifyFor{"RunFailed", "RunSucceeded"}, happen: func(h testNotifier) {
			h.RunEnded(types.NamespacedName{Namespace: "shop", Name: "orders"}, endedRun(false), run.Journal{Phase: run.Succeeded})
		}, want: "Plan shop/orders succeeded: "},
		"a run of which nobody wants word": {on: []agentconfig.NotifyFor{"RunFailed"}, happen: func(h testNotifier) {
			h.RunEnded(types.NamespacedName{Namespace: "shop", Name: "orders"}, endedRun(false), run.Journal{Phase: run.Succeeded})
		}},
		"a run that was aborted": {on: []agentconfig.NotifyFor{"RunFailed", "RunSucceeded"}, happen: func(h testNotifier) {
			h.RunEnded(types.NamespacedName{Namespace: "shop", Name: "orders"}, endedRun(false), run.Journal{Phase: run.Aborted})
		}},
		"a rehearsal": {on: []agentconfig.NotifyFor{"RunFailed"}, happen: func(h testNotifier) {
			h.RunEnded(types.NamespacedName{Namespace: "shop", Name: "orders"}, endedRun(true), run.Journal{Phase: run.Failed})
		}},
		"slots that were missed": {on: []agentconfig.NotifyFor{"SlotMissed"}, happen: func(h testNotifier) {
			h.SlotMissed(types.NamespacedName{Namespace: "shop", Name: "orders"}, ledger.Entry{Count: 3, Slot: &slot, Reason: "Deadline"})
		}, want: "Plan shop/orders missed its slot: 3 slot(s) missed up to 2026-03-01T02:00:00Z: Deadline"},
		"a slot whose run waited in vain": {on: []agentconfig.NotifyFor{"SlotMissed", "RunFailed"}, happen: func(h testNotifier) {
			r := endedRun(false)
			r.Request.Slot = &slot
			h.RunEnded(types.NamespacedName{Namespace: "shop", Name: "orders"}, r, run.Journal{Phase: run.Aborted, Message: "waited for its window", End: &run.End{Phase: run.Aborted, Result: run.Missed, Reason: "window"}})
		}, want: "Plan shop/orders missed its slot: 1 slot(s) missed up to 2026-03-01T02:00:00Z: window (waited for its window)"},
		"a slot whose run waited, and was skipped": {on: []agentconfig.NotifyFor{"SlotMissed", "RunFailed"}, happen: func(h testNotifier) {
			r := endedRun(false)
			r.Request.Slot = &slot
			h.RunEnded(types.NamespacedName{Namespace: "shop", Name: "orders"}, r, run.Journal{Phase: run.Aborted, End: &run.End{Phase: run.Aborted, Result: run.Skipped, Reason: "skip"}})
		}},
		"what a function said in lines of its own": {on: []agentconfig.NotifyFor{"DrainBlocked"}, happen: func(h testNotifier) {
			h.DrainBlocked(types.NamespacedName{Name: "worker-1"}, "", "worker-1", "no\nPlan shop/other failed\r\n  help")
		}, want: "The drain of node worker-1 is blocked: no; Plan shop/other failed; help"},
		"a window that opens": {on: []agentconfig.NotifyFor{"WindowOpening"}, happen: func(h testNotifier) {
			h.WindowOpens(types.NamespacedName{Namespace: "shop", Name: "weekends"}, "change is permitted until 2026-03-01T02:00:00Z (window Sat 22:00)")
		}, want: "Policy shop/weekends permits change: change is permitted until 2026-03-01T02:00:00Z (window Sat 22:00)"},
		"a drain that is blocked": {on: []agentconfig.NotifyFor{"DrainBlocked"}, happen: func(h testNotifier) {
			h.DrainBlocked(types.NamespacedName{Name: "worker-1"}, "", "worker-1", "gpu: budget web allows none")
		}, want: "The drain of node worker-1 is blocked: gpu: budget web allows none"},
		"slots that an agent missed that only rehearses": {on: []agentconfig.NotifyFor{"SlotMissed"}, dryRun: true, happen: func(h testNotifier) {
			h.SlotMissed(types.NamespacedName{Namespace: "shop", Name: "orders"}, ledger.Entry{Count: 3, Slot: &slot})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newTestNotifier(&fakeExecutor{}, sinksOf(c.on...), c.dryRun)
			c.happen(h)
			got := ""
			if len(h.queue)+len(h.own) > 0 {
				n, _ := h.next(t.Context())
				got = n.title + ": " + n.text
			}
			if !strings.HasPrefix(got, c.want) || c.want == "" && got != "" || len(h.queue)+len(h.own) > 0 {
				t.Errorf("tells %q, want %q", got, c.want)
			}
		})
	}
}

func TestEverySinkIsToldAlsoWhenOneFails(t *testing.T) {
	c := &fakeExecutor{answer: executors.Fail("Sink", "away")}
	h := newTestNotifier(c, sinksOf(agentconfig.NotifyRunFailed), false)
	h.enqueue(message{on: agentconfig.NotifyRunFailed, about: types.NamespacedName{Namespace: "shop", Name: "orders"}, title: "a", text: "b"})
	runUntil(t, h, "failed", 2)
	if diff := cmp.Diff([]string{"ops: a: b", "dba: a: b"}, c.told); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatIsBeyondTheQuotaOfItsNamespaceIsDropped(t *testing.T) {
	c := &fakeExecutor{answer: executors.Outcome{State: executors.NotYet, Reason: "Quota"}}
	h := newTestNotifier(c, sinksOf(agentconfig.NotifyRunFailed), false)
	h.enqueue(message{on: agentconfig.NotifyRunFailed, about: types.NamespacedName{Namespace: "shop", Name: "orders"}})
	runUntil(t, h, "dropped", 2)
	if got := counted(t, h, "failed"); got != 0 || len(c.told) != 2 {
		t.Errorf("%v count as failed, of %d", got, len(c.told))
	}
}

func TestNewsNeverWait(t *testing.T) {
	h := newTestNotifier(&fakeExecutor{}, sinksOf(agentconfig.NotifyRunFailed), false)
	for i := range queueLength + 3 {
		h.enqueue(message{on: agentconfig.NotifyRunFailed, about: types.NamespacedName{Namespace: fmt.Sprint("team-", i%6), Name: "p"}})
	}
	if got := counted(t, h, "dropped"); got != 3 || len(h.queue) != queueLength {
		t.Errorf("%v dropped, %d wait", got, len(h.queue))
	}
}

func TestANamespaceTakesNoOtherOnesPlace(t *testing.T) {
	c := &fakeExecutor{answer: executors.Outcome{State: executors.Done}}
	config := sinksOf(agentconfig.NotifyRunFailed)
	config.Notifications.Sinks = config.Notifications.Sinks[:1]
	h := newTestNotifier(c, config, false)
	says := func(namespace, title string) {
		h.enqueue(message{on: agentconfig.NotifyRunFailed, about: types.NamespacedName{Namespace: namespace, Name: "p"}, title: title})
	}
	for i := range 3 * namespaceQueue {
		says("loud", fmt.Sprint("loud ", i))
	}
	says("shop", "shop")
	for range queueLength {
		says("", "node")
	}
	if got := counted(t, h, "dropped"); got != 2*namespaceQueue {
		t.Errorf("%v were dropped, not %d", got, 2*namespaceQueue)
	}
	runUntil(t, h, "sent", queueLength+namespaceQueue+1)
	first := slices.Index(c.told, "ops: loud 0: ")
	if first != queueLength || c.told[len(c.told)-1] != "ops: shop: " {
		t.Errorf("the first of the loud namespace went out as number %d, the last was %q", first, c.told[len(c.told)-1])
	}
	says("loud", "again")
	if got := counted(t, h, "dropped"); got != 2*namespaceQueue {
		t.Error("what was sent still takes its namespace's place")
	}
}

// runUntil has a notifier run until as many messages have that result.
func runUntil(t *testing.T, h testNotifier, result string, messages float64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	ended := make(chan struct{})
	go func() { h.Run(ctx); close(ended) }()
	for counted(t, h, result) < messages && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	cancel()
	<-ended
}

func TestASinkTakesMessagesOfItsNamespaces(t *testing.T) {
	c := &fakeExecutor{answer: executors.Outcome{State: executors.Done}}
	h := newTestNotifier(c, agentconfig.AgentConfig{Notifications: agentconfig.Notifications{
		On: []agentconfig.NotifyFor{agentconfig.NotifyRunFailed}, Sinks: []agentconfig.Sink{{Name: "shop", Namespaces: []string{"shop"}}, {Name: "all"}},
	}}, false)
	for _, namespace := range []string{"shop", "other", ""} {
		h.enqueue(message{on: agentconfig.NotifyRunFailed, about: types.NamespacedName{Namespace: namespace, Name: "p"}, title: "of " + namespace})
	}
	runUntil(t, h, "sent", 4)
	slices.Sort(c.told)
	if diff := cmp.Diff([]string{"all: of : ", "all: of other: ", "all: of shop: ", "shop: of shop: "}, c.told); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
