package nodemaintenance

import (
	"context"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/informer"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

// Times of sweeps (guesses).
const (
	sweepLook    = 10 * time.Second // how often it is seen whether a sweep is due; the first pause after one
	longestPause = 5 * time.Minute  // after a sweep that left something
	sweepFor     = time.Minute      // how long one may take
)

// sweep is what surges for one claimant left, and when it is looked at.
type sweep struct {
	by      string
	after   time.Time
	tried   int
	refused workflow.Refusal // of every look so far; zero: the last was not
}

// sweepSurges gives back the replicas that surges of drains left: all when this agent begins to lead,
// since another may have died in the middle, and those of a claimant when a drain gave up on some.
// While something is left, it looks again after growing pauses. A drain that goes on looks after its
// own.
func (k *Controller) sweepSurges(ctx context.Context) {
	var due []*sweep
	for begun := false; k.drainer != nil && !k.Scope.DryRun; begun = true {
		if !informer.Sleep(ctx, sweepLook) { // those that are to go on have been taken up then
			return
		}
		due = withSweeps(due, k.drainer.Unswept())
		if begun && len(due) == 0 {
			continue
		}
		plans := map[string]client.Account{}
		for at, account := range k.Rollouts.Draining() { // as that account their drains surge
			plans[nodes.PlanClaimant(at.Namespace, at.Name)] = account
		}
		if !begun {
			due = withSweeps(withSweeps(due, []string{requestsClaimant}), slices.Sorted(maps.Keys(plans)))
		}
		due = slices.DeleteFunc(due, func(s *sweep) bool {
			return !k.Now().Before(s.after) && !s.again(k.Now(), k.sweepOf(ctx, s, plans))
		})
	}
}

// withSweeps adds those that are not due already.
func withSweeps(due []*sweep, claimants []string) []*sweep {
	for _, by := range claimants {
		if !slices.ContainsFunc(due, func(s *sweep) bool { return s.by == by }) {
			due = append(due, &sweep{by: by})
		}
	}
	return due
}

// again sets the next time, where something is left.
func (s *sweep) again(now time.Time, left bool) bool {
	s.after = now.Add(min(sweepLook<<min(s.tried, 10), longestPause))
	s.tried++
	return left
}

// sweepOf looks for a claimant, as whoever it acts as. Of a plan that is gone, nobody may.
func (k *Controller) sweepOf(ctx context.Context, s *sweep, plans map[string]client.Account) bool {
	if s.by == requestsClaimant {
		return k.sweep(ctx, executors.Clients{Kube: k.Clients.Kube}, s)
	}
	account, drains := plans[s.by]
	if !drains {
		return false
	}
	clients, err := k.Clients.Accounts.Clients(account, "")
	if err != nil {
		k.Telemetry.Log.Warn("replicas that surges added could not be looked for; it is tried again", "by", s.by, "error", err.Error())
		return true
	}
	return k.sweep(ctx, clients, s)
}

// sweep looks as one account at the surges of one claimant, and says whether some
// are left. Who may not list Deployments has made no surge.
func (k *Controller) sweep(ctx context.Context, clients executors.Clients, s *sweep) bool {
	ctx, cancel := context.WithTimeout(ctx, sweepFor)
	defer cancel()
	left, err := k.drainer.Sweep(ctx, clients, annotations.ManagerAgent, s.by, func(node string) bool { return k.drainsFor(node, s.by) })
	if left == 0 && apierrors.IsForbidden(err) { // an API server that has just begun says so to everybody
		var final bool
		s.refused, final = s.refused.Again(k.Now())
		return !final
	}
	s.refused = workflow.Refusal{}
	if err == nil {
		return left > 0
	}
	k.Telemetry.Log.Warn("replicas that surges added could not be given back; it is tried again", "by", s.by, "left", left, "error", err.Error())
	return true
}

// drainsFor says whether a drain of a node goes on, or is about to.
func (k *Controller) drainsFor(node, by string) bool {
	if by == requestsClaimant {
		k.state.mu.Lock()
		n := k.state.shown.last[node]
		k.state.mu.Unlock()
		return n != nil && slices.ContainsFunc(annotations.Node(&n.Node).Asked, func(a nodes.Asked) bool { return !a.Gone && a.Status != nil && a.Status.Phase == nodes.Draining })
	}
	return len(k.Rollouts.Runs.Filter(func(l *store.LiveRun) bool {
		if l.Broken != nil || l.Journal.Phase != run.Running || claimantOf(l) != by {
			return false
		}
		for i := range l.Journal.Steps {
			for _, t := range l.Journal.Steps[i].Drains() {
				if t.Name == node {
					return true
				}
			}
		}
		return false
	})) > 0
}
