package plans

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// letRunsAct lets runs act that stand in the status of their plan now, or whose plan
// takes no status.
func (c *Controller) letRunsAct(live []*store.LiveRun, err error) {
	if err != nil && !client.IsRejected(err) {
		return
	}
	live = slices.DeleteFunc(live, func(l *store.LiveRun) bool { return l.Broken != nil || l.Journal.Phase != run.Running })
	for _, l := range c.Stores.Runs.MarkRecorded(live) {
		c.EnqueueRun(l.Key())
	}
}

// closeTaken ends the claim of a run that was made and is not there any more. Where it
// is there, our watch lags behind.
func (c *Controller) closeTaken(ctx context.Context, k types.NamespacedName, cm *corev1.ConfigMap, e ledger.Entry, phase run.Phase) error {
	err := c.adopt(ctx, k, e)
	if !apierrors.IsNotFound(err) {
		return err
	}
	var started *time.Time
	if phase != run.Pending {
		started = startOfLast(cm, e)
	}
	err = c.Stores.Ledgers.Edit(ctx, k, string(cm.UID), func(l ledger.Ledger) ledger.Ledger { return l.CloseRemoved(e, started, c.Now()) })
	if err != nil {
		return err
	}
	what := "it had not begun"
	if started != nil {
		what = "what it had begun was neither ended nor put back, and nobody knows how far it came"
	}
	c.Runner.ReportOrphan(cm, string(cm.UID), e.Run, what)
	c.Queue.Add(k)
	return nil
}

// startOfLast is when a run began, as its plan says, or else when it was claimed.
func startOfLast(cm *corev1.ConfigMap, e ledger.Entry) *time.Time {
	at := e.At
	if cm.Annotations[annotations.StatusLastRunName] == e.Run {
		if began, err := time.Parse(time.RFC3339, cm.Annotations[annotations.StatusLastRun]); err == nil {
			at = began
		}
	}
	return &at
}
