package agent

import (
	"context"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

// watchLedgers looks at plans whose ledger is deleted, at once: it is made anew from
// then on, and the next slot is not lost. Nothing is kept of a ledger but what tells
// its deletion. begun is set when those that are there are known.
func (a *Agent) watchLedgers(ctx context.Context, begun *atomic.Bool) {
	w, err := a.heads.WatchWithContext(ctx, metav1.ListOptions{})
	if err != nil { // it begins nothing that could fail
		return
	}
	for event := range w.ResultChan() {
		m, err := meta.Accessor(event.Object)
		if err != nil {
			continue
		}
		if event.Type == watch.Deleted {
			a.lostLedger(m)
		}
		if event.Type == watch.Bookmark && m.GetAnnotations()[metav1.InitialEventsAnnotationKey] != "" {
			begun.Store(true)
		}
	}
}

// lostLedger hears that a ledger, or a part of one, is gone. A plan that is gone
// takes its ledger along.
func (a *Agent) lostLedger(m metav1.Object) {
	k := types.NamespacedName{Namespace: m.GetNamespace(), Name: m.GetLabels()[annotations.LabelPlan]}
	cm := a.docs.Plan(k)
	if cm == nil || m.GetName() != annotations.LedgerName(k.Name, string(cm.UID)) {
		return
	}
	a.ledgers.Doubt(string(cm.UID))
	a.ringPlan(k)
}
