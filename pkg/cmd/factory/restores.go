package factory

import (
	"context"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
)

// Restores are the restore data that a selector picks, of a namespace or, if it is empty, of all.
func (k *Cluster) Restores(ctx context.Context, namespace, selector string) ([]view.Restore, error) {
	list, err := k.ListDocuments(ctx, "restore data", annotations.KindRestore, namespace, selector)
	if err != nil {
		return nil, err
	}
	var out []view.Restore
	for _, cm := range list {
		out = append(out, view.NewRestore(cm))
	}
	return out, nil
}

// RestoresOf are the restore data of one plan.
func (k *Cluster) RestoresOf(ctx context.Context, namespace, plan string) ([]view.Restore, error) {
	return k.Restores(ctx, namespace, annotations.LabelPlan+"="+plan)
}
