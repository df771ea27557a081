package nodemaintenance

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
)

// stalledDrain is a drain of a plan that is blocked for good after its cordon.
type stalledDrain struct {
	since  time.Time
	drain  drain.Options
	block  nodes.Block // as the drain last said it
	yields bool        // others wait for its slot
}

// Stalled notes whether a step's drain of a node is blocked for good, and by what, and says
// whether its slot is to go to others.
func (k *Controller) Stalled(s store.StepKey, node string, options *drain.Options, block nodes.Block) bool {
	k.state.mu.Lock()
	defer k.state.mu.Unlock()
	w := wish{node, s}
	was, known := k.state.demand.stalled[w]
	switch {
	case !block.Permanent || options == nil:
		delete(k.state.demand.stalled, w)
	case !known:
		k.state.demand.stalled[w] = stalledDrain{since: k.Now(), drain: *options, block: block}
		k.Enqueue()
	case was.yields:
		delete(k.state.demand.stalled, w)
		k.state.demand.wants[s] = k.state.demand.wants[s].asks(node, options)
		return true
	default:
		was.block = block
		k.state.demand.stalled[w] = was
	}
	return false
}

// asks is the want of a drain that asks for one more node, or asks for it again.
func (w stepDemand) asks(node string, options *drain.Options) stepDemand {
	given := maps.Clone(w.given)
	delete(given, node)
	w.given, w.bare, w.drain = given, true, options
	if !slices.Contains(w.nodes, node) {
		w.nodes = append(slices.Clone(w.nodes), node)
	}
	w.most = len(w.nodes)
	return w
}

// stalls says whether what a run has of a node is a drain that is blocked for good,
// and would be however long it waited.
func (k *Controller) stalls(ctx context.Context, l *store.LiveRun, h nodes.Hold, now time.Time) bool {
	k.state.mu.Lock()
	d, is := k.state.demand.stalled[wish{h.Node, store.StepKey{Run: l.Key(), Path: h.Drain}}]
	k.state.mu.Unlock()
	if !is || h.Failed || h.Yielded {
		return false
	}
	stalled := k.planDrain(l, h.Node, d.drain)
	stalled.known, stalled.runs = d.block, !stalled.since().IsZero()
	block, next := k.pods.stalledBy(ctx, stalled, d.since, now)
	k.look.by(soonestOf(next))
	return block.Permanent
}

// noteYields notes which stalled drains of plans are to give up their slots, and
// returns those steps for which that is news. Drains of steps that are at work no
// more are forgotten.
func (k *Controller) noteYields(yields []string) (news []store.StepKey) {
	k.state.mu.Lock()
	defer k.state.mu.Unlock()
	for w, d := range k.state.demand.stalled {
		if l := k.Rollouts.Runs.Live(w.step.Run); l == nil || !atWork(l, w.step.Path) {
			delete(k.state.demand.stalled, w)
			continue
		}
		was := d.yields
		if d.yields = slices.Contains(yields, w.node); d.yields && !was {
			news = append(news, w.step)
		}
		k.state.demand.stalled[w] = d
	}
	return news
}
