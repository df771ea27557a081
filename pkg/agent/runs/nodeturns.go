package runs

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

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
