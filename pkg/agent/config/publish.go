package config

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/status"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
)

// Publish publishes on an AgentConfig whether it is in force, and what of it, or
// what right that is missing, holds maintenance back. Who set it looks there first.
func (p Publisher) Publish(ctx context.Context, cm *corev1.ConfigMap, last *status.Written) error {
	valid, limits, known := p.Store.Conditions(cm)
	message := "in force"
	wrote, err := p.Status.Write(ctx, cm, last, func(have map[string]string) map[string]string {
		if !known { // this leader has not looked at the nodes yet: what the one before said stands
			limits = LimitConditions(have[annotations.StatusConditions])
		}
		list := append([]metav1.Condition{valid}, limits...)
		if valid.Reason != notUsed && p.Agent != nil {
			list = append(list, p.Agent()...)
		}
		for _, c := range list {
			if c.Type != valid.Type || c.Status != metav1.ConditionTrue {
				message = c.Message
				break
			}
		}
		return map[string]string{
			annotations.StatusMessage: document.Cut(message, document.MaxMessage), annotations.StatusObserved: annotations.Observed(cm),
			annotations.StatusConditions: status.Conditions(have[annotations.StatusConditions], list, p.Now()),
		}
	})
	if wrote && valid.Status != metav1.ConditionTrue {
		p.Events.Event(cm, corev1.EventTypeWarning, "Config"+valid.Reason, document.Cut(valid.Message, document.MaxMessage))
	}
	return err
}

// Publisher says on configurations how they stand.
type Publisher struct {
	Store  *Store
	Status *status.Writer
	Agent  func() []metav1.Condition // what is wrong with the agent itself; nil: nothing is
	Events record.EventRecorder
	Now    func() time.Time
}
