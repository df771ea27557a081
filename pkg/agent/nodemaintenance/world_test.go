package nodemaintenance

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/cache"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/metrics"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/notify"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/agentconfig"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/informer"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// world is a cluster with an agent that maintains its nodes. Its time is that of a
// synctest bubble.
type world struct {
	testing.TB
	api    *agenttest.Cluster
	events *agenttest.Events
	runs   *store.Runs
	scope  Scope

	mu      sync.Mutex
	limits  nodes.NodeLimits
	pauses  []schedule.Pause
	doubt   string
	held    []metav1.Condition
	woken   []store.StepKey
	rung    []types.NamespacedName
	blocked []string
	plans   map[types.NamespacedName]client.Account
	unsure  error // why what gates rest on is not as it was seen; nil: it is
	checks  int   // how often that was asked
}

// check is Gates'.
func (w *world) check() func(context.Context) error {
	return func(context.Context) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.checks++
		return w.unsure
	}
}

// doubtsGates has what gates rest on be another than what was seen, or unknown.
func (w *world) doubtsGates(why error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unsure = why
}

// play has a story happen in a world of its own.
func play(t *testing.T, story func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{TB: t, api: agenttest.New(t), events: &agenttest.Events{}, runs: store.NewRuns(agenttest.Keys()), scope: Scope{Namespace: "maint-system"}}
		w.api.Put(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "maint-runner"}})
		story(w)
	})
}

// agent is one that leads.
type agent struct {
	*Controller
	drains *drainer
	stop   func()
}

// lead has an agent begin to lead; it ends with the story, unless that stops it.
func (w *world) lead(change ...func(*Config)) *agent {
	w.Helper()
	ctx, cancel := context.WithCancel(w.Context())
	conn, accounts := w.api.Connect()
	a := &agent{drains: &drainer{sessions: map[string]executors.DrainOrder{}, says: map[string]executors.DrainStatus{}}}
	shown := informer.NewCache(informer.ForClient(&corev1.Node{}, conn.Kube.CoreV1().Nodes(), metav1.ListOptions{}), annotations.LabelKind, SlimNode)
	c := Config{
		Clients: Clients{
			Kube: conn.Kube, Accounts: accounts,
			Drainer: func(changed func(node, by string)) executors.Drainer { a.drains.changed = changed; return a.drains },
		},
		Rollouts: Rollouts{
			Runs: w.runs, Draining: func() map[types.NamespacedName]client.Account { return w.plans },
			Steps: w, EnqueueRun: func(k types.NamespacedName) { w.mu.Lock(); defer w.mu.Unlock(); w.rung = append(w.rung, k) },
			Blocked: func(_ *store.CachedRun, path string, list []string, why string) {
				w.mu.Lock()
				defer w.mu.Unlock()
				w.blocked = append(w.blocked, path+" "+why)
			},
		},
		Settings: Settings{
			Limits: func() nodes.NodeLimits { w.mu.Lock(); defer w.mu.Unlock(); return w.limits },
			Held:   func(list []metav1.Condition) { w.mu.Lock(); defer w.mu.Unlock(); w.held = list },
		},
		Nodes: shown.Informer.GetStore(),
		Gates: Gates{Check: w.check, Store: store.NewGates("maint-system"), Pauses: func() []schedule.Pause { w.mu.Lock(); defer w.mu.Unlock(); return w.pauses }, ClockDoubt: func() string { w.mu.Lock(); defer w.mu.Unlock(); return w.doubt }},
		Telemetry: notify.Telemetry{
			Events: w.events, Metrics: metrics.New("test"), Log: slog.New(slog.DiscardHandler),
			Notify: notify.New(notify.Config{Settings: func() agentconfig.Notifications { return agentconfig.Notifications{} }, Register: func(prometheus.Collector) {}}),
		},
		Scope: w.scope, Now: time.Now,
	}
	for _, f := range change {
		f(&c)
	}
	a.Controller = New(c)
	shown.Handle(a.Observe, a.Lost)
	go shown.Informer.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), shown.Synced) {
		w.Fatal("nodes were not listed")
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.Run(ctx)
	}()
	a.stop = func() {
		cancel()
		<-done
	}
	w.Cleanup(a.stop)
	return a
}

// paused has the cluster say other pauses while an agent may ask for them.
func (w *world) paused(all ...schedule.Pause) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pauses = all
}

// doubts has the clock be in doubt while an agent may ask for it.
func (w *world) doubts(why string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.doubt = why
}

// Wake is Steps'.
func (w *world) Wake(s store.StepKey) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.woken = append(w.woken, s)
}

// WakeAll is Steps'. It knows the steps of all live runs.
func (w *world) WakeAll(match func(store.StepKey) bool) {
	for _, l := range w.runs.Filter(func(*store.LiveRun) bool { return true }) {
		for _, rec := range l.Journal.Steps {
			if s := (store.StepKey{Run: l.Key(), Path: rec.Path}); match(s) {
				w.Wake(s)
			}
		}
	}
}

// conditions are the types of those that hold maintenance back.
func (w *world) conditions() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for _, c := range w.held {
		out = append(out, c.Type)
	}
	return out
}

// pass lets time pass.
func (w *world) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// node is one that is Ready.
func node(name string, change ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), Annotations: map[string]string{}, Labels: map[string]string{}},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
	for _, f := range change {
		f(n)
	}
	return n
}

// asked is a node's request; noDrain is one whose requestor wants the cordon alone.
func asked(requestor, value string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Annotations[annotations.RequestPrefix+requestor] = value }
}

const noDrain = `{"drain":false}`

func annotated(key, value string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Annotations[key] = value }
}

func cordoned(n *corev1.Node) { n.Spec.Unschedulable = true }

// recorded bears the record of a cordon.
func recorded(c nodes.Cordon) func(*corev1.Node) {
	return annotated(annotations.StatusCordoned, c.String())
}

// status bears what the agent said of a request.
func status(requestor string, s nodes.Status) func(*corev1.Node) {
	return annotated(annotations.StatusRequestPrefix+requestor, s.String())
}

// edit is what a person does to a node.
func (w *world) edit(name string, change func(*corev1.Node)) {
	w.Helper()
	n := w.node(name)
	change(n)
	w.api.Put(n)
}

func (w *world) node(name string) *corev1.Node {
	w.Helper()
	u := w.api.Get("nodes", "", name)
	if u == nil {
		w.Fatalf("there is no node %s", name)
	}
	return w.typed(u)
}

func (w *world) typed(u *unstructured.Unstructured) *corev1.Node {
	w.Helper()
	n := &corev1.Node{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, n); err != nil {
		w.Fatal(err)
	}
	if n.Annotations == nil {
		n.Annotations = map[string]string{}
	}
	return n
}

// withdraw is what a requestor does who needs the node no more.
func withdraw(requestor string) func(*corev1.Node) {
	return func(n *corev1.Node) { delete(n.Annotations, annotations.RequestPrefix+requestor) }
}

// status is what the agent says of a request.
func (w *world) status(name, requestor string) nodes.Status {
	w.Helper()
	s, _ := nodes.ParseStatus(w.node(name).Annotations[annotations.StatusRequestPrefix+requestor])
	return s
}

// picture is a line for each node: whether it takes pods, for whom it is cordoned, and
// the phase of each request.
func (w *world) picture() []string {
	w.Helper()
	var out []string
	for _, name := range w.api.Names("nodes") {
		n := annotations.Node(w.node(strings.TrimPrefix(name, "/")))
		line := n.Name + " open"
		if n.Unschedulable {
			line = n.Name + " cordoned"
		}
		if n.Cordon != nil {
			line += " for " + strings.Join(n.Cordon.By, "+")
			if n.Cordon.Undone {
				line += " (undone)"
			}
		}
		for _, a := range n.Asked {
			phase := "new"
			if a.Status != nil {
				phase = string(a.Status.Phase)
			}
			line += ", " + a.Request.Requestor + " " + phase
		}
		out = append(out, line)
	}
	slices.Sort(out)
	return out
}

func (w *world) expect(when string, want ...string) {
	w.Helper()
	if diff := cmp.Diff(want, w.picture()); diff != "" {
		w.Errorf("%s, -want +got:\n%s", when, diff)
	}
}

// patches are those of a node, whatever became of them.
func (w *world) patches(name string) int {
	return w.api.Asked(agenttest.When{Verb: "patch", Resource: "nodes", Name: name})
}

// watches is how many watches of a resource are open.
func (w *world) watches(resource string) int {
	n := 0
	for _, open := range w.api.Watches() {
		if open == "agent "+resource {
			n++
		}
	}
	return n
}

// said are the reasons of the Events about a node, in their order.
func (w *world) said(name string) []string {
	var out []string
	for _, s := range w.events.All() {
		if words := strings.Fields(s); words[2] == name+":" {
			out = append(out, words[1])
		}
	}
	return out
}

// times is how many Events of a reason there are about a node.
func (w *world) times(name, reason string) int {
	return len(slices.DeleteFunc(w.said(name), func(is string) bool { return is != reason }))
}

// drainer is one whose drains end when a test says so.
type drainer struct {
	changed func(node, by string)

	mu       sync.Mutex
	sessions map[string]executors.DrainOrder // by node and claimant
	says     map[string]executors.DrainStatus
	began    []string
	ended    []string
	swept    []string
	left     int
	sweepErr error
	unswept  []string
	failed   map[string]map[string]drain.Replacement // by node and claimant, by uid
}

// Ensure is executors.Drainer's.
func (d *drainer) Ensure(_ context.Context, o executors.DrainOrder) executors.DrainStatus {
	d.mu.Lock()
	defer d.mu.Unlock()
	k := o.Node + " " + o.By
	if _, runs := d.sessions[k]; !runs {
		d.began = append(d.began, k)
	}
	d.sessions[k] = o
	if s, said := d.says[o.Node]; said {
		return s
	}
	return executors.DrainStatus{Reason: executors.DrainWorking, Total: 2, Left: 2}
}

// At is executors.Drainer's.
func (d *drainer) ForCluster(string, executors.Clients) (executors.Drainer, bool) { return d, true }

// Keep is executors.Drainer's.
func (d *drainer) Keep(wanted func(node, by string) bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for k, o := range d.sessions {
		if !wanted(o.Node, o.By) {
			delete(d.sessions, k)
			d.ended = append(d.ended, k)
		}
	}
}

// Stop is executors.Drainer's.
func (d *drainer) Stop(node, by string) {
	d.Keep(func(n, b string) bool { return n != node || b != by })
}

// Sweep is executors.Drainer's.
func (d *drainer) Sweep(_ context.Context, _ executors.Clients, _, by string, busy func(string) bool) (int, error) {
	at := by
	for _, name := range []string{"a", "b"} {
		if busy(name) {
			at += " but " + name
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.swept = append(d.swept, at)
	return d.left, d.sweepErr
}

// Unswept is executors.Drainer's.
func (d *drainer) Unswept() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	defer func() { d.unswept = nil }()
	return d.unswept
}

// Unreplaced is executors.Drainer's.
func (d *drainer) Unreplaced(node, by string, _ time.Time) map[string]drain.Replacement {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.failed[node+" "+by])
}

// AwaitRequests is executors.Drainer's.
func (d *drainer) AwaitRequests() {}

// fail has the surges of a drain fail, by its node and claimant.
func (d *drainer) fail(at string, pods map[string]drain.Replacement) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failed = map[string]map[string]drain.Replacement{at: pods}
}

// say has the drain of a node stand so from now on.
func (d *drainer) say(node string, s executors.DrainStatus) {
	d.mu.Lock()
	d.says[node] = s
	d.mu.Unlock()
	d.changed(node, requestsClaimant)
}

// done has the drain of a node end.
func (d *drainer) done(node string) {
	d.say(node, executors.DrainStatus{Done: true, Total: 2, Evicted: 2})
}

func (d *drainer) running() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Sorted(maps.Keys(d.sessions))
}

// pod is one of a ReplicaSet on a node.
func pod(name, on string, change ...func(*corev1.Pod)) *corev1.Pod {
	yes := true
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{"app": "web"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "rs", Controller: &yes}},
		},
		Spec:   corev1.PodSpec{NodeName: on},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
	for _, f := range change {
		f(p)
	}
	return p
}

// budget is one for the pods of web that never permits an eviction, or always.
func budget(name string, permits bool) *policyv1.PodDisruptionBudget {
	at, allowed := intstr.FromInt32(0), int32(0)
	if permits {
		at, allowed = intstr.FromInt32(1), 1
	}
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Generation: 1},
		Spec:       policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &at, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
		Status:     policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 1, CurrentHealthy: 1, ExpectedPods: 1, DesiredHealthy: 1 - allowed, DisruptionsAllowed: allowed},
	}
}

// live has a run of plan shop/<plan> be at some steps.
func (w *world) live(planName string, steps ...run.Record) store.StepKey {
	w.Helper()
	return w.liveWith(planName, plan.Spec{}, steps...)
}

// liveWith is live of a plan of which something is known.
func (w *world) liveWith(planName string, spec plan.Spec, steps ...run.Record) store.StepKey {
	w.Helper()
	l := &store.CachedRun{
		Object:  &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "run-" + planName, ResourceVersion: "1", Labels: map[string]string{annotations.LabelPlan: planName}}},
		Run:     run.Run{Name: "run-" + planName, Namespace: "shop", Plan: planName, PlanUID: "plan-uid", Spec: spec},
		Journal: run.Journal{Phase: run.Running, Steps: steps},
	}
	w.runs.Put(l)
	path := ""
	if len(steps) > 0 {
		path = steps[0].Path
	}
	return store.StepKey{Run: l.Key(), Path: path}
}

// drainStep is the record of a drain that is at work.
func drainStep(path string, targets ...run.DrainTarget) run.Record {
	return drainStepSince(path, time.Time{}, targets...)
}

func drainStepSince(path string, since time.Time, targets ...run.DrainTarget) run.Record {
	return run.Record{Path: path, Type: plan.TypeDrain, Phase: run.StepRunning, Attempt: 1, Memory: mustJSON(run.DrainMemory{Attempt: 1, Since: since, Nodes: targets})}
}

// drainTarget is a node that a drain was given and has cordoned.
func drainTarget(name string) run.DrainTarget { return run.DrainTarget{Name: name, Cordoned: true} }

// rollout is the record of a for-each-node that is at work.
func rollout(path string, items ...run.Item) run.Record {
	return run.Record{Path: path, Type: plan.TypeForEachNode, Phase: run.StepRunning, Attempt: 1, Listed: true, Items: items}
}
