package nodemaintenance

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/queue"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/lifecycle"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

// Types of the conditions on the agent's configuration that speak of lifecycle conditions.
const (
	conditionsForbidden = "NodeConditionsForbidden"
	conditionsLeft      = "NodeConditionsLeft"
)

// Guesses about writes of lifecycle conditions: a rollout over a thousand nodes writes one
// on each, and what gives nodes away must not wait behind that.
const (
	conditionWriters = 4  // at once
	conditionsAhead  = 32 // begun and not answered
)

// conditionWriter writes the lifecycle conditions of nodes.
type conditionWriter struct {
	nodes *nodeWriter
	limit *semaphore.Weighted

	mu      sync.Mutex
	refused workflow.Refusal     // of every write for want of a right; zero: not
	denied  time.Time            // until then nothing is written
	later   map[string]time.Time // nodes of which a write failed, and until when they are left alone
	left    []string             // what stays as somebody else set it
	begun   int                  // writes that are not answered
}

func newConditionWriter(nw *nodeWriter) *conditionWriter {
	return &conditionWriter{nodes: nw, limit: semaphore.NewWeighted(conditionWriters), later: map[string]time.Time{}}
}

// conditions has the lifecycle conditions written that are not as they should be, of nodes
// of which nothing else is written.
func (k *Controller) conditions(ctx context.Context, objects map[string]*nodeObject, world nodes.ClusterState, engaged map[string]engagement, busy map[string]bool) {
	if k.Scope.DryRun {
		return
	}
	var left []string
	var urgent, planned []nodeConditions
	wanted, off := false, k.Settings.Lifecycle != nil && !k.Settings.Lifecycle()
	for _, n := range world.Nodes {
		object, works := objects[n.Name], engaged[n.Name].works
		if len(n.Asked) == 0 && n.Cordon == nil && len(works) == 0 && len(object.lifecycle) == 0 {
			continue
		}
		if !off && len(works) > 0 && len(n.Asked) == 0 && n.Cordon == nil { // else it is known already
			n.Gate = k.Gates.node(object, k.look.shut, world.Now)
			k.look.by(n.Gate.Next)
		}
		facts := lifecycle.Facts{Node: n, Works: works}
		change, kept := facts.Changes(object.lifecycle)
		if off {
			change, kept = facts.Ends(object.lifecycle), nil
		}
		for _, c := range kept {
			left = append(left, fmt.Sprintf("%s of %s", c.Type, n.Name))
		}
		wanted = wanted || len(change) > 0
		switch {
		case len(change) == 0 || busy[n.Name]:
		case len(change) == 1 && change[0].Type == lifecycle.Planned:
			planned = append(planned, nodeConditions{object, change})
		default:
			urgent = append(urgent, nodeConditions{object, change})
		}
	}
	k.lifecycle.note(left, wanted)
	k.look.by(k.lifecycle.start(ctx, append(urgent, planned...), world.Now))
}

// nodeConditions are the conditions of a node that change.
type nodeConditions struct {
	node   *nodeObject
	change []lifecycle.Condition
}

// note takes in what stays as somebody else set it, and whether any condition is to change,
// also of nodes that are being written: where none is, nothing is refused any more.
func (cw *conditionWriter) note(left []string, wanted bool) {
	cw.mu.Lock()
	defer cw.mu.Unlock()
	cw.left = left
	if !wanted {
		cw.refused, cw.denied = workflow.Refusal{}, time.Time{}
	}
}

// start begins to write, and says when to look again for what is left for later.
func (cw *conditionWriter) start(ctx context.Context, list []nodeConditions, now time.Time) *time.Time {
	cw.mu.Lock()
	defer cw.mu.Unlock()
	if now.Before(cw.denied) {
		return soonestOf(cw.denied)
	}
	var held time.Time
	for name, until := range cw.later {
		if !now.Before(until) {
			delete(cw.later, name)
		}
	}
	ready := slices.DeleteFunc(list, func(c nodeConditions) bool {
		until, later := cw.later[c.node.Name]
		if later && (held.IsZero() || until.Before(held)) {
			held = until
		}
		return later
	})
	for _, c := range ready[:min(len(ready), conditionsAhead-cw.begun)] {
		cw.begun++
		beside := func(write func()) { go write() }
		cw.nodes.begin(ctx, c.node, nodes.Step{}, beside, func(inner context.Context) { cw.write(ctx, inner, c) })
	}
	return soonestOf(held)
}

// write patches the conditions of one node.
func (cw *conditionWriter) write(ctx, inner context.Context, c nodeConditions) {
	defer cw.nodes.telemetry.RecoverPanic("over a node's conditions")
	defer func() {
		cw.mu.Lock()
		defer cw.mu.Unlock()
		cw.begun--
	}()
	if cw.limit.Acquire(ctx, 1) != nil {
		return
	}
	defer cw.limit.Release(1)
	inner, cancel := context.WithTimeout(inner, nodeWrite)
	defer cancel()
	patch, err := annotations.LifecyclePatch(c.node.UID, c.node.ResourceVersion, c.node.lifecycle, c.change, cw.nodes.now())
	if err != nil {
		cw.nodes.telemetry.Log.Error("conditions of a node", "node", c.node.Name, "error", err.Error())
		return
	}
	got, err := cw.nodes.kube.CoreV1().Nodes().Patch(inner, c.node.Name, types.StrategicMergePatchType, patch, client.PatchOptions(), "status")
	switch {
	case err == nil:
		cw.nodes.keep(got)
		cw.mu.Lock()
		cw.refused, cw.denied = workflow.Refusal{}, time.Time{}
		cw.mu.Unlock()
	case ctx.Err() != nil:
	case apierrors.IsConflict(err):
		cw.nodes.reread(ctx, c.node.Name)
	default:
		cw.postpone(c.node.Name, err)
	}
}

// postpone leaves the conditions of a node that could not be written alone for a while, and
// those of all nodes where the agent lacks the right to.
func (cw *conditionWriter) postpone(node string, err error) {
	cw.mu.Lock()
	defer cw.mu.Unlock()
	now := cw.nodes.now()
	cw.later[node] = now.Add(writeBackoff)
	switch {
	case apierrors.IsForbidden(err): // an API server that has just begun says so of everything
		final := false
		if cw.refused, final = cw.refused.Again(now); final {
			cw.denied = now.Add(queue.ResyncPeriod)
			return
		}
		cw.denied = cw.refused.RetryAt(now)
	case apierrors.IsInvalid(err):
		cw.later[node] = now.Add(queue.ResyncPeriod)
		fallthrough
	default:
		cw.nodes.telemetry.Log.Warn("the conditions of a node could not be written; it is tried again later", "node", node, "error", err.Error())
	}
}

// report says on the agent's configuration which conditions are not written, and why.
func (cw *conditionWriter) report(now time.Time) []metav1.Condition {
	cw.mu.Lock()
	defer cw.mu.Unlock()
	var out []metav1.Condition
	if cw.refused.Times > 1 && now.Sub(cw.refused.Since) >= workflow.RefusalTimeout {
		out = append(out, metav1.Condition{
			Type: conditionsForbidden, Status: metav1.ConditionTrue, Reason: "MissingRight",
			Message: "the agent may not patch the status of nodes, so it writes no lifecycle conditions on them: bind the ClusterRole maint-agent-conditions to its ServiceAccount if you want them",
		})
	}
	if len(cw.left) > 0 {
		out = append(out, metav1.Condition{
			Type: conditionsLeft, Status: metav1.ConditionTrue, Reason: "SetBySomebodyElse",
			Message: document.Cut("these are True already, as somebody else set them, and are left as they are: "+strings.Join(cw.left, ", "), document.MaxMessage),
		})
	}
	return out
}
