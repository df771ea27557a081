package nodemaintenance

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/informer"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// sweepAgain is when what surges left is looked at again, while some of it is not
// to be given back yet or could not be.
const sweepAgain = 10 * time.Second

// sweepSurges gives back the replicas that surges of drains left whose agent died in
// the middle: once when this agent begins to lead, and again for as long as there is
// something left. A drain that goes on looks after its own.
func (k *Controller) sweepSurges(ctx context.Context) {
	for k.drainer != nil && !k.Scope.DryRun {
		if !informer.Sleep(ctx, sweepAgain) { // those that are to go on have been taken up then
			return
		}
		left := k.sweep(ctx, executors.Clients{Kube: k.Clients.Kube}, requestsClaimant)
		for at, account := range k.Rollouts.Draining() { // as that account their drains surge
			if clients, err := k.Clients.Accounts.Clients(account, ""); err == nil {
				left = k.sweep(ctx, clients, nodes.PlanClaimant(at.Namespace, at.Name)) || left
			}
		}
		if !left {
			return
		}
	}
}

// sweep looks as one account at the surges of one claimant, and says whether some
// are left. Who may not list Deployments has made no surge.
func (k *Controller) sweep(ctx context.Context, clients executors.Clients, by string) bool {
	ctx, cancel := context.WithTimeout(ctx, nodeWrite)
	defer cancel()
	left, err := k.drainer.Sweep(ctx, clients, annotations.ManagerAgent, by, func(node string) bool { return k.drainsFor(node, by) })
	if err != nil && !apierrors.IsForbidden(err) {
		k.Telemetry.Log.Warn("what surges left could not be looked at; it is tried again", "by", by, "error", err.Error())
		return true
	}
	return left > 0
}

// drainsFor says whether a drain of a node goes on, or is about to.
func (k *Controller) drainsFor(node, by string) bool {
	if by == requestsClaimant {
		k.state.mu.Lock()
		n := k.state.shown.last[node]
		k.state.mu.Unlock()
		if n == nil {
			return false
		}
		facts := annotations.Node(&n.Node)
		for _, a := range facts.Asked {
			if !a.Gone && a.Status != nil && a.Status.Phase == nodes.Draining {
				return true
			}
		}
		return false
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
