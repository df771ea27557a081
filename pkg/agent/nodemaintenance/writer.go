package nodemaintenance

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/notify"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/queue"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/informer"
	"github.com/kubectl-maint/kubectl-maint/pkg/kube"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

// nodeWriter writes what was decided onto nodes, beside the looks, and knows what it
// wrote before the watch shows it.
type nodeWriter struct {
	kube      kube.Interface // the agent's own
	telemetry notify.Telemetry
	now       func() time.Time
	enqueue   func()              // has the nodes looked at again
	limit     *semaphore.Weighted // bounds writes in flight
	underWay  sync.WaitGroup

	mu          sync.Mutex
	writing     map[string]*nodeWriting
	written     map[string]*nodeObject // as our own last write left it, until the watch shows that
	later       map[string]time.Time   // nodes that could not be written, and until when they are left alone
	invalid     map[string]invalidNode // nodes whose last write the API server refused for good
	refused     workflow.Refusal       // of every write of a node for want of a right; zero: not
	denied      time.Time              // until then requests are left out: the agent may not write nodes
	gateRefused workflow.Refusal       // of writes that change nothing but what is told of gates; zero: not
	gateDenied  time.Time              // until then such writes are left out
}

func newNodeWriter(c Config, enqueue func()) *nodeWriter {
	return &nodeWriter{kube: c.Clients.Kube, telemetry: c.Telemetry, now: c.Now, enqueue: enqueue, limit: semaphore.NewWeighted(nodeWriters), writing: map[string]*nodeWriting{}, written: map[string]*nodeObject{}, later: map[string]time.Time{}, invalid: map[string]invalidNode{}}
}

// nodeWriting is a write of a node in flight.
type nodeWriting struct {
	version string     // that it is made of
	step    nodes.Step // what it writes
	cancel  context.CancelFunc
}

// inFlight are the writes that were not answered yet.
func (nw *nodeWriter) inFlight() map[string]*nodeWriting {
	nw.mu.Lock()
	defer nw.mu.Unlock()
	return maps.Clone(nw.writing)
}

// startWrite has a step written, beside the looks.
func (nw *nodeWriter) startWrite(ctx context.Context, group *sync.WaitGroup, n *nodeObject, step nodes.Step) {
	nw.begin(ctx, n, step, group.Go, func(inner context.Context) {
		if nw.limit.Acquire(ctx, 1) != nil {
			return
		}
		defer nw.limit.Release(1)
		nw.write(ctx, inner, n, step)
	})
}

// begin notes that a node is being written, and writes it beside the looks: of one node no
// two writes are in flight. step is what the write gives to requestors.
func (nw *nodeWriter) begin(ctx context.Context, n *nodeObject, step nodes.Step, start func(func()), write func(inner context.Context)) {
	inner, cancel := context.WithCancel(ctx)
	nw.mu.Lock()
	nw.writing[n.Name] = &nodeWriting{version: n.ResourceVersion, step: step, cancel: cancel}
	nw.mu.Unlock()
	nw.underWay.Add(1)
	start(func() {
		defer nw.underWay.Done()
		defer cancel()
		defer nw.enqueue() // after it is in flight no more
		defer func() {
			nw.mu.Lock()
			defer nw.mu.Unlock()
			delete(nw.writing, n.Name)
		}()
		write(inner)
	})
}

// answered ends the wait for the reply to a write soon after the watch has shown a
// newer node: the write is in it, or it can only be a conflict.
func (nw *nodeWriter) answered(n *nodeObject) {
	nw.mu.Lock()
	defer nw.mu.Unlock()
	if w := nw.writing[n.Name]; w != nil && informer.Version(n.ResourceVersion) > informer.Version(w.version) {
		time.AfterFunc(replyAwaited, w.cancel)
	}
}

// write makes a step's one patch of the version that was looked at, and says its
// Events after it. What somebody else wrote meanwhile is looked at again.
func (nw *nodeWriter) write(ctx, inner context.Context, n *nodeObject, step nodes.Step) {
	defer nw.telemetry.RecoverPanic("over a node's write")
	inner, cancel := context.WithTimeout(inner, nodeWrite)
	defer cancel()
	got, err := nw.patch(inner, n, step)
	if err != nil && ctx.Err() == nil && executors.Unanswered(err) {
		got, err = nw.outcomeOf(ctx, n, step, err)
	}
	switch {
	case err == nil && got == nil: // somebody else was first
	case err == nil:
		nw.keep(got)
		nw.may(n.Name, step)
		nw.say(got, step)
	case apierrors.IsConflict(err):
		nw.reread(ctx, n.Name)
	case ctx.Err() != nil:
	case apierrors.IsNotFound(err): // the watch has still to show it
		nw.leave(n.Name, writeBackoff)
	default:
		nw.postpone(n.Name, step, err)
	}
}

// outcomeOf looks what became of a write whose reply was lost: the node as written,
// or nothing where it was not, and is to be looked at again.
func (nw *nodeWriter) outcomeOf(ctx context.Context, n *nodeObject, step nodes.Step, lost error) (*corev1.Node, error) {
	ctx, cancel := context.WithTimeout(ctx, writeBackoff)
	defer cancel()
	node, err := nw.kube.CoreV1().Nodes().Get(ctx, n.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, err
	case err != nil || node.ResourceVersion == n.ResourceVersion:
		return nil, lost
	case node.UID == n.UID && shows(nodeOf(node), step):
		return node, nil
	}
	nw.keep(node)
	return nil, nil
}

// may notes that the agent may write nodes, and that this one can be written.
func (nw *nodeWriter) may(node string, step nodes.Step) {
	nw.mu.Lock()
	defer nw.mu.Unlock()
	delete(nw.invalid, node)
	nw.gateRefused, nw.gateDenied = workflow.Refusal{}, time.Time{}
	if !step.OnlyGateStatus() {
		nw.refused = workflow.Refusal{}
	}
}

// gateWrites is how many writes at once may change nothing but what is told of gates. An agent that
// may not write nodes, which it can do without where nobody makes requests, tries one now and then.
func (nw *nodeWriter) gateWrites(now time.Time) int {
	nw.mu.Lock()
	defer nw.mu.Unlock()
	switch {
	case now.Before(nw.gateDenied):
		return 0
	case nw.gateRefused.Times > 0:
		return 1
	}
	return statusWrites
}

// postpone leaves a node that could not be written alone for a while, and all
// requests where the agent lacks the right to.
func (nw *nodeWriter) postpone(node string, step nodes.Step, err error) {
	if step.OnlyGateStatus() && apierrors.IsForbidden(err) {
		nw.postponeGate(err)
		return
	}
	nw.telemetry.Log.Warn("a node could not be written; it is tried again later", "node", node, "error", err.Error())
	nw.mu.Lock()
	defer nw.mu.Unlock()
	now := nw.now()
	nw.later[node] = now.Add(writeBackoff)
	switch {
	case apierrors.IsInvalid(err):
		nw.later[node] = now.Add(queue.ResyncPeriod)
		nw.noteInvalid(node, err, nw.later[node])
	case apierrors.IsForbidden(err): // an API server that has just begun says so of everything
		final := false
		if nw.refused, final = nw.refused.Again(now); final {
			nw.denied = now.Add(queue.ResyncPeriod)
		}
	}
}

// postponeGate leaves out for a while what is told of gates alone. It is said once.
func (nw *nodeWriter) postponeGate(err error) {
	nw.mu.Lock()
	defer nw.mu.Unlock()
	now := nw.now()
	if now.Before(nw.gateDenied) { // of several writes at once
		return
	}
	if nw.gateRefused.Times == 0 {
		nw.telemetry.Log.Info("nodes do not say whether they may be changed: the agent may not write nodes", "error", err.Error())
	}
	nw.gateRefused, _ = nw.gateRefused.Again(now)
	nw.gateDenied = nw.gateRefused.RetryAt(now)
}

// leave leaves a node alone for a while.
func (nw *nodeWriter) leave(node string, until time.Duration) {
	nw.mu.Lock()
	defer nw.mu.Unlock()
	nw.later[node] = nw.now().Add(until)
}

// keep remembers how our own write left a node, until the watch shows it.
func (nw *nodeWriter) keep(node *corev1.Node) {
	nw.mu.Lock()
	defer nw.mu.Unlock()
	nw.written[node.Name] = nodeOf(node)
}

// reread takes in what somebody else wrote.
func (nw *nodeWriter) reread(ctx context.Context, name string) {
	node, err := nw.kube.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err == nil {
		nw.keep(node)
	}
}

// patch writes statuses, the record of the cordon and the cordon itself, all or
// nothing: an agent that dies is before it or after it.
func (nw *nodeWriter) patch(ctx context.Context, n *nodeObject, step nodes.Step) (*corev1.Node, error) {
	patch, err := annotations.NodePatch(n.UID, n.ResourceVersion, step)
	if err != nil {
		return nil, fmt.Errorf("write node %s: %w", n.Name, err)
	}
	return nw.kube.CoreV1().Nodes().Patch(ctx, n.Name, types.MergePatchType, patch, client.PatchOptions())
}

// say sends a step's Events.
func (nw *nodeWriter) say(node *corev1.Node, step nodes.Step) {
	about := nodeReference(node.Name)
	for _, e := range step.Events {
		kind := corev1.EventTypeNormal
		if e.Warning {
			kind = corev1.EventTypeWarning
		}
		message := e.Message
		if e.Requestor != "" {
			message = e.Requestor + ": " + message
		}
		nw.telemetry.Events.Event(about, kind, e.Reason, message)
		if e.Reason == nodes.EventBlocked {
			nw.telemetry.Notify.DrainBlocked(types.NamespacedName{Name: node.Name}, "", node.Name, message)
		}
	}
	for requestor, status := range step.Statuses {
		nw.telemetry.Log.Info("node request", "node", node.Name, "requestor", requestor, "phase", status.Phase, "reason", status.Reason)
	}
}

// forbidden says whether every write of a node has been refused for want of a right
// for so long that it is no API server that has just begun.
func (nw *nodeWriter) forbidden(now time.Time) bool {
	nw.mu.Lock()
	defer nw.mu.Unlock()
	return nw.refused.Times > 1 && now.Sub(nw.refused.Since) >= workflow.RefusalTimeout
}

// withheld says whether requests are left out, since the agent may not write nodes.
func (nw *nodeWriter) withheld(now time.Time) bool {
	nw.mu.Lock()
	defer nw.mu.Unlock()
	return now.Before(nw.denied)
}

// forgetRefusal forgets that writes of nodes were refused, once no node bears a
// request, or what the agent said of one: nothing is to be written then. Of a single
// node it is forgotten once that bears none, and no write of it was refused for a while.
func (nw *nodeWriter) forgetRefusal(objects map[string]*nodeObject) {
	nw.mu.Lock()
	defer nw.mu.Unlock()
	maps.DeleteFunc(nw.invalid, func(name string, is invalidNode) bool {
		return objects[name] == nil || !objects[name].asked() && nw.now().Sub(is.until) > queue.ResyncPeriod
	})
	if nw.refused.Times == 0 {
		return
	}
	for _, n := range objects {
		if n.asked() {
			return
		}
	}
	nw.refused, nw.denied = workflow.Refusal{}, time.Time{}
}

// overlay puts what our own last writes left over what the watch shows, where that is
// older.
func (nw *nodeWriter) overlay(shown map[string]*nodeObject) {
	nw.mu.Lock()
	defer nw.mu.Unlock()
	for name, ours := range nw.written {
		have := shown[name]
		if have == nil || have.UID != ours.UID || informer.Version(have.ResourceVersion) >= informer.Version(ours.ResourceVersion) {
			delete(nw.written, name)
			continue
		}
		shown[name] = ours
	}
}

// postponed are the nodes that are left alone at an instant, and until when.
func (nw *nodeWriter) postponed(now time.Time) map[string]time.Time {
	nw.mu.Lock()
	defer nw.mu.Unlock()
	maps.DeleteFunc(nw.later, func(_ string, until time.Time) bool { return !now.Before(until) })
	return maps.Clone(nw.later)
}

// next are the instants at which nodes that could not be written may be tried again.
func (nw *nodeWriter) next() []time.Time {
	nw.mu.Lock()
	defer nw.mu.Unlock()
	out := slices.Collect(maps.Values(nw.later))
	if nw.now().Before(nw.gateDenied) {
		out = append(out, nw.gateDenied)
	}
	return out
}
