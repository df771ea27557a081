package plans

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/status"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/connector"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/reference"
)

// connectorField stands in the text of every document whose steps name a connector.
const connectorField = "connectorRef"

// connectorFaults finds the connectors that a plan's steps name, and says what is wrong
// with their use. Those of templates are looked for in the plan's namespace, too.
func (c *Controller) connectorFaults(namespace string, known *store.CachedPlan) document.Faults {
	if !mayConnect(known.Text) {
		return nil
	}
	tree := plan.Tree{Spec: known.Spec, Templates: known.Templates}
	used, faults := reference.UseConnectors(tree, func(ref connector.Reference) (connector.Connector, string) {
		return c.Stores.Documents.Connector(namespace, ref)
	})
	known.Connectors = used
	return faults
}

func mayConnect(text string) bool {
	return strings.Contains(text, connectorField) || strings.Contains(text, plan.TemplatePrefix)
}

// EnqueueConnected looks again at the plans of a namespace that may use a connector.
func (c *Controller) EnqueueConnected(namespace string) {
	for _, cm := range c.Stores.Documents.All() {
		if cm.Namespace == namespace && cm.Labels[annotations.LabelKind] == annotations.KindPlan && mayConnect(cm.Data[annotations.DataPlan]) {
			c.blockers.changed(types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name})
		}
	}
}

// ReconcileConnector publishes whether a connector can be used.
func (c *Controller) ReconcileConnector(ctx context.Context, k types.NamespacedName, cm *corev1.ConfigMap) error {
	one, faults := annotations.Connector(cm)
	return c.publishValid(ctx, k, cm, fmt.Sprintf("the %s is valid", one.Kind()), faults)
}

// publishValid says on a document that other documents name whether it is valid.
func (c *Controller) publishValid(ctx context.Context, k types.NamespacedName, cm *corev1.ConfigMap, good string, faults document.Faults) error {
	if cm.DeletionTimestamp != nil || c.Stores.Documents.Terminating(k.Namespace) {
		return nil
	}
	valid := metav1.Condition{Type: "Valid", Status: metav1.ConditionTrue, Reason: "Understood", Message: good}
	if len(faults) > 0 {
		valid.Status, valid.Reason, valid.Message = metav1.ConditionFalse, "Faults", document.Cut(faults.Error(), 4*document.MaxMessage)
	}
	_, err := c.Status.Write(ctx, cm, c.Stores.Plans.WrittenOf(k), func(have map[string]string) map[string]string {
		return map[string]string{
			annotations.StatusMessage: document.Cut(valid.Message, document.MaxMessage), annotations.StatusObserved: annotations.Observed(cm),
			annotations.StatusConditions: status.Conditions(have[annotations.StatusConditions], []metav1.Condition{valid}, c.Now()),
		}
	})
	return err
}
