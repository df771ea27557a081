package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/queue"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// maxGoneChecks bounds how many nodes are asked for at one run's end, whether they
// are gone (a guess): the rest is asked for at the next.
const maxGoneChecks = 50

// nodeTurns are the turns of a plan's rollouts that its ledger knows.
func (l *ledgers) nodeTurns(ctx context.Context, pk types.NamespacedName, uid string) (run.NodeTurns, error) {
	cm, err := l.kube.CoreV1().ConfigMaps(pk.Namespace).Get(ctx, annotations.NodeTurnsName(pk.Name, uid), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read which nodes plan %s has been through: %w", pk, err)
	}
	turns, broken := annotations.ReadNodeTurns(cm, uid)
	if broken != nil { // it says no more than who comes first: a rollout goes on without
		return nil, nil //nolint:nilerr // see above
	}
	return turns, nil
}

// noteTurns takes turns into a plan's ledger. Doing it twice changes nothing.
func (l *ledgers) noteTurns(ctx context.Context, pk types.NamespacedName, uid string, turns run.NodeTurns, gone func(run.NodeTurns) map[string]bool) error {
	maps := l.kube.CoreV1().ConfigMaps(pk.Namespace)
	cm, err := maps.Get(ctx, annotations.NodeTurnsName(pk.Name, uid), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		if cm, err = annotations.NodeTurnsObject(pk.Namespace, pk.Name, uid, turns.With(nil, func(string) bool { return false })); err == nil {
			_, err = maps.Create(ctx, cm, client.CreateOptions())
		}
	case err == nil:
		known, broken := annotations.ReadNodeTurns(cm, uid)
		if errors.Is(broken, annotations.ErrForeign) {
			return broken
		} // what cannot be read is written anew: it says no more than who comes first
		left := gone(known)
		if cm, err = annotations.WithNodeTurns(cm, uid, known.With(turns, func(name string) bool { return left[name] })); err == nil {
			_, err = maps.Update(ctx, cm, client.UpdateOptions())
		}
	}
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return queue.ErrConflict
	}
	if err != nil {
		return fmt.Errorf("write which nodes plan %s has been through: %w", pk, err)
	}
	return nil
}

// keepTurns writes down which nodes a run that ends has been through. A rehearsal
// has been through none. Where the plan is gone, nobody asks any more.
func (a *Agent) keepTurns(ctx context.Context, l *liveRun, now time.Time) error {
	turns := l.journal.Turns(now)
	if len(turns) == 0 || l.run.Request.DryRun || a.document(l.planKey()) == nil {
		return nil
	}
	err := a.ledgers.noteTurns(ctx, l.planKey(), l.run.PlanUID, turns, func(known run.NodeTurns) map[string]bool { return a.goneNodes(ctx, known) })
	since := l.journal.SectionAt
	final := apierrors.IsForbidden(err) && since != nil && now.Sub(*since) > time.Minute // a quota, say
	if final || errors.Is(err, annotations.ErrForeign) {
		a.log.Warn("the turns of nodes are not kept", "plan", l.planKey().String(), "error", err.Error())
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
	turns, err := s.agent.ledgers.nodeTurns(ctx, s.run.planKey(), s.run.run.PlanUID)
	if err != nil {
		return nil, err
	}
	for _, other := range s.agent.runs.ofPlan(s.run.planKey()) {
		if other.broken == nil && other.run.Name != s.run.run.Name {
			turns = turns.With(other.journal.Turns(s.agent.now()), func(string) bool { return false })
		}
	}
	return turns, nil
}
