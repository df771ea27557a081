// Package nodemaintenance gives nodes to those who ask for them, requestors and rollouts
// alike, and carries requests out.
package nodemaintenance

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/metrics"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/notify"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/queue"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/claims"
	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/informer"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/kube"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

// batchDelay is how long the controller waits after it was enqueued, so that many changes at
// once are one look.
const batchDelay = 20 * time.Millisecond

// Controller gives nodes to those who ask for them, requestors and rollouts alike,
// and carries requests out. One goroutine looks and decides, so that no slot is
// given twice; what it decided stands in the nodes' annotations and in the runs'
// journals, and is found there by whoever comes after.
type Controller struct {
	Config
	drainer   executors.Drainer
	wake      chan struct{}
	pods      *nodePods
	writer    *nodeWriter
	lifecycle *conditionWriter
	look      look
	state     state
}

// state is what a look shares with those who ask and are told beside it.
type state struct {
	mu      sync.Mutex
	shown   shownNodes
	demand  demand
	ranking nodes.Ranking
}

// demand is what the steps of runs want of the nodes, and what they are told.
type demand struct {
	wants   map[store.StepKey]stepDemand
	sights  map[store.StepKey]map[string]workflow.NodeState // by rollout, of the nodes that it takes
	since   map[wish]time.Time
	stalled map[wish]stalledDrain               // drains of plans that are blocked for good after their cordon
	why     map[store.StepKey]map[string]string // by step, why it was not given a node
}

// look is what holds for one look at the nodes.
type look struct {
	again time.Time                   // the latest instant of the next
	shut  *nodes.Gate                 // what keeps change from all nodes
	gone  map[string]bool             // nodes of rollouts that are known not to be there; kept from look to look
	check func(context.Context) error // that what the gates rest on is as this look saw it
}

// sure says whether nodes may be handed out in this look, as what their gates rest on is as it was
// seen. Else they are looked at again soon.
func (k *Controller) sure(ctx context.Context) bool {
	err := k.look.check(ctx)
	if err != nil {
		k.Telemetry.Log.Info("no node is handed out in this look", "why", err.Error())
		k.look.by(new(k.Now().Add(time.Second)))
	}
	return err == nil
}

// by notes an instant at which to look again.
func (l *look) by(at *time.Time) {
	if at != nil && at.Before(l.again) {
		l.again = *at
	}
}

// shownNodes are the nodes as the watch shows them.
type shownNodes struct {
	last   map[string]*nodeObject
	opened map[string]time.Time // those that it showed being uncordoned, and when
}

// saw takes in a node, and gives it as it was shown before.
func (s *shownNodes) saw(n *nodeObject, now time.Time) (was *nodeObject) {
	was = s.last[n.Name]
	s.last[n.Name] = n
	if n.Spec.Unschedulable {
		delete(s.opened, n.Name)
	} else if was != nil && was.Spec.Unschedulable {
		s.opened[n.Name] = now
	}
	return was
}

// keep forgets the nodes that are not there any more.
func (s *shownNodes) keep(there map[string]*nodeObject) {
	gone := func(name string) bool { return there[name] == nil }
	maps.DeleteFunc(s.last, func(name string, _ *nodeObject) bool { return gone(name) })
	maps.DeleteFunc(s.opened, func(name string, _ time.Time) bool { return gone(name) })
}

// stepDemand is what one step of a run would take, and what it was given.
type stepDemand struct {
	nodes []string
	most  int
	given map[string]bool
	drain *drain.Options           // what is looked at before a node is given; nil: nothing
	needs time.Duration            // about the time for one node; 0: not known
	by    map[string]*intent.Actor // who let the run pass the closed gates of nodes that it was given
	bare  bool                     // of a drain: outside of any for-each-node, or one that yielded its slot
}

// wish is a step that waits for a node.
type wish struct {
	node string
	step store.StepKey
}

// Config is what nodes are maintained with.
type Config struct {
	Clients   Clients
	Rollouts  Rollouts
	Settings  Settings
	Telemetry notify.Telemetry
	Scope     Scope
	Nodes     cache.Store
	Gates     Gates
	Now       func() time.Time
}

// Clients reach the API server.
type Clients struct {
	Kube     kube.Interface // the agent's own
	Accounts *client.Impersonator
	Drainer  func(changed func(node, by string)) executors.Drainer // nil: nothing is drained
}

// Rollouts are the runs that take nodes, and how they hear of them.
type Rollouts struct {
	Runs       *store.Runs
	Draining   func() map[types.NamespacedName]client.Account // the plans that may drain nodes, and whom they act as
	Steps      Steps
	EnqueueRun func(run types.NamespacedName)
	Blocked    func(run *store.CachedRun, path string, list []string, why string) // hears of drains that no waiting ends
}

// Settings are what the agent's configuration says of nodes, and where it says what follows.
type Settings struct {
	Limits func() nodes.NodeLimits
	Held   func(conditions []metav1.Condition) // hears what holds maintenance back
	// Lifecycle says whether lifecycle conditions are written on nodes; nil: they are.
	Lifecycle func() bool
}

// Scope is what an agent looks after, and where it runs itself.
type Scope struct {
	Namespace      string // the agent's own
	WatchNamespace string // empty: all
	Pod            string // the agent's, as namespace/name; empty: not known
	DryRun         bool
}

// Steps wakes the steps of runs that wait for nodes.
type Steps interface {
	Wake(store.StepKey)
	WakeAll(match func(store.StepKey) bool)
}

// New has looked at nothing yet.
func New(c Config) *Controller {
	k := &Controller{
		Config: c, wake: make(chan struct{}, 1),
		state: state{
			shown:  shownNodes{last: map[string]*nodeObject{}, opened: map[string]time.Time{}},
			demand: demand{wants: map[store.StepKey]stepDemand{}, sights: map[store.StepKey]map[string]workflow.NodeState{}, since: map[wish]time.Time{}, stalled: map[wish]stalledDrain{}},
		},
	}
	k.writer = newNodeWriter(c, k.Enqueue)
	k.lifecycle = newConditionWriter(k.writer)
	k.pods = newNodePods(c, k.Enqueue, func(claimant string) { k.drained("", claimant) })
	if c.Clients.Drainer != nil {
		k.drainer = c.Clients.Drainer(k.drained)
		k.pods.drainer = k.drainer
	}
	return k
}

// Enqueue has the nodes looked at again.
func (k *Controller) Enqueue() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// saw takes in a node as the watch shows it. Heartbeats are no news.
func (k *Controller) saw(n *nodeObject) {
	k.state.mu.Lock()
	was := k.state.shown.saw(n, k.Now())
	k.writer.answered(n)
	k.state.mu.Unlock()
	if was == nil || !was.same(n) {
		k.Enqueue()
	}
}

// OpenedAt is when the watch showed a node being uncordoned; zero: it did not.
func (k *Controller) OpenedAt(name string) time.Time {
	k.state.mu.Lock()
	defer k.state.mu.Unlock()
	return k.state.shown.opened[name]
}

// drained is told by the drainer that a drain has come further.
func (k *Controller) drained(_, by string) {
	if by == requestsClaimant {
		k.Enqueue()
		return
	}
	k.Rollouts.Steps.WakeAll(func(l store.StepKey) bool {
		run := k.Rollouts.Runs.Live(l.Run)
		return run != nil && run.Head.Plan != "" && claimantOf(run) == by
	})
}

// Run looks whenever it is enqueued, and when an instant has come that it waits for.
func (k *Controller) Run(ctx context.Context) {
	defer k.stop()
	go k.sweepSurges(ctx)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-k.wake:
			if !informer.Sleep(ctx, batchDelay) {
				return
			}
		case <-timer.C:
		}
		next := k.reconcileSafely(ctx)
		timer.Reset(min(max(next.Sub(k.Now()), time.Second), queue.ResyncPeriod))
	}
}

// reconcileSafely keeps one broken node from taking the agent down.
func (k *Controller) reconcileSafely(ctx context.Context) (next time.Time) {
	next = k.Now().Add(queue.ResyncPeriod)
	defer k.Telemetry.RecoverPanic("over nodes")
	return k.reconcile(ctx)
}

// reconcile observes, ranks, tells the rollouts what they were given, and does for each
// node with requests the one next thing.
func (k *Controller) reconcile(ctx context.Context) time.Time {
	now := k.Now()
	limits, err := nodes.LimitsOf(k.Settings.Limits())
	if err != nil { // the configuration was validated
		k.Telemetry.Log.Error("limits of nodes", "error", err.Error())
		return now.Add(queue.ResyncPeriod)
	}
	k.look = look{again: now.Add(queue.ResyncPeriod), check: k.Gates.Check(), shut: claims.ClusterGate(k.Gates.ClockDoubt(), k.Gates.Pauses(), now), gone: k.look.gone}
	writing := k.writer.inFlight() // before the nodes: what is answered meanwhile is looked at again
	objects := k.objects()
	k.writer.forgetRefusal(objects)
	world := nodes.ClusterState{Now: now, Limits: limits, Nodes: make([]nodes.Node, 0, len(objects))}
	for _, name := range slices.Sorted(maps.Keys(objects)) {
		world.Nodes = append(world.Nodes, k.facts(ctx, objects[name], now))
	}
	k.confirm(ctx, objects)
	have := k.claims(ctx, objects, now)
	world.Holds = append(have.holds, promised(writing)...)
	ranking := k.rank(&world, have)
	k.notifyRuns(objects, have, k.previewedGrants(ctx, have, ranking, now))
	k.Telemetry.Metrics.NodeRequests(world.Nodes)
	k.Telemetry.Metrics.DrainsBlocked(k.blockedDrains(world.Nodes, have, ranking))
	busy := k.apply(ctx, objects, world, ranking, have.engaged, writing)
	k.conditions(ctx, objects, world, have.engaged, busy)
	k.reportLimits(ranking.Conditions, now)
	return k.look.again
}

// blockedDrains are the drains that could not end: of requests, and of nodes that a run
// would take and does not, since pods would not leave.
func (k *Controller) blockedDrains(all []nodes.Node, c runClaims, ranking nodes.Ranking) []metrics.BlockedDrain {
	var out []metrics.BlockedDrain
	for _, n := range all {
		blocked := func(a nodes.Asked) bool {
			return !a.Gone && a.Status != nil && a.Status.Blocked != nil && a.Status.Blocked.Permanent
		}
		if slices.ContainsFunc(n.Asked, blocked) {
			out = append(out, metrics.BlockedDrain{Node: n.Name})
		}
	}
	for _, w := range ranking.Waits {
		s, wanted := c.steps[w.Step]
		if !wanted || w.Reason != nodes.WaitBlocked {
			continue
		}
		if l := k.Rollouts.Runs.Live(s.Run); l != nil {
			out = append(out, metrics.BlockedDrain{Namespace: s.Run.Namespace, Plan: l.Head.Plan, Node: w.Node})
		}
	}
	return out
}

// unseen is why a node that a plan names is not given.
const unseen = "is not seen by the agent: it is new, or the agent runs with --watch-namespace"

// drainsNow says whether a drain's journal speaks of a node that it was given, and the node
// bears it out, or it is through with it.
func drainsNow(l *store.LiveRun, path, node string, cordoned bool) bool {
	rec := l.Journal.Record(path)
	return rec != nil && slices.ContainsFunc(rec.Drains(), func(t run.DrainTarget) bool {
		return t.Name == node && t.Cordoned && !t.Yielded && (cordoned || t.Drained)
	})
}

// cordonedFor says whether a node's own record names a claimant.
func cordonedFor(n *nodeObject, claimant string) bool {
	if n == nil {
		return false
	}
	record, _ := nodes.ParseCordon(n.Annotations[annotations.StatusCordoned])
	return record != nil && slices.Contains(record.By, claimant)
}

// confirm asks live whether nodes that rollouts want and that no watch shows are
// gone, so that neither a new node counts as done nor one that is gone is waited for.
// An agent that sees no nodes at all asks nobody.
func (k *Controller) confirm(ctx context.Context, objects map[string]*nodeObject) {
	if k.Scope.WatchNamespace != "" {
		return
	}
	gone := map[string]bool{}
	for _, l := range k.Rollouts.Runs.Filter(func(l *store.LiveRun) bool { return l.Broken == nil && l.RollsOut() }) {
		for i := range l.Journal.Steps {
			for _, item := range itemsOf(&l.Journal.Steps[i]) {
				if objects[item.Name] != nil || item.Phase != "" {
					continue
				}
				if gone[item.Name] = k.look.gone[item.Name]; !gone[item.Name] {
					_, err := k.Clients.Kube.CoreV1().Nodes().Get(ctx, item.Name, metav1.GetOptions{})
					gone[item.Name] = apierrors.IsNotFound(err)
				}
			}
		}
	}
	k.look.gone = gone
}

// objects are all nodes, each as the newer of what the watch shows and what our own
// last write left.
func (k *Controller) objects() map[string]*nodeObject {
	out := map[string]*nodeObject{}
	for _, o := range k.Nodes.List() {
		n := o.(*nodeObject)
		out[n.Name] = n
	}
	k.state.mu.Lock()
	k.state.shown.keep(out)
	k.state.mu.Unlock()
	k.writer.overlay(out)
	return out
}

// facts are a node with what its annotations do not say.
func (k *Controller) facts(ctx context.Context, n *nodeObject, now time.Time) nodes.Node {
	f := annotations.Node(&n.Node)
	f.Asked = claims.Asked(f, k.Scope.DryRun || k.writer.withheld(now))
	if len(f.Asked) == 0 && f.Cordon == nil {
		return f
	}
	f.Gate = k.Gates.node(n, k.look.shut, now)
	k.writer.holdBack(&f, now)
	f.Drain = k.pods.session(n.Name)
	for i := range f.Asked {
		asked := &f.Asked[i]
		asked.Pods = k.pods.counted(n.Name, asked.Request)
		asked.Preview, asked.LookFailed = k.pods.preview(n.Name, *asked)
		k.pods.previewNext(ctx, f, *asked, now)
		k.look.by(soonestOf(k.pods.refresh(ctx, n.Name, *asked, now)))
		k.look.by(soonestOf(k.pods.previewStalled(ctx, f, *asked, now)))
	}
	k.look.by(f.Gate.Next)
	return f
}

// runClaims are what the runs have and want of nodes.
type runClaims struct {
	holds   []nodes.Hold
	wants   []nodes.Candidate
	drains  map[wish]nodeDrain
	steps   map[string]store.StepKey // steps that want nodes, by their names in the ranking
	unknown []wish                   // nodes that the agent does not see
	passed  map[wish]*intent.Actor   // who lets a step have a node whose gate is closed; nil: it is open
	engaged map[string]engagement    // by node
}

func (k *Controller) claims(ctx context.Context, objects map[string]*nodeObject, now time.Time) runClaims {
	c := runClaims{steps: map[string]store.StepKey{}, drains: map[wish]nodeDrain{}, engaged: map[string]engagement{}, passed: map[wish]*intent.Actor{}}
	k.state.mu.Lock() // before the journals: what passes from the one to the other meanwhile is counted twice, and not missed
	wants := maps.Clone(k.state.demand.wants)
	k.state.mu.Unlock()
	for _, l := range k.Rollouts.Runs.Filter((*store.LiveRun).TakesNodes) {
		holds, wants := workflow.NodeClaims(l.Head, l.Journal, l.Cordons) // what it wants now, it said itself; what it holds its journal says
		c.engage(l, holds, wants)
		for _, h := range claims.ActualHolds(holds, k.Rollouts.Runs.Unclaimed(l.Key())) {
			h.Step = store.StepKey{Run: l.Key(), Path: h.Path}.String()
			h.Stalled = k.stalls(ctx, l, h, now)
			c.holds = append(c.holds, h)
		}
	}
	k.state.mu.Lock()
	defer k.state.mu.Unlock()
	waits := map[wish]bool{}
	for _, s := range slices.SortedFunc(maps.Keys(wants), compareStepKeys) {
		want, l := wants[s], k.Rollouts.Runs.Live(s.Run)
		if l == nil || want.bare && !atWork(l, s.Path) {
			delete(k.state.demand.wants, s)
			continue
		}
		c.steps[s.String()] = s
		for i, name := range want.nodes {
			w := wish{name, s}
			if want.given[name] && want.bare && drainsNow(l, s.Path, name, cordonedFor(objects[name], claimantOf(l))) { // the journal has it
				continue
			}
			if want.given[name] { // until the run has taken it, or does not want it any more
				c.holds = append(c.holds, nodes.Hold{Node: name, Claimant: claimantOf(l), Step: s.String()})
				continue
			}
			if objects[name] == nil {
				c.unknown = append(c.unknown, w)
				continue
			}
			waits[w] = true
			if k.state.demand.since[w].IsZero() {
				k.state.demand.since[w] = now
			}
			gate, by := k.Gates.forRun(objects[name], claims.Work{Run: l.Head.Name, Needs: want.needs}, k.look.shut, now)
			c.passed[w] = by
			k.look.by(gate.Next)
			since, found := workflow.DrainWait(l.Journal, s.Path, name)
			if !want.bare {
				since = workflow.RolloutWait(l.Journal, s.Path)
			}
			if since.IsZero() { // else the journal has it, whoever leads
				since = k.state.demand.since[w]
			}
			one := nodes.Candidate{Node: name, Claimant: claimantOf(l), Step: s.String(), Order: i, Since: since, Permitted: gate.Permitted, Reason: gate.Reason}
			if want.drain != nil {
				c.drains[w] = k.planDrain(l, name, *want.drain)
				var next time.Time
				one.Blocked, next = k.pods.standing(ctx, c.drains[w], found, now)
				k.look.by(soonestOf(next))
				if len(annotations.RequestStatuses(objects[name].Annotations)) > 0 { // it may go from a requestor to the plan without an uncordon
					_, _, next = k.pods.previewPlan(ctx, c.drains[w], now)
					k.look.by(soonestOf(next))
				}
			}
			c.wants = append(c.wants, one)
		}
	}
	maps.DeleteFunc(k.state.demand.since, func(w wish, _ time.Time) bool { return !waits[w] })
	return c
}

// with is a copy of a map with one more entry.
func with[V any](all map[string]V, name string, one V) map[string]V {
	out := map[string]V{}
	maps.Copy(out, all)
	out[name] = one
	return out
}

func compareStepKeys(a, b store.StepKey) int {
	if a.Run == b.Run {
		return strings.Compare(a.Path, b.Path)
	}
	return strings.Compare(a.Run.String(), b.Run.String())
}

// rank ranks until nobody is given more than it takes at once: what one rollout
// cannot begin is another's.
func (k *Controller) rank(world *nodes.ClusterState, c runClaims) nodes.Ranking {
	world.Wants = c.wants
	for {
		ranking := nodes.Rank(*world)
		surplus := k.surplus(ranking, c)
		if len(surplus) == 0 {
			return ranking
		}
		world.Wants = slices.DeleteFunc(slices.Clone(world.Wants), func(w nodes.Candidate) bool { return w.Step != "" && surplus[wish{w.Node, c.steps[w.Step]}] })
	}
}

// surplus are the grants past what a step of a run begins at once.
func (k *Controller) surplus(ranking nodes.Ranking, c runClaims) map[wish]bool {
	k.state.mu.Lock()
	defer k.state.mu.Unlock()
	given, out := map[store.StepKey]int{}, map[wish]bool{}
	for _, g := range ranking.Grants {
		s, wanted := c.steps[g.Step]
		if !wanted {
			continue
		}
		if given[s]++; given[s]+len(k.state.demand.wants[s].given) > k.state.demand.wants[s].most {
			out[wish{g.Node, s}] = true
		}
	}
	return out
}

// notifyRuns notes what the rollouts were given and why they were not given the rest,
// and wakes the runs for which that is news.
func (k *Controller) notifyRuns(objects map[string]*nodeObject, c runClaims, ranking nodes.Ranking) {
	why, blocked := map[wish]string{}, map[wish]bool{}
	for _, w := range ranking.Waits {
		if s, wanted := c.steps[w.Step]; wanted {
			why[wish{w.Node, s}] = w.Lasting
			blocked[wish{w.Node, s}] = w.Reason == nodes.WaitBlocked
		}
		k.look.by(w.Next)
	}
	var news []store.StepKey
	var stuck []wish
	for _, w := range c.unknown {
		why[w] = unseen
	}
	k.state.mu.Lock()
	k.state.ranking = ranking
	for _, g := range ranking.Grants {
		s, wanted := c.steps[g.Step]
		if want, there := k.state.demand.wants[s]; wanted && there {
			want.given = with(want.given, g.Node, true)
			if by := c.passed[wish{g.Node, s}]; by != nil {
				want.by = with(want.by, g.Node, by)
				k.notePassed(g.Node, s, by)
			}
			k.state.demand.wants[s] = want
		}
	}
	before := k.state.demand.why
	k.state.demand.why = map[store.StepKey]map[string]string{}
	for _, s := range c.steps {
		want := k.state.demand.wants[s]
		k.state.demand.why[s] = map[string]string{}
		for _, name := range want.nodes {
			k.state.demand.why[s][name] = why[wish{name, s}]
			if !want.bare && blocked[wish{name, s}] && before[s][name] != k.state.demand.why[s][name] {
				stuck = append(stuck, wish{name, s})
			}
			if want.bare && (want.given[name] || before[s][name] != k.state.demand.why[s][name]) {
				news = append(news, s)
			}
		}
	}
	sights, held := map[store.StepKey]map[string]workflow.NodeState{}, map[string]bool{}
	for _, h := range c.holds {
		held[h.Node] = true
	}
	for _, l := range k.Rollouts.Runs.Filter(func(l *store.LiveRun) bool { return l.Broken == nil && l.RollsOut() }) {
		maps.Copy(sights, k.sightsOf(l, objects, held, why))
	}
	was := k.state.demand.sights
	k.state.demand.sights = sights
	k.state.mu.Unlock()
	for _, s := range append(news, k.noteYields(ranking.Yields)...) {
		k.Rollouts.Steps.Wake(s)
	}
	for _, w := range stuck {
		if l := k.Rollouts.Runs.Get(w.step.Run); l != nil {
			k.Rollouts.Blocked(l, w.step.Path, []string{w.node}, w.node+": "+why[w])
		}
	}
	for s, now := range sights {
		if !reflect.DeepEqual(was[s], now) {
			k.Rollouts.EnqueueRun(s.Run)
		}
	}
}

// sightsOf is what a run needs to know of its nodes, by rollout.
func (k *Controller) sightsOf(l *store.LiveRun, objects map[string]*nodeObject, held map[string]bool, why map[wish]string) map[store.StepKey]map[string]workflow.NodeState {
	out := map[store.StepKey]map[string]workflow.NodeState{}
	for i := range l.Journal.Steps {
		s := store.StepKey{Run: l.Key(), Path: l.Journal.Steps[i].Path}
		for _, item := range itemsOf(&l.Journal.Steps[i]) {
			if out[s] == nil {
				out[s] = map[string]workflow.NodeState{}
			}
			sight := k.sightOf(s, item.Name, objects[item.Name], why)
			// Of a live run, also of another of its steps, a cordon is not left behind.
			sight.Abandoned = !held[item.Name] && objects[item.Name].cordonedBy(claimantOf(l))
			out[s][item.Name] = sight
		}
	}
	return out
}

func (k *Controller) sightOf(s store.StepKey, name string, n *nodeObject, why map[wish]string) workflow.NodeState {
	sight := workflow.NodeState{Gone: k.look.gone[name], Why: unseen}
	if n != nil {
		sight = workflow.NodeState{Unavailable: n.Spec.Unschedulable || !n.ready(), Why: why[wish{name, s}]}
	}
	if k.state.demand.wants[s].given[name] {
		sight.Granted, sight.Why = true, ""
	}
	return sight
}

func itemsOf(rec *run.Record) []run.Item {
	if rec.Type != plan.TypeForEachNode || rec.Phase != run.StepRunning {
		return nil
	}
	return rec.Items
}

// States is what a run is told of its nodes, by the path of its rollout.
func (k *Controller) States(run types.NamespacedName) map[string]map[string]workflow.NodeState {
	k.state.mu.Lock()
	defer k.state.mu.Unlock()
	out := map[string]map[string]workflow.NodeState{}
	for s, sights := range k.state.demand.sights {
		if s.Run != run {
			continue
		}
		out[s.Path] = map[string]workflow.NodeState{}
		for name, sight := range sights {
			sight.Granted = k.state.demand.wants[s].given[name] // as it stands now, and not at the last look
			out[s.Path][name] = sight
		}
	}
	for s, want := range k.state.demand.wants {
		for name, by := range want.by {
			if s.Run == run && want.given[name] {
				sight := out[s.Path][name]
				sight.Passed = by
				if out[s.Path] == nil {
					out[s.Path] = map[string]workflow.NodeState{}
				}
				out[s.Path][name] = sight
			}
		}
	}
	return out
}

// Want takes in which nodes a run would take next; what it was given and no longer wants is another's.
func (k *Controller) Want(run types.NamespacedName, wants []workflow.NodeDemand) {
	k.state.mu.Lock()
	news := false
	fresh := map[string]bool{}
	for _, w := range wants {
		s := store.StepKey{Run: run, Path: w.Path}
		fresh[w.Path] = true
		was := k.state.demand.wants[s]
		if was.most == w.Most && slices.Equal(was.nodes, w.Nodes) {
			continue
		}
		given := maps.Clone(was.given)
		maps.DeleteFunc(given, func(name string, _ bool) bool { return !slices.Contains(w.Nodes, name) })
		k.state.demand.wants[s] = stepDemand{nodes: w.Nodes, most: w.Most, given: given, drain: w.Drain, needs: w.Needs, by: was.by}
		news = true
	}
	for s := range k.state.demand.wants {
		if s.Run == run && !fresh[s.Path] && !k.state.demand.wants[s].bare {
			delete(k.state.demand.wants, s)
			news = true
		}
	}
	k.state.mu.Unlock()
	if news {
		k.Enqueue()
	}
}

// Turn says whether a drain outside of a for-each-node may take a node now, or why
// not; asking is wanting. What it has, it keeps until its step ends.
func (k *Controller) Turn(s store.StepKey, node string, ahead *drain.Options) (granted bool, why string) {
	k.state.mu.Lock()
	defer k.state.mu.Unlock()
	want := k.state.demand.wants[s]
	if want.given[node] {
		return true, ""
	}
	if !slices.Contains(want.nodes, node) {
		k.state.demand.wants[s] = want.asks(node, ahead)
		k.Enqueue()
	}
	return false, k.state.demand.why[s][node]
}

func atWork(l *store.LiveRun, path string) bool {
	rec := l.Journal.Record(path)
	return rec != nil && rec.Phase == run.StepRunning
}

// stop ends what was begun; another agent goes on with it.
func (k *Controller) stop() {
	k.writer.underWay.Wait()
	k.pods.stop()
	if k.drainer != nil {
		k.drainer.Keep(func(string, string) bool { return false })
		k.drainer.AwaitRequests()
	}
}

// requestsClaimant is the claimant under which the agent drains for all requestors of a node.
const requestsClaimant = "requests"

// Observe takes in a node as the watch shows it.
func (k *Controller) Observe(o any) {
	n := o.(*nodeObject)
	k.saw(n)
	if k.Scope.DryRun { // which carries no request out
		k.Gates.note(n, store.PendingNone)
		return
	}
	k.Gates.note(n, pending(n))
}

// Lost hears that a node is gone.
func (k *Controller) Lost(o any) {
	if n, ok := o.(*nodeObject); ok {
		k.Gates.Store.Forget(types.NamespacedName{Name: n.Name})
		k.Enqueue()
	}
}

// Drains is what drains nodes; nil: nothing does.
func (k *Controller) Drains() executors.Drainer { return k.drainer }
