package agent

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/config"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/status"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
)

// syncConfig publishes on an AgentConfig whether it is in force, and what of it, or
// what right that is missing, holds maintenance back. Who set it looks there first.
func (a *Agent) syncConfig(ctx context.Context, k types.NamespacedName, cm *corev1.ConfigMap) error {
	if cm.DeletionTimestamp != nil || a.docs.Terminating(k.Namespace) {
		return nil
	}
	valid, limits, known := a.config.Conditions(cm)
	message := "in force"
	wrote, err := a.status.Write(ctx, cm, a.plans.WrittenOf(k), func(have map[string]string) map[string]string {
		if !known { // this leader has not looked at the nodes yet: what the one before said stands
			limits = config.StandingLimits(have[annotations.StatusConditions])
		}
		list := append([]metav1.Condition{valid}, limits...)
		for _, c := range list {
			if c.Type != valid.Type || c.Status != metav1.ConditionTrue {
				message = c.Message
				break
			}
		}
		return map[string]string{
			annotations.StatusMessage: document.Cut(message, document.MaxMessage), annotations.StatusObserved: annotations.Observed(cm),
			annotations.StatusConditions: status.Conditions(have[annotations.StatusConditions], list, a.now()),
		}
	})
	if wrote && valid.Status != metav1.ConditionTrue {
		a.events.Event(cm, corev1.EventTypeWarning, "Config"+valid.Reason, document.Cut(valid.Message, document.MaxMessage))
	}
	return err
}
