// Package agent is the in-cluster half of kubectl maint: it watches documents
// and runs, asks the core what follows, and does that, no more.
package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/config"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/freezes"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/gates"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/hibernation"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/keys"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/leader"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/metrics"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/nodemaintenance"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/notify"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/plans"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/policies"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/queue"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/runs"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/status"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/steppool"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/targets"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/watchrules"
	"github.com/kubectl-maint/kubectl-maint/pkg/agentconfig"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/informer"
	"github.com/kubectl-maint/kubectl-maint/pkg/kube"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// Options are what an agent is told at its start.
type Options struct {
	Config         *rest.Config
	Namespace      string // the agent's own
	WatchNamespace string // empty: all
	LeaderElection LeaderElection
	Pod            string // the name of the pod in which it runs; empty: not known
	Version        string
	DryRun         bool
	MetricsAuth    bool // /metrics asks for a token
	Log            *slog.Logger
	LogLevel       *slog.LevelVar
	Now            func() time.Time
	CPUTime        func() time.Duration // that the calling thread has had; nil: what expressions take is not bounded
	Executors      Executors
	Outbound       Outbound
}

// LeaderElection is how one of the replicas is chosen to act. Timing that is zero is the default:
// leaseDuration and what follows.
type LeaderElection struct {
	LeaderElect                               bool
	Identity                                  string // of this process, unique among its replicas
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
}

// Executors do what plans ask for.
type Executors struct {
	// Executor gives the executor of a step type.
	Executor func(stepType string) (executors.Executor, bool)
	// Sleepers put targets of HibernatePlans to sleep, by their type.
	Sleepers map[string]executors.Sleeper
	// Drainer makes what drains nodes. own are the agent's own rights, for what is
	// read of the cluster; changed is to be called when a drain has come further.
	Drainer func(own kube.Interface, changed func(node, by string)) executors.Drainer
}

// Outbound is how the outside is reached.
type Outbound struct {
	// HTTPClient makes the client for outside requests from the outbound rules.
	HTTPClient func(agentconfig.Outbound) *http.Client
	// Dialer makes what dials outside, for what speaks no HTTP, from the same rules.
	Dialer func(agentconfig.Outbound) func(ctx context.Context, network, address string) (net.Conn, error)
	// AWSEndpoint stands in for AWS, for tests and for AWS's own dual-stack or private
	// endpoints; empty: AWS's.
	AWSEndpoint string
	// EKS says how clusters of EKS are reached; nil: none is.
	EKS client.EKS
}

// Numbers of workers. Plans are decided on in microseconds; runs wait for
// others' servers (guesses: a hanging webhook must not stall the rest).
const (
	planWorkers = 16
	runWorkers  = 128
)

// Agent wires the rooms, and says what they look at.
type Agent struct {
	lifecycle   lifecycle
	options     Options
	conn        *client.Connection
	accounts    *client.Impersonator
	metrics     *metrics.Metrics
	keys        *keys.Store
	events      events
	config      *config.Store
	notifier    *notify.Notifier
	status      *status.Writer
	caches      caches
	memory      memory
	queues      queues
	controllers controllers
	actors      atomic.Pointer[actorPolicy] // nil: nobody follows it yet
}

// queues hold what is to be looked at.
type queues struct {
	plans *queue.Queue
	runs  *queue.Queue
}

// lifecycle is how far the process has come.
type lifecycle struct {
	healthy  atomic.Bool
	mu       sync.Mutex
	leading  time.Time // since when; zero: not
	fatal    error
	shutdown context.CancelFunc
}

// events are recorded from the start, and sent once the agent runs.
type events struct {
	broadcaster record.EventBroadcaster
	recorder    *notify.Recorder
}

// caches are what the agent watches as itself.
type caches struct {
	documents   *informer.Cache
	live        *informer.Cache // runs that have not ended
	ended       *informer.Cache // runs that have, their metadata alone
	namespaces  *informer.Cache
	nodes       *informer.Cache
	key         *informer.Cache     // the Secret of the agent's key
	restores    *informer.Cache     // what hibernation must bring back
	ledgers     *informer.ListWatch // without a store
	words       *informer.Interner
	placeholder placeholder
}

// memory is what is held in memory of them.
type memory struct {
	documents *store.Documents
	plans     *store.Plans
	runs      *store.Runs
	history   *store.History
	ledgers   *store.Ledgers
	gates     *store.Gates
	locks     *store.Locks
}

// controllers look at what is there and do what follows.
type controllers struct {
	plans       *plans.Controller
	policies    *policies.Controller
	changes     *policies.Changes
	gates       *gates.Controller
	freezes     *freezes.Controller
	hibernation *hibernation.Controller
	rules       *watchrules.Controller
	targets     *targets.Watches
	nodes       *nodemaintenance.Controller
	runs        *runs.Controller
	steps       *steppool.Pool
}

// New prepares an agent. Nothing is read or written before Run.
func New(o Options) (*Agent, error) {
	o = withDefaults(o)
	a := &Agent{options: o, metrics: metrics.New(o.Version)}
	var err error
	a.conn, err = client.Connect(client.Config{Rest: o.Config, Version: o.Version, Lease: o.LeaderElection.LeaseDuration, Now: o.Now, OnAnswer: a.metrics.Request})
	if err != nil {
		return nil, err
	}
	a.config = config.New(config.Config{
		Namespace: o.Namespace, Level: o.LogLevel, Log: o.Log, HTTP: o.Outbound.HTTPClient, Dialer: o.Outbound.Dialer,
		Fence: a.conn.Fence, Kube: a.conn.Kube, OnRead: a.metrics.ConfigRead,
	})
	a.accounts = a.conn.Impersonate(client.External{HTTP: a.config.HTTPClient, Dial: a.config.Dial, Sink: a.config.Sink, DefaultSink: a.config.DefaultSink, FunctionTLS: a.config.FunctionTLS, AWSEndpoint: o.Outbound.AWSEndpoint, EKS: o.Outbound.EKS, Rules: a.outboundRules, Certificate: a.metrics.CertificateSeen})
	a.queues.plans, a.queues.runs = a.newQueue("plans"), a.newQueue("runs")
	a.events = newEvents(o.Log)
	a.notifier = notify.New(notify.Config{
		Settings: func() agentconfig.Notifications { return a.config.Spec().Notifications }, Sink: a.config.Sink, Fence: a.conn.Fence.Check,
		Executor: o.Executors.Executor, DryRun: o.DryRun, Log: o.Log, Now: o.Now, Register: a.metrics.Register,
	})
	a.status = status.NewWriter(a.conn.Kube, a.events.recorder)
	a.keys = keys.New(keys.Config{Kube: a.conn.Kube, Meta: a.conn.Meta, Namespace: o.Namespace, WatchNamespace: o.WatchNamespace, Now: o.Now, Log: o.Log, Changed: a.keyChanged})
	a.memory = memory{
		plans: store.NewPlans(), runs: store.NewRuns(a.keys), history: store.NewHistory(), ledgers: store.NewLedgers(a.conn.Kube, a.keys, a.ledgerForged), gates: store.NewGates(o.Namespace), locks: store.NewLocks(),
	}
	a.keys.KnowPlans(a.planUID)
	a.memory.runs.Quota.OnFree(a.queues.plans.Add)
	a.memory.gates.Change(func(r *policy.Resolver) { r.LimitSearches(queue.NewSearches(o.Now).Of) })
	a.informers()
	a.memory.documents = store.NewDocuments(a.caches.documents, a.caches.namespaces, store.FreshConfig{
		Kube: a.conn.Kube, Meta: a.conn.Meta, Namespace: o.Namespace, WatchNamespace: o.WatchNamespace, Now: o.Now, Backlog: a.queues.plans.Len, Plans: a.memory.plans.Size,
	})
	a.controllers.gates = gates.New(gates.Config{
		Clients: gates.Clients{Kube: a.conn.Kube, Namespace: o.Namespace, Accounts: a.accounts, ClockDoubt: a.conn.Clock.SkewReason}, Stores: gates.Stores{Documents: a.memory.documents, Gates: a.memory.gates, Keys: a.keys},
		Queue: a.newQueue("gates"), Policies: a.queues.plans, Events: a.events.recorder, Log: a.options.Log, Now: o.Now, DryRun: o.DryRun,
	})
	a.controllers.freezes = freezes.New(freezes.Config{
		Clients: freezes.Clients{Kube: a.conn.Kube, Meta: a.conn.Meta, Accounts: a.accounts}, Stores: freezes.Stores{Namespaces: a.caches.namespaces.Informer.GetStore(), Gates: a.memory.gates, Runs: a.memory.runs},
		Scope: freezes.Scope{Namespace: o.Namespace, Scoped: o.WatchNamespace != "", DryRun: o.DryRun}, Queue: a.newQueue("freezes"), WakeRun: a.enqueueRun, Events: a.events.recorder, Log: o.Log, Now: o.Now,
	})
	health, _ := o.Executors.Executor("health-check")
	a.controllers.hibernation = hibernation.New(hibernation.Config{
		Clients: hibernation.Clients{Kube: a.conn.Kube, Accounts: a.accounts}, Stores: hibernation.Stores{Documents: a.memory.documents, Gates: a.memory.gates, Ledgers: a.memory.ledgers, Keys: a.keys, Holders: a.memory.runs.Holds.Lookup}, Executors: hibernation.Executors{Sleepers: o.Executors.Sleepers, Health: health, Machines: a.machines}, Sleeping: a.metrics.Hibernated, Status: a.status, Telemetry: notify.Telemetry{Notify: a.notifier, Events: a.events.recorder, Log: o.Log},
		Clock: hibernation.Clock{ClockDoubt: a.conn.Clock.SkewReason, Ahead: a.conn.Clock.Ahead, Now: o.Now}, Queue: a.newQueue("hibernation"), Scope: hibernation.Scope{Namespace: o.Namespace, DryRun: o.DryRun, Denied: a.deniedTypes},
	})
	a.controllers.targets = targets.New(targets.Config{
		Accounts: a.accounts, Plans: a.queues.plans,
		Changed: func(k types.NamespacedName) { a.controllers.plans.TargetChanged(k) }, Outdate: func(k types.NamespacedName) { a.controllers.plans.TargetOutdated(k) },
	})
	// Steps and rules have budgets of their own: a step waits for its turn, and no worker of plans waits with it.
	a.controllers.steps = steppool.New(a.enqueueRun, queue.NewEvaluations(o.Now, o.CPUTime))
	a.controllers.rules = watchrules.New(watchrules.Config{Accounts: a.accounts, Ledgers: a.memory.ledgers, Runs: a.memory.runs, Plans: a.queues.plans, Evaluations: queue.NewEvaluations(o.Now, o.CPUTime), Events: a.events.recorder, Log: a.options.Log, Now: o.Now})
	a.controllers.nodes = nodemaintenance.New(a.nodeConfig())
	a.controllers.runs = runs.New(a.runsConfig())
	a.controllers.plans = plans.New(a.plansConfig())
	a.controllers.policies = policies.New(policies.Config{
		Documents: a.memory.documents, Plans: a.memory.plans, Store: a.memory.gates, Gates: a.controllers.gates, Status: a.status, Notify: a.notifier, Enqueue: a.enqueuePlan, Changed: a.enqueueGated, Now: o.Now,
		Pause:         func() schedule.Pause { return schedule.LongestPause(a.memory.documents.Pauses(o.Namespace)...) },
		MinimumWindow: func() *agentconfig.MinimumWindow { return a.config.Spec().MinimumWindow },
	})
	a.accounts.OnWrite(a.controllers.rules.Listen)
	a.metrics.CountWatches(func() int {
		return a.controllers.targets.Count() + a.controllers.rules.Count() + a.controllers.hibernation.Watching()
	}, a.controllers.runs.WatchCount, a.controllers.gates.Count)
	a.metrics.CountDocuments(a.countDocuments, func(phase run.Phase) int {
		return len(a.memory.runs.Filter(func(l *store.LiveRun) bool { return l.Journal.Phase == phase && !l.Head.Request.DryRun }))
	})
	a.exportTroubles()
	a.controllers.changes = policies.NewChanges(a.memory.gates, a.memory.runs, a.controllers.gates, o.Now, func() bool { return !a.lookingSince().IsZero() })
	return a, nil
}

func withDefaults(o Options) Options {
	o.LeaderElection.LeaseDuration = orDefault(o.LeaderElection.LeaseDuration, leader.LeaseDuration)
	o.LeaderElection.RenewDeadline = orDefault(o.LeaderElection.RenewDeadline, leader.RenewDeadline)
	o.LeaderElection.RetryPeriod = orDefault(o.LeaderElection.RetryPeriod, leader.RetryPeriod)
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

func (a *Agent) enqueuePlan(k types.NamespacedName) { a.queues.plans.Add(k) }
func (a *Agent) enqueueRun(k types.NamespacedName)  { a.queues.runs.Add(k) }

func (a *Agent) newQueue(name string) *queue.Queue {
	return queue.New(queue.Config{Name: name, Now: a.options.Now, Log: a.options.Log, OnPanic: a.metrics.Panicked})
}

// Run works until ctx ends or the lease is lost; the latter is an error, and the
// process should end with it.
func (a *Agent) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	a.lifecycle.mu.Lock()
	a.lifecycle.shutdown = cancel
	a.lifecycle.mu.Unlock()
	stop := a.startEvents()
	defer stop()
	if err := a.sync(ctx); err != nil {
		return err
	}
	a.awaitConfig(ctx)
	a.takeIn(ctx)
	err := a.elector().Run(ctx, a.work)
	a.lifecycle.mu.Lock()
	defer a.lifecycle.mu.Unlock()
	return errors.Join(a.lifecycle.fatal, err)
}

// awaitConfig does nothing for as long as the configuration that the agent
// starts with is broken; it is not ready meanwhile.
func (a *Agent) awaitConfig(ctx context.Context) {
	mended, broken := a.config.Broken()
	if broken == nil {
		a.lifecycle.healthy.Store(true)
		return
	}
	a.options.Log.Error(broken.Error())
	select {
	case <-ctx.Done():
	case <-mended:
		a.lifecycle.healthy.Store(true)
	}
}

func (a *Agent) nodeConfig() nodemaintenance.Config {
	o := a.options
	c := nodemaintenance.Config{
		Clients: nodemaintenance.Clients{Kube: a.conn.Kube, Accounts: a.accounts},
		Rollouts: nodemaintenance.Rollouts{
			Runs: a.memory.runs, Draining: a.memory.plans.Draining, Steps: a.controllers.steps, EnqueueRun: a.enqueueRun,
			Blocked: func(l *store.CachedRun, path string, names []string, why string) {
				a.controllers.runs.DrainBlocked(l, path, names, why)
			},
		},
		Settings: nodemaintenance.Settings{
			Limits: func() nodes.NodeLimits { return a.config.Spec().Nodes }, Lifecycle: func() bool { return a.config.Spec().WritesLifecycle() },
			Held: func(found []metav1.Condition) {
				if a.config.SetLimits(found) {
					a.enqueuePlan(types.NamespacedName{Namespace: o.Namespace, Name: annotations.AgentConfigName})
				}
			},
		},
		Nodes:     a.caches.nodes.Informer.GetStore(),
		Gates:     nodemaintenance.Gates{Store: a.memory.gates, Pauses: func() []schedule.Pause { return a.memory.documents.Pauses(o.Namespace) }, Check: a.memory.documents.GateCheck, ClockDoubt: a.conn.Clock.SkewReason},
		Telemetry: a.telemetry(),
		Scope:     nodemaintenance.Scope{Namespace: o.Namespace, WatchNamespace: o.WatchNamespace, Pod: a.ownPod(), DryRun: o.DryRun}, Now: o.Now,
	}
	if o.Executors.Drainer != nil {
		c.Clients.Drainer = func(changed func(node, by string)) executors.Drainer {
			return o.Executors.Drainer(a.conn.Kube, changed)
		}
	}
	return c
}

func (a *Agent) runsConfig() runs.Config {
	o := a.options
	return runs.Config{
		Clients:   runs.Clients{Kube: a.conn.Kube, Accounts: a.accounts, Fence: a.conn.Fence, ClockDoubt: a.conn.Clock.SkewReason, Doubted: a.conn.Clock.Doubted},
		Stores:    runs.Stores{Documents: a.memory.documents, Runs: a.memory.runs, Ledgers: a.memory.ledgers, Locks: a.memory.locks, Gates: a.memory.gates, Keys: a.keys, Expected: a.controllers.targets.Expectations()},
		Telemetry: a.telemetry(),
		Scope:     runs.Scope{Identity: o.LeaderElection.Identity, DryRun: o.DryRun, LeadingSince: a.lookingSince},
		Executor:  o.Executors.Executor, Denied: a.deniedTypes, Status: a.status, Steps: a.controllers.steps, Nodes: a.controllers.nodes, Freezes: a.controllers.freezes, Queue: a.queues.runs, Plans: a.queues.plans, Now: o.Now,
	}
}

func (a *Agent) plansConfig() plans.Config {
	o := a.options
	return plans.Config{
		Clients:   plans.Clients{Kube: a.conn.Kube, Accounts: a.accounts, ClockDoubt: a.conn.Clock.SkewReason, Ahead: a.conn.Clock.Ahead, Doubted: a.conn.Clock.Doubted},
		Stores:    plans.Stores{Documents: a.memory.documents, Plans: a.memory.plans, Runs: a.memory.runs, History: a.memory.history, Ledgers: a.memory.ledgers, Gates: a.memory.gates, Keys: a.keys},
		Telemetry: a.telemetry(),
		Scope:     plans.Scope{Namespace: o.Namespace, DryRun: o.DryRun, LeadingSince: a.lookingSince},
		Executor:  o.Executors.Executor, Settings: a.config.Spec, Watches: plans.Watches{Rules: a.controllers.rules, Targets: a.controllers.targets}, Status: a.status, Runner: a.controllers.runs, EnqueueRun: a.enqueueRun, Queue: a.queues.plans, Now: o.Now,
	}
}

// outboundRules is a text that changes when the outbound rules do.
func (a *Agent) outboundRules() string {
	rules := a.config.Spec().Outbound
	return fmt.Sprintf("%q %q", rules.Allow, rules.Deny)
}

// ownPod is the agent's pod as namespace/name, where it is known.
func (a *Agent) ownPod() string {
	if a.options.Pod == "" {
		return ""
	}
	return a.options.Namespace + "/" + a.options.Pod
}

// deniedTypes are those of steps and of targets that the configuration does not allow in a namespace.
func (a *Agent) deniedTypes(namespace string) []string { return a.config.Spec().Denied(namespace) }

// Ready says whether the agent has read what it needs and may work.
func (a *Agent) Ready() bool { return a.lifecycle.healthy.Load() && a.keys.Usable() == nil }

// Handler serves /metrics, /healthz and /readyz.
func (a *Agent) Handler() http.Handler {
	var scrapers *metrics.Scrapers
	if a.options.MetricsAuth {
		scrapers = metrics.NewScrapers(a.conn.Kube, a.options.Now)
	}
	return a.metrics.Handler(a.Ready, a.controllers.changes.Write, scrapers)
}

func (a *Agent) elector() *leader.Elector {
	o := a.options
	return leader.New(leader.Config{
		Kube: a.conn.Kube, Namespace: o.Namespace, Identity: o.LeaderElection.Identity, Elect: o.LeaderElection.LeaderElect, Fence: a.conn.Fence, Log: a.options.Log, Now: a.options.Now,
		LeaseDuration: o.LeaderElection.LeaseDuration, RenewDeadline: o.LeaderElection.RenewDeadline, RetryPeriod: o.LeaderElection.RetryPeriod, Leads: a.metrics.Leads, Lost: a.die,
	})
}

func (a *Agent) heartbeat() leader.Heartbeat {
	o := a.options
	return leader.Heartbeat{Kube: a.conn.Kube, Namespace: o.Namespace, Identity: o.LeaderElection.Identity, Version: o.Version, Pod: o.Pod, Watches: o.WatchNamespace, Key: a.keys.ID, Actors: a.actorsRefused, Configuration: a.config.Stands, Now: a.options.Now, Log: a.options.Log, Rewound: a.rewound}
}

// die ends the process's work for a reason that another agent must mend.
func (a *Agent) die(reason error) {
	a.lifecycle.mu.Lock()
	defer a.lifecycle.mu.Unlock()
	if a.lifecycle.fatal == nil {
		a.lifecycle.fatal = reason
	}
	if a.lifecycle.shutdown != nil {
		a.lifecycle.shutdown()
	}
}

// telemetry is where controllers say what they do.
func (a *Agent) telemetry() notify.Telemetry {
	return notify.Telemetry{Events: a.events.recorder, Notify: a.notifier, Metrics: a.metrics, Log: a.options.Log}
}

// work runs the queues until ctx ends.
func (a *Agent) work(ctx context.Context) {
	a.begin(ctx)
	if ctx.Err() != nil {
		return
	}
	var group sync.WaitGroup
	group.Go(func() { a.heartbeat().Run(ctx) })
	group.Go(func() { a.keys.Run(ctx) })
	group.Go(func() { a.followActorPolicy(ctx) })
	group.Go(func() { a.followConditions(ctx) })
	group.Go(func() { a.controllers.gates.Run(ctx) })
	group.Go(func() { a.controllers.freezes.Run(ctx) })
	group.Go(func() { a.controllers.hibernation.Run(ctx) })
	group.Go(func() { a.notifier.Run(ctx) })
	group.Go(func() { a.controllers.nodes.Run(ctx) })
	group.Go(func() { a.controllers.plans.Run(ctx) })
	group.Go(func() { a.queues.plans.WorkInShares(ctx, planWorkers, queue.Share(planWorkers), a.reconcile) })
	group.Go(func() { a.controllers.runs.Run(ctx, runWorkers) })
	group.Wait()
}

// begin forgets what was believed while another agent led, and looks at everything.
// What the watches of a standby have shown may be of any age: each cache first reaches
// what is there since this agent leads.
func (a *Agent) begin(ctx context.Context) {
	a.barrier(ctx)
	if a.keys.Begin(ctx, func(err error) { a.awaitKey(ctx, err) }) {
		a.barrier(ctx)
	}
	a.memory.ledgers.Forget()
	a.lifecycle.mu.Lock()
	a.lifecycle.leading = a.options.Now()
	a.lifecycle.mu.Unlock()
	for _, o := range a.caches.live.Informer.GetStore().List() {
		cm := o.(*corev1.ConfigMap)
		a.enqueueRun(types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name})
	}
	for _, o := range a.caches.documents.Informer.GetStore().List() {
		cm := o.(*corev1.ConfigMap)
		a.enqueuePlan(types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name})
	}
	a.controllers.hibernation.EnqueueAll()
}

func (a *Agent) lookingSince() time.Time {
	a.lifecycle.mu.Lock()
	defer a.lifecycle.mu.Unlock()
	return a.lifecycle.leading
}
