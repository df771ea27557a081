package policies

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/gates"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/notify"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/queue"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/status"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/agentconfig"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/informer"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// world is a cluster with policies and calendars, and an agent that publishes what they
// say.
type world struct {
	*testing.T
	api *agenttest.Cluster
	*Controller
	queue *queue.Queue

	mu      sync.Mutex
	changed int
	sent    []string
	before  *document.Duration // how long ahead sinks are told
	least   *agentconfig.MinimumWindow
	pause   schedule.Pause // of the whole cluster
}

const shop = "shop"

func play(t *testing.T, story func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, api: agenttest.New(t)}
		w.api.Put(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: shop}})
		stop := w.begins()
		defer stop()
		story(w)
	})
}

func (w *world) begins() (stop func()) {
	conn, accounts := w.api.Connect()
	log := slog.New(slog.DiscardHandler)
	docs := agenttest.ConfigMaps(conn, annotations.LabelKind+" in ("+annotations.KindPolicy+","+annotations.KindCalendar+","+annotations.KindGate+")", store.Strip)
	namespaces := agenttest.Metadata(conn, "namespaces", store.Strip)
	newQueue := func(name string) *queue.Queue {
		return queue.New(queue.Config{Name: name, Now: time.Now, Log: log, OnPanic: func() { w.Error("a panic") }})
	}
	w.queue = newQueue("policies")
	book, gated := store.NewGates("maint-system"), newQueue("gates")
	documents := store.NewDocuments(docs, namespaces, store.FreshConfig{Kube: conn.Kube, Meta: conn.Meta, Namespace: "maint-system", Now: time.Now, Backlog: w.queue.Len, Plans: func() int { return 0 }})
	told := notify.New(notify.Config{
		Settings: func() agentconfig.Notifications {
			return agentconfig.Notifications{Before: w.before, On: []agentconfig.NotifyFor{agentconfig.NotifyWindowOpening}, Sinks: []agentconfig.Sink{{Name: "ops"}}}
		},
		Executor: func(string) (executors.Executor, bool) { return sink{world: w}, true }, Log: log, Now: time.Now, Register: func(prometheus.Collector) {},
	})
	w.Controller = New(Config{
		Documents: documents, Plans: store.NewPlans(), Store: book, Status: status.NewWriter(conn.Kube, &agenttest.Events{}), Notify: told, Enqueue: w.queue.Add,
		Gates: gates.New(gates.Config{
			Clients: gates.Clients{Kube: conn.Kube, Accounts: accounts, ClockDoubt: func() string { return "" }}, Stores: gates.Stores{Documents: documents, Gates: book, Keys: agenttest.Keys()},
			Queue: gated, Policies: w.queue, Events: &agenttest.Events{}, Log: log, Now: time.Now,
		}),
		Changed: func(string) { w.mu.Lock(); defer w.mu.Unlock(); w.changed++ }, Now: time.Now,
		Pause: func() schedule.Pause { w.mu.Lock(); defer w.mu.Unlock(); return w.pause },
		MinimumWindow: func() *agentconfig.MinimumWindow {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.least
		},
	})
	docs.Handle(func(o any) {
		if cm := o.(*corev1.ConfigMap); cm.Labels[annotations.LabelKind] == annotations.KindGate {
			w.GatesSeen(cm)
		} else {
			w.Observe(cm)
		}
	}, func(o any) {
		if cm := o.(*corev1.ConfigMap); cm.Labels[annotations.LabelKind] == annotations.KindGate {
			w.GatesLost(cm)
		} else {
			w.Lost(cm)
		}
	})
	namespaces.Handle(func(any) {}, func(any) {})
	ctx, cancel := context.WithCancel(w.Context())
	var group sync.WaitGroup
	for _, c := range []*informer.Cache{docs, namespaces} {
		group.Go(func() { c.Informer.RunWithContext(ctx) })
	}
	if !cache.WaitForCacheSync(ctx.Done(), docs.Synced, namespaces.Synced) {
		w.Fatal("the caches do not fill")
	}
	group.Go(func() { w.queue.Work(ctx, 1, w.reconcile) })
	group.Go(func() { w.Gates.Run(ctx) })
	group.Go(func() { told.Run(ctx) })
	return func() {
		cancel()
		group.Wait()
	}
}

func (w *world) reconcile(ctx context.Context, k types.NamespacedName) (time.Time, error) {
	cm := w.Documents.Any(k)
	switch {
	case cm == nil:
		return w.Gates.Reconcile(ctx, k, nil)
	case cm.Labels[annotations.LabelKind] == annotations.KindPolicy:
		return w.ReconcilePolicy(ctx, k, cm)
	}
	return time.Time{}, w.ReconcileCalendar(ctx, k, cm)
}

// sink is where notifications go.
type sink struct {
	executors.Executor
	world *world
}

// Pass is executors.Executor's.
func (s sink) Pass(_ context.Context, call executors.Call) executors.Outcome {
	s.world.mu.Lock()
	defer s.world.mu.Unlock()
	s.world.sent = append(s.world.sent, call.Properties.(*plan.NotificationProperties).Title)
	return executors.Outcome{State: executors.Done}
}

func (w *world) after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (w *world) put(kind, name, key, text string, on map[string]string) {
	w.api.Put(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: name, Labels: map[string]string{annotations.LabelKind: kind}, Annotations: on}, Data: map[string]string{key: text},
	})
}

func (w *world) policy(name, spec string, on map[string]string) {
	w.put(annotations.KindPolicy, name, annotations.DataPolicy, "apiVersion: maint.dev/v1alpha1\nkind: Policy\nspec: "+spec+"\n", on)
}

func (w *world) said(name, annotation string) string {
	return w.api.ConfigMap(shop, name).Annotations[annotation]
}

// conditions are "Type Status Reason" of a document's conditions.
func (w *world) conditions(name string) []string {
	w.Helper()
	var list []metav1.Condition
	if err := json.Unmarshal([]byte(w.said(name, annotations.StatusConditions)), &list); err != nil {
		w.Fatal(err)
	}
	var out []string
	for _, c := range list {
		out = append(out, c.Type+" "+string(c.Status)+" "+c.Reason)
	}
	return out
}

// The world begins at midnight, on a Saturday.
const nights = "{strategy: MaintenanceSchedule, maintenanceSchedule: {timezone: UTC, windows: [{days: [Sat], start: '01:00', end: '02:00'}]}}"

func TestWhatAPolicySays(t *testing.T) {
	for name, c := range map[string]struct {
		spec       string
		on         map[string]string
		permitted  string
		message    string
		conditions []string
	}{
		"one that permits change": {
			spec: "{strategy: Permissive}", permitted: "true", message: "change is permitted",
			conditions: []string{"Valid True Understood", "Ready True Ready", "ChangesRestricted False Permissive"},
		},
		"one that does not": {
			spec: "{strategy: Restrictive}", permitted: "false", message: "change is not permitted",
			conditions: []string{"Valid True Understood", "Ready True Ready", "ChangesRestricted True Restrictive"},
		},
		"one whose window is to come": {
			spec: nights, permitted: "false", message: "change is not permitted until 2000-01-01T01:00:00Z",
			conditions: []string{"Valid True Understood", "Ready True Ready", "ChangesRestricted True Restrictive"},
		},
		"one that is paused": {
			spec: "{strategy: Permissive}", on: map[string]string{annotations.Pause: "2000-01-01T03:00:00Z"}, permitted: "false", message: "until 2000-01-01T03:00:00Z",
			conditions: []string{"Valid True Understood", "Ready True Ready", "ChangesRestricted True Restrictive"},
		},
		"one that cannot be read": {
			spec: "{strategy: Sometimes}", permitted: "false", message: "change is not permitted",
			conditions: []string{"Valid False Faults", "Ready False NotReady", "ChangesRestricted True Restrictive"},
		},
		"one whose calendar is missing": {
			spec: "{strategy: MaintenanceSchedule, maintenanceSchedule: {timezone: UTC, windows: [{start: '00:00', end: '24:00'}], exclude: [{calendar: {name: none}}]}}", permitted: "false", message: "none",
			conditions: []string{"Valid True Understood", "Ready False NotReady", "ChangesRestricted True Restrictive"},
		},
		"one whose stanza is not understood says so": {
			spec: "{strategy: Permissive}", on: map[string]string{annotations.ChangeStrategy: "Sometimes"}, permitted: "false", message: annotations.ChangeStrategy,
			conditions: []string{"Valid True Understood", "Ready False NotReady", "ChangesRestricted True Restrictive"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(w *world) {
				w.policy("nights", c.spec, c.on)
				w.after(2 * time.Second)
				if got, message := w.said("nights", annotations.StatusPermitted), w.said("nights", annotations.StatusMessage); got != c.permitted || !strings.Contains(message, c.message) {
					w.Errorf("permitted %q: %s", got, message)
				}
				if diff := cmp.Diff(c.conditions, w.conditions("nights")); diff != "" {
					w.Errorf("-want +got:\n%s", diff)
				}
				w.api.ClearLog()
				w.queue.Add(types.NamespacedName{Namespace: shop, Name: "nights"})
				w.after(10 * time.Minute)
				if got := w.api.Log(); len(got) > 0 {
					w.Errorf("writes although nothing changed: %q", got)
				}
			})
		})
	}
}

// What is published, and what metrics show, is what check says of a policy.
func TestAPolicyPermitsNothingWhileTheWholeClusterIsPaused(t *testing.T) {
	at := func(hour int) *time.Time { return new(time.Date(2000, 1, 1, hour, 0, 0, 0, time.UTC)) }
	cluster := func(until *time.Time) schedule.Pause {
		return schedule.Pause{On: true, Until: until, Of: "the whole cluster", By: " by jane: CHG-1"}
	}
	const paused, opens = "change is not permitted (the whole cluster is paused by jane: CHG-1)", "change is permitted"
	for name, c := range map[string]struct {
		spec          string
		on            map[string]string
		pause         schedule.Pause
		message, then string // at once, and after three hours
		last          float64
	}{
		"without an end":                         {"{strategy: Permissive}", nil, cluster(nil), paused, paused, -1},
		"until an instant":                       {"{strategy: Permissive}", nil, cluster(at(2)), "change is not permitted until 2000-01-01T02:00:00Z (the whole cluster is paused until 2000-01-01T02:00:00Z by jane: CHG-1)", opens, 0},
		"until an instant within its window":     {nights, nil, cluster(at(1)), "change is not permitted until 2000-01-01T01:00:00Z (the whole cluster is paused", "change is not permitted until 2000-01-08T01:00:00Z (policy nights", 3602},
		"the policy itself is paused for longer": {"{strategy: Permissive}", map[string]string{annotations.Pause: "2000-01-01T05:00:00Z"}, cluster(at(2)), "change is not permitted until 2000-01-01T05:00:00Z (policy nights: paused until 2000-01-01T05:00:00Z)", "change is not permitted until 2000-01-01T05:00:00Z (policy nights: paused", -1},
		"a pause that is over":                   {"{strategy: Permissive}", nil, schedule.Pause{On: true, Until: new(time.Date(1999, 12, 31, 0, 0, 0, 0, time.UTC))}, opens, opens, 0},
		"a policy that is not ready":             {"{strategy: Sometimes}", nil, cluster(nil), "change is not permitted (policy nights: not ready", "change is not permitted (policy nights: not ready", -1},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(w *world) {
				w.pause = c.pause
				w.policy("nights", c.spec, c.on)
				w.after(2 * time.Second)
				for _, message := range []string{c.message, c.then} {
					if got := w.said("nights", annotations.StatusMessage); !strings.HasPrefix(got, message) || w.said("nights", annotations.StatusPermitted) != fmt.Sprint(strings.HasPrefix(message, opens)) {
						w.Errorf("permitted %s: %s", w.said("nights", annotations.StatusPermitted), got)
					}
					w.after(3 * time.Hour)
				}
				rows := (&Changes{gates: w.Store, runs: store.NewRuns(agenttest.Keys()), held: func() []*gates.HeldObject { return nil }, now: func() time.Time { return at(3).Add(2 * time.Second) }}).rows()
				if len(rows) != 1 || rows[0].verdict.Permitted != strings.HasPrefix(c.then, opens) || rows[0].last != c.last {
					w.Errorf("metrics: %+v", rows)
				}
			})
		})
	}
}

// A policy that permits less than the admin demands says so, as long as it is so.
func TestAPolicyThatPermitsTooLittle(t *testing.T) {
	month := &document.Duration{Duration: 30 * 24 * time.Hour}
	const frozen = "{strategy: MaintenanceSchedule, maintenanceSchedule: {timezone: UTC, windows: [{days: [Mon], start: '01:00', end: '05:00'}], exclude: [{fromDate: 2000-01-01, untilDate: 2000-01-26}]}}"
	for name, c := range map[string]struct {
		spec   string
		on     map[string]string
		demand float64 // hours; 0: nothing is demanded
		want   []bool  // whether it says so, day by day from the first
	}{
		"five hours where eight are demanded":  {spec: nights, demand: 8, want: []bool{true}},
		"five hours where five are demanded":   {spec: nights, demand: 5, want: []bool{false}},
		"nothing is demanded":                  {spec: nights, want: []bool{false}},
		"one that permits nothing":             {spec: "{strategy: Restrictive}", demand: 1, want: []bool{true}},
		"one that permits all":                 {spec: "{strategy: Permissive}", demand: 720, want: []bool{false}},
		"a pause changes nothing":              {spec: "{strategy: Permissive}", on: map[string]string{annotations.Pause: "true"}, demand: 8, want: []bool{false}},
		"one that cannot be read says that":    {spec: "{strategy: Sometimes}", demand: 8, want: []bool{false}},
		"more on the next day, after a freeze": {spec: frozen, demand: 4, want: []bool{true, false}},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(w *world) {
				if c.demand > 0 {
					w.least = &agentconfig.MinimumWindow{Hours: c.demand, Per: month}
				}
				w.policy("nights", c.spec, c.on)
				for day, want := range c.want {
					if day > 0 {
						w.after(24*time.Hour - time.Minute - 2*time.Second)
					}
					w.after(2 * time.Second)
					if got := slices.Contains(w.conditions("nights"), conditionShort+" True TooLittleTime"); got != want {
						w.Errorf("on day %d it says %q", day, w.conditions("nights"))
					}
					w.api.ClearLog()
					w.queue.Add(types.NamespacedName{Namespace: shop, Name: "nights"})
					w.after(time.Minute)
					if got := w.api.Log(); len(got) > 0 {
						w.Errorf("writes although nothing changed: %q", got)
					}
				}
			})
		})
	}
	play(t, func(w *world) {
		w.least = &agentconfig.MinimumWindow{Hours: 8, Per: month}
		w.policy("nights", nights, nil)
		w.after(2 * time.Second)
		if got := w.said("nights", annotations.StatusConditions); !strings.Contains(got, "permits change for 5 hours in the 30 days from 2000-01-01, and minimumWindow of the agent's configuration demands 8 hours") {
			w.Errorf("it says %s", got)
		}
		w.mu.Lock()
		w.least = nil
		w.mu.Unlock()
		w.queue.Add(types.NamespacedName{Namespace: shop, Name: "nights"})
		w.after(2 * time.Second)
		if got := w.conditions("nights"); len(got) != 3 {
			w.Errorf("when nothing is demanded any more: %q", got)
		}
	})
}

func TestAWindowIsToldWhenItOpensAndNotWhenItCloses(t *testing.T) {
	play(t, func(w *world) {
		w.policy("nights", nights, nil)
		for at, want := range []string{"false", "true", "false"} {
			w.after(time.Second)
			if got := w.said("nights", annotations.StatusPermitted); got != want {
				w.Errorf("a second after %d o'clock: permitted %q, want %q", at, got, want)
			}
			w.after(time.Hour - time.Second)
		}
		if got, want := w.sent, []string{"Policy shop/nights permits change"}; !slices.Equal(got, want) {
			w.Errorf("told %q, want %q", got, want)
		}
	})
}

func TestAPolicyThatPermitsChangeWhenItIsFirstSeenIsNoNews(t *testing.T) {
	play(t, func(w *world) {
		w.policy("always", "{strategy: Permissive}", nil)
		w.after(time.Minute)
		if len(w.sent) > 0 {
			w.Errorf("told %q", w.sent)
		}
	})
}

func TestWhatACalendarSays(t *testing.T) {
	for name, c := range map[string]struct {
		text, message string
		want          []string
	}{
		"all of it is understood":  {"- {from: 2026-12-25, until: 2026-12-27, reason: Christmas}\n", "the calendar is valid", []string{"Valid True Understood"}},
		"a line is not understood": {"- {from: 2026-12-25}\n- {from: soon}\n", "the rest works: ", []string{"Valid False SomeFaults"}},
		"nothing is understood":    {"{", "", []string{"Valid False Faults"}},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(w *world) {
				w.put(annotations.KindCalendar, "days", annotations.DataDates, c.text, nil)
				w.after(2 * time.Second)
				if got := w.said("days", annotations.StatusMessage); !strings.HasPrefix(got, c.message) || got == "" {
					w.Errorf("it says %q", got)
				}
				if diff := cmp.Diff(c.want, w.conditions("days")); diff != "" {
					w.Errorf("-want +got:\n%s", diff)
				}
				w.api.ClearLog()
				w.queue.Add(types.NamespacedName{Namespace: shop, Name: "days"})
				w.after(time.Minute)
				if got := w.api.Log(); len(got) > 0 {
					w.Errorf("writes although nothing changed: %q", got)
				}
			})
		})
	}
}

// What is gated by a policy is looked at again when the policy says something else, and
// not when the agent wrote on it.
func TestWhoIsGatedHearsOfNews(t *testing.T) {
	play(t, func(w *world) {
		hears := func(what string, want int) {
			w.Helper()
			w.after(2 * time.Second)
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.changed != want {
				w.Errorf("%s: heard %d times, want %d", what, w.changed, want)
			}
			w.changed = 0
		}
		w.policy("nights", nights, nil)
		hears("a new policy, and the echo of its status", 1)
		w.api.Annotate(shop, "nights", annotations.StatusMessage, "")
		hears("a status that somebody took off", 0)
		if w.said("nights", annotations.StatusMessage) == "" {
			w.Error("it is not written again")
		}
		w.api.Annotate(shop, "nights", annotations.Pause, "true")
		hears("a pause", 1)
		w.put(annotations.KindCalendar, "days", annotations.DataDates, "- {from: 2026-12-25}\n", nil)
		hears("a calendar", 1)
		w.api.Delete("configmaps", shop, "days")
		hears("a calendar that is gone", 1)
		k := types.NamespacedName{Namespace: shop, Name: "nights"}
		if _, p := w.Store.Policy(k.Namespace, k.Name); p == nil || w.Store.Subjects()[k] == nil {
			w.Error("the policy is not known")
		}
		w.api.Delete("configmaps", shop, "nights")
		hears("a policy that is gone", 1)
		if _, p := w.Store.Policy(k.Namespace, k.Name); p != nil || w.Store.Subjects()[k] != nil {
			w.Error("a policy that is gone is known still")
		}
	})
}

func TestInANamespaceThatEndsNothingIsWritten(t *testing.T) {
	play(t, func(w *world) {
		w.api.Edit("namespaces", "", shop, func(u *unstructured.Unstructured) { u.SetFinalizers([]string{"kubernetes"}) })
		w.api.Delete("namespaces", "", shop)
		w.after(time.Second)
		w.policy("nights", nights, nil)
		w.put(annotations.KindCalendar, "days", annotations.DataDates, "- {from: 2026-12-25}\n", nil)
		w.after(10 * time.Second)
		if got := w.api.Log(); len(got) > 0 {
			w.Errorf("writes %q", got)
		}
	})
}

// A record of gates leads to its policy, there or gone.
func TestRecordsOfGatesHaveTheirPolicyLookedAt(t *testing.T) {
	play(t, func(w *world) {
		record, err := annotations.GateObject(shop, policy.GateRecord{Policy: "gone"})
		if err != nil {
			w.Fatal(err)
		}
		var enqueued []string
		w.Config.Enqueue = func(k types.NamespacedName) { enqueued = append(enqueued, k.Name) }
		w.GatesSeen(record)
		w.GatesLost(record)
		other := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "other"}}
		w.GatesSeen(other)
		w.GatesLost(other)
		if want := []string{"gone", "gone"}; !slices.Equal(enqueued, want) {
			w.Errorf("enqueued %q, want %q", enqueued, want)
		}
	})
}

func TestWhatRunsSayOfChange(t *testing.T) {
	now := time.Now()
	of := func(j run.Journal) *store.LiveRun { return &store.LiveRun{Journal: j} }
	dry := func(j run.Journal) *store.LiveRun {
		return &store.LiveRun{Journal: j, Head: run.Run{Request: run.Request{DryRun: true}}}
	}
	for name, c := range map[string]struct {
		live []*store.LiveRun
		want int
	}{
		"there is none":                              {want: store.PendingNone},
		"one is at work":                             {[]*store.LiveRun{of(run.Journal{Phase: run.Running})}, store.PendingInitiated},
		"one is about to begin":                      {[]*store.LiveRun{of(run.Journal{Phase: run.Pending})}, store.PendingInitiated},
		"one waits for its jitter":                   {[]*store.LiveRun{of(run.Journal{Phase: run.Pending, Waiting: run.WaitJitter})}, store.PendingInitiated},
		"one waits for its window":                   {[]*store.LiveRun{of(run.Journal{Phase: run.Pending, Waiting: run.WaitWindow})}, store.PendingBlocked},
		"one is held between two steps":              {[]*store.LiveRun{of(run.Journal{Phase: run.Running, HeldSince: &now})}, store.PendingBlocked},
		"one is at work, and one waits":              {[]*store.LiveRun{of(run.Journal{Phase: run.Running}), of(run.Journal{Phase: run.Pending, Waiting: run.WaitWindow})}, store.PendingBlocked},
		"a dry run is at work":                       {[]*store.LiveRun{dry(run.Journal{Phase: run.Running})}, store.PendingNone},
		"a dry run waits for its window":             {[]*store.LiveRun{dry(run.Journal{Phase: run.Pending, Waiting: run.WaitWindow}), of(run.Journal{Phase: run.Running})}, store.PendingInitiated},
		"one that cannot be read counts for nothing": {[]*store.LiveRun{{Broken: context.Canceled}}, store.PendingNone},
	} {
		if got := pendingOf(c.live); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func TestWhenChangeWasLastPermittedOrInitiated(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) *time.Time { return new(now.Add(-d)) }
	for name, c := range map[string]struct {
		verdict schedule.Verdict
		start   *time.Time
		want    float64
	}{
		"it is permitted now": {schedule.Verdict{Permitted: true}, ago(time.Hour), 0},
		"nobody knows":        {schedule.Verdict{}, nil, -1},
		"a run began":         {schedule.Verdict{}, ago(time.Minute), 60},
		"it was permitted, and a run began before": {schedule.Verdict{Since: ago(time.Minute)}, ago(time.Hour), 60},
		"a run began, and it was permitted before": {schedule.Verdict{Since: ago(time.Hour)}, ago(time.Minute), 60},
		"just now": {schedule.Verdict{Since: ago(0)}, nil, 1},
	} {
		start := time.Time{}
		if c.start != nil {
			start = *c.start
		}
		if got := lastChange(c.verdict, start, now); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestAPolicyHasPendingWhatItsPlansNodesAndGatesHave(t *testing.T) {
	book, runs := store.NewGates("maint-system"), store.NewRuns(agenttest.Keys())
	verdict := func(time.Time) schedule.Verdict { return schedule.Verdict{} }
	strategy := func(time.Time) schedule.Strategy { return schedule.Restrictive }
	uses := []policy.PolicyRef{{Namespace: shop, Name: "nights"}}
	book.Note(types.NamespacedName{Namespace: shop, Name: "nights"}, &store.Subject{Kind: "Policy", Verdict: verdict, Strategy: strategy})
	book.Note(types.NamespacedName{Namespace: shop, Name: "waits"}, &store.Subject{Kind: "Plan", Verdict: verdict, Strategy: strategy, Uses: uses, Waits: true})
	pools := []policy.PolicyRef{{Namespace: "maint-system", Name: "pools"}}
	book.Note(types.NamespacedName{Namespace: "maint-system", Name: "pools"}, &store.Subject{Kind: "Policy", Verdict: verdict, Strategy: strategy})
	for name, p := range map[string]int{"worker-1": store.PendingInitiated, "worker-2": store.PendingNone} {
		book.Note(types.NamespacedName{Name: name}, &store.Subject{Kind: "Node", Verdict: verdict, Strategy: strategy, Uses: pools, Pending: p})
	}
	held := func() []*gates.HeldObject {
		return []*gates.HeldObject{{Namespace: shop, Name: "app", Subject: store.Subject{Kind: "Kustomization", Verdict: verdict, Strategy: strategy, Uses: uses}}}
	}
	leads := true
	c := &Changes{gates: book, runs: runs, held: held, now: time.Now, leading: func() bool { return leads }}
	write := func() []string {
		var text strings.Builder
		out := bufio.NewWriter(&text)
		c.Write(out)
		_ = out.Flush()
		var lines []string
		for _, line := range strings.Split(text.String(), "\n") {
			if strings.HasPrefix(line, "change_management_change_pending") {
				lines = append(lines, line)
			}
		}
		slices.Sort(lines)
		return lines
	}
	want := []string{
		`change_management_change_pending{kind="Kustomization",namespace="shop",object="app",system=""} 0`,
		`change_management_change_pending{kind="Node",namespace="",object="worker-1",system=""} 1`,
		`change_management_change_pending{kind="Node",namespace="",object="worker-2",system=""} 0`,
		`change_management_change_pending{kind="Plan",namespace="shop",object="waits",system=""} 2`,
		`change_management_change_pending{kind="Policy",namespace="maint-system",object="pools",system=""} 1`,
		`change_management_change_pending{kind="Policy",namespace="shop",object="nights",system=""} 2`,
	}
	if diff := cmp.Diff(want, write()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	leads = false
	if got := write(); len(got) > 0 {
		t.Errorf("a standby says %q", got)
	}
}

// The window opens at 02:00 and is to be told at 01:30. No agent leads then.
func TestAWindowThatFellDueWhileNobodyLedIsToldLateAndOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, api: agenttest.New(t), before: &document.Duration{Duration: 30 * time.Minute}}
		w.api.Put(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: shop}})
		w.policy("night", "{strategy: MaintenanceSchedule, maintenanceSchedule: {windows: [{start: '02:00', end: '05:00'}]}}", nil)
		lead := func(d time.Duration, want ...string) {
			t.Helper()
			stop := w.begins()
			w.after(d)
			stop()
			if !slices.Equal(w.sent, want) {
				t.Errorf("at %s %q was sent, want %q", time.Now().UTC().Format("15:04"), w.sent, want)
			}
		}
		const ahead, open = "Policy shop/night permits change in 20m", "Policy shop/night permits change"
		lead(time.Hour)
		time.Sleep(40 * time.Minute)
		lead(5*time.Minute, ahead)
		lead(5*time.Minute, ahead)
		if got := w.said("night", annotations.StatusToldAhead); got != "2000-01-01T02:00:00Z" {
			t.Errorf("%q stands on the policy", got)
		}
		lead(time.Hour, ahead, open)
	})
}
