package agent

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/config"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/queue"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

// syncDocument looks at whatever document stands under a name.
func (a *Agent) syncDocument(ctx context.Context, k types.NamespacedName) (time.Time, error) {
	if k == (types.NamespacedName{}) {
		a.lookAtGated()
		return time.Time{}, nil
	}
	o, found, err := a.documents.GetStore().GetByKey(k.String())
	if err != nil || !found {
		a.gates.Forget(k)
		a.plans.ForgetWritten(k)
		return a.syncGone(ctx, k)
	}
	cm := o.(*corev1.ConfigMap)
	switch cm.Labels[annotations.LabelKind] {
	case annotations.KindPlan:
		return a.planner.Reconcile(ctx, k)
	}
	if a.plans.Has(k) { // it was a plan: to its runs it is gone
		if _, err := a.planner.Reconcile(ctx, k); err != nil {
			return time.Time{}, err
		}
	}
	switch cm.Labels[annotations.LabelKind] {
	case annotations.KindPolicy:
		return a.policies.ReconcilePolicy(ctx, k, cm)
	case annotations.KindCalendar:
		return time.Time{}, a.policies.ReconcileCalendar(ctx, k, cm)
	case annotations.KindStepTemplate:
		return time.Time{}, a.planner.ReconcileTemplate(ctx, k, cm)
	case annotations.KindAgentConfig:
		if cm.DeletionTimestamp != nil || a.docs.Terminating(k.Namespace) {
			return time.Time{}, nil
		}
		published := config.Publisher{Store: a.config, Status: a.status, Events: a.events, Now: a.now}
		return time.Time{}, published.Publish(ctx, cm, a.plans.WrittenOf(k))
	case annotations.KindGate:
		a.policies.GatesSeen(cm)
		return time.Time{}, nil
	}
	return a.planner.Reconcile(ctx, k)
}

// syncGone looks after what a document leaves behind that is gone.
func (a *Agent) syncGone(ctx context.Context, k types.NamespacedName) (time.Time, error) {
	again, err := a.gatekeeper.Reconcile(ctx, k, nil)
	if err != nil {
		return time.Time{}, err
	}
	wake, err := a.planner.Reconcile(ctx, k)
	return queue.Soonest(wake, again), err
}
