package runs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/queue"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

// Reasons of a step that does not begin: its node could not be looked at, is open, or is another
// one that is.
const (
	reasonUnlooked   = "NodeNotRead"
	reasonUncordoned = "Uncordoned"
	reasonReplaced   = "NodeReplaced"
)

// isLeftOpen says whether a step did not begin because a node is not as earlier steps left it.
func isLeftOpen(out executors.Outcome) bool {
	return slices.Contains([]string{reasonUncordoned, reasonReplaced}, out.Reason)
}

// stillClosed looks, before a step begins, whether the nodes that earlier steps closed
// are as they left them. The look is live and the plan account's own: a cache may be
// older than the uncordon.
func (c *Controller) stillClosed(ctx context.Context, l *store.CachedRun, m workflow.Action, clients executors.Clients) *executors.Outcome {
	for _, n := range l.Run.ClosedNodes(l.Journal, m.Path) {
		there, failed := clients, (*executors.Outcome)(nil)
		if n.Elsewhere != "" {
			there, failed = c.clientsAt(ctx, l, n.Elsewhere, clients)
		}
		if failed == nil {
			failed = c.nodeClosed(ctx, l, m.Step.Type, n, there)
		}
		if failed != nil {
			return failed
		}
	}
	return nil
}

// nodeClosed looks at one node for a step of a type. On one that is gone nothing runs, and one that
// was made anew under its name and registered itself cordoned takes no pods; a step that cordons or
// drains does the same with one that is open.
func (c *Controller) nodeClosed(ctx context.Context, l *store.CachedRun, stepType string, n run.ClosedNode, clients executors.Clients) *executors.Outcome {
	node, err := clients.Kube.CoreV1().Nodes().Get(ctx, n.Name, metav1.GetOptions{})
	replaced := n.UID != "" && string(node.UID) != n.UID
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return c.nodeNotRead(ctx, l, clients, n.Name, err)
	case node.Spec.Unschedulable, replaced && (stepType == plan.TypeCordon || stepType == plan.TypeDrain):
		return nil
	case replaced:
		return new(executors.Refuse(reasonReplaced, "Node/%s was deleted and created again after it was drained: pods may have come, so this step does not run; cordon it, and run the plan again", n.Name))
	}
	return new(executors.Refuse(reasonUncordoned, "Node/%s was uncordoned %s after it was drained: pods may have come, so this step does not run; cordon it, and run the plan again",
		n.Name, c.uncordonedBy(node, n)))
}

// nodeNotRead is a look at a node that failed: the step has not begun.
func (c *Controller) nodeNotRead(ctx context.Context, l *store.CachedRun, clients executors.Clients, name string, err error) *executors.Outcome {
	s := c.inputsFor(l, clients)
	right := authorizationv1.ResourceAttributes{Verb: "get", Version: "v1", Resource: "nodes", Name: name}
	failed := s.unread(ctx, executors.ReasonForbidden, right, fmt.Errorf("read node %s as %s, to see whether it is still cordoned: %w", name, s.account.User(), err))
	if failed.Reason == executors.ReasonUnavailable {
		failed.State, failed.Permanent, failed.WakeAt = executors.NotYet, false, queue.Latest(failed.WakeAt, c.Now().Add(retryDelay))
	}
	if failed.State == executors.NotYet {
		failed.Reason = reasonUnlooked
	}
	return failed
}

// uncordonedBy says who opened a node and when, as far as anything tells. The API
// server keeps the name only of who wrote the field, and not of who took it away.
func (c *Controller) uncordonedBy(node *corev1.Node, n run.ClosedNode) string {
	at := c.Now()
	if seen := c.Nodes.OpenedAt(node.Name); n.Elsewhere == "" && !seen.IsZero() {
		at = seen
	}
	if writers := annotations.CordonWriters(node); len(writers) > 0 {
		return fmt.Sprintf("by %s at %s", writers[0].Manager, writers[0].At.UTC().Format(time.RFC3339))
	}
	return fmt.Sprintf("by somebody else (seen at %s)", at.UTC().Format(time.RFC3339))
}

// saveTurns writes down which nodes a run that ends has been through. A rehearsal
// has been through none. Where the plan is gone, nobody asks any more.
func (c *Controller) saveTurns(ctx context.Context, l *store.LiveRun, now time.Time) error {
	turns := l.Journal.Turns(now)
	if len(turns) == 0 || l.Head.Request.DryRun || c.Stores.Documents.Plan(l.PlanKey()) == nil {
		return nil
	}
	err := c.Stores.Ledgers.NoteTurns(ctx, l.PlanKey(), l.Head.PlanUID, turns, func(known run.NodeTurns) map[string]bool { return c.Nodes.Gone(ctx, known) })
	since := l.Journal.SectionAt
	final := apierrors.IsForbidden(err) && since != nil && now.Sub(*since) > time.Minute // a quota, say
	if final || errors.Is(err, annotations.ErrForeign) {
		c.Telemetry.Log.Warn("the turns of nodes are not kept", "plan", l.PlanKey().String(), "error", err.Error())
		return nil // it must not keep the run from its end
	}
	return err
}

// turnsOf are the turns that a run's plan has given to nodes: by its ledger, and by
// the other runs of it that are at work.
func (c *Controller) turnsOf(ctx context.Context, l *store.CachedRun) (run.NodeTurns, error) {
	turns, err := c.Stores.Ledgers.NodeTurns(ctx, l.PlanKey(), l.Run.PlanUID)
	if err != nil {
		return nil, err
	}
	for _, other := range c.Stores.Runs.OfPlan(l.PlanKey()) {
		if other.Broken == nil && other.Head.Name != l.Run.Name {
			turns = turns.With(other.Journal.Turns(c.Now()), func(string) bool { return false })
		}
	}
	return turns, nil
}
