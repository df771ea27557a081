package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// nodeWriters is how many nodes are written at once, and nodeWrite how long one
// write may take (guesses: a look waits for all of them).
const (
	nodeWriters = 8
	nodeWrite   = 10 * time.Second
)

// carryOut does for each node with requests the one next thing: a write, a drain, a
// count of pods. What is to be drained no more is stopped before anything is written.
func (k *nodeKeeper) carryOut(ctx context.Context, objects map[string]*nodeObject, world nodes.World, ranking nodes.Ranking) {
	steps, drains := map[string]nodes.Step{}, map[string]bool{}
	for _, n := range world.Nodes {
		if len(n.Asked) == 0 && n.Cordon == nil {
			continue
		}
		step := nodes.Advance(n, k.foresee(ctx, n, ranking.Turns(n.Name), world.Now), world.Limits, world.Now)
		if !step.Writes() && leftOver(n, world.Holds) {
			step.CordonChanged = true
		}
		k.by(step.Next)
		k.pods.watch(ctx, n.Name, step.Watch)
		drains[n.Name] = step.Drain != nil
		steps[n.Name] = step
	}
	k.endDrains(drains)
	k.mu.Lock()
	maps.DeleteFunc(k.later, func(_ string, until time.Time) bool { return !world.Now.Before(until) })
	later := maps.Clone(k.later)
	k.mu.Unlock()
	var group sync.WaitGroup
	places := make(chan struct{}, nodeWriters)
	for _, n := range world.Nodes {
		step, there := steps[n.Name]
		switch {
		case !there:
		case step.Writes():
			if !k.agent.options.DryRun && later[n.Name].IsZero() {
				group.Go(func() {
					places <- struct{}{}
					defer func() { <-places }()
					k.write(ctx, objects[n.Name], step)
				})
			}
		case step.Drain != nil && k.drainer != nil:
			k.pods.noteSession(n.Name, step.Drain, k.drainer.Ensure(ctx, k.order(n, *step.Drain)))
		}
	}
	group.Wait()
	k.pods.keepOnly(func(name string) bool {
		n := objects[name]
		return n != nil && len(annotations.Requests(n.Annotations)) > 0
	})
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
func (k *nodeKeeper) endDrains(asked map[string]bool) {
	for _, name := range k.pods.sessions() {
		if !asked[name] {
			k.pods.dropSession(name)
		}
	}
	if k.drainer == nil {
		return
	}
	plans := map[string]bool{}
	for _, l := range k.agent.runs.where(func(l *liveRun) bool { return l.broken == nil && l.journal.Phase == plan.RunRunning }) {
		for i := range l.journal.Steps {
			for _, t := range l.journal.Steps[i].Drains() {
				plans[claimantOf(l)+" "+t.Name] = true
			}
		}
	}
	k.drainer.Keep(func(node, by string) bool { return by == requests && asked[node] || plans[by+" "+node] })
}

// foresee takes a turn back whose pods have not been looked at yet: a look is under
// way then. A node that passes from one to the next is cordoned already.
func (k *nodeKeeper) foresee(ctx context.Context, n nodes.Node, turns nodes.Turns, now time.Time) nodes.Turns {
	for requestor, turn := range turns {
		if turn.Granted && n.Cordon == nil && !k.pods.foreseen(ctx, n, requestor, now) {
			turn.Granted = false
			turns[requestor] = turn
		}
	}
	return turns
}

// order is a drain as the drainer takes it, with the agent's own rights.
func (k *nodeKeeper) order(n nodes.Node, d nodes.Drain) executors.DrainOrder {
	return executors.DrainOrder{
		Node: n.Name, NodeUID: n.UID, By: requests, Options: d.Options, Since: d.Since,
		Clients: executors.Clients{Kube: k.agent.kube}, Manager: annotations.ManagerAgent, DryRun: k.agent.options.DryRun,
	}
}

// write makes a step's one patch of the version that was looked at, and says its
// Events after it. What somebody else wrote meanwhile is looked at again.
func (k *nodeKeeper) write(ctx context.Context, n *nodeObject, step nodes.Step) {
	defer k.agent.caught("over a node's write")
	ctx, cancel := context.WithTimeout(ctx, nodeWrite)
	defer cancel()
	got, err := k.patch(ctx, n, step)
	switch {
	case err == nil:
		k.keep(got)
		k.may()
		k.say(got, step)
		k.ring()
	case apierrors.IsConflict(err):
		k.reread(ctx, n.Name)
		k.ring()
	case apierrors.IsNotFound(err) || errors.Is(err, context.Canceled):
	default:
		k.postpone(n.Name, err)
	}
}

// may notes that the agent may write nodes.
func (k *nodeKeeper) may() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.refused = time.Time{}
}

// postpone leaves a node that could not be written alone for a while, and all
// requests where the agent lacks the right to.
func (k *nodeKeeper) postpone(node string, err error) {
	k.agent.log.Warn("a node could not be written; it is tried again later", "node", node, "error", err.Error())
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.agent.now()
	k.later[node] = now.Add(2 * time.Second)
	switch {
	case apierrors.IsInvalid(err):
		k.later[node] = now.Add(look)
	case !apierrors.IsForbidden(err):
	case k.refused.IsZero(): // an API server that has just begun says so of everything
		k.refused = now
	case now.Sub(k.refused) > look:
		k.denied = now.Add(look)
	}
}

// keep remembers how our own write left a node, until the watch shows it.
func (k *nodeKeeper) keep(node *corev1.Node) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.written[node.Name] = nodeOf(node)
}

// reread takes in what somebody else wrote.
func (k *nodeKeeper) reread(ctx context.Context, name string) {
	node, err := k.agent.kube.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err == nil {
		k.keep(node)
	}
}

// patch writes statuses, the record of the cordon and the cordon itself, all or
// nothing: an agent that dies is before it or after it.
func (k *nodeKeeper) patch(ctx context.Context, n *nodeObject, step nodes.Step) (*corev1.Node, error) {
	on := map[string]any{}
	for requestor, status := range step.Statuses {
		on[annotations.StatusRequestPrefix+requestor] = status.String()
	}
	for _, requestor := range step.Remove {
		on[annotations.StatusRequestPrefix+requestor] = nil
	}
	if step.CordonChanged {
		on[annotations.StatusCordoned] = nil
		if step.Cordon != nil {
			on[annotations.StatusCordoned] = step.Cordon.String()
		}
	}
	if step.Progress != nil {
		on[annotations.StatusProgress] = nil
		if *step.Progress != "" {
			on[annotations.StatusProgress] = *step.Progress
		}
	}
	body := map[string]any{"metadata": map[string]any{"uid": n.UID, "resourceVersion": n.ResourceVersion, "annotations": on}}
	if step.Unschedulable != nil {
		body["spec"] = map[string]any{"unschedulable": nil}
		if *step.Unschedulable {
			body["spec"] = map[string]any{"unschedulable": true}
		}
	}
	patch, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("write node %s: %w", n.Name, err)
	}
	return k.agent.kube.CoreV1().Nodes().Patch(ctx, n.Name, types.MergePatchType, patch, patchOptions())
}

// say sends a step's Events.
func (k *nodeKeeper) say(node *corev1.Node, step nodes.Step) {
	about := &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: types.UID(node.Name)} // as the kubelet does: kubectl describe finds them by it
	for _, e := range step.Events {
		kind := corev1.EventTypeNormal
		if e.Warning {
			kind = corev1.EventTypeWarning
		}
		message := e.Message
		if e.Requestor != "" {
			message = e.Requestor + ": " + message
		}
		k.agent.events.Event(about, kind, e.Reason, message)
		if e.Reason == nodes.EventBlocked {
			k.agent.herald.blocked(key{name: node.Name}, "", node.Name, message)
		}
	}
	for requestor, status := range step.Statuses {
		k.agent.log.Info("node request", "node", node.Name, "requestor", requestor, "phase", status.Phase, "reason", status.Reason)
	}
}
