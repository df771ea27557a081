package agent

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/informer"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
)

// keyChanged has everything read again whose signature may count now, or no longer.
func (a *Agent) keyChanged() {
	a.memory.ledgers.Forget()
	unread := map[types.NamespacedName]bool{} // plans
	for _, o := range a.caches.live.Informer.GetStore().List() {
		cm := o.(*corev1.ConfigMap)
		if a.rereadEmptied(a.caches.live, o) {
			unread[types.NamespacedName{Namespace: cm.Namespace, Name: cm.Labels[annotations.LabelPlan]}] = true
		} else {
			a.controllers.runs.Recheck(types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name})
		}
	}
	for _, o := range a.caches.documents.Informer.GetStore().List() {
		a.rereadEmptied(a.caches.documents, o)
	}
	for _, o := range a.caches.restores.Informer.GetStore().List() {
		a.rereadEmptied(a.caches.restores, o)
	}
	a.controllers.hibernation.KeyChanged()
	// A ledger that counts no more is made anew now: made when a slot is due, it would not have that slot. It takes up
	// the runs that are at work, so these are to be read first.
	a.enqueueDocuments(unread)
	a.enqueueGated(a.options.Namespace)
	a.enqueuePlan(types.NamespacedName{Namespace: a.options.Namespace, Name: annotations.AgentConfigName})
}

// planUID is the UID of the plan that is there now; empty: there is none.
func (a *Agent) planUID(k types.NamespacedName) string {
	if cm := a.memory.documents.Plan(k); cm != nil {
		return string(cm.UID)
	}
	return ""
}

// recheckRecreated has those runs of a plan read again that somebody created again: whether they
// count depends on which plan is there.
func (a *Agent) recheckRecreated(plan types.NamespacedName) {
	for _, l := range a.memory.runs.OfPlan(plan) {
		if annotations.Recreated(l.Object) {
			a.controllers.runs.Recheck(types.NamespacedName{Namespace: l.Object.Namespace, Name: l.Object.Name})
		}
	}
}

// rereadEmptied has an object read again of which nothing was kept, and which may count with
// the key that is there now. It says whether it is one.
func (a *Agent) rereadEmptied(c *informer.Cache, o any) bool {
	cm := o.(*corev1.ConfigMap)
	if !a.keys.MayCount(cm) {
		return false
	}
	c.From.Again(types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name})
	return true
}

// awaitKey says that nothing is done for want of a key.
func (a *Agent) awaitKey(ctx context.Context, why error) {
	a.options.Log.Error("nothing is done without the agent's key", "error", why.Error())
	if _, err := a.reconcile(ctx, types.NamespacedName{Namespace: a.options.Namespace, Name: annotations.AgentConfigName}); err != nil && ctx.Err() == nil {
		a.options.Log.Warn("could not say so on the agent's configuration", "error", err.Error())
	}
}

// readKey reads the key before anything is read that it signs.
func (a *Agent) readKey(ctx context.Context) {
	for failures := (informer.Failures{}); ctx.Err() == nil; {
		err := a.keys.Read(ctx)
		if err == nil {
			return
		}
		a.options.Log.Error("the agent's key could not be read", "error", err.Error())
		informer.Sleep(ctx, informer.Backoff(failures.Count(err), err))
	}
}

// ledgerForged says on a plan or a HibernatePlan that its ledger does not count, or is gone.
func (a *Agent) ledgerForged(pk types.NamespacedName, why error) {
	a.options.Log.Warn("a ledger does not count", "plan", pk.String(), "why", why.Error())
	if cm := a.memory.documents.Any(pk); cm != nil {
		reason, then := "LedgerLost", "; a new one is created, and slots from before now do not run"
		if errors.Is(why, ledger.ErrOlder) {
			reason, then = "LedgerWentBack", "; what the newer one had recorded stays done, and none of it runs again"
		}
		a.events.recorder.Event(cm, corev1.EventTypeWarning, reason, document.Cut(why.Error()+then, document.MaxMessage))
	}
}
