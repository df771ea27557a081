// Package agent is the in-cluster half of kubectl maint: it watches documents
// and runs, asks package plan what follows, and does that, no more.
package agent

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/config"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/gates"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/leader"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/metrics"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/nodemaintenance"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/notify"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/plans"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/policies"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/queue"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/runs"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/status"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/targets"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/watchrules"
	"github.com/kubectl-maint/kubectl-maint/pkg/agentconfig"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/informer"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// Options are what an agent is told at its start.
type Options struct {
	Config         *rest.Config
	Namespace      string // the agent's own
	WatchNamespace string // empty: all
	LeaderElect    bool
	Identity       string // of this process, unique among its replicas
	Pod            string // the name of the pod in which it runs; empty: not known
	Version        string
	DryRun         bool
	Log            *slog.Logger
	LogLevel       *slog.LevelVar
	Now            func() time.Time
	// Executor gives the executor of a step type.
	Executor func(stepType string) (executors.Executor, bool)
	// HTTPClient makes the client for outside requests from the outbound rules.
	HTTPClient func(agentconfig.Outbound) *http.Client
	// Dialer makes what dials outside, for what speaks no HTTP, from the same rules.
	Dialer func(agentconfig.Outbound) func(ctx context.Context, network, address string) (net.Conn, error)
	// Drainer makes what drains nodes. own are the agent's own rights, for what is
	// read of the cluster; changed is to be called when a drain has come further.
	Drainer func(own kubernetes.Interface, changed func(node, by string)) executors.Drainer
	// Lease timing; zero values are the defaults, leaseDuration and what follows.
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
}

// Numbers of workers. Plans are decided on in microseconds; runs wait for
// others' servers (guesses: a hanging webhook must not stall the rest).
const (
	planWorkers = 16
	runWorkers  = 128
)

// Agent decides over plans and moves their runs.
type Agent struct {
	options     Options
	log         *slog.Logger
	now         func() time.Time
	clock       *client.Clock
	fence       *client.Fence
	kube        kubernetes.Interface
	meta        metadata.Interface
	accounts    *client.Impersonator
	events      record.EventRecorder
	broadcaster record.EventBroadcaster
	metrics     *metrics.Metrics
	changes     *policies.Changes

	documents  cache.SharedIndexInformer
	live       cache.SharedIndexInformer
	ended      cache.SharedIndexInformer
	namespaces cache.SharedIndexInformer
	nodes      cache.SharedIndexInformer
	heads      *informer.ListWatch // of ledgers, without a store
	caches     map[cache.SharedIndexInformer]*informer.Cache
	docs       *store.Documents

	plans      *store.Plans
	status     *status.Writer
	gates      *store.Gates
	gatekeeper *gates.Controller
	runs       *store.Runs
	history    *store.History
	words      *informer.Interner
	ledgers    *store.Ledgers
	locks      *store.Locks
	targets    *targets.Watches
	rules      *watchrules.Controller
	passes     *runs.StepPool

	config    *config.Store
	herald    *notify.Notifier
	planQueue *queue.Queue
	runQueue  *queue.Queue
	keeper    *nodemaintenance.Controller
	runner    *runs.Controller
	planner   *plans.Controller
	policies  *policies.Controller

	healthy  atomic.Bool
	mu       sync.Mutex
	leading  time.Time // since when; zero: not
	fatal    error
	shutdown context.CancelFunc
}

// New prepares an agent. Nothing is read or written before Run.
func New(o Options) (*Agent, error) {
	o = withDefaults(o)
	a := &Agent{options: o, log: o.Log, now: o.Now, runs: store.NewRuns(), history: store.NewHistory(), words: informer.NewInterner(), locks: store.NewLocks(), metrics: metrics.New(o.Version)}
	conn, err := client.Connect(client.Config{Rest: o.Config, Version: o.Version, Lease: o.LeaseDuration, Now: o.Now, OnAnswer: a.metrics.Request})
	if err != nil {
		return nil, err
	}
	a.kube, a.meta, a.fence, a.clock = conn.Kube, conn.Meta, conn.Fence, conn.Clock
	a.config = config.New(config.Config{
		Namespace: o.Namespace, Level: o.LogLevel, Log: o.Log, HTTP: o.HTTPClient, Dialer: o.Dialer,
		Fence: a.fence, Kube: a.kube, OnRead: a.metrics.ConfigRead,
	})
	a.accounts = conn.Impersonate(client.Outside{HTTP: a.config.HTTPClient, Dial: a.config.Dial, Sink: a.config.Sink})
	a.planQueue, a.runQueue = a.newQueue("plans"), a.newQueue("runs")
	a.broadcaster, a.events = newEvents()
	a.herald = notify.New(notify.Config{
		Settings: func() agentconfig.Notifications { return a.config.Spec().Notifications }, Sink: a.config.Sink, Fence: a.fence.Check,
		Executor: o.Executor, DryRun: o.DryRun, Log: o.Log, Now: o.Now, Register: a.metrics.Register,
	})
	a.plans, a.status = store.NewPlans(), status.NewWriter(a.kube)
	a.gates = store.NewGates(o.Namespace)
	a.caches = map[cache.SharedIndexInformer]*informer.Cache{}
	a.informers()
	a.docs = store.NewDocuments(a.caches[a.documents], a.caches[a.namespaces], store.FreshConfig{
		Kube: a.kube, Meta: a.meta, Namespace: o.Namespace, WatchNamespace: o.WatchNamespace, Now: o.Now, Backlog: a.planQueue.Len, Plans: a.plans.Size,
	})
	a.gatekeeper = gates.New(gates.Config{
		Kube: a.kube, Accounts: a.accounts, ClockDoubt: a.clock.Doubt, Documents: a.docs, Gates: a.gates, Queue: a.newQueue("gates"),
		Policies: a.planQueue, Events: a.events, Log: a.log, Now: o.Now, DryRun: o.DryRun,
	})
	a.ledgers = store.NewLedgers(a.kube)
	a.targets = targets.New(targets.Config{
		Accounts: a.accounts, Now: o.Now, Plans: a.planQueue,
		Changed: func(k types.NamespacedName) { a.planner.TargetChanged(k) }, Outdate: func(k types.NamespacedName) { a.planner.TargetOutdated(k) },
	})
	a.passes = runs.NewStepPool(a.ringRun)
	a.rules = watchrules.New(watchrules.Config{Accounts: a.accounts, Ledgers: a.ledgers, Runs: a.runs, Plans: a.planQueue, Events: a.events, Log: a.log, Now: o.Now})
	a.keeper = nodemaintenance.New(a.nodeConfig())
	a.runner = runs.New(a.runsConfig())
	a.planner = plans.New(a.plansConfig())
	a.policies = policies.New(policies.Config{
		Documents: a.docs, Plans: a.plans, Book: a.gates, Gates: a.gatekeeper, Status: a.status, Notify: a.herald, Enqueue: a.ringPlan, Changed: a.ringGated, Now: o.Now,
	})
	a.accounts.OnWrite(a.rules.Listen)
	a.metrics.CountWatches(func() int { return a.targets.Count() + a.rules.Count() }, a.runner.WatchCount, a.gatekeeper.Count)
	a.metrics.CountDocuments(a.plans.Count, func(phase run.Phase) int {
		return len(a.runs.Where(func(l *store.CachedRun) bool { return l.Journal.Phase == phase }))
	})
	a.changes = policies.NewChanges(a.gates, a.runs, a.gatekeeper, o.Now, func() bool { return !a.lookingSince().IsZero() })
	return a, nil
}

func withDefaults(o Options) Options {
	o.LeaseDuration = orDefault(o.LeaseDuration, leader.LeaseDuration)
	o.RenewDeadline = orDefault(o.RenewDeadline, leader.RenewDeadline)
	o.RetryPeriod = orDefault(o.RetryPeriod, leader.RetryPeriod)
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

func orDefault(d, def time.Duration) time.Duration {
	if d == 0 {
		return def
	}
	return d
}

func (a *Agent) ringPlan(k types.NamespacedName) { a.planQueue.Add(k) }
func (a *Agent) ringRun(k types.NamespacedName)  { a.runQueue.Add(k) }

func (a *Agent) newQueue(name string) *queue.Queue {
	return queue.New(queue.Config{Name: name, Now: a.now, Log: a.log, OnPanic: a.metrics.Panicked})
}

// Run works until ctx ends or the lease is lost; the latter is an error, and the
// process should end with it.
func (a *Agent) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	a.mu.Lock()
	a.shutdown = cancel
	a.mu.Unlock()
	stop := a.startEvents()
	defer stop()
	if err := a.sync(ctx); err != nil {
		return err
	}
	a.awaitConfig(ctx)
	err := a.elector().Run(ctx, a.work)
	a.mu.Lock()
	defer a.mu.Unlock()
	return errors.Join(a.fatal, err)
}

// awaitConfig does nothing for as long as the configuration that the agent
// starts with is broken; it is not ready meanwhile.
func (a *Agent) awaitConfig(ctx context.Context) {
	mended, broken := a.config.Broken()
	if broken == nil {
		a.healthy.Store(true)
		return
	}
	a.log.Error(broken.Error())
	select {
	case <-ctx.Done():
	case <-mended:
		a.healthy.Store(true)
	}
}

func (a *Agent) nodeConfig() nodemaintenance.Config {
	o := a.options
	c := nodemaintenance.Config{
		Kube: a.kube, Accounts: a.accounts, Nodes: a.caches[a.nodes].Informer.GetStore(), Runs: a.runs, Draining: a.plans.Draining, Steps: a.passes,
		Gates:      nodemaintenance.Gates{Book: a.gates, Pauses: func() []schedule.Pause { return a.docs.Pauses(o.Namespace) }, ClockDoubt: a.clock.Doubt},
		EnqueueRun: a.ringRun, Blocked: func(l *store.CachedRun, path string, names []string, why string) {
			a.runner.DrainBlocked(l, path, names, why)
		}, Limits: func() nodes.NodeLimits { return a.config.Spec().Nodes },
		Held: func(found []metav1.Condition) {
			if a.config.SetLimits(found) {
				a.ringPlan(types.NamespacedName{Namespace: o.Namespace, Name: annotations.AgentConfigName})
			}
		},
		Telemetry: nodemaintenance.Telemetry{Events: a.events, Notify: a.herald, Metrics: a.metrics, Log: a.log},
		Scope:     nodemaintenance.Scope{Namespace: o.Namespace, WatchNamespace: o.WatchNamespace, Pod: a.ownPod(), DryRun: o.DryRun}, Now: o.Now,
	}
	if o.Drainer != nil {
		c.Drainer = func(changed func(node, by string)) executors.Drainer { return o.Drainer(a.kube, changed) }
	}
	return c
}

func (a *Agent) runsConfig() runs.Config {
	o := a.options
	return runs.Config{
		Clients:   runs.Clients{Kube: a.kube, Accounts: a.accounts, Fence: a.fence, ClockDoubt: a.clock.Doubt},
		Stores:    runs.Stores{Documents: a.docs, Runs: a.runs, Ledgers: a.ledgers, Locks: a.locks, Gates: a.gates},
		Telemetry: runs.Telemetry{Events: a.events, Notify: a.herald, Metrics: a.metrics, Log: a.log},
		Scope:     runs.Scope{Identity: o.Identity, DryRun: o.DryRun, LookingSince: a.lookingSince},
		Executor:  o.Executor, Status: a.status, Steps: a.passes, Nodes: a.keeper, Expected: a.targets.Expectations(), Queue: a.runQueue, Plans: a.planQueue, Now: o.Now,
	}
}

func (a *Agent) plansConfig() plans.Config {
	o := a.options
	return plans.Config{
		Clients:   plans.Clients{Kube: a.kube, Accounts: a.accounts, ClockDoubt: a.clock.Doubt},
		Stores:    plans.Stores{Documents: a.docs, Plans: a.plans, Runs: a.runs, History: a.history, Ledgers: a.ledgers, Gates: a.gates},
		Telemetry: plans.Telemetry{Events: a.events, Notify: a.herald, Metrics: a.metrics, Log: a.log},
		Scope:     plans.Scope{Namespace: o.Namespace, DryRun: o.DryRun, LookingSince: a.lookingSince},
		Executor:  o.Executor, Settings: a.config.Spec, Status: a.status, Rules: a.rules, Targets: a.targets, Runner: a.runner, EnqueueRun: a.ringRun, Queue: a.planQueue, Now: o.Now,
	}
}

// ownPod is the agent's pod as namespace/name, where it is known.
func (a *Agent) ownPod() string {
	if a.options.Pod == "" {
		return ""
	}
	return a.options.Namespace + "/" + a.options.Pod
}

// Ready says whether the agent has read what it needs and may work.
func (a *Agent) Ready() bool { return a.healthy.Load() }

// Handler serves /metrics, /healthz and /readyz.
func (a *Agent) Handler() http.Handler { return a.metrics.Handler(a.Ready, a.changes.Write) }

func (a *Agent) elector() *leader.Elector {
	o := a.options
	return leader.New(leader.Config{
		Kube: a.kube, Namespace: o.Namespace, Identity: o.Identity, Elect: o.LeaderElect, Fence: a.fence, Log: a.log, Now: a.now,
		LeaseDuration: o.LeaseDuration, RenewDeadline: o.RenewDeadline, RetryPeriod: o.RetryPeriod, Leads: a.metrics.Leads, Lost: a.die,
	})
}

func (a *Agent) heartbeat() leader.Heartbeat {
	o := a.options
	return leader.Heartbeat{Kube: a.kube, Namespace: o.Namespace, Identity: o.Identity, Version: o.Version, Pod: o.Pod, Now: a.now, Log: a.log}
}

// die ends the process's work for a reason that another agent must mend.
func (a *Agent) die(reason error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.fatal == nil {
		a.fatal = reason
	}
	if a.shutdown != nil {
		a.shutdown()
	}
}

// work runs the queues until ctx ends.
func (a *Agent) work(ctx context.Context) {
	a.begin(ctx)
	if ctx.Err() != nil {
		return
	}
	var group sync.WaitGroup
	group.Go(func() { a.heartbeat().Run(ctx) })
	group.Go(func() { a.gatekeeper.Run(ctx) })
	group.Go(func() { a.herald.Run(ctx) })
	group.Go(func() { a.keeper.Run(ctx) })
	group.Go(func() { a.planner.Run(ctx) })
	group.Go(func() { a.planQueue.Work(ctx, planWorkers, a.syncDocument) })
	group.Go(func() { a.runner.Run(ctx, runWorkers) })
	group.Wait()
}

// begin forgets what was believed while another agent led, and looks at everything.
// What the watches of a standby have shown may be of any age: each cache first reaches
// what is there since this agent leads.
func (a *Agent) begin(ctx context.Context) {
	a.barrier(ctx)
	a.ledgers.Forget()
	a.mu.Lock()
	a.leading = a.now()
	a.mu.Unlock()
	for _, o := range a.live.GetStore().List() {
		cm := o.(*corev1.ConfigMap)
		a.ringRun(types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name})
	}
	for _, o := range a.documents.GetStore().List() {
		cm := o.(*corev1.ConfigMap)
		a.ringPlan(types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name})
	}
}

func (a *Agent) lookingSince() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.leading
}
