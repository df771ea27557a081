package nodemaintenance

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
	"github.com/kubectl-maint/kubectl-maint/pkg/informer"
	"github.com/kubectl-maint/kubectl-maint/pkg/kube"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

// previewPause is the least time between two looks at the pods of a node whose budgets
// move.
const previewPause = time.Second

// nodeDrain is a drain that a plan or a request would begin on a node, or has begun. Its pods are
// read as the plan's account, or as the agent.
type nodeDrain struct {
	previewKey
	options drain.Options
	known   nodes.Block      // what is in its way, as its status or its journal says
	runs    bool             // it says that itself, now
	since   func() time.Time // when it began; zero: it has not
	kube    func() (kube.Interface, error)
}

func (k *Controller) planDrain(l *store.LiveRun, node string, o drain.Options) nodeDrain {
	return nodeDrain{
		previewKey: previewKey{node, claimantOf(l), optionsIdentity(o)}, options: o,
		since: func() time.Time { return drainBegan(l, node) },
		kube: func() (kube.Interface, error) {
			c, err := k.Clients.Accounts.Clients(l.Account(), l.Head.Name)
			return c.Kube, err
		},
	}
}

// drainBegan is when a run began to drain a node; zero: it does not.
func drainBegan(l *store.LiveRun, node string) time.Time {
	for i := range l.Journal.Steps {
		for _, t := range l.Journal.Steps[i].Drains() {
			if t.Name == node && t.Cordoned && !t.Drained {
				return t.Since
			}
		}
	}
	return time.Time{}
}

// requestDrain is the drain that a request asks for.
func (p *nodePods) requestDrain(node string, a nodes.Asked) nodeDrain {
	return nodeDrain{
		previewKey: previewOf(node, a.Request), options: *a.Request.Drain, known: a.Remembered(), kube: p.own,
		since: func() time.Time {
			if a.Status == nil || a.Status.Phase != nodes.Draining {
				return time.Time{}
			}
			return a.Status.Since
		},
	}
}

func optionsIdentity(o drain.Options) string {
	b, err := json.Marshal(o)
	if err != nil {
		return "" // words and spans: JSON can say them all
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:6])
}

// standing is what stands in the way of a plan's drain for good, as the last look
// found it; once that is old, or its budget has moved, another look begins. What an
// agent before us found holds until then.
func (p *nodePods) standing(ctx context.Context, d nodeDrain, remembered nodes.Block, now time.Time) (nodes.Block, time.Time) {
	p.mu.Lock()
	seen := p.previews[d.previewKey]
	if seen == nil && remembered.Permanent {
		seen = p.begin(ctx, d)
		seen.block, seen.found = remembered, now
	}
	kept := seen != nil && (seen.block.Permanent || seen.failed.Times > 0) // what was dropped is not to be remembered again
	p.mu.Unlock()
	if !kept {
		return nodes.Block{}, time.Time{}
	}
	found, _, next := p.previewPlan(ctx, d, now)
	return found.block, next
}

// previewPlan is what is known of what stands in the way of a plan's drain, and whether that is
// enough. Where it is not, a look begins, and the nodes are looked at again and the plan's steps
// woken when it is done.
func (p *nodePods) previewPlan(ctx context.Context, d nodeDrain, now time.Time) (found preview, known bool, next time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	seen := p.previews[d.previewKey]
	switch {
	case seen != nil && seen.looking:
		return *seen, seen.block.Permanent, time.Time{}
	case seen != nil && seen.fresh(now):
		return *seen, !seen.unknown(), seen.due()
	}
	found = *p.begin(ctx, d)
	return found, found.block.Permanent, time.Time{}
}

// fresh says whether a look is still believed.
func (f *preview) fresh(now time.Time) bool { return now.Before(f.due()) }

// due is when to look again.
func (f *preview) due() time.Time {
	switch {
	case f.stale:
		return f.at.Add(previewPause)
	case f.fails():
		return f.failed.VerdictAt(f.at)
	}
	return f.at.Add(previewTTL)
}

// keepsOf takes in, after a look that failed, what was known before it. That counts until looks have
// failed for some time, and a budget has moved meanwhile or nobody has seen it for long: nobody else
// could say that it is in the way no more.
func (f *preview) keepsOf(was *preview, d nodeDrain, began time.Time) {
	f.failed, f.final = was.failed.Again(began)
	switch {
	case d.runs, was.at.IsZero() && !was.block.Permanent:
		f.block, f.budgets = d.known, was.budgets
	case was.block.Permanent:
		f.block, f.budgets, f.found = was.block, was.budgets, was.found
		f.changed = was.changed || was.movedDuring(was.budgets)
	}
	if f.final && (f.changed || f.at.Sub(f.found) >= mostUnread) {
		f.block, f.budgets = nodes.Block{}, nil
	}
}

// movedDuring says whether some of the budgets moved while pods were looked at.
func (f *preview) movedDuring(budgets []string) bool {
	return slices.ContainsFunc(f.moved, func(name string) bool { return slices.Contains(budgets, name) })
}

// previewedGrants takes back the grants to plans whose drains have not been looked at yet: a look is
// under way or follows, and why the last one failed is said. Where it is not sure that they may be
// given, it takes back all.
func (k *Controller) previewedGrants(ctx context.Context, c runClaims, ranking nodes.Ranking, now time.Time) nodes.Ranking {
	ranking.Grants = slices.DeleteFunc(slices.Clone(ranking.Grants), func(g nodes.Grant) bool {
		d, looked := c.drains[wish{g.Node, c.steps[g.Step]}]
		if g.Step == "" || !looked {
			return false
		}
		found, known, _ := k.pods.previewPlan(ctx, d, now)
		if !known {
			ranking.Waits = append(ranking.Waits, nodes.Wait{Node: g.Node, Claimant: g.Claimant, Step: g.Step, Lasting: found.failure})
		}
		return !known || found.block.Permanent
	})
	if slices.ContainsFunc(ranking.Grants, func(g nodes.Grant) bool { return g.Step != "" }) && !k.sure(ctx) {
		ranking.Grants = nil
	}
	return ranking
}

// Preflight says whether a step of a rollout may cordon the node that it has come
// to: not while pods are in the way that would never leave.
func (k *Controller) Preflight(ctx context.Context, s store.StepKey, node string, ahead *drain.Options) (bool, string) {
	l := k.Rollouts.Runs.Live(s.Run)
	if ahead == nil || l == nil {
		return true, ""
	}
	// The look outlives the pass that asks for it.
	found, known, _ := k.pods.previewPlan(context.WithoutCancel(ctx), k.planDrain(l, node, *ahead), k.Now())
	switch {
	case found.block.Permanent:
		return false, nodes.BlockedText(found.block)
	case !known:
		return false, cmp.Or(found.failure, "until its pods have been looked at")
	}
	return true, ""
}

// BlockedBy is what keeps a step's drain of a node from its cordon for good. As long as nobody has
// looked, that is what an agent before us found.
func (k *Controller) BlockedBy(s store.StepKey, node string, ahead *drain.Options) string {
	l := k.Rollouts.Runs.Live(s.Run)
	if ahead == nil || l == nil {
		return ""
	}
	k.pods.mu.Lock()
	defer k.pods.mu.Unlock()
	seen := k.pods.previews[k.planDrain(l, node, *ahead).previewKey]
	if seen == nil || seen.at.IsZero() || seen.unknown() {
		_, found := workflow.DrainWait(l.Journal, s.Path, node)
		return found.Text
	}
	return seen.block.Text
}

// stalledBy is what a look at the pods finds in the way of a drain for good that has
// stalled; it begins one where there was none since.
func (p *nodePods) stalledBy(ctx context.Context, d nodeDrain, since, now time.Time) (block nodes.Block, next time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	seen := p.previews[d.previewKey]
	known := seen != nil && !seen.at.Before(since)
	if known {
		block = seen.block
	}
	switch {
	case seen != nil && seen.looking:
		return block, time.Time{}
	case known && seen.fresh(now):
		return block, seen.due()
	}
	p.begin(ctx, d)
	return block, time.Time{}
}

// previewStalled has the pods of a node looked at whose drain for a request is
// blocked for good: whether it may yield its slot is decided by that.
func (p *nodePods) previewStalled(ctx context.Context, n nodes.Node, a nodes.Asked, now time.Time) (next time.Time) {
	if a.Gone || a.Fault != "" || a.Request.Drain == nil || a.Status == nil || a.Status.Phase != nodes.Draining {
		return time.Time{}
	}
	p.mu.Lock()
	since, stalled := p.stalled[n.Name]
	p.mu.Unlock()
	if !stalled {
		return time.Time{}
	}
	d := p.requestDrain(n.Name, a)
	d.known, d.runs = n.Drain.Block, true
	_, next = p.stalledBy(ctx, d, since, now)
	return next
}

// previewNext has the pods of a held node looked at for who waits for it, so that one
// whose drain could not end does not take the node over.
func (p *nodePods) previewNext(ctx context.Context, n nodes.Node, a nodes.Asked, now time.Time) {
	if n.Cordon == nil || a.Gone || a.Fault != "" || a.Request.Drain == nil || a.Status == nil || a.Status.Phase != nodes.Pending || a.Status.Ended != nil {
		return
	}
	d := p.requestDrain(n.Name, a)
	p.mu.Lock()
	defer p.mu.Unlock()
	if seen := p.previews[d.previewKey]; seen == nil || !seen.looking && !seen.fresh(now) {
		p.begin(ctx, d)
	}
}

// own is the agent's own client: requests are carried out with its rights.
func (p *nodePods) own() (kube.Interface, error) { return p.kube, nil }

// watchBudgets keeps a watch on the budgets while one of them is in the way of a
// drain that has not begun: who mends it does not wait for the next look. It is the
// agent's own and the only one, so an informer.Set would have nothing to bound or to
// share. Its caller holds the lock.
func (p *nodePods) watchBudgets(ctx context.Context) {
	blocked := false
	for _, seen := range p.previews {
		blocked = blocked || seen.block.Permanent
	}
	switch {
	case blocked && p.budgets == nil:
		ctx, stop := context.WithCancel(ctx)
		p.budgets = stop
		from := informer.ForMany(&policyv1.PodDisruptionBudget{}, p.kube.PolicyV1().PodDisruptionBudgets(metav1.NamespaceAll), metav1.ListOptions{}, nil)
		from.Page = kube.FewObjects
		moved := func(o any) {
			if b, ok := o.(metav1.Object); ok {
				p.budgetMoved(b.GetNamespace() + "/" + b.GetName())
			}
		}
		watched, _ := informer.New(from, informer.KeepName, cache.ResourceEventHandlerDetailedFuncs{
			UpdateFunc: func(_, now any) { moved(now) },
			DeleteFunc: func(o any) {
				if gone, lost := o.(cache.DeletedFinalStateUnknown); lost {
					o = gone.Obj
				}
				moved(o)
			},
			AddFunc: func(o any, initial bool) {
				if !initial {
					moved(o)
				}
			},
		})
		go informer.Run(ctx, watched)
		go func() {
			if cache.WaitForCacheSync(ctx.Done(), watched.HasSynced) {
				p.budgetsWatched()
			}
		}()
	case !blocked && p.budgets != nil:
		p.budgets()
		p.budgets, p.watched = nil, time.Time{}
	}
}

// budgetsWatched has all that was found before the watch on budgets began looked at
// again: what moved in between, it does not show.
func (p *nodePods) budgetsWatched() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watched = p.now()
	for k, seen := range p.previews {
		if !seen.looking && seen.block.Permanent { // a look under way finds the watch when it ends
			p.outdate(k, seen)
		}
	}
}

// budgetMoved has what a budget held up looked at again.
func (p *nodePods) budgetMoved(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for k, seen := range p.previews {
		switch {
		case seen.looking:
			seen.moved = append(seen.moved, name)
		case slices.Contains(seen.budgets, name):
			seen.changed = true
			p.outdate(k, seen)
		}
	}
}

// outdate has a node looked at again, as soon as that may be; its caller holds the
// lock. A step of a plan sleeps until it is woken, so this must not come before the
// next look is due.
func (p *nodePods) outdate(k previewKey, seen *preview) {
	if !seen.stale {
		seen.stale = true
		p.wakeWhenDue(k, seen)
	}
}

// wakeWhenDue has a node looked at again when its next look is due.
func (p *nodePods) wakeWhenDue(k previewKey, seen *preview) {
	time.AfterFunc(seen.due().Sub(p.now()), func() { p.wakeAll(map[string]bool{k.requestor: true}) })
}

// storePreview takes in what a look found that began at an instant; its caller holds the
// lock. What moved since may be missing from it.
func (p *nodePods) storePreview(k previewKey, found *preview, began time.Time) {
	was := p.previews[k]
	p.previews[k] = found
	if found.unsettled && !found.block.Permanent && was.block.Permanent {
		found.block, found.budgets = was.block, was.budgets // until the budget is computed, which moves it
	}
	if found.fails() {
		p.wakeWhenDue(k, found)
	}
	if found.block.Permanent && (began.Before(p.watched) || was.movedDuring(found.budgets)) {
		p.outdate(k, found)
	}
}

// wakeAll has the nodes looked at again, and wakes the steps of plans.
func (p *nodePods) wakeAll(claimants map[string]bool) {
	if len(claimants) > 0 {
		p.enqueue()
	}
	for by := range claimants {
		if nodes.IsPlan(by) {
			p.wake(by)
		}
	}
}

func soonestOf(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	return &at
}
