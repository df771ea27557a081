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

// reconcile looks at whatever document stands under a name.
func (a *Agent) reconcile(ctx context.Context, k types.NamespacedName) (time.Time, error) {
	if k.Name == "" {
		a.reconcileGated(k.Namespace)
		return time.Time{}, nil
	}
	o, found, err := a.caches.documents.Informer.GetStore().GetByKey(k.String())
	if err != nil || !found {
		a.memory.gates.Forget(k)
		a.memory.plans.ForgetWritten(k)
		return a.reconcileGone(ctx, k)
	}
	cm := o.(*corev1.ConfigMap)
	switch cm.Labels[annotations.LabelKind] {
	case annotations.KindPlan:
		return a.controllers.plans.Reconcile(ctx, k)
	}
	if a.memory.plans.Has(k) { // it was a plan: to its runs it is gone
		if _, err := a.controllers.plans.Reconcile(ctx, k); err != nil {
			return time.Time{}, err
		}
	}
	switch cm.Labels[annotations.LabelKind] {
	case annotations.KindPolicy:
		return a.controllers.policies.ReconcilePolicy(ctx, k, cm)
	case annotations.KindHibernatePlan:
		a.controllers.hibernation.Queue.Add(k)
		return time.Time{}, a.controllers.plans.PublishDeleting(ctx, cm, a.memory.plans.WrittenOf(k))
	case annotations.KindCalendar:
		return time.Time{}, a.controllers.policies.ReconcileCalendar(ctx, k, cm)
	case annotations.KindStepTemplate:
		return time.Time{}, a.controllers.plans.ReconcileTemplate(ctx, k, cm)
	case annotations.KindConnector:
		return time.Time{}, a.controllers.plans.ReconcileConnector(ctx, k, cm)
	case annotations.KindAgentConfig:
		if cm.DeletionTimestamp != nil || a.memory.documents.Terminating(k.Namespace) {
			return time.Time{}, nil
		}
		published := config.Publisher{Store: a.config, Status: a.status, Agent: a.conditions, Events: a.events.recorder, Now: a.options.Now}
		return time.Time{}, published.Publish(ctx, cm, a.memory.plans.WrittenOf(k))
	case annotations.KindGate:
		a.controllers.policies.GatesSeen(cm)
		return time.Time{}, nil
	}
	return a.controllers.plans.Reconcile(ctx, k)
}

// reconcileGone looks after what a document leaves behind that is gone.
func (a *Agent) reconcileGone(ctx context.Context, k types.NamespacedName) (time.Time, error) {
	again, err := a.controllers.gates.Reconcile(ctx, k, nil)
	if err != nil {
		return time.Time{}, err
	}
	wake, err := a.controllers.plans.Reconcile(ctx, k)
	return queue.Soonest(wake, again), err
}
