package hibernation

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/notify"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/queue"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/status"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/agentconfig"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/coretest"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/informer"
)

const (
	shop   = "shop"
	runner = "system:serviceaccount:shop:maint-runner"
	// oneToThree sleeps from 01:00 to 03:00; a bubble's time begins at midnight.
	oneToThree = "schedule: {offHours: [{start: \"01:00\", end: \"03:00\"}]}\n"
	apps       = "targets: [{name: apps, type: noop}]\n"
	appsAndDB  = "targets: [{name: apps, type: noop}, {name: db, type: noop}]\n"
)

// world is a cluster with a HibernatePlan, and the agents that lead it, one after the
// other. Its time is that of a synctest bubble.
type world struct {
	*testing.T
	api    *agenttest.Cluster
	events *agenttest.Events
	agent  *agent
	beds   *beds
	dryRun bool
	sick   atomic.Value // what the health checks say; empty: all is well

	skew   atomic.Int64 // nanoseconds that the API server's clock is ahead
	denied atomic.Value // types of targets, of type []string
	own    atomic.Value // the answer to what the agent runs on, of type ownMachines
	held   atomic.Value // the steps of runs by the mark of their object, of type map[string][]executors.Holder

	unpacked atomic.Int32 // looks at what steps recorded
}

// holders are the steps of runs that will put back an object, without what they recorded where nobody asks
// for that.
func (w *world) holders(records bool) func(mark string) []executors.Holder {
	if records {
		w.unpacked.Add(1)
	}
	return func(mark string) []executors.Holder {
		all, _ := w.held.Load().(map[string][]executors.Holder)
		held := slices.Clone(all[mark])
		for i := range held {
			if !records {
				held[i].Before = nil
			}
		}
		return held
	}
}

// denies are the types that the agent's configuration does not allow.
func (w *world) denies(string) []string {
	types, _ := w.denied.Load().([]string)
	return types
}

// ahead is how far the API server's clock is ahead of the agent's.
func (w *world) ahead() time.Duration { return time.Duration(w.skew.Load()) }

func (w *world) clockDoubt() string {
	if w.ahead().Abs() <= 5*time.Minute {
		return ""
	}
	return "the clocks are apart"
}

// machines are what the agent runs on.
func (w *world) machines(context.Context) ([]string, error) {
	own, _ := w.own.Load().(ownMachines)
	return own.ids, own.err
}

type ownMachines struct {
	ids []string
	err error
}

// agent is one life of an agent.
type agent struct {
	*Controller
	stop   func()
	asleep atomic.Value // what its metric counts, of type map[string]int
}

func (a *agent) counted(asleep map[string]int) { a.asleep.Store(asleep) }

func play(t *testing.T, story func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, api: agenttest.New(t), events: &agenttest.Events{}}
		w.beds = &beds{world: w}
		w.api.Put(
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: shop}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: annotations.DefaultNamespace}},
			&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "maint-runner"}},
		)
		story(w)
		if w.agent != nil {
			w.agent.stop()
		}
	})
}

// night is the story of a plan whose target apps has orders with 3 replicas and web with 2.
func night(t *testing.T, spec string, story func(w *world)) {
	t.Helper()
	play(t, func(w *world) {
		w.deployment("orders", "apps", 3)
		w.deployment("web", "apps", 2)
		w.plan(spec)
		w.begins()
		w.until("00:30")
		w.awake()
		story(w)
	})
}

func (w *world) deployment(name, target string, replicas int32) {
	w.api.Put(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: name, Labels: map[string]string{"target": target}}, Spec: appsv1.DeploymentSpec{Replicas: &replicas}})
}

// plan is the plan "nights".
func (w *world) plan(spec string) {
	w.api.Put(annotations.NewHibernatePlan(shop, "nights", planText(spec), ""))
}

func planText(spec string) string {
	return "apiVersion: " + document.APIVersion + "\nkind: HibernatePlan\nspec:\n  " + strings.ReplaceAll(strings.TrimSpace(spec), "\n", "\n  ") + "\n"
}

// begins has an agent begin to lead; the one before is stopped.
func (w *world) begins() *agent {
	w.Helper()
	if w.agent != nil {
		w.agent.stop()
	}
	conn, accounts := w.api.Connect()
	log, signed := slog.New(slog.DiscardHandler), agenttest.Keys()
	docs := agenttest.ConfigMaps(conn, annotations.LabelKind+"="+annotations.KindHibernatePlan, store.Strip)
	restores := agenttest.ConfigMaps(conn, annotations.LabelKind+"="+annotations.KindRestore, func(o any) (any, error) {
		if cm, is := o.(*corev1.ConfigMap); is {
			signed.Empty(cm)
		}
		return store.Strip(o)
	})
	namespaces := agenttest.Metadata(conn, "namespaces", store.Strip)
	a := &agent{}
	a.Controller = New(Config{
		Clients: Clients{Kube: conn.Kube, Accounts: accounts},
		Stores: Stores{
			Documents: store.NewDocuments(docs, namespaces, store.FreshConfig{
				Kube: conn.Kube, Meta: conn.Meta, Namespace: annotations.DefaultNamespace, Now: time.Now, Backlog: func() int { return 0 }, Plans: func() int { return 1 },
			}),
			Gates: store.NewGates(annotations.DefaultNamespace), Ledgers: store.NewLedgers(conn.Kube, signed, func(types.NamespacedName, error) {}), Keys: signed, Holders: w.holders,
		},
		Executors: Executors{Sleepers: map[string]executors.Sleeper{hibernate.TypeNoop: w.beds, hibernate.TypeEC2: w.beds, hibernate.TypeRDS: w.beds, hibernate.TypeEKS: w.beds}, Health: checks{w}, Machines: w.machines}, Clock: Clock{ClockDoubt: w.clockDoubt, Ahead: w.ahead, Now: time.Now}, Sleeping: a.counted,
		Status: status.NewWriter(conn.Kube, w.events), Telemetry: notify.Telemetry{Notify: notify.New(notify.Config{Settings: func() agentconfig.Notifications { return agentconfig.Notifications{} }, Register: func(prometheus.Collector) {}}), Events: w.events, Log: log}, Scope: Scope{Namespace: annotations.DefaultNamespace, DryRun: w.dryRun, Denied: w.denies},
		Queue: queue.New(queue.Config{Name: "hibernation", Now: time.Now, Log: log, OnPanic: func() { w.Error("a panic") }}),
	})
	ctx, cancel := context.WithCancel(w.Context())
	seen := func(o any) { a.Queue.Add(keyOf(o.(*corev1.ConfigMap))) }
	docs.Handle(seen, func(o any) {
		a.Stores.Documents.Forget(keyOf(o.(*corev1.ConfigMap)))
		seen(o)
	})
	restores.Handle(a.RecordSeen, a.RecordLost)
	namespaces.Handle(func(any) { a.EnqueueAll() }, func(any) {})
	var group sync.WaitGroup
	for _, c := range []*informer.Cache{docs, restores, namespaces} {
		group.Go(func() { c.Informer.RunWithContext(ctx) })
	}
	if !cache.WaitForCacheSync(ctx.Done(), docs.Synced, restores.Synced, namespaces.Synced) {
		w.Fatal("the caches do not fill")
	}
	group.Go(func() { a.Run(ctx) })
	a.stop = sync.OnceFunc(func() {
		cancel()
		group.Wait()
	})
	w.agent = a
	return a
}

// after lets time pass, and everything come to rest.
func (w *world) after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// until is a clock of the first day; 27:00 is one of the next.
func (w *world) until(clock string) {
	w.Helper()
	hours, minutes, _ := strings.Cut(clock, ":")
	h, err := strconv.Atoi(hours)
	m, err2 := strconv.Atoi(minutes)
	if err != nil || err2 != nil {
		w.Fatal(err, err2)
	}
	w.after(time.Until(time.Date(2000, 1, 1, h, m, 0, 0, time.UTC)))
}

// says has somebody annotate the plan; an empty value takes the annotation away.
func (w *world) says(annotation, value string) {
	w.Helper()
	w.api.Annotate(shop, "nights", annotation, value)
	w.after(10 * time.Second)
}

// replicas are those of all Deployments, as "orders 3, web 2".
func (w *world) replicas() string {
	var out []string
	for _, name := range w.api.Names("deployments") {
		u := w.api.Get("deployments", shop, strings.TrimPrefix(name, shop+"/"))
		n, _, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "replicas") // a number of one kind or another
		out = append(out, fmt.Sprintf("%s %v", u.GetName(), n))
	}
	return strings.Join(out, ", ")
}

func (w *world) has(want string) {
	w.Helper()
	if got := w.replicas(); got != want {
		w.Errorf("at %s there are %s, want %s; the plan says %s", time.Now().UTC().Format("15:04"), got, want, w.phase())
	}
}

func (w *world) sleeps() {
	w.Helper()
	w.has("orders 0, web 0")
}

func (w *world) awake() {
	w.Helper()
	w.has("orders 3, web 2")
}

// closed fails unless the cycle is over, and nothing of it stays.
func (w *world) closed() {
	w.Helper()
	for _, name := range w.api.Names("configmaps") {
		if strings.Contains(name, "maint-restore-") {
			w.Errorf("%s stays", name)
		}
	}
}

func (w *world) scale(name string, replicas int64, edit ...func(*unstructured.Unstructured)) {
	w.api.Edit("deployments", shop, name, func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, replicas, "spec", "replicas")
		for _, e := range edit {
			e(u)
		}
	})
}

// said is what the plan's status says under a key.
func (w *world) said(key string) string {
	w.Helper()
	cm := w.api.ConfigMap(shop, "nights")
	if cm == nil {
		return ""
	}
	return cm.Annotations[key]
}

// phase is "Phase: message".
func (w *world) phase() string {
	w.Helper()
	return w.said(annotations.StatusPhase) + ": " + w.said(annotations.StatusMessage)
}

func (w *world) is(want string) {
	w.Helper()
	if got := w.phase(); !strings.HasPrefix(got, want) {
		w.Errorf("at %s the plan says %q, want %q", time.Now().UTC().Format("15:04"), got, want)
	}
}

func (w *world) wantEvent(beginning string) {
	w.Helper()
	if !slices.ContainsFunc(w.events.All(), func(e string) bool { return strings.HasPrefix(e, beginning) }) {
		w.Errorf("no Event %q among %q", beginning, w.events.All())
	}
}

// record is the restore data of a target; nil: there is none.
func (w *world) record(target string) *hibernate.Record {
	w.Helper()
	cm := w.api.ConfigMap(shop, annotations.RestoreName("nights", target))
	if cm == nil {
		return nil
	}
	r, err := annotations.ReadRestore(cm)
	if err != nil {
		w.Fatal(err)
	}
	return &r
}

// ledger fails unless the plan's says this of its off-windows, as coretest.Entries has it.
func (w *world) ledger(want ...string) {
	w.Helper()
	l, err := w.agent.Stores.Ledgers.Get(w.Context(), types.NamespacedName{Namespace: shop, Name: "nights"}, string(w.api.ConfigMap(shop, "nights").UID))
	if err != nil || l == nil {
		w.Fatal(err, l)
	}
	if got := coretest.Entries(*l); !slices.Equal(got, want) {
		w.Errorf("at %s the ledger says %q, want %q", time.Now().UTC().Format("15:04"), got, want)
	}
}

// checks are health checks that say what the world does.
type checks struct{ world *world }

// Pass is executors.Executor's.
func (c checks) Pass(ctx context.Context, call executors.Call) executors.Outcome {
	if got := executors.ReservationOf(ctx).Namespace(); got != call.Plan.Namespace {
		c.world.Errorf("what a health check reads counts for namespace %q", got)
	}
	if sick, _ := c.world.sick.Load().(string); sick != "" {
		return executors.Outcome{State: executors.NotYet, Message: sick}
	}
	return executors.Outcome{State: executors.Done}
}

// beds have the Deployments of a target sleep, which bear its name in a label, as an
// executor does: through the API, as the plan's account, with what was seen as a condition.
type beds struct {
	world *world

	mu     sync.Mutex
	calls  []executors.SleepCall
	refuse error             // of Validate
	wrong  map[string]string // what is refused, as "observe TARGET" or "wake RESOURCE", and how
	hangs  string            // the target whose world does not answer; empty: none
	// workloads have restore data as those of the executor of workloads.
	workloads bool

	turns  bool   // the first that is due is put to sleep before the others
	looked func() // what somebody does after the next look of a target that is to wake; nil: nothing
}

// meanwhile has somebody do something after the next look of a target that is to wake.
func (b *beds) meanwhile(do func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.looked = do
}

// hasLooked does what somebody does after a look, once.
func (b *beds) hasLooked(operation hibernate.Operation) {
	b.mu.Lock()
	do := b.looked
	if operation != hibernate.Wake {
		do = nil
	}
	if do != nil {
		b.looked = nil
	}
	b.mu.Unlock()
	if do != nil {
		do()
	}
}

// is says what is refused of something.
func (b *beds) is(what string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if why := b.wrong[what]; why != "" {
		return errors.New(why)
	}
	return nil
}

// hang has the world of a target not answer; an empty one ends that.
func (b *beds) hang(target string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hangs = target
}

// goes has something refused; an empty reason has it go well again.
func (b *beds) goes(what, why string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.wrong == nil {
		b.wrong = map[string]string{}
	}
	b.wrong[what] = why
}

// Validate is executors.Sleeper's.
func (b *beds) Validate(_ context.Context, call executors.SleepCall) error {
	if err := b.is("validate " + call.Target); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.refuse
}

// replicasOf is the number in the restore data of a Deployment.
func replicasOf(before json.RawMessage) string {
	if text, is := strings.CutPrefix(string(before), `{"replicas":`); is {
		return strings.TrimSuffix(text, "}")
	}
	return string(before)
}

// Observe is executors.Sleeper's.
func (b *beds) Observe(ctx context.Context, call executors.SleepCall) ([]hibernate.Observation, error) {
	defer b.hasLooked(call.Operation)
	if got := executors.ReservationOf(ctx).Namespace(); got != call.Plan.Namespace {
		b.world.Errorf("what a look reads counts for namespace %q", got)
	}
	b.mu.Lock()
	b.calls = append(b.calls, call)
	hangs := b.hangs == call.Target
	b.mu.Unlock()
	if hangs {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if err := b.is("observe " + call.Target); err != nil {
		return nil, err
	}
	list, err := call.Clients.Kube.AppsV1().Deployments(call.Plan.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "target=" + call.Target})
	if err != nil {
		return nil, err
	}
	var out []hibernate.Observation
	for _, d := range list.Items {
		if err := b.is("look " + d.Name); err != nil && call.Operation == hibernate.Wake {
			out = append(out, hibernate.Observation{ID: d.Name, UID: string(d.UID), Unseen: err})
			continue
		}
		before, err := json.Marshal(d.Spec.Replicas)
		if err != nil {
			return nil, err
		}
		if b.workloads {
			before = fmt.Appendf(nil, `{"replicas":%s}`, before)
		}
		awake := *d.Spec.Replicas > 0
		out = append(out, hibernate.Observation{
			ID: d.Name, UID: string(d.UID), Asleep: !awake, Awake: awake, Ready: awake, Before: before, Version: d.ResourceVersion, LeftOut: d.Annotations["left-out"], RevivedBy: d.Annotations["revived-by"],
			Units: map[string]float64{"cpu": 1}, Machines: strings.Fields(d.Annotations["machines"]),
		})
	}
	return out, nil
}

// Shutdown is executors.Sleeper's.
func (b *beds) Shutdown(ctx context.Context, call executors.SleepCall, due []hibernate.Due) []executors.SleepResult {
	if b.is("hearing") != nil { // it takes every request, and nothing comes of it
		var out []executors.SleepResult
		for _, d := range due {
			out = append(out, executors.SleepResult{ID: d.ID})
		}
		return out
	}
	now := b.Turn(call, due)
	out := b.change(ctx, call, now, func(hibernate.Due) string { return "0" })
	for _, d := range due[len(now):] {
		out = append(out, executors.SleepResult{ID: d.ID, Untouched: true})
	}
	return out
}

// Turn is executors.SleepTurns'.
func (b *beds) Turn(_ executors.SleepCall, due []hibernate.Due) []hibernate.Due {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.turns && len(due) > 0 {
		return due[:1]
	}
	return due
}

// Wake is executors.Sleeper's.
func (b *beds) Wake(ctx context.Context, call executors.SleepCall, due []hibernate.Due) []executors.SleepResult {
	return b.change(ctx, call, due, func(d hibernate.Due) string { return replicasOf(d.Before) })
}

func (b *beds) change(ctx context.Context, call executors.SleepCall, due []hibernate.Due, to func(hibernate.Due) string) []executors.SleepResult {
	var out []executors.SleepResult
	for _, d := range due {
		if r := b.world.record(call.Target); r == nil || !slices.ContainsFunc(r.Resources, func(res hibernate.Resource) bool { return res.ID == d.ID }) {
			b.world.Errorf("%s is touched before it is recorded", d.ID)
		}
		if err := cmp.Or(d.Seen.Unseen, b.is(string(call.Operation)+" "+d.ID)); err != nil {
			out = append(out, executors.SleepResult{ID: d.ID, Err: err})
			continue
		}
		var n int
		if err := json.Unmarshal([]byte(replicasOf(d.Before)), &n); err != nil {
			out = append(out, executors.SleepResult{ID: d.ID, Err: fmt.Errorf("the restore data of %s: %w", d.ID, err)})
			continue
		}
		patch := fmt.Sprintf(`{"metadata":{"uid":%q,"resourceVersion":%q},"spec":{"replicas":%s}}`, d.UID, d.Seen.Version, to(d))
		_, err := call.Clients.Kube.AppsV1().Deployments(call.Plan.Namespace).Patch(ctx, d.ID, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: call.Plan.Manager})
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			err = nil
		}
		out = append(out, executors.SleepResult{ID: d.ID, Err: err, Untouched: apierrors.IsForbidden(err)})
	}
	return out
}

// observed is how often a target was looked at.
func (b *beds) observed(target string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for _, c := range b.calls {
		if cmp.Or(target, c.Target) == c.Target {
			n++
		}
	}
	return n
}
