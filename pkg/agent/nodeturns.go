package agent

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// maxGoneChecks bounds how many nodes are asked for at one run's end, whether they
// are gone (a guess): the rest is asked for at the next.
const maxGoneChecks = 50

// keepTurns writes down which nodes a run that ends has been through. A rehearsal
// has been through none. Where the plan is gone, nobody asks any more.
func (a *Agent) keepTurns(ctx context.Context, l *store.CachedRun, now time.Time) error {
	turns := l.Journal.Turns(now)
	if len(turns) == 0 || l.Run.Request.DryRun || a.docs.Plan(l.PlanKey()) == nil {
		return nil
	}
	err := a.ledgers.NoteTurns(ctx, l.PlanKey(), l.Run.PlanUID, turns, func(known run.NodeTurns) map[string]bool { return a.goneNodes(ctx, known) })
	since := l.Journal.SectionAt
	final := apierrors.IsForbidden(err) && since != nil && now.Sub(*since) > time.Minute // a quota, say
	if final || errors.Is(err, annotations.ErrForeign) {
		a.log.Warn("the turns of nodes are not kept", "plan", l.PlanKey().String(), "error", err.Error())
		return nil // it must not keep the run from its end
	}
	return err
}

// goneNodes are those of the nodes that are not there any more: asked for live, as
// the watch may be behind. An agent that watches no nodes knows of none.
func (a *Agent) goneNodes(ctx context.Context, known run.NodeTurns) map[string]bool {
	gone, asked := map[string]bool{}, 0
	if a.options.WatchNamespace != "" {
		return gone
	}
	for name := range known {
		if _, there, err := a.nodes.GetStore().GetByKey(name); there || err != nil || asked == maxGoneChecks {
			continue
		}
		asked++
		_, err := a.kube.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		gone[name] = apierrors.IsNotFound(err)
	}
	return gone
}

// turnsOf are the turns that a run's plan has given to nodes: by its ledger, and by
// the other runs of it that are at work.
func (s sighting) turnsOf(ctx context.Context) (run.NodeTurns, error) {
	turns, err := s.agent.ledgers.NodeTurns(ctx, s.run.PlanKey(), s.run.Run.PlanUID)
	if err != nil {
		return nil, err
	}
	for _, other := range s.agent.runs.OfPlan(s.run.PlanKey()) {
		if other.Broken == nil && other.Run.Name != s.run.Run.Name {
			turns = turns.With(other.Journal.Turns(s.agent.now()), func(string) bool { return false })
		}
	}
	return turns, nil
}
