package agent

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
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

// testHerald is a notifier with what it has counted.
type testHerald struct {
	*herald
	registry *prometheus.Registry
}

// counted is how many messages ended so.
func counted(t *testing.T, h testHerald, result string) float64 {
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

func newTestHerald(c *crier, config plan.AgentConfig, dryRun bool) testHerald {
	registry := prometheus.NewRegistry()
	h := newHerald(heraldConfig{
		Settings: func() plan.Notifications { return config.Notifications }, DryRun: dryRun, Log: slog.New(slog.DiscardHandler), Now: time.Now,
		Executor: func(string) (executors.Executor, bool) { return c, true }, Fence: func() error { return nil }, Register: func(c prometheus.Collector) { registry.MustRegister(c) },
	})
	return testHerald{h, registry}
}

func endedRun(dryRun bool) plan.Run {
	return plan.Run{Name: "maint-run-orders-abc", Namespace: "shop", Plan: "orders", Request: plan.Request{DryRun: dryRun}}
}

func TestWhatTheAgentTellsByItself(t *testing.T) {
	slot := time.Date(2026, 3, 1, 2, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		on     []plan.NotifyFor
		dryRun bool
		happen func(testHerald)
		want   string // how its one message begins; empty: none
	}{
		"a run that failed": {on: []plan.NotifyFor{"RunFailed"}, happen: func(h testHerald) {
			h.ended(types.NamespacedName{Namespace: "shop", Name: "orders"}, endedRun(false), plan.Journal{Phase: plan.RunFailed, Message: "step x"})
		}, want: "Plan shop/orders failed: Run maint-run-orders-abc ("},
		"a run that succeeded": {on: []plan.NotifyFor{"RunFailed", "RunSucceeded"}, happen: func(h testHerald) {
			h.ended(types.NamespacedName{Namespace: "shop", Name: "orders"}, endedRun(false), plan.Journal{Phase: plan.RunSucceeded})
		}, want: "Plan shop/orders succeeded: "},
		"a run of which nobody wants word": {on: []plan.NotifyFor{"RunFailed"}, happen: func(h testHerald) {
			h.ended(types.NamespacedName{Namespace: "shop", Name: "orders"}, endedRun(false), plan.Journal{Phase: plan.RunSucceeded})
		}},
		"a run that was aborted": {on: []plan.NotifyFor{"RunFailed", "RunSucceeded"}, happen: func(h testHerald) {
			h.ended(types.NamespacedName{Namespace: "shop", Name: "orders"}, endedRun(false), plan.Journal{Phase: plan.RunAborted})
		}},
		"a rehearsal": {on: []plan.NotifyFor{"RunFailed"}, happen: func(h testHerald) {
			h.ended(types.NamespacedName{Namespace: "shop", Name: "orders"}, endedRun(true), plan.Journal{Phase: plan.RunFailed})
		}},
		"slots that were missed": {on: []plan.NotifyFor{"SlotMissed"}, happen: func(h testHerald) {
			h.missed(types.NamespacedName{Namespace: "shop", Name: "orders"}, 3, plan.Entry{Slot: &slot, Reason: "Deadline"})
		}, want: "Plan shop/orders missed its slot: 3 slot(s) missed up to 2026-03-01T02:00:00Z: Deadline"},
		"a window that opens": {on: []plan.NotifyFor{"WindowOpening"}, happen: func(h testHerald) {
			h.opens(types.NamespacedName{Namespace: "shop", Name: "weekends"}, "change is permitted until 2026-03-01T02:00:00Z (window Sat 22:00)")
		}, want: "Policy shop/weekends permits change: change is permitted until 2026-03-01T02:00:00Z (window Sat 22:00)"},
		"a drain that is blocked": {on: []plan.NotifyFor{"DrainBlocked"}, happen: func(h testHerald) {
			h.blocked(types.NamespacedName{Name: "worker-1"}, "", "worker-1", "gpu: budget web allows none")
		}, want: "The drain of node worker-1 is blocked: gpu: budget web allows none"},
		"slots that an agent missed that only rehearses": {on: []plan.NotifyFor{"SlotMissed"}, dryRun: true, happen: func(h testHerald) {
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
