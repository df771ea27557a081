package agent

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// retention is how long ended runs are kept where the configuration says nothing.
const retention = 30 * 24 * time.Hour

// prune deletes the ended runs of a plan beyond its limits and its age, the
// oldest first. The ledger remembers them all the same.
func (a *Agent) prune(ctx context.Context, k key, uid string, spec plan.Spec) error {
	objects, err := a.ended.GetIndexer().ByIndex(byPlan, k.String())
	if err != nil {
		return fmt.Errorf("history of plan %s: %w", k, err)
	}
	var good, bad []*metav1.PartialObjectMetadata
	for _, o := range objects {
		m := o.(*metav1.PartialObjectMetadata)
		if m.DeletionTimestamp != nil {
			continue
		}
		if m.Labels[annotations.LabelPhase] == string(plan.RunSucceeded) {
			good = append(good, m)
		} else {
			bad = append(bad, m)
		}
	}
	keep := a.config.spec().Retention.Runs.Or(retention)
	for _, m := range append(a.beyond(good, *spec.SuccessfulRunsHistoryLimit, keep), a.beyond(bad, *spec.FailedRunsHistoryLimit, keep)...) {
		if err := a.deleteRun(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

// beyond are the runs past a limit or too old, by creation.
func (a *Agent) beyond(runs []*metav1.PartialObjectMetadata, limit int, keep time.Duration) []*metav1.PartialObjectMetadata {
	slices.SortFunc(runs, func(x, y *metav1.PartialObjectMetadata) int {
		return y.CreationTimestamp.Compare(x.CreationTimestamp.Time)
	})
	var out []*metav1.PartialObjectMetadata
	for i, m := range runs {
		if i >= limit || a.now().Sub(m.CreationTimestamp.Time) > keep {
			out = append(out, m)
		}
	}
	return out
}

func (a *Agent) deleteRun(ctx context.Context, m *metav1.PartialObjectMetadata) error {
	uid := types.UID(m.UID)
	err := a.kube.CoreV1().ConfigMaps(m.Namespace).Delete(ctx, m.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete the ended run %s/%s: %w", m.Namespace, m.Name, err)
	}
	return nil
}
