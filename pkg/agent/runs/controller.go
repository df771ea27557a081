// Package runs moves runs: their journals say what comes next, and what came of it is written
// before the next.
package runs

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/answers"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/keys"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/notify"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/queue"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/status"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/steppool"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/stepwatches"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/informer"
	"github.com/kubectl-maint/kubectl-maint/pkg/kube"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

// Controller moves runs: a journal says what comes next, and what came of it is
// written before the next.
type Controller struct {
	Config
	watches *stepwatches.Watches
	memory  memory
}

// memory is what looks leave for later ones; another process does without.
type memory struct {
	refusals *store.Refusals[store.StepKey]
	answered *answers.Handled
}

// Config is what runs are moved with.
type Config struct {
	Clients   Clients
	Stores    Stores
	Telemetry notify.Telemetry
	Scope     Scope
	Executor  func(stepType string) (executors.Executor, bool)
	// Denied are the types of steps that the configuration does not allow in a namespace.
	Denied  func(namespace string) []string
	Status  *status.Writer
	Steps   *steppool.Pool
	Nodes   Nodes
	Freezes Freezes
	Queue   *queue.Queue // of runs
	Plans   interface {  // that are to be looked at
		Add(types.NamespacedName)
		AddAfter(types.NamespacedName, time.Duration)
	}
	Now func() time.Time
}

// Clients reach the API server.
type Clients struct {
	Kube       kube.Interface // the agent's own
	Accounts   *client.Impersonator
	Fence      *client.Fence
	ClockDoubt func() string
	Doubted    func() (from, until time.Time) // when the clock was in doubt the last time
}

// Stores are what is held in memory.
type Stores struct {
	Documents *store.Documents
	Runs      *store.Runs
	Ledgers   *store.Ledgers
	Locks     *store.Locks
	Gates     *store.Gates
	Keys      *keys.Store
	Expected  *store.Expectations // of targets
}

// Scope is who moves the runs.
type Scope struct {
	Identity     string // of this process
	DryRun       bool
	LeadingSince func() time.Time // when this agent began to lead
}

// Nodes gives nodes to runs.
type Nodes interface {
	// Want takes in which nodes a run would take next.
	Want(run types.NamespacedName, wants []workflow.NodeDemand)
	// States is what a run is told of its nodes, by the path of its rollout.
	States(run types.NamespacedName) map[string]map[string]workflow.NodeState
	// Turn says whether a drain outside of a rollout may take a node now, or why not.
	Turn(s store.StepKey, node string, ahead *drain.Options) (granted bool, why string)
	// Preflight says whether a step of a rollout may cordon the node that it has come to.
	Preflight(ctx context.Context, s store.StepKey, node string, ahead *drain.Options) (bool, string)
	// BlockedBy is what keeps a step's drain of a node from its cordon for good.
	BlockedBy(s store.StepKey, node string, ahead *drain.Options) string
	// Stalled notes whether a drain is blocked for good, and by what, and says whether it is to yield.
	Stalled(s store.StepKey, node string, options *drain.Options, block nodes.Block) bool
	// OpenedAt is when a node was seen being uncordoned; zero: it was not.
	OpenedAt(node string) time.Time
	// Gone are those of the nodes that are not there any more.
	Gone(ctx context.Context, known run.NodeTurns) map[string]bool
	// Enqueue has the nodes looked at again.
	Enqueue()
	// Drains is what drains nodes; nil: nothing does.
	Drains() executors.Drainer
}

// Freezes keep others from changing the targets of runs.
type Freezes interface {
	// Holds says whether a run's target is frozen for all but it; why it never will be.
	Holds(ctx context.Context, l *store.CachedRun) (held bool, why string)
}

// New moves nothing yet.
func New(c Config) *Controller {
	return &Controller{
		Config: c, memory: memory{refusals: store.NewRefusals[store.StepKey](), answered: &answers.Handled{}},
		watches: stepwatches.New(c.Steps.Wake),
	}
}

// WatchCount is how many watches are open for steps.
func (c *Controller) WatchCount() int { return c.watches.Count() }

// Run moves runs until ctx ends, and waits for the acts that are under way.
func (c *Controller) Run(ctx context.Context, workers int) {
	c.Queue.WorkInShares(ctx, workers, queue.Share(workers), c.reconcile)
	c.Steps.WaitAll()
}

// PlanChanged has the runs of a plan looked at that its change may concern.
func (c *Controller) PlanChanged(k types.NamespacedName, cm *corev1.ConfigMap) {
	for _, l := range c.Stores.Runs.OfPlan(k) {
		if c.interests(cm, l) {
			if l.Journal.End == nil && c.signals(c.Stores.Runs.ReadWhole(l)).Abort != nil {
				c.cancel(l.Key())
			}
			c.Queue.Add(l.Key())
		}
	}
}

// cancel cuts off what a run has under way, unless its cleanup has begun while the run was
// looked at.
func (c *Controller) cancel(k types.NamespacedName) {
	if now := c.Stores.Runs.Live(k); now != nil && now.Journal.End == nil {
		c.Steps.Cancel(k)
	}
}

// interests says whether a plan's change may concern one of its runs: it is
// gone, or an intent names the run.
func (c *Controller) interests(cm *corev1.ConfigMap, l *store.LiveRun) bool {
	if cm == nil || cm.DeletionTimestamp != nil || string(cm.UID) != l.Head.PlanUID || l.Journal.Phase == run.Pending {
		return true
	}
	in := annotations.Intent(cm.Annotations)
	return in.Abort.For(l.Head.Name) || in.Resume.For(l.Head.Name) || in.Approve.For(l.Head.Name) || in.Reject.For(l.Head.Name) || l.Journal.BetweenSteps()
}

// Observe takes in a live run as the watch shows it.
func (c *Controller) Observe(o any) {
	cm := o.(*corev1.ConfigMap)
	if c.Stores.Runs.Observe(cm) {
		if l := c.Stores.Runs.Live(types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name}); l != nil && cm.DeletionTimestamp != nil && l.Journal.End == nil { // its cleanup goes on
			c.Steps.Cancel(l.Key())
		}
		c.Queue.Add(types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name})
		c.Plans.Add(types.NamespacedName{Namespace: cm.Namespace, Name: cm.Labels[annotations.LabelPlan]})
	}
}

// Lost hears that a run is no longer among the live ones: it ended, by us, or
// somebody tore its finalizer off.
func (c *Controller) Lost(o any) {
	cm := o.(*corev1.ConfigMap)
	k := types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name}
	c.Stores.Runs.Gone(k, informer.VersionOf(cm))
	c.Queue.Add(k)
	c.Plans.Add(types.NamespacedName{Namespace: cm.Namespace, Name: cm.Labels[annotations.LabelPlan]})
}

// Recheck reads a run again after what counts as signed has become another.
func (c *Controller) Recheck(k types.NamespacedName) {
	c.Stores.Runs.Recheck(k)
	c.Queue.Add(k)
}
