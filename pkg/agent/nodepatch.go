package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
)

// nodeWriters is how many nodes are written at once, and nodeWrite how long one
// write may take (guesses: a look waits for all of them).
const (
	nodeWriters = 8
	nodeWrite   = 10 * time.Second
)

// carryOut does for each node with requests the one next thing: a write, a drain, a
// count of pods. A node whose grant needs a look at its pods first waits for that.
func (k *nodeKeeper) carryOut(ctx context.Context, objects map[string]*nodeObject, world nodes.World, ranking nodes.Ranking) {
	var group sync.WaitGroup
	places := make(chan struct{}, nodeWriters)
	orders := map[string]bool{}
	for _, n := range world.Nodes {
		if len(n.Asked) == 0 && n.Cordon == nil {
			continue
		}
		turns := ranking.Turns(n.Name)
		for requestor, turn := range turns {
			if turn.Granted && !k.pods.foreseen(ctx, n, requestor, world.Now) {
				turn.Granted = false
				turns[requestor] = turn
			}
		}
		step := nodes.Advance(n, turns, world.Limits, world.Now)
		k.by(step.Next)
		k.pods.watch(ctx, n.Name, step.Watch)
		if step.Drain != nil && !step.Writes() {
			orders[n.Name] = true
			k.pods.noteSession(n.Name, step.Drain, k.drainer.Ensure(ctx, k.order(n, *step.Drain)))
		}
		if !step.Writes() {
			orders[n.Name] = orders[n.Name] || step.Drain != nil
			continue
		}
		orders[n.Name] = step.Drain != nil
		group.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			k.write(ctx, objects[n.Name], step)
		})
	}
	group.Wait()
	for _, name := range k.pods.sessions() {
		if !orders[name] {
			k.drainer.Stop(name, requests)
			k.pods.dropSession(name)
		}
	}
	k.pods.keepOnly(func(name string) bool {
		n := objects[name]
		return n != nil && len(annotations.Requests(n.Annotations)) > 0
	})
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
	defer k.ring()
	if k.agent.options.DryRun {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, nodeWrite)
	defer cancel()
	got, err := k.patch(ctx, n, step)
	switch {
	case apierrors.IsNotFound(err):
		return
	case apierrors.IsConflict(err) || apierrors.IsInvalid(err):
		k.reread(ctx, n.Name)
		return
	case err != nil:
		if !errors.Is(err, context.Canceled) {
			k.agent.log.Warn("will try again", "node", n.Name, "error", err.Error())
		}
		sleep(ctx, time.Second) // and not at once
		return
	}
	k.keep(got)
	k.say(got, step)
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
	}
	for requestor, status := range step.Statuses {
		k.agent.log.Info("node request", "node", node.Name, "requestor", requestor, "phase", status.Phase, "reason", status.Reason)
	}
}
