package plans

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/status"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// templateFaults finds what a plan's steps stand for, and what is wrong with it.
func (c *Controller) templateFaults(namespace string, known *store.CachedPlan) document.Faults {
	if !strings.Contains(known.Text, plan.TemplatePrefix) {
		return nil
	}
	used, faults := plan.UseTemplates(known.Spec, func(name string) *plan.Template { return c.Documents.Template(namespace, name) })
	known.Templates = used
	if len(faults) > 0 {
		known.Templates = nil // they may stand for themselves
	}
	return faults
}

// EnqueueTemplated looks again at the plans that may use a template.
func (c *Controller) EnqueueTemplated(namespace string) {
	for _, cm := range c.Documents.All() {
		if cm.Labels[annotations.LabelKind] == annotations.KindPlan && (cm.Namespace == namespace || namespace == c.Namespace) && strings.Contains(cm.Data[annotations.DataPlan], plan.TemplatePrefix) {
			c.Queue.Add(types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name})
		}
	}
}

// ReconcileTemplate publishes whether a step template can be used.
func (c *Controller) ReconcileTemplate(ctx context.Context, k types.NamespacedName, cm *corev1.ConfigMap) error {
	if cm.DeletionTimestamp != nil || c.Documents.Terminating(k.Namespace) {
		return nil
	}
	valid := metav1.Condition{Type: "Valid", Status: metav1.ConditionTrue, Reason: "Understood", Message: "the step template is valid"}
	if t := annotations.StepTemplate(cm); len(t.Faults) > 0 {
		valid.Status, valid.Reason, valid.Message = metav1.ConditionFalse, "Faults", document.Cut(t.Faults.Error(), 4*document.MaxMessage)
	}
	_, err := c.Status.Write(ctx, cm, c.Plans.WrittenOf(k), func(have map[string]string) map[string]string {
		return map[string]string{
			annotations.StatusMessage: document.Cut(valid.Message, document.MaxMessage), annotations.StatusObserved: annotations.Observed(cm),
			annotations.StatusConditions: status.Conditions(have[annotations.StatusConditions], []metav1.Condition{valid}, c.Now()),
		}
	})
	return err
}
