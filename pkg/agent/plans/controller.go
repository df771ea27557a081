// Package plans decides over plans: facts in, verdict out, ledger first, runs second,
// everything else last.
package plans

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/keys"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/notify"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/queue"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/status"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/targets"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/watchrules"
	"github.com/kubectl-maint/kubectl-maint/pkg/agentconfig"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/kube"
)

// Controller decides over plans: facts in, verdict out, ledger first, runs second,
// everything else last.
type Controller struct {
	Config
	blockers *blockers
	refused  *refusedRuns
	troubles troubles
}

// Config is what plans are decided on with.
type Config struct {
	Clients    Clients
	Stores     Stores
	Telemetry  notify.Telemetry
	Scope      Scope
	Watches    Watches
	Executor   func(stepType string) (executors.Executor, bool)
	Settings   func() agentconfig.AgentConfig // in force
	Status     *status.Writer
	Runner     Runs
	EnqueueRun func(types.NamespacedName)
	Queue      *queue.Queue // of plans
	Now        func() time.Time
}

// Clients reach the API server.
type Clients struct {
	Kube       kube.Interface // the agent's own
	Accounts   *client.Impersonator
	ClockDoubt func() string
	Ahead      func() time.Duration // of the API server's clock
	// Doubted is when the clock was in doubt the last time.
	Doubted func() (from, until time.Time)
}

// Stores are what is held in memory.
type Stores struct {
	Documents *store.Documents
	Plans     *store.Plans
	Runs      *store.Runs
	History   *store.History
	Ledgers   *store.Ledgers
	Gates     *store.Gates
	Keys      *keys.Store
}

// Watches are those on what plans name.
type Watches struct {
	Rules   *watchrules.Controller
	Targets *targets.Watches
}

// Scope is who decides over the plans.
type Scope struct {
	Namespace    string // the agent's own
	DryRun       bool
	LeadingSince func() time.Time // when this agent began to lead
}

// Runs moves the runs of plans.
type Runs interface {
	// PlanChanged has the runs of a plan looked at that its change may concern.
	PlanChanged(k types.NamespacedName, cm *corev1.ConfigMap)
	// CloseOrphans ends the entries of a plan's runs that vanished without us.
	CloseOrphans(ctx context.Context, k types.NamespacedName) error
	// ReportOrphan says that a run of a plan, by its uid, was taken away.
	ReportOrphan(run *corev1.ConfigMap, plan, name, what string)
}

// New has decided nothing yet.
func New(c Config) *Controller {
	a := &Controller{Config: c, blockers: newBlockers(c.Now, c.Queue.Add), refused: &refusedRuns{byPlan: map[types.NamespacedName]map[string]refusedRun{}}}
	a.blockers.ask, a.blockers.news = a.askBlocker, a.blockerChanged
	return a
}

// Run asks what keeps plans from being ready until ctx ends.
func (c *Controller) Run(ctx context.Context) { c.blockers.work(ctx) }

// TargetChanged says that a plan's target has changed: it is looked at live.
func (c *Controller) TargetChanged(k types.NamespacedName) { c.blockers.changed(k) }

// TargetOutdated has the next look at a plan be a live one.
func (c *Controller) TargetOutdated(k types.NamespacedName) { c.blockers.outdate(k) }

// LedgerLost hears that a ledger, or a part of one, is gone, also of a HibernatePlan. A plan that is
// gone takes its ledger along.
func (c *Controller) LedgerLost(m metav1.Object) {
	k := types.NamespacedName{Namespace: m.GetNamespace(), Name: m.GetLabels()[annotations.LabelPlan]}
	cm := c.Stores.Documents.Any(k)
	if cm == nil || m.GetName() != annotations.LedgerName(k.Name, string(cm.UID)) {
		return
	}
	c.Stores.Ledgers.Invalidate(types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name}, string(cm.UID))
	c.Queue.Add(k)
}

// RunEnded lets a plan prune its history.
func (c *Controller) RunEnded(o any) {
	r := o.(*store.EndedRun)
	c.Stores.History.Put(r)
	c.Queue.Add(types.NamespacedName{Namespace: r.Namespace, Name: r.Plan})
}

// EndedRunGone hears that an ended run was deleted.
func (c *Controller) EndedRunGone(o any) { c.Stores.History.Drop(o.(*store.EndedRun)) }
