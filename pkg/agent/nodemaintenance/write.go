package nodemaintenance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/queue"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/informer"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
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

// nodeWriting is a write of a node in flight.
type nodeWriting struct {
	version string     // that it is made of
	step    nodes.Step // what it writes
	cancel  context.CancelFunc
}

// inFlight are the writes that were not answered yet.
func (k *Controller) inFlight() map[string]*nodeWriting {
	k.mu.Lock()
	defer k.mu.Unlock()
	return maps.Clone(k.writing)
}

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

// startWrite has a step written, beside the looks.
func (k *Controller) startWrite(ctx context.Context, group *sync.WaitGroup, n *nodeObject, step nodes.Step) {
	w := &nodeWriting{version: n.ResourceVersion, step: step}
	inner, cancel := context.WithCancel(ctx)
	w.cancel = cancel
	k.mu.Lock()
	k.writing[n.Name] = w
	k.mu.Unlock()
	k.writes.Add(1)
	group.Go(func() {
		defer k.writes.Done()
		defer cancel()
		defer k.Enqueue() // after it is in flight no more
		defer func() {
			k.mu.Lock()
			defer k.mu.Unlock()
			delete(k.writing, n.Name)
		}()
		k.writers <- struct{}{}
		defer func() { <-k.writers }()
		k.write(ctx, inner, n, step)
	})
}

// answered ends the wait for the reply to a write soon after the watch has shown a
// newer node: the write is in it, or it can only be a conflict.
func (k *Controller) answered(n *nodeObject) {
	if w := k.writing[n.Name]; w != nil && informer.Version(n.ResourceVersion) > informer.Version(w.version) {
		time.AfterFunc(replyAwaited, w.cancel)
	}
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
// count of pods. What is to be drained no more is stopped before anything is written.
func (k *Controller) apply(ctx context.Context, objects map[string]*nodeObject, world nodes.World, ranking nodes.Ranking, writing map[string]*nodeWriting) {
	steps, drains := map[string]nodes.Step{}, map[string]bool{}
	for _, n := range world.Nodes {
		if len(n.Asked) == 0 && n.Cordon == nil {
			continue
		}
		step := nodes.Advance(n, k.previewTurns(ctx, n, ranking.Turns(n.Name), world.Now), world.Limits, world.Now)
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
	for _, n := range world.Nodes {
		step, there := steps[n.Name]
		switch {
		case !there || writing[n.Name] != nil:
		case step.Writes():
			if !k.DryRun && later[n.Name].IsZero() {
				k.startWrite(ctx, &group, objects[n.Name], step)
			}
		case step.Drain != nil && k.drainer != nil:
			k.pods.noteSession(n.Name, step.Drain, k.drainer.Ensure(ctx, k.order(n, *step.Drain)))
		}
	}
	await(ctx, &group)
	k.requeueLater()
	k.pods.keepOnly(ctx, func(name string) bool {
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
	for _, l := range k.Runs.Where(func(l *store.CachedRun) bool { return l.Broken == nil && l.Journal.Phase == run.Running }) {
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
		Clients: executors.Clients{Kube: k.Kube}, Manager: annotations.ManagerAgent, DryRun: k.DryRun,
	}
}

// write makes a step's one patch of the version that was looked at, and says its
// Events after it. What somebody else wrote meanwhile is looked at again.
func (k *Controller) write(ctx, inner context.Context, n *nodeObject, step nodes.Step) {
	defer k.recoverPanic("over a node's write")
	inner, cancel := context.WithTimeout(inner, nodeWrite)
	defer cancel()
	got, err := k.patch(inner, n, step)
	if err != nil && ctx.Err() == nil && unanswered(err) {
		got, err = k.outcomeOf(ctx, n, step, err)
	}
	switch {
	case err == nil && got == nil: // somebody else was first
	case err == nil:
		k.keep(got)
		k.may()
		k.say(got, step)
	case apierrors.IsConflict(err):
		k.reread(ctx, n.Name)
	case apierrors.IsNotFound(err) || ctx.Err() != nil:
	default:
		k.postpone(n.Name, err)
	}
}

// unanswered says whether an error leaves open if the request was carried out.
func unanswered(err error) bool {
	var status apierrors.APIStatus
	return !errors.As(err, &status) || status.Status().Code >= http.StatusInternalServerError
}

// outcomeOf looks what became of a write whose reply was lost: the node as written,
// or nothing where it was not, and is to be looked at again.
func (k *Controller) outcomeOf(ctx context.Context, n *nodeObject, step nodes.Step, lost error) (*corev1.Node, error) {
	ctx, cancel := context.WithTimeout(ctx, writeBackoff)
	defer cancel()
	node, err := k.Kube.CoreV1().Nodes().Get(ctx, n.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, err
	case err != nil || node.ResourceVersion == n.ResourceVersion:
		return nil, lost
	case node.UID == n.UID && shows(nodeOf(node), step):
		return node, nil
	}
	k.keep(node)
	return nil, nil
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
		(step.Progress == nil || n.Annotations[annotations.StatusProgress] == *step.Progress)
}

// requeueLater has the keeper look again when the nodes that could not be written
// may be tried again.
func (k *Controller) requeueLater() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, until := range k.later {
		k.by(&until)
	}
}

// may notes that the agent may write nodes.
func (k *Controller) may() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.refused = workflow.Refusal{}
}

// postpone leaves a node that could not be written alone for a while, and all
// requests where the agent lacks the right to.
func (k *Controller) postpone(node string, err error) {
	k.Log.Warn("a node could not be written; it is tried again later", "node", node, "error", err.Error())
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.Now()
	k.later[node] = now.Add(writeBackoff)
	switch {
	case apierrors.IsInvalid(err):
		k.later[node] = now.Add(queue.ResyncPeriod)
	case apierrors.IsForbidden(err): // an API server that has just begun says so of everything
		final := false
		if k.refused, final = k.refused.Again(now); final {
			k.denied = now.Add(queue.ResyncPeriod)
		}
	}
}

// keep remembers how our own write left a node, until the watch shows it.
func (k *Controller) keep(node *corev1.Node) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.written[node.Name] = nodeOf(node)
}

// reread takes in what somebody else wrote.
func (k *Controller) reread(ctx context.Context, name string) {
	node, err := k.Kube.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err == nil {
		k.keep(node)
	}
}

// patch writes statuses, the record of the cordon and the cordon itself, all or
// nothing: an agent that dies is before it or after it.
func (k *Controller) patch(ctx context.Context, n *nodeObject, step nodes.Step) (*corev1.Node, error) {
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
	return k.Kube.CoreV1().Nodes().Patch(ctx, n.Name, types.MergePatchType, patch, client.PatchOptions())
}

// say sends a step's Events.
func (k *Controller) say(node *corev1.Node, step nodes.Step) {
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
		k.Events.Event(about, kind, e.Reason, message)
		if e.Reason == nodes.EventBlocked {
			k.Notify.DrainBlocked(types.NamespacedName{Name: node.Name}, "", node.Name, message)
		}
	}
	for requestor, status := range step.Statuses {
		k.Log.Info("node request", "node", node.Name, "requestor", requestor, "phase", status.Phase, "reason", status.Reason)
	}
}
