package factory

import (
	"context"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
)

// Restores are the restore data of a namespace, or of all where that is empty; of one plan
// where it is named.
func (k *Cluster) Restores(ctx context.Context, namespace, plan string) ([]view.Restore, error) {
	selector := ""
	if plan != "" {
		selector = annotations.LabelPlan + "=" + plan
	}
	list, err := k.Listed(ctx, "restore data", annotations.KindRestore, namespace, selector)
	if err != nil {
		return nil, err
	}
	var out []view.Restore
	for _, cm := range list {
		out = append(out, view.NewRestore(cm))
	}
	return out, nil
}
