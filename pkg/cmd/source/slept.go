package source

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/savings"
)

// SleptFor is the interval before now for the hours in a status.
const SleptFor = 30 * 24 * time.Hour

// ReadSlept is how long the resources of a HibernatePlan slept lately, as savings counts it: from
// its ledger, and the present sleep.
func ReadSlept(ctx context.Context, k *factory.Cluster, cm *corev1.ConfigMap, now time.Time) ([]savings.Row, error) {
	kept, err := k.Ledger(ctx, cm)
	if err != nil {
		return nil, err
	}
	restores, err := k.RestoresOf(ctx, cm.Namespace, cm.Name)
	if err != nil {
		return nil, err
	}
	sleeps := savings.SleepsOf(cm.Namespace, cm.Name, kept.Closed)
	for _, r := range restores {
		sleeps = append(sleeps, SleepsNow(r, now)...)
	}
	return savings.Sum(sleeps, now.Add(-SleptFor), now, func(string) *savings.Prices { return nil }), nil
}

// SleepsNow is the present sleep in restore data, if anything slept in it. A copy of restore data
// is about the same sleep, and does not count.
func SleepsNow(r view.Restore, now time.Time) []savings.Sleep {
	if annotations.RestoreCopy(r.Object.Name) {
		return nil
	}
	slept := savings.SleptIn([]hibernate.Record{r.Record}, now)
	if len(slept) == 0 {
		return nil
	}
	return []savings.Sleep{{Namespace: r.Object.Namespace, Plan: r.Record.Plan, Began: r.Record.Snapshot.BeganAt, Ended: now, Slept: slept}}
}
