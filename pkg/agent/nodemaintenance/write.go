package nodemaintenance

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
)

// Guesses about writes of nodes. A look waits for its writes no longer than
// writesAwaited: a node whose reply is late does not hold up the others.
const (
	nodeWriters   = 8                // nodes written at once
	nodeWrite     = 10 * time.Second // how long one write may take
	replyAwaited  = time.Second      // for a reply, once the watch shows a newer node
	writesAwaited = time.Second
	writeBackoff  = 2 * time.Second // after a write that failed
)

// promised are the nodes that writes in flight give to requestors: their slots are
// taken, whether or not the write is seen yet.
func promised(writing map[string]*nodeWriting) []nodes.Hold {
	var out []nodes.Hold
	for name, w := range writing {
		for requestor, status := range w.step.Statuses {
			if status.Phase.Holds() {
				out = append(out, nodes.Hold{Node: name, Claimant: requestor, Yielded: status.Yielded != nil})
			}
		}
	}
	return out
}

// await waits for writes, but not long.
func await(ctx context.Context, group *sync.WaitGroup) {
	done := make(chan struct{})
	go func() { group.Wait(); close(done) }()
	timer := time.NewTimer(writesAwaited)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// apply does for each node with requests the one next thing: a write, a drain, a
// count of pods; and has nodes say what is told of their gates. What is to be drained no
// more is stopped before anything is written. The nodes that are being written are busy.
func (k *Controller) apply(ctx context.Context, objects map[string]*nodeObject, world nodes.ClusterState, ranking nodes.Ranking, engaged map[string]engagement, writing map[string]*nodeWriting) (busy map[string]bool) {
	busy = map[string]bool{}
	for name := range writing {
		busy[name] = true
	}
	steps, drains := map[string]nodes.Step{}, map[string]bool{}
	for _, n := range world.Nodes {
		var step nodes.Step
		maintained := len(n.Asked) > 0 || n.Cordon != nil
		if maintained {
			step = nodes.Advance(n, k.previewTurns(ctx, n, ranking.Turns(n.Name), world.Now), world.Limits, world.Now)
			if !step.Writes() && leftOver(n, world.Holds) {
				step.CordonChanged = true
			}
			k.look.by(step.Next)
			k.pods.watch(ctx, n.Name, step.Watch)
			drains[n.Name] = step.Drain != nil
		}
		k.gateStatus(&step, objects[n.Name], n, engaged[n.Name], world.Now)
		if maintained || step.Writes() {
			steps[n.Name] = step
		}
	}
	k.endDrains(drains)
	later := k.writer.postponed(world.Now)
	status := newStatusBudget(writing, k.writer.gateWrites(world.Now))
	sure := sync.OnceValue(func() bool { return k.sure(ctx) })
	var group sync.WaitGroup
	for _, n := range world.Nodes {
		step, there := steps[n.Name]
		if !there || writing[n.Name] != nil {
			continue
		}
		switch {
		case step.Writes() && !k.Scope.DryRun && later[n.Name].IsZero() && status.allows(step) && (!begins(step) || sure()):
			busy[n.Name] = true
			k.writer.startWrite(ctx, &group, objects[n.Name], step)
		case step.Writes() && !step.OnlyGateStatus(): // it comes first
		case step.Drain != nil && k.drainer != nil:
			k.pods.noteSession(n.Name, step.Drain, k.drainer.Ensure(ctx, k.order(n, *step.Drain)))
		}
	}
	await(ctx, &group)
	for _, until := range k.writer.next() { // when the nodes that could not be written may be tried again
		k.look.by(&until)
	}
	k.pods.keepOnly(ctx, func(name string) bool {
		n := objects[name]
		return n != nil && len(annotations.Requests(n.Annotations)) > 0
	})
	return busy
}

// begins says whether a step gives a node to somebody, or cordons it.
func begins(step nodes.Step) bool {
	scheduled := func(s nodes.Status) bool { return s.Phase == nodes.Scheduled }
	return step.Unschedulable != nil && *step.Unschedulable || slices.ContainsFunc(slices.Collect(maps.Values(step.Statuses)), scheduled)
}

// leftOver says whether the record of a cordon speaks of plans alone that have not
// got the node, and somebody has uncordoned it since: a cordon that comes later is
// not theirs.
func leftOver(n nodes.Node, holds []nodes.Hold) bool {
	return n.Cordon != nil && !n.Unschedulable && len(n.Asked) == 0 && !slices.ContainsFunc(n.Cordon.By, func(by string) bool { return !nodes.IsPlan(by) }) &&
		!slices.ContainsFunc(holds, func(h nodes.Hold) bool { return h.Node == n.Name && !h.Failed })
}

// endDrains stops the drains that nobody wants any more: of requests that were
// withdrawn, and of steps that are at work no more, however they ended.
func (k *Controller) endDrains(asked map[string]bool) {
	for _, name := range k.pods.sessions() {
		if !asked[name] {
			k.pods.dropSession(name)
		}
	}
	if k.drainer == nil {
		return
	}
	plans := map[string]bool{}
	for _, l := range k.Rollouts.Runs.Filter((*store.LiveRun).TakesNodes) {
		for i := range l.Journal.Steps {
			for _, t := range l.Journal.Steps[i].Drains() {
				plans[claimantOf(l)+" "+t.Name] = true
			}
		}
	}
	k.drainer.Keep(func(node, by string) bool { return by == requestsClaimant && asked[node] || plans[by+" "+node] })
}

// previewTurns takes a turn back whose pods have not been looked at yet: a look is under
// way then. A node that passes from one to the next is cordoned already.
func (k *Controller) previewTurns(ctx context.Context, n nodes.Node, turns nodes.Turns, now time.Time) nodes.Turns {
	for requestor, turn := range turns {
		if turn.Granted && n.Cordon == nil && !k.pods.previewed(ctx, n, requestor, now) {
			turn.Granted = false
			turns[requestor] = turn
		}
	}
	return turns
}

// order is a drain as the drainer takes it, with the agent's own rights.
func (k *Controller) order(n nodes.Node, d nodes.Drain) executors.DrainOrder {
	return executors.DrainOrder{
		Node: n.Name, NodeUID: n.UID, By: requestsClaimant, Options: d.Options, Since: d.Since,
		Clients: executors.Clients{Kube: k.Clients.Kube}, Manager: annotations.ManagerAgent, DryRun: k.Scope.DryRun,
	}
}

// shows says whether a node is as a step writes it.
func shows(n *nodeObject, step nodes.Step) bool {
	have := annotations.RequestStatuses(n.Annotations)
	for requestor, status := range step.Statuses {
		if have[requestor] != status.String() {
			return false
		}
	}
	for _, requestor := range step.Remove {
		if _, left := have[requestor]; left {
			return false
		}
	}
	record := ""
	if step.Cordon != nil {
		record = step.Cordon.String()
	}
	return (!step.CordonChanged || n.Annotations[annotations.StatusCordoned] == record) &&
		(step.Unschedulable == nil || n.Spec.Unschedulable == *step.Unschedulable) &&
		(step.Progress == nil || n.Annotations[annotations.StatusProgress] == *step.Progress) &&
		(step.Behavior == nil || n.Annotations[annotations.StatusBehavior] == *step.Behavior) &&
		(step.Conditions == nil || n.Annotations[annotations.StatusConditions] == *step.Conditions)
}
