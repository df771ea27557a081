package plans

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/runquota"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/trigger"
)

// decideWithinQuota decides with what may be claimed beside the active runs of the namespace. What is claimed
// counts from here on: plans that are decided on together do not claim the same room. If others took it
// meanwhile, nothing was decided.
func (c *Controller) decideWithinQuota(ctx context.Context, k types.NamespacedName, cm *corev1.ConfigMap, known *store.CachedPlan, f *trigger.Facts) (d trigger.Decision, decided bool, err error) {
	size := c.sizeOfRun(cm, known)
	c.countPending(k, size, f.State.Ledger, f.Live)
	room := c.Stores.Runs.Quota.Left(k.Namespace, size)
	f.Quota = &trigger.RunQuota{Runs: room.Runs, Full: fullSaid(k.Namespace, room)}
	if d, err = c.decide(ctx, k, cm, known, f); err != nil {
		return d, false, err
	}
	return d, c.Stores.Runs.Quota.Claim(k, len(d.Claims), size, d.Status.OverQuota), nil
}

// mayTry says whether there is room for the run of a claim that the API server refused: that took nothing.
func (c *Controller) mayTry(k types.NamespacedName, size int, e ledger.Entry, d trigger.Decision) bool {
	if e.Refused == "" {
		return true
	}
	if c.Stores.Runs.Quota.Claim(k, 1, size, d.Status.OverQuota) {
		return true
	}
	c.Stores.Runs.Quota.Claim(k, 0, size, true) // woken, it is tried
	return false
}

// sizeOfRun is about how much memory a run of the plan takes when it begins: it carries the texts of the
// plan and of the templates that its steps stand for.
func (c *Controller) sizeOfRun(cm *corev1.ConfigMap, known *store.CachedPlan) int {
	texts := len(cm.Data[annotations.DataPlan])
	for name := range known.Templates {
		for _, in := range []string{cm.Namespace, c.Scope.Namespace} {
			if t := c.Stores.Documents.Any(types.NamespacedName{Namespace: in, Name: name}); t != nil && t.Data[annotations.DataTemplate] != "" {
				texts += len(t.Data[annotations.DataTemplate])
				break
			}
		}
	}
	return store.RunBytes(texts)
}

// fullSaid is told of what waits for room. It says the bound alone: what is used changes all the time.
func fullSaid(namespace string, room runquota.Room) string {
	if room.OfTotal {
		return fmt.Sprintf("the active runs of all namespaces take as much of the agent's memory as they may together, %d MiB, and those of namespace %s %d MiB or more; it begins once enough of them have ended", runquota.MaxTotal>>20, namespace, runquota.Reserved>>20)
	}
	return fmt.Sprintf("the active runs of namespace %s take as much of the agent's memory as those of one namespace may, %d MiB; it begins once enough of them have ended", namespace, runquota.Max>>20)
}

// countPending counts those claims of a plan that will have a run and have none yet. Those that the API server
// refuses take nothing until it is tried again.
func (c *Controller) countPending(k types.NamespacedName, size int, l *ledger.Ledger, live []trigger.ActiveRun) {
	pending := 0
	if l != nil {
		for _, e := range trigger.Unstarted(*l, live) {
			if e.Refused == "" && c.Stores.Runs.Live(types.NamespacedName{Namespace: k.Namespace, Name: e.Run}) == nil {
				pending++
			}
		}
	}
	c.Stores.Runs.Quota.Pending(k, pending*size)
}
