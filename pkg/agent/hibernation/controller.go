// Package hibernation has the targets of HibernatePlans sleep and wake: what is asleep now
// follows from the level of the schedule, what a resource was is written down before it is
// touched, and every target is reached as the plan's account.
package hibernation

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/keys"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/notify"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/queue"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/sleepwatches"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/status"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/kube"
	"github.com/kubectl-maint/kubectl-maint/pkg/savings"
)

// Config is what hibernation works with.
type Config struct {
	Clients   Clients
	Stores    Stores
	Executors Executors
	Clock     Clock
	Scope     Scope
	// Sleeping hears how many resources sleep, by the type of their target.
	Sleeping  func(byExecutor map[string]int)
	Status    *status.Writer
	Telemetry notify.Telemetry
	Queue     *queue.Queue // of plans
}

// Clients reach the API server.
type Clients struct {
	Kube     kube.Interface
	Accounts *client.Impersonator
}

// Stores are what is held in memory.
type Stores struct {
	Documents *store.Documents
	Gates     *store.Gates
	Ledgers   *store.Ledgers
	Keys      *keys.Store
	Holders   func(records bool) func(mark string) []executors.Holder // of objects, as store.Holds has them
}

// Executors act on targets.
type Executors struct {
	Sleepers map[string]executors.Sleeper // by type of target
	Health   executors.Executor           // of health checks
	// Machines are those that the agent itself runs on, by their provider ids.
	Machines func(ctx context.Context) ([]string, error)
}

// Scope is who acts on the targets, and on which.
type Scope struct {
	Namespace string // the agent's own
	DryRun    bool
	// Denied are the types that the agent's configuration does not allow in a namespace.
	Denied func(namespace string) []string
}

// Clock is the local one, and how far it can be trusted.
type Clock struct {
	// ClockDoubt says why the local clock is not to be trusted, empty where it is, and Ahead
	// how far the API server's is ahead of it.
	ClockDoubt func() string
	Ahead      func() time.Duration
	Now        func() time.Time
}

// Controller has targets sleep and wake.
type Controller struct {
	Config
	records  *records
	watches  *sleepwatches.Watches
	troubles troubles
	missing  *client.MissingAccounts
	slow     slowPasses
	memory   memory
}

// memory is what is remembered of plans between two looks.
type memory struct {
	mu     sync.Mutex
	plans  map[types.NamespacedName]*planMemory
	parsed *store.Parsed[*parsedPlan]
}

// New has looked at nothing yet.
func New(c Config) *Controller {
	return &Controller{Config: c, records: newRecords(c.Clients.Kube, c.Stores.Keys), watches: sleepwatches.New(c.Clients.Accounts.Metadata, c.Queue), missing: client.NewMissingAccounts(), memory: memory{plans: map[types.NamespacedName]*planMemory{}, parsed: store.NewParsed[*parsedPlan](maxParsed, maxParsedWeight)}}
}

// What is kept of plans as they were read (guesses: a half of what is kept of plans of other
// kinds). The rest is read again when it is looked at.
const (
	maxParsed       = 1000
	maxParsedWeight = 12 << 20
)

// workers is how many plans are looked at at once, and share how many of one namespace
// (guesses: each has its targets at work beside each other, and a list may take long).
const (
	workers = 24
	share   = 6
)

// Run works until ctx ends.
func (c *Controller) Run(ctx context.Context) {
	var group sync.WaitGroup
	group.Go(func() { c.followClock(ctx) })
	c.Queue.WorkInShares(ctx, workers, share, c.reconcile)
	c.slow.group.Wait()
	group.Wait()
}

// RecordSeen takes in restore data as the watch shows it.
func (c *Controller) RecordSeen(o any) { c.recordChanged(o.(*corev1.ConfigMap), c.records.observe) }

// RecordLost hears that restore data is gone.
func (c *Controller) RecordLost(o any) { c.recordChanged(o.(*corev1.ConfigMap), c.records.lost) }

// recordChanged looks at the plan that restore data names, and at the one that it named before:
// somebody may have taken its label away.
func (c *Controller) recordChanged(cm *corev1.ConfigMap, take func(*corev1.ConfigMap)) {
	was := c.records.get(keyOf(cm))
	take(cm)
	c.count()
	c.enqueueOf(cm)
	if was != nil {
		c.enqueueOf(was.object)
	}
}

// Watching is how many watches are open on what plans have put to sleep.
func (c *Controller) Watching() int { return c.watches.Count() }

// count tells how many resources sleep.
func (c *Controller) count() { c.Sleeping(c.records.sleeping()) }

// Slept are the sleeps that there are now, with how long resources slept in each.
func (c *Controller) Slept() []savings.Sleep { return c.records.slept(c.Clock.Now()) }

func (c *Controller) enqueueOf(cm *corev1.ConfigMap) {
	c.Queue.Add(types.NamespacedName{Namespace: cm.Namespace, Name: cm.Labels[annotations.LabelPlan]})
}

// EnqueueAll looks at every plan that has restore data, whether it is still there or not.
func (c *Controller) EnqueueAll() {
	for _, k := range c.records.plans() {
		c.Queue.Add(k)
	}
}

// KeyChanged has restore data checked again.
func (c *Controller) KeyChanged() {
	c.records.recheck()
	c.EnqueueAll()
}
