package plans

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// retention is how long ended runs are kept where the configuration says nothing.
const retention = 30 * 24 * time.Hour

// keptDryRuns is how many ended dry runs of a plan are kept, beside its limits.
const keptDryRuns = 3

// prune deletes the ended runs of a plan beyond its limits and its age, the
// oldest first. The ledger remembers them all the same.
func (c *Controller) prune(ctx context.Context, k types.NamespacedName, uid string, spec plan.Spec) error {
	var good, bad, dry []*store.EndedRun
	for _, r := range c.Stores.History.Of(k) {
		switch {
		case r.Deleting, !r.Made: // what somebody else put there is theirs
		case r.DryRun: // takes no place of a run that did something
			dry = append(dry, r)
		case r.Succeeded:
			good = append(good, r)
		default:
			bad = append(bad, r)
		}
	}
	keep := c.Settings().Retention.Runs.Or(retention)
	gone := slices.Concat(c.beyond(good, *spec.SuccessfulRunsHistoryLimit, keep), c.beyond(bad, *spec.FailedRunsHistoryLimit, keep), c.beyond(dry, keptDryRuns, keep))
	for _, r := range gone {
		if err := c.deleteRun(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// beyond are the runs past a limit or too old, by creation.
func (c *Controller) beyond(runs []*store.EndedRun, limit int, keep time.Duration) []*store.EndedRun {
	slices.SortFunc(runs, store.NewestFirst)
	var out []*store.EndedRun
	for i, r := range runs {
		if i >= limit || c.Now().Sub(time.Unix(r.Created, 0)) > keep {
			out = append(out, r)
		}
	}
	return out
}

func (c *Controller) deleteRun(ctx context.Context, r *store.EndedRun) error {
	uid := types.UID(r.Uid)
	err := c.Clients.Kube.CoreV1().ConfigMaps(r.Namespace).Delete(ctx, r.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete the ended run %s/%s: %w", r.Namespace, r.Name, err)
	}
	return nil
}
