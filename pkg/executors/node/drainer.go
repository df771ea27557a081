// Package node holds the executors that cordon, drain and uncordon nodes, and the drainer that
// every drain of the agent uses, for plans and requests alike.
package node

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	policyv1 "k8s.io/api/policy/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/follow"
	"github.com/kubectl-maint/kubectl-maint/pkg/kube"
)

// Times of the drainer (guesses).
const (
	budgetsIdle = time.Minute            // how long budgets are watched after the last drain
	debounce    = 100 * time.Millisecond // until OnChange is called for an end or a block
	progress    = time.Second            // until it is called for pods that left
	surgeFor    = 5 * time.Minute        // how long a replacement may take to become Ready
	lookAgain   = 5 * time.Second        // after a read that failed
	stillFor    = 2 * time.Second        // without movement, until a drain counts as blocked
	settleFor   = 3 * time.Second        // for a controller and the scheduler to replace a pod
	stopFor     = 5 * time.Second        // for the answers of requests when a drain is stopped
	leaseFor    = time.Minute            // how long a drain on another cluster goes on that nobody ensures: four looks of its step
)

// Config is what a Drainer is made of.
type Config struct {
	// Reads is the agent's own client. It needs list and watch on
	// poddisruptionbudgets.policy, and on volumeattachments.storage.k8s.io where a
	// drain waits for volumes.
	Reads kube.Interface
	// OnChange is called when a status has changed in a way that a person would notice.
	OnChange func(node, by string)
	Now      func() time.Time // default time.Now
	// SurgeFor is how long a replacement may take; default five minutes.
	SurgeFor time.Duration
	// Namespace and Pod are the agent's own: its last replica on a node leaves last, and only when
	// another is Ready elsewhere. For that, Reads needs list and watch on pods of the namespace.
	// An empty Pod is not known.
	Namespace, Pod string
	// Lease is how long a session goes on that is not ensured; zero: until it is stopped.
	Lease time.Duration
	// Elsewhere says that the nodes belong to another cluster, and that Reads also evict. Pods
	// that ask for a replacement before they leave then stay.
	Elsewhere bool
}

// own is the agent's pod as namespace/name, if it is known.
func (c Config) own() string {
	if c.Pod == "" {
		return ""
	}
	return c.Namespace + "/" + c.Pod
}

// Drainer is an executors.Drainer with its sessions in memory.
type Drainer struct {
	config Config
	ctx    context.Context // of all sessions: the drainer's lifetime

	mu       sync.Mutex // guards all fields below, and the fields of sessions that say so
	sessions map[place]*session
	budgets  budgetCache
	busy     int                    // requests in flight
	unswept  map[string]bool        // claimants whose drains left replicas of surges
	failed   map[string]failedSurge // by uid of the pod
	readErr  error
	unwatch  context.CancelFunc // stops the watch on budgets; nil: there is none
	idle     *time.Timer
	volumes  *attachments // nil: not watched
	replicas *agentPods   // the agent's own; nil: not watched
	others   map[string]*otherCluster
}

// place is the key of a session.
type place struct{ node, by string }

var _ executors.Drainer = (*Drainer)(nil)

// New has no sessions. All of its work ends with ctx.
func New(ctx context.Context, c Config) *Drainer {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.OnChange == nil {
		c.OnChange = func(string, string) {}
	}
	if c.SurgeFor == 0 {
		c.SurgeFor = surgeFor
	}
	return &Drainer{config: c, ctx: ctx, sessions: map[place]*session{}, budgets: newBudgetCache(), others: map[string]*otherCluster{}, unswept: map[string]bool{}, failed: map[string]failedSurge{}}
}

// Ensure starts a session, or goes on with it.
func (d *Drainer) Ensure(_ context.Context, order executors.DrainOrder) executors.DrainStatus {
	d.mu.Lock()
	defer d.mu.Unlock()
	key := place{order.Node, order.By}
	if s := d.sessions[key]; s != nil {
		if same(s.order, order) {
			s.order.Clients = order.Clients
			s.extend()
			return s.status
		}
		d.end(s)
	}
	if d.config.Elsewhere && len(d.sessions) >= mostDrains {
		return executors.DrainStatus{Reason: executors.DrainWorking, Message: fmt.Sprintf("waits: %d other nodes of that cluster are being drained for this plan", mostDrains)}
	}
	s := newSession(d, order)
	d.sessions[key] = s
	d.watchBudgets()
	if order.Options.WaitForVolumes {
		d.watchVolumes()
	}
	s.start()
	return s.status
}

// same says whether two orders ask for the same drain.
func same(a, b executors.DrainOrder) bool {
	x, errX := json.Marshal(a.Options)
	y, errY := json.Marshal(b.Options)
	return errX == nil && errY == nil && string(x) == string(y) && a.NodeUID == b.NodeUID && a.Since.Equal(b.Since) && a.DryRun == b.DryRun
}

// Stop ends a session.
func (d *Drainer) Stop(node, by string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.sessions[place{node, by}]; s != nil {
		d.end(s)
	}
}

// AwaitRequests waits for the answers of what is in flight.
func (d *Drainer) AwaitRequests() {
	for limit := time.Now().Add(stopFor); time.Now().Before(limit); time.Sleep(10 * time.Millisecond) {
		if d.inFlight() == 0 {
			return
		}
	}
}

// inFlight is the number of requests without an answer, on all clusters.
func (d *Drainer) inFlight() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	busy := d.busy
	for _, other := range d.others {
		busy += other.inFlight()
	}
	return busy
}

// Keep ends the sessions for which wanted is false.
func (d *Drainer) Keep(wanted func(node, by string) bool) {
	d.mu.Lock()
	places := make([]place, 0, len(d.sessions))
	for p := range d.sessions {
		places = append(places, p)
	}
	d.mu.Unlock()
	for _, p := range places {
		if !wanted(p.node, p.by) {
			d.Stop(p.node, p.by)
		}
	}
}

// end forgets a session, and keeps the watch on budgets a while longer: drains rarely come alone.
func (d *Drainer) end(s *session) {
	s.life.cancel()
	if len(s.surges.extra) > 0 {
		d.unswept[s.order.By] = true
	}
	if s.life.lease != nil {
		s.life.lease.Stop()
	}
	delete(d.sessions, place{s.order.Node, s.order.By})
	d.wakeAll(d.budgets.wait(s, nil))
	d.wakeAll(d.budgets.line(s, nil))
	if len(d.sessions) > 0 {
		return
	}
	if d.idle != nil {
		d.idle.Stop()
	}
	d.idle = time.AfterFunc(budgetsIdle, d.rest)
}

// rest ends watches that nobody needs.
func (d *Drainer) rest() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.sessions) > 0 || d.unwatch == nil {
		return
	}
	d.unwatch()
	d.unwatch, d.budgets = nil, newBudgetCache()
	if d.volumes != nil {
		d.volumes.stop()
		d.volumes = nil
	}
	if d.replicas != nil {
		d.replicas.stop()
		d.replicas = nil
	}
}

// watchBudgets opens the one watch on all budgets of the cluster.
func (d *Drainer) watchBudgets() {
	if d.unwatch != nil {
		return
	}
	ctx, cancel := context.WithCancel(d.ctx)
	d.unwatch = cancel
	alive := func(f func()) {
		d.mu.Lock()
		defer d.mu.Unlock()
		if ctx.Err() == nil {
			f()
		}
	}
	heard := func(err error) {
		alive(func() {
			if said(err) != said(d.readErr) { // another error may need another remedy
				d.readErr = err
				d.wakeEverybody()
			}
		})
	}
	set := func(b drain.Budget) { alive(func() { d.budgets.set(b); d.wakeIn(b.Namespace) }) }
	gone := func(b drain.Budget) { alive(func() { d.budgets.remove(b.Namespace, b.Key()); d.wakeIn(b.Namespace) }) }
	replace := func(all []drain.Budget) {
		alive(func() {
			d.budgets.budgets = map[string]map[string]drain.Budget{}
			for _, b := range all {
				d.budgets.set(b)
			}
			d.budgets.synced = true
			d.wakeEverybody()
		})
	}
	kept := follow.Kept[*policyv1.PodDisruptionBudget, drain.Budget]{Turn: annotations.DrainBudget, Key: drain.Budget.Key, Set: set, Gone: gone, Replaced: replace}
	go follow.Keep(ctx, d.config.Elsewhere, allBudgets(d.config.Reads, heard), kept)
}

func said(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// wakeIn wakes the sessions that a budget of a namespace holds up. Sessions that wait for a turn
// are woken by turns.
func (d *Drainer) wakeIn(namespace string) {
	for _, s := range d.sessions {
		if s.held && s.seen.namespaces[namespace] {
			s.wake()
		}
	}
}

func (d *Drainer) wakeEverybody() {
	for _, s := range d.sessions {
		s.wake()
	}
}

func (d *Drainer) wakeAll(sessions []*session) {
	for _, s := range sessions {
		s.wake()
	}
}
