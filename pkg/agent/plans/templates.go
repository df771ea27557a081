package plans

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/reference"
)

// templateFaults finds what a plan's steps stand for, and what is wrong with it.
func (c *Controller) templateFaults(namespace string, known *store.CachedPlan) document.Faults {
	if !strings.Contains(known.Text, plan.TemplatePrefix) {
		return nil
	}
	used, faults := reference.UseTemplates(known.Spec, func(name string) *plan.Template { return c.Stores.Documents.Template(namespace, name) })
	known.Templates = used
	if len(faults) > 0 {
		known.Templates = nil // they may stand for themselves
	}
	return faults
}

// EnqueueTemplated looks again at the plans that may use a template.
func (c *Controller) EnqueueTemplated(namespace string) {
	for _, cm := range c.Stores.Documents.All() {
		if cm.Labels[annotations.LabelKind] == annotations.KindPlan && (cm.Namespace == namespace || namespace == c.Scope.Namespace) && strings.Contains(cm.Data[annotations.DataPlan], plan.TemplatePrefix) {
			c.Queue.Add(types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name})
		}
	}
}

// ReconcileTemplate publishes whether a step template can be used.
func (c *Controller) ReconcileTemplate(ctx context.Context, k types.NamespacedName, cm *corev1.ConfigMap) error {
	return c.publishValid(ctx, k, cm, "the step template is valid", annotations.StepTemplate(cm).Faults)
}
