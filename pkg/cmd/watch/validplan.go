package watch

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
)

// validWithin is how long a plan may stay invalid for what only the agent sees (a guess): what it
// lacked may just have been created.
const validWithin = 2 * time.Second

// ValidPlan refuses a plan that the agent calls invalid: on one that was never valid, a token is only
// recorded.
func ValidPlan(ctx context.Context, c *factory.Factory, k *factory.Cluster, cm *corev1.ConfigMap) error {
	if cm.Labels[annotations.LabelKind] != annotations.KindPlan || view.Invalid(cm) == "" {
		return nil
	}
	inner, cancel := context.WithTimeout(ctx, validWithin)
	defer cancel()
	w, err := ConfigMaps(inner, k, cm.Namespace, ByName(cm.Name))
	if err != nil {
		return err
	}
	for {
		if now := w.ConfigMap(cm.Namespace, cm.Name); now != nil {
			cm = now
		}
		fault := view.Invalid(cm)
		if fault == "" {
			return nil
		}
		select {
		case <-w.Changed:
		case <-inner.Done():
			if err := ctx.Err(); err != nil {
				return EndedEarly(ctx, "nothing was asked")
			}
			return exit.Errorf(exit.CodeNotNow, "plan %s is invalid, so it starts nothing: %s; nothing was asked: see %s", cm.Name, fault, c.Suggest().Why(cm.Name))
		}
	}
}
