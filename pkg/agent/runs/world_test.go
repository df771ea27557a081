package runs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/metrics"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/notify"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/queue"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/status"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/steppool"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/agentconfig"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/flow"
	"github.com/kubectl-maint/kubectl-maint/pkg/informer"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

const (
	shop     = "shop"
	nightly  = "nightly"
	planUID  = "plan-uid"
	runName  = "maint-run-nightly-1"
	runner   = "system:serviceaccount:shop:maint-runner"
	oneHook  = "steps:\n- " + hook + "}\n"
	hook     = "{name: hook, type: webhook, properties: {url: 'https://hooks.test'}"
	down     = "{name: down, type: scale, properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: orders}, replicas: 0, restoreAfter: true}}"
	lowerToo = "{name: lower, type: scale, properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: cart}, replicas: 0, restoreAfter: true}}"
	hold     = "{name: hold, type: suspend}"
	tell     = "finally:\n- {name: tell, type: webhook, properties: {url: 'https://hooks.test'}}\n"
	look     = "{name: look, type: wait, properties: {resource: {apiVersion: v1, kind: ConfigMap, name: ready}, until: 'true'}}"
)

// world is a cluster, and what an agent is told of it. It stands in a bubble of
// testing/synctest: its time passes as fast as the test waits.
type world struct {
	*testing.T
	cluster *agenttest.Cluster
	events  *agenttest.Events
	steps   *steps
	nodes   *nodesRoom
	metrics *metrics.Metrics
	agent   *agent
	leads   atomic.Pointer[agent] // the same, for who looks from aside
	doubt   atomic.Value          // of the clock
	doubted [2]time.Time          // from, until
	dryRun  bool
	silent  bool // the plans' status does not show what runs
	told    []string
	cpu     func() time.Duration // of a thread; nil: expressions are not bounded
	denied  []string             // types of steps that the configuration does not allow
}

// agent is one life of an agent.
type agent struct {
	*Controller
	identity string
	conn     *client.Connection
	plans    *plansRoom
	stop     func()
}

// inWorld plays a story in a world of its own, with a plan and its pending run.
func inWorld(t *testing.T, spec string, story func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.asked(spec, func(*run.Run) {})
		story(w)
	})
}

func newWorld(t *testing.T) *world {
	w := &world{T: t, cluster: agenttest.New(t), events: &agenttest.Events{}, metrics: metrics.New("test")}
	w.steps, w.nodes = newSteps(w), &nodesRoom{}
	w.cluster.Put(
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: shop}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: annotations.DefaultNamespace}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "maint-runner"}},
	)
	return w
}

// asked makes a plan and what the plans room leaves of a request for it: an open entry in
// its ledger, and a pending run.
func (w *world) asked(spec string, edit func(*run.Run)) run.Run {
	w.Helper()
	text := planOf(spec)
	parsed, faults := plan.Parse([]byte(text), nightly)
	if len(faults) > 0 {
		w.Fatal(faults)
	}
	r := run.Run{
		APIVersion: document.APIVersion, Kind: "Run", Name: runName, Namespace: shop, Plan: nightly, PlanUID: planUID,
		Request: run.Request{Kind: run.ByToken, Token: "t", At: time.Now().UTC()}, Spec: parsed.Defaulted(),
	}
	edit(&r)
	cm := annotations.NewPlan(shop, r.Plan, text, plan.Account(parsed))
	cm.UID = types.UID(r.PlanUID)
	w.cluster.Put(cm)
	w.claim(r)
	w.put(r, workflow.NewJournal(r))
	return r
}

// planOf is the text of a plan with a spec.
func planOf(spec string) string {
	return "apiVersion: " + document.APIVersion + "\nkind: Plan\nspec:\n  " + strings.ReplaceAll(strings.TrimSpace(spec), "\n", "\n  ") + "\n"
}

// claim opens an entry for a run in its plan's ledger.
func (w *world) claim(r run.Run) {
	w.Helper()
	led := ledger.Ledger{PlanUID: r.PlanUID}
	if have := w.cluster.ConfigMap(r.Namespace, annotations.LedgerName(r.Plan, r.PlanUID)); have != nil {
		led = w.must(annotations.ReadLedger(have, r.PlanUID))
	}
	w.putLedger(r.Plan, led.Claim(r.Name, r.Request, r.TargetUID))
}

func (w *world) putLedger(of string, led ledger.Ledger) {
	w.Helper()
	cm, err := annotations.LedgerObject(shop, of, led)
	if err != nil {
		w.Fatal(err)
	}
	w.cluster.Put(agenttest.Signed(w, cm))
}

func (w *world) must(led ledger.Ledger, err error) ledger.Ledger {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
	return led
}

// makesLedger has the plan make its ledger anew.
func (w *world) makesLedger(led ledger.Ledger) {
	w.Helper()
	if err := w.agent.Stores.Ledgers.Put(w.Context(), types.NamespacedName{Namespace: shop, Name: nightly}, planUID, nil, led); err != nil {
		w.Fatal(err)
	}
}

// put stores a run as it stands.
func (w *world) put(r run.Run, j run.Journal) {
	w.Helper()
	cm, err := annotations.RunObject(r, j)
	if err != nil {
		w.Fatal(err)
	}
	w.cluster.Put(agenttest.Signed(w, cm))
}

// planNow is the uid of the plan that is there.
func (w *world) planNow(k types.NamespacedName) string {
	if cm := w.cluster.ConfigMap(k.Namespace, k.Name); cm != nil {
		return string(cm.UID)
	}
	return ""
}

// begins starts an agent; what was one before is stopped.
func (w *world) begins(identity string) *agent {
	w.Helper()
	if w.agent != nil {
		w.agent.stop()
	}
	conn, accounts := w.cluster.Connect()
	log, signed := slog.New(slog.DiscardHandler), agenttest.Keys().KnowPlans(w.planNow)
	docs := agenttest.ConfigMaps(conn, annotations.LabelKind+"="+annotations.KindPlan, store.Strip)
	live := agenttest.ConfigMaps(conn, annotations.LabelKind+"="+annotations.KindRun+","+annotations.LabelPhase+" in (Pending,Running)", store.Strip)
	namespaces := agenttest.Metadata(conn, "namespaces", store.Strip)
	a := &agent{identity: identity, conn: conn, plans: &plansRoom{world: w}}
	a.plans.agent = a
	since := time.Now()
	runQueue := queue.New(queue.Config{Name: "runs", Now: time.Now, Log: log, OnPanic: w.metrics.Panicked})
	settings := agentconfig.Notifications{On: []agentconfig.NotifyFor{agentconfig.NotifyRunFailed, agentconfig.NotifyDrainBlocked}, Sinks: []agentconfig.Sink{{Name: "ops"}}}
	told := notify.New(notify.Config{
		Settings: func() agentconfig.Notifications { return settings }, Fence: conn.Fence.Check, Log: log, Now: time.Now, Register: func(prometheus.Collector) {},
		Sink:     func(context.Context, string, string) (string, error) { return "", nil },
		Executor: func(string) (executors.Executor, bool) { return sink{w}, true },
	})
	a.Controller = New(Config{
		Clients: Clients{Kube: conn.Kube, Accounts: accounts, Fence: conn.Fence, ClockDoubt: func() string { said, _ := w.doubt.Load().(string); return said }, Doubted: func() (from, until time.Time) { return w.doubted[0], w.doubted[1] }},
		Stores: Stores{
			Documents: store.NewDocuments(docs, namespaces, store.FreshConfig{
				Kube: conn.Kube, Meta: conn.Meta, Namespace: annotations.DefaultNamespace, Now: time.Now, Backlog: func() int { return 0 }, Plans: func() int { return 1 },
			}),
			Runs: store.NewRuns(signed), Ledgers: store.NewLedgers(conn.Kube, signed, func(types.NamespacedName, error) {}), Locks: store.NewLocks(), Gates: store.NewGates(annotations.DefaultNamespace), Keys: signed, Expected: &store.Expectations{},
		},
		Telemetry: notify.Telemetry{Events: w.events, Notify: told, Metrics: w.metrics, Log: log},
		Scope:     Scope{Identity: identity, DryRun: w.dryRun, LeadingSince: func() time.Time { return since }},
		Executor:  w.steps.of(a), Denied: func(string) []string { return w.denied }, Status: status.NewWriter(conn.Kube, w.events), Steps: steppool.New(runQueue.Add, queue.NewEvaluations(time.Now, w.cpu)), Nodes: w.nodes,
		Queue: runQueue, Plans: a.plans, Now: time.Now,
	})
	ctx, cancel := context.WithCancel(w.Context())
	docs.Handle(func(o any) { a.PlanChanged(keyOf(o), o.(*corev1.ConfigMap)) }, func(o any) {
		a.Stores.Documents.Forget(keyOf(o))
		a.PlanChanged(keyOf(o), nil)
	})
	live.Handle(a.Observe, a.Lost)
	namespaces.Handle(func(o any) {
		m := o.(*metav1.PartialObjectMetadata)
		a.Stores.Gates.Change(func(b *policy.Resolver) { b.PutNamespace(m.Name, annotations.Stanza(m.Annotations)) })
		for _, l := range a.Stores.Runs.Filter(func(*store.LiveRun) bool { return true }) {
			a.Queue.Add(l.Key())
		}
	}, func(any) {})
	var group sync.WaitGroup
	for _, c := range []*informer.Cache{docs, live, namespaces} {
		group.Go(func() { c.Informer.RunWithContext(ctx) })
	}
	if !cache.WaitForCacheSync(ctx.Done(), docs.Synced, live.Synced, namespaces.Synced) {
		w.Fatal("the caches do not fill")
	}
	group.Go(func() { a.Run(ctx, 4) })
	group.Go(func() { told.Run(ctx) })
	a.stop = func() {
		cancel()
		group.Wait()
	}
	w.agent = a
	w.leads.Store(a)
	return a
}

func keyOf(o any) types.NamespacedName {
	cm := o.(*corev1.ConfigMap)
	return types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name}
}

// after lets time pass, and everything come to rest.
func (w *world) after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// plays starts an agent and lets a minute pass.
func (w *world) plays() {
	w.Helper()
	w.begins("a")
	w.after(time.Minute)
}

// says has somebody annotate the plan.
func (w *world) says(key, value string) {
	w.Helper()
	w.cluster.Annotate(shop, nightly, key, value)
	synctest.Wait()
}

// stepsInMemory are the steps that are under way or rest.
func (w *world) stepsInMemory() (all []store.StepKey) {
	w.agent.Steps.WakeAll(func(s store.StepKey) bool {
		all = append(all, s)
		return false
	})
	return all
}

// journalOf is the journal of a run as it is stored.
func (w *world) journalOf(name string) run.Journal {
	w.Helper()
	cm := w.cluster.ConfigMap(shop, name)
	if cm == nil {
		w.Fatalf("there is no run %s", name)
	}
	_, j, err := annotations.ReadRun(cm)
	if err != nil {
		w.Fatal(err)
	}
	return j
}

func (w *world) journal() run.Journal {
	w.Helper()
	return w.journalOf(runName)
}

// record is what the journal says of a step.
func (w *world) record(path string) run.Record {
	w.Helper()
	rec := w.journal().Record(path)
	if rec == nil {
		w.Fatalf("the journal knows no step %s", path)
	}
	return *rec
}

func (w *world) ledger() ledger.Ledger {
	w.Helper()
	cm := w.cluster.ConfigMap(shop, annotations.LedgerName(nightly, planUID))
	if cm == nil {
		w.Fatal("there is no ledger")
	}
	return w.must(annotations.ReadLedger(cm, planUID))
}

// ends fails unless the run has ended so, and its entry and its object with it.
func (w *world) ends(phase run.Phase, message string) {
	w.Helper()
	w.endsAs(runName, phase, message)
}

func (w *world) endsAs(name string, phase run.Phase, message string) {
	w.Helper()
	j := w.journalOf(name)
	if j.Phase != phase || !strings.Contains(j.Message, message) {
		w.Errorf("run %s is %s: %q, want %s: %q", name, j.Phase, j.Message, phase, message)
	}
	cm := w.cluster.ConfigMap(shop, name)
	if cm.Labels[annotations.LabelPhase] != string(phase) || len(cm.Finalizers) > 0 || len(cm.OwnerReferences) != 1 {
		w.Errorf("its object has labels %v, finalizers %v, owners %v", cm.Labels, cm.Finalizers, cm.OwnerReferences)
	}
	if _, open := w.ledger().OpenEntry(name); open {
		w.Errorf("its entry is open")
	}
}

// closed is how the newest entry of the ledger ended.
func (w *world) closed() string {
	w.Helper()
	recent := w.ledger().Recent
	if len(recent) == 0 {
		return ""
	}
	last := recent[len(recent)-1]
	return string(last.Result) + " " + last.Reason
}

// story is the log in short words: the run's writes are "journal", the ledger's
// "ledger", and what is about other objects stays as it is.
func (w *world) story() []string {
	led := annotations.LedgerName(nightly, planUID)
	var out []string
	for _, line := range w.cluster.Log() {
		line = strings.ReplaceAll(line, "agent update configmaps "+shop+"/"+runName, "journal")
		line = strings.ReplaceAll(line, "agent update configmaps "+shop+"/"+led, "ledger")
		out = append(out, strings.ReplaceAll(line, "agent patch configmaps "+shop+"/"+nightly, "plan"))
	}
	return out
}

// acts are those lines of the story that are acts.
func (w *world) acts() []string {
	return slices.DeleteFunc(w.story(), func(line string) bool { return !strings.Contains(line, "#") })
}

func (w *world) did(want ...string) {
	w.Helper()
	if got := w.acts(); !slices.Equal(got, want) {
		w.Errorf("it did %q, want %q, in %q", got, want, w.story())
	}
}

// heard says whether an Event was recorded that begins so.
func (w *world) heard(beginning string) bool {
	return slices.ContainsFunc(w.events.All(), func(e string) bool { return strings.HasPrefix(e, beginning) })
}

func (w *world) wantEvent(beginning string) {
	w.Helper()
	if !w.heard(beginning) {
		w.Errorf("no Event %q among %q", beginning, w.events.All())
	}
}

// count is how often a line begins so in the story.
func (w *world) count(beginning string) (n int) {
	for _, line := range w.story() {
		if strings.HasPrefix(line, beginning) {
			n++
		}
	}
	return n
}

// plansRoom stands for the controller of plans: it shows on a plan which of its runs are
// at work, and has them looked at again.
type plansRoom struct {
	world *world
	agent *agent
	mu    sync.Mutex
	asked atomic.Int64
	waits []string // for what runs wait, as the plan's status would say it after each delayed look
}

// Add is the queue's.
func (p *plansRoom) Add(k types.NamespacedName) {
	p.asked.Add(1)
	if p.world.silent {
		return
	}
	p.shows(k)
}

// AddAfter is the queue's.
func (p *plansRoom) AddAfter(k types.NamespacedName, d time.Duration) {
	time.AfterFunc(d, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, l := range p.agent.Stores.Runs.OfPlan(k) {
			said := ""
			if live := l.ActiveRun(); live.Waits {
				said = live.Message
			}
			if n := len(p.waits); n == 0 || p.waits[n-1] != said {
				p.waits = append(p.waits, said)
			}
		}
	})
}

func (p *plansRoom) shows(k types.NamespacedName) {
	running := slices.DeleteFunc(p.agent.Stores.Runs.OfPlan(k), func(l *store.LiveRun) bool { return l.Journal.Phase != run.Running })
	if news := p.agent.Stores.Runs.MarkRecorded(running); len(news) > 0 {
		if p.world.cluster.ConfigMap(k.Namespace, k.Name) != nil {
			p.world.cluster.Annotate(k.Namespace, k.Name, annotations.StatusRuns, store.FormatRuns(running))
		}
		p.world.cluster.Note("shown")
		for _, l := range news {
			p.agent.Queue.Add(l.Key())
		}
	}
}

// nodesRoom gives nodes as a test says.
type nodesRoom struct {
	mu       sync.Mutex
	states   map[string]map[string]workflow.NodeState
	wants    []workflow.NodeDemand
	enqueued int
	refuses  string // why no turn is given
	openedAt time.Time
	gone     map[string]bool
}

func (n *nodesRoom) Want(_ types.NamespacedName, wants []workflow.NodeDemand) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.wants = wants
}

func (n *nodesRoom) States(types.NamespacedName) map[string]map[string]workflow.NodeState {
	return n.states
}

func (n *nodesRoom) Turn(store.StepKey, string, *drain.Options) (bool, string) {
	return n.refuses == "", n.refuses
}

func (n *nodesRoom) Preflight(context.Context, store.StepKey, string, *drain.Options) (bool, string) {
	return n.refuses == "", "preflight: " + n.refuses
}

func (n *nodesRoom) BlockedBy(_ store.StepKey, node string, _ *drain.Options) string {
	return "blocked: " + node
}

func (n *nodesRoom) Stalled(store.StepKey, string, *drain.Options, nodes.Block) bool { return true }

func (n *nodesRoom) OpenedAt(string) time.Time { return n.openedAt }

func (n *nodesRoom) Gone(context.Context, run.NodeTurns) map[string]bool { return n.gone }

func (n *nodesRoom) Enqueue() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.enqueued++
}

func (n *nodesRoom) Drains() executors.Drainer { return nil }

// sink is where notifications go.
type sink struct{ world *world }

// Pass is executors.Executor's.
func (s sink) Pass(_ context.Context, call executors.Call) executors.Outcome {
	s.world.told = append(s.world.told, call.Path+" "+call.Run)
	return executors.Outcome{State: executors.Done}
}

// answer is what one act comes to.
type answer func(context.Context, executors.Call) executors.Outcome

var _ executors.Finder = executor{}

func is(o executors.Outcome) answer {
	return func(context.Context, executors.Call) executors.Outcome { return o }
}

func done() answer { return is(executors.Outcome{State: executors.Done}) }

func fails(message string) answer { return is(executors.Fail("Down", "%s", message)) }

func gives(before string) answer {
	return func(_ context.Context, call executors.Call) executors.Outcome {
		if call.Recorded.Before == nil {
			return executors.Outcome{State: executors.Record, Before: []byte(before)}
		}
		return executors.Outcome{State: executors.Done}
	}
}

// notYet waits so long.
func notYet(d time.Duration) answer {
	return func(_ context.Context, call executors.Call) executors.Outcome {
		return executors.Outcome{State: executors.NotYet, WakeAt: call.Now.Add(d), Message: "not yet"}
	}
}

// listing names the nodes of a rollout, and then has nothing to do with them itself.
func listing(names ...string) answer {
	return func(_ context.Context, call executors.Call) executors.Outcome {
		if call.Recorded.Listed {
			return executors.Outcome{State: executors.Done}
		}
		out := executors.Outcome{State: executors.Record, Listing: executors.Listing{Listed: true, ItemVersion: "v1", ItemKind: "Node"}}
		for _, name := range names {
			out.Listing.Items = append(out.Listing.Items, run.Item{Name: name, UID: name + "-uid"})
		}
		return out
	}
}

// hangs does not come back before it is told to.
func hangs(ctx context.Context, _ executors.Call) executors.Outcome {
	<-ctx.Done()
	return executors.Fail("Cut", "%s", ctx.Err())
}

// steps are executors that do as they are told, and look whether what they are called
// for is written down.
type steps struct {
	world   *world
	mu      sync.Mutex
	answers map[string][]answer
	plain   map[string]bool // types whose executor can only pass
	unknown map[string]bool // types that no executor is for
	calls   []executors.Call
	stopper func(context.Context, executors.Call) error // in place of answers to stops
}

func newSteps(w *world) *steps {
	return &steps{world: w, answers: map[string][]answer{}, plain: map[string]bool{}, unknown: map[string]bool{}}
}

// does says what the next acts of a kind come to, as "pass hook" or "restore down": the
// last answer stays. What nothing was said of is done.
func (s *steps) does(act string, answers ...answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[act] = answers
}

// of are the executors of one agent's life.
func (s *steps) of(a *agent) func(string) (executors.Executor, bool) {
	return func(stepType string) (executors.Executor, bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		switch {
		case s.unknown[stepType]:
			return nil, false
		case stepType == "suspend":
			return flow.Suspender{}, true
		case stepType == plan.TypeApproval:
			return flow.Approver{}, true
		case s.plain[stepType]:
			return passer{s, a}, true
		}
		return executor{passer{s, a}}, true
	}
}

func (s *steps) act(ctx context.Context, a *agent, verb string, call executors.Call) executors.Outcome {
	s.world.cluster.Note("%s %s#%d", verb, call.Path, call.Attempt)
	s.mu.Lock()
	s.calls = append(s.calls, call)
	next := done()
	if list := s.answers[verb+" "+call.Path]; len(list) > 0 {
		if next = list[0]; len(list) > 1 {
			s.answers[verb+" "+call.Path] = list[1:]
		}
	}
	s.mu.Unlock()
	if ctx.Err() == nil { // else nothing can be sent any more
		s.isWritten(a, verb, call)
	}
	return next(ctx, call)
}

// isWritten fails where the journal does not hold what is about to be done, or who does
// it.
func (s *steps) isWritten(a *agent, verb string, call executors.Call) {
	cm := s.world.cluster.ConfigMap(call.Plan.Namespace, call.Run)
	if cm == nil {
		return // somebody tore it away
	}
	_, j, err := annotations.ReadRun(cm)
	if err != nil {
		return // somebody broke it
	}
	rec := j.Record(call.Path)
	if rec == nil || rec.Attempt != call.Attempt || verb == "pass" && rec.Phase != run.StepRunning || j.Leader != a.identity {
		s.world.Errorf("agent %s does %s %s#%d, and the journal of %q says %+v", a.identity, verb, call.Path, call.Attempt, j.Leader, rec)
	}
}

// last is the last call for a step.
func (s *steps) last(path string) executors.Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, call := range slices.Backward(s.calls) {
		if call.Path == path {
			return call
		}
	}
	return executors.Call{}
}

// passer is an executor that can only pass.
type passer struct {
	steps *steps
	agent *agent
}

// Pass is executors.Executor's.
func (p passer) Pass(ctx context.Context, call executors.Call) executors.Outcome {
	return p.steps.act(ctx, p.agent, "pass", call)
}

// executor is one that can do everything.
type executor struct{ passer }

// Restore is executors.Restorer's.
func (e executor) Restore(ctx context.Context, call executors.Call) executors.Outcome {
	return e.steps.act(ctx, e.agent, "restore", call)
}

// Found is executors.Finder's.
func (e executor) Found(before json.RawMessage) string { return "replicas of " + string(before) }

// IsRestored is executors.Finder's.
func (e executor) IsRestored(context.Context, executors.Call) (bool, error) { return false, nil }

// Stop is executors.Stopper's.
func (e executor) Stop(ctx context.Context, call executors.Call) error {
	out := e.steps.act(ctx, e.agent, "stop", call)
	switch {
	case e.steps.stopper != nil:
		return e.steps.stopper(ctx, call)
	case out.State == executors.Failed:
		return errors.New(out.Message)
	}
	return nil
}

// Keep is executors.Keeper's.
func (e executor) Keep(ctx context.Context, call executors.Call) executors.Outcome {
	return e.steps.act(ctx, e.agent, "keep", call)
}

// Release is executors.Keeper's.
func (e executor) Release(ctx context.Context, call executors.Call) executors.Outcome {
	return e.steps.act(ctx, e.agent, "release", call)
}

func at(format string, args ...any) string { return fmt.Sprintf(format, args...) }

func all(*store.LiveRun) bool { return true }
