package plans

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/metrics"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/notify"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/queue"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/status"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/targets"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/watchrules"
	"github.com/kubectl-maint/kubectl-maint/pkg/agentconfig"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/informer"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

const (
	shop    = "shop"
	runner  = "system:serviceaccount:shop:maint-runner"
	hook    = "steps:\n- {name: hook, type: webhook, properties: {url: 'https://hooks.test'}}\n"
	tenMins = "triggers: {schedules: [{cron: '*/10 * * * *', timezone: UTC}]}\n"
	orders  = "target: {apiVersion: apps/v1, kind: Deployment, name: orders}\n"
)

// world is a cluster with plans, and the agents that decide over them, one after the
// other. Runs go on when a test says so. Its time is that of a synctest bubble.
type world struct {
	*testing.T
	api      *agenttest.Cluster
	events   *agenttest.Events
	settings agentconfig.AgentConfig
	doubt    atomic.Value
	doubted  [2]time.Time // from, until
	asItWas  atomic.Bool  // what runs left
	agent    *agent
	ticks    atomic.Int64

	mu      sync.Mutex
	rung    []string // runs that were enqueued
	orphans []string // that were told of
	gone    []string // plans whose runs heard that they are gone
}

// agent is one life of an agent.
type agent struct {
	*Controller
	stop func()
}

func play(t *testing.T, story func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, api: agenttest.New(t), events: &agenttest.Events{}}
		w.api.Put(
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: shop}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: annotations.DefaultNamespace}}, account(),
		)
		story(w)
		if w.agent != nil {
			w.agent.stop()
		}
	})
}

func account() *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "maint-runner"}}
}

func deployment(ready bool, labels map[string]string) *appsv1.Deployment {
	one, have := int32(1), int32(0)
	if ready {
		have = 1
	}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "orders", Labels: labels},
		Spec:       appsv1.DeploymentSpec{Replicas: &one}, Status: appsv1.DeploymentStatus{ReadyReplicas: have},
	}
}

func key(name string) types.NamespacedName { return types.NamespacedName{Namespace: shop, Name: name} }

// plan is a plan's ConfigMap.
func (w *world) plan(name, spec string) {
	text := "apiVersion: " + document.APIVersion + "\nkind: Plan\nspec:\n  " + strings.ReplaceAll(strings.TrimSpace(spec), "\n", "\n  ") + "\n"
	cm := annotations.NewPlan(shop, name, text, "")
	cm.UID = types.UID("uid-" + name)
	w.api.Put(cm)
}

// now is a clock that moves on whenever it is read: that of a bubble stands still while
// something is done, and an answer would never be younger than the look before it.
func (w *world) now() time.Time { return time.Now().Add(time.Duration(w.ticks.Add(1))) }

// begins has an agent begin to lead; the one before is stopped.
func (w *world) begins() *agent {
	w.Helper()
	if w.agent != nil {
		w.agent.stop()
	}
	conn, accounts := w.api.Connect()
	log, counts, since, signed := slog.New(slog.DiscardHandler), metrics.New("test"), time.Now(), agenttest.Keys()
	const documents = annotations.LabelKind + " in (" + annotations.KindPlan + "," + annotations.KindHibernatePlan + "," + annotations.KindStepTemplate + "," + annotations.KindConnector + ")"
	const phases = annotations.LabelKind + "=" + annotations.KindRun + "," + annotations.LabelPhase + " in "
	docs := agenttest.ConfigMaps(conn, documents, store.Strip)
	live := agenttest.ConfigMaps(conn, phases+"(Pending,Running)", store.Strip)
	namespaces := agenttest.Metadata(conn, "namespaces", store.Strip)
	plans := queue.New(queue.Config{Name: "plans", Now: w.now, Log: log, OnPanic: func() { w.Error("a panic") }})
	a := &agent{}
	watched := targets.New(targets.Config{
		Accounts: accounts, Plans: plans,
		Changed: func(k types.NamespacedName) { a.TargetChanged(k) }, Outdate: func(k types.NamespacedName) { a.TargetOutdated(k) },
	})
	stores := Stores{
		Documents: store.NewDocuments(docs, namespaces, store.FreshConfig{
			Kube: conn.Kube, Meta: conn.Meta, Namespace: annotations.DefaultNamespace, Now: w.now, Backlog: plans.Len, Plans: func() int { return 1 },
		}),
		Plans: store.NewPlans(), Runs: store.NewRuns(signed), History: store.NewHistory(), Ledgers: store.NewLedgers(conn.Kube, signed, func(types.NamespacedName, error) {}), Gates: store.NewGates(annotations.DefaultNamespace), Keys: signed,
	}
	a.Controller = New(Config{
		Clients: Clients{Kube: conn.Kube, Accounts: accounts, ClockDoubt: func() string { said, _ := w.doubt.Load().(string); return said }, Ahead: func() time.Duration { return 0 }, Doubted: func() (from, until time.Time) { return w.doubted[0], w.doubted[1] }}, Stores: stores,
		Telemetry: notify.Telemetry{
			Events: w.events, Metrics: counts, Log: log,
			Notify: notify.New(notify.Config{Settings: func() agentconfig.Notifications { return agentconfig.Notifications{} }, Register: func(prometheus.Collector) {}}),
		},
		Scope:    Scope{Namespace: annotations.DefaultNamespace, LeadingSince: func() time.Time { return since }},
		Executor: func(string) (executors.Executor, bool) { return finder{world: w}, true },
		Settings: func() agentconfig.AgentConfig { return w.settings }, Status: status.NewWriter(conn.Kube, w.events),
		Watches: Watches{
			Rules:   watchrules.New(watchrules.Config{Accounts: accounts, Ledgers: stores.Ledgers, Runs: stores.Runs, Plans: plans, Events: w.events, Log: log, Now: w.now}),
			Targets: watched,
		},
		Runner: w, EnqueueRun: func(k types.NamespacedName) { w.mu.Lock(); defer w.mu.Unlock(); w.rung = append(w.rung, k.Name) }, Queue: plans, Now: w.now,
	})
	stores.Runs.Quota.OnFree(plans.Add)
	ctx, cancel := context.WithCancel(w.Context())
	w.wire(a, docs, live, namespaces)
	var group sync.WaitGroup
	for _, c := range []*informer.Cache{docs, live, namespaces} {
		group.Go(func() { c.Informer.RunWithContext(ctx) })
	}
	if !cache.WaitForCacheSync(ctx.Done(), docs.Synced, live.Synced, namespaces.Synced) {
		w.Fatal("the caches do not fill")
	}
	group.Go(func() { a.Run(ctx) })
	group.Go(func() { plans.Work(ctx, 2, a.reconcile) })
	a.stop = sync.OnceFunc(func() {
		cancel()
		group.Wait()
	})
	w.agent = a
	return a
}

func (w *world) wire(a *agent, docs, live, namespaces *informer.Cache) {
	docs.Handle(func(o any) {
		cm := o.(*corev1.ConfigMap)
		if cm.Labels[annotations.LabelKind] == annotations.KindStepTemplate {
			a.EnqueueTemplated(cm.Namespace)
		}
		if cm.Labels[annotations.LabelKind] == annotations.KindConnector {
			a.EnqueueConnected(cm.Namespace)
		}
		a.Queue.Add(types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name})
	}, func(o any) {
		cm := o.(*corev1.ConfigMap)
		a.Stores.Documents.Forget(types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name})
		a.EnqueueTemplated(cm.Namespace)
		a.Queue.Add(types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name})
	})
	live.Handle(func(o any) {
		cm := o.(*corev1.ConfigMap)
		if a.Stores.Runs.Observe(cm) {
			a.Queue.Add(types.NamespacedName{Namespace: cm.Namespace, Name: cm.Labels[annotations.LabelPlan]})
		}
	}, func(o any) {
		cm := o.(*corev1.ConfigMap)
		a.Stores.Runs.Gone(types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name}, informer.VersionOf(cm))
	})
	namespaces.Handle(func(any) {
		for _, cm := range a.Stores.Documents.All() {
			a.Queue.Add(types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name})
		}
	}, func(any) {})
}

func (a *agent) reconcile(ctx context.Context, k types.NamespacedName) (time.Time, error) {
	if cm := a.Stores.Documents.Any(k); cm != nil {
		switch cm.Labels[annotations.LabelKind] {
		case annotations.KindStepTemplate:
			return time.Time{}, a.ReconcileTemplate(ctx, k, cm)
		case annotations.KindConnector:
			return time.Time{}, a.ReconcileConnector(ctx, k, cm)
		}
	}
	return a.Reconcile(ctx, k)
}

// PlanChanged is Runs'.
func (w *world) PlanChanged(k types.NamespacedName, cm *corev1.ConfigMap) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if cm == nil {
		w.gone = append(w.gone, k.Name)
	}
}

// CloseOrphans is Runs'.
func (w *world) CloseOrphans(context.Context, types.NamespacedName) error { return nil }

// ReportOrphan is Runs'.
func (w *world) ReportOrphan(_ *corev1.ConfigMap, _, name, what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.orphans = append(w.orphans, name+": "+what)
}

// finder is an executor that says whether something is as it was.
type finder struct {
	executors.Executor
	world *world
}

// Found is executors.Finder's.
func (f finder) Found(json.RawMessage) string { return "" }

// IsRestored is executors.Finder's.
func (f finder) IsRestored(context.Context, executors.Call) (bool, error) {
	return f.world.asItWas.Load(), nil
}

// after lets time pass, and everything come to rest.
func (w *world) after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// says has somebody annotate a plan.
func (w *world) says(name, annotation, value string) {
	w.Helper()
	w.api.Annotate(shop, name, annotation, value)
	w.after(time.Second)
}

// runs are the names of a plan's runs as they are stored.
func (w *world) runs(name string) []string {
	var out []string
	for _, at := range w.api.Names("configmaps") {
		cm := w.api.ConfigMap(shop, strings.TrimPrefix(at, shop+"/"))
		if cm != nil && cm.Labels[annotations.LabelKind] == annotations.KindRun && cm.Labels[annotations.LabelPlan] == name {
			out = append(out, cm.Name)
		}
	}
	return out
}

// nameOf is the name of the run that answers a token.
func nameOf(name, token string) string {
	return annotations.RunName(name, "uid-"+name, run.Request{Kind: run.ByToken, Token: token})
}

// progress has a run come so far; one that ends leaves its ledger closed.
func (w *world) progress(name string, phase run.Phase) {
	w.Helper()
	r, j, err := annotations.ReadRun(w.api.ConfigMap(shop, name))
	if err != nil {
		w.Fatal(err)
	}
	now := time.Now().UTC()
	j.Phase, j.Waiting = phase, ""
	if j.StartedAt == nil {
		j.StartedAt = &now
	}
	if phase.Ended() {
		j.FinishedAt = &now
		err := w.agent.Stores.Ledgers.Edit(w.Context(), key(r.Plan), r.PlanUID, func(l ledger.Ledger) ledger.Ledger { return l.CloseRun(r, j, now) })
		if err != nil {
			w.Fatal(err)
		}
	}
	cm, err := annotations.RunObject(r, j)
	if err != nil {
		w.Fatal(err)
	}
	cm.Labels[annotations.LabelPhase] = string(phase)
	if phase.Ended() {
		cm.Finalizers = nil
		w.agent.Stores.Runs.Drop(key(name), 1<<40)
	}
	w.api.Put(agenttest.Signed(w, cm))
	w.agent.Queue.Add(key(r.Plan))
	w.after(time.Second)
}

func (w *world) ledger(name string) ledger.Ledger {
	w.Helper()
	cm := w.api.ConfigMap(shop, annotations.LedgerName(name, "uid-"+name))
	if cm == nil {
		return ledger.Ledger{}
	}
	l, err := annotations.ReadLedger(cm, "uid-"+name)
	if err != nil {
		w.Fatal(err)
	}
	return l
}

// entries are the ledger's, the open ones first: the minute of the slot, or of when it
// was asked, the result and its reason.
func (w *world) entries(name string) []string {
	w.Helper()
	var out []string
	say := func(e ledger.Entry, result string) {
		at := e.At
		if e.Slot != nil {
			at = *e.Slot
		}
		line := at.Format("15:04") + " " + result
		if e.Reason != "" {
			line += " " + e.Reason
		}
		if e.Count > 1 {
			line += fmt.Sprintf(" x%d", e.Count)
		}
		out = append(out, line)
	}
	l := w.ledger(name)
	for _, e := range l.Open {
		say(e, "open")
	}
	for _, e := range l.Recent {
		say(e, string(e.Result))
	}
	return out
}

func (w *world) expect(when string, name string, want ...string) {
	w.Helper()
	if diff := cmp.Diff(want, w.entries(name)); diff != "" {
		w.Errorf("%s, -want +got:\n%s", when, diff)
	}
}

// said is what the plan's status says.
func (w *world) said(name, annotation string) string {
	w.Helper()
	return w.api.ConfigMap(shop, name).Annotations[annotation]
}

// condition is "Status Reason" of a plan's condition; empty: there is none.
func (w *world) condition(name, kind string) string {
	w.Helper()
	var list []metav1.Condition
	if text := w.said(name, annotations.StatusConditions); text != "" {
		if err := json.Unmarshal([]byte(text), &list); err != nil {
			w.Fatal(err)
		}
	}
	for _, c := range list {
		if c.Type == kind {
			return string(c.Status) + " " + c.Reason
		}
	}
	return ""
}

func (w *world) wantEvent(beginning string) {
	w.Helper()
	if !slices.ContainsFunc(w.events.All(), func(e string) bool { return strings.HasPrefix(e, beginning) }) {
		w.Errorf("no Event %q among %q", beginning, w.events.All())
	}
}

// logged are the agent's writes, in short words.
func (w *world) logged(name string) []string {
	var out []string
	for _, line := range w.api.Log() {
		line = strings.ReplaceAll(line, shop+"/"+annotations.LedgerName(name, "uid-"+name), "ledger")
		line = strings.ReplaceAll(line, shop+"/"+name, "plan")
		out = append(out, line)
	}
	return out
}
