package source

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/reference"
)

// TemplatesOf are the step templates of a plan in the cluster: from its namespace, else from the
// agent's. Unreadable ones are reported and left out.
func TemplatesOf(ctx context.Context, c *factory.Factory, k *factory.Cluster, namespace string, spec plan.Spec) map[string]plan.TemplateSpec {
	if !usesTemplates(spec) {
		return nil
	}
	agent, _ := c.Agent(ctx, k)
	found := map[string]*corev1.ConfigMap{}
	for _, from := range []string{agent.Namespace, namespace} { // the plan's own last: it wins
		if from == "" {
			continue
		}
		list, err := k.ListDocuments(ctx, "step templates", annotations.KindStepTemplate, from, "")
		if err != nil {
			c.Warn(err.Error())
		}
		for _, cm := range list {
			found[cm.Name] = cm
		}
	}
	used, faults := reference.UseTemplates(spec, func(name string) *plan.Template {
		cm := found[name]
		if cm == nil {
			return nil
		}
		t := annotations.StepTemplate(cm)
		return &t
	})
	for _, f := range faults {
		c.Warn(f.String())
	}
	return used
}

func usesTemplates(spec plan.Spec) (uses bool) {
	plan.Tree{Spec: spec}.Walk(func(s plan.Step) { uses = uses || strings.HasPrefix(s.Type, plan.TemplatePrefix) })
	return uses
}
