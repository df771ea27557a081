package runs

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// CloseOrphans ends the entries of runs that vanished without us: somebody took
// their finalizers off. What they had begun cannot be undone any more; their
// slots must not start again, and it is said aloud.
func (c *Controller) CloseOrphans(ctx context.Context, k types.NamespacedName) error {
	for _, l := range c.Stores.Runs.OrphansOf(k) {
		led, err := c.Stores.Ledgers.Get(ctx, k, c.planOf(l))
		if err != nil {
			return err
		}
		open := false
		var entry ledger.Entry
		if led != nil {
			entry, open = led.OpenEntry(l.Object.Name)
		}
		lost := led == nil && c.hasPlan(&store.CachedRun{Object: l.Object, Run: run.Run{PlanUID: c.planOf(l)}})
		if !open && !lost { // it ended, and the watch was faster than our own reply; or another agent ended it
			c.Stores.Runs.OrphanClosed(l.Key())
			continue
		}
		back, ended, err := c.isThere(ctx, l)
		switch {
		case err != nil || back:
			return err
		case lost:
			c.dropOrphan(l, ended)
			continue
		}
		if err := c.closeOrphan(ctx, k, l, entry); err != nil {
			return err
		}
	}
	return nil
}

// dropOrphan lets a run go whose plan's ledger is lost as well, and says, unless it has ended, what nothing else
// will tell.
func (c *Controller) dropOrphan(l *store.LiveRun, ended bool) {
	what := "its finally did not run, and nobody knows how far it came"
	if l.Object.Labels[annotations.LabelPhase] == string(run.Pending) {
		what = "it had not begun"
	}
	if !ended {
		c.ReportOrphan(l.Object, c.planOf(l), l.Object.Name, "its plan's ledger is lost, too, so its end is recorded nowhere; "+what)
	}
	c.Stores.Runs.OrphanClosed(l.Key())
	c.release(l.Key())
}

// isThere says whether a run's object is there after all, and takes it up again: it was
// not shown for a while, or somebody put it back. ended says that it is there, and over.
func (c *Controller) isThere(ctx context.Context, l *store.LiveRun) (back, ended bool, err error) {
	cm, err := c.Clients.Kube.CoreV1().ConfigMaps(l.Object.Namespace).Get(ctx, l.Object.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return false, false, nil
	case err != nil:
		return false, false, fmt.Errorf("read run %s: %w", l.Key(), err)
	case cm.UID != l.Object.UID || !slices.Contains([]string{string(run.Pending), string(run.Running)}, cm.Labels[annotations.LabelPhase]):
		return false, cm.UID == l.Object.UID, nil
	}
	c.Stores.Runs.OrphanClosed(l.Key())
	c.Stores.Runs.Observe(cm)
	c.Queue.Add(l.Key())
	return true, false, nil
}

// closeOrphan ends the entry of a run that vanished, and says so.
func (c *Controller) closeOrphan(ctx context.Context, k types.NamespacedName, l *store.LiveRun, entry ledger.Entry) error {
	if l.Broken == nil {
		if err := c.saveTurns(ctx, l, c.Now()); err != nil {
			return err
		}
	}
	whole := c.Stores.Runs.ReadWhole(l) // what it leaves is told by its steps
	err := c.Stores.Ledgers.Edit(ctx, k, c.planOf(l), func(led ledger.Ledger) ledger.Ledger { return closeOrphanEntry(led, entry, whole, c.Now()) })
	if err != nil {
		return err
	}
	c.ReportOrphan(l.Object, c.planOf(l), l.Object.Name, "its finally did not run")
	c.Stores.Runs.OrphanClosed(l.Key())
	c.release(l.Key())
	return nil
}

// planOf is the uid of a run's plan. A run that cannot be read does not say it.
func (c *Controller) planOf(l *store.LiveRun) string {
	if cm := c.Stores.Documents.Plan(l.PlanKey()); l.Broken != nil && cm != nil {
		return string(cm.UID)
	}
	return l.Head.PlanUID
}

// closeOrphanEntry ends the claim of a run that is gone, by its journal; where that
// could not be read, by the label that says whether it had begun.
func closeOrphanEntry(led ledger.Ledger, e ledger.Entry, l *store.CachedRun, now time.Time) ledger.Ledger {
	if l.Broken == nil {
		j := l.Journal
		j.End = &run.End{Phase: run.Aborted, Reason: run.ReasonTornAway, Message: "its object was removed against its finalizer"}
		return led.CloseRun(l.Run, j, now)
	}
	var started *time.Time
	if l.Object.Labels[annotations.LabelPhase] != string(run.Pending) {
		started = &l.Object.CreationTimestamp.Time
	}
	return led.CloseRemoved(e, started, now)
}

// ReportOrphan says that a run was taken away, on what is left to say it on: the plan of its
// name may be another, in a namespace that was made again for somebody else.
func (c *Controller) ReportOrphan(run *corev1.ConfigMap, plan, name, what string) {
	message := fmt.Sprintf("Run %s was removed against its finalizer; it does not run again; %s", name, what)
	c.Telemetry.Events.Event(run, corev1.EventTypeWarning, "RunTornAway", message)
	if cm := c.Stores.Documents.Plan(types.NamespacedName{Namespace: run.Namespace, Name: run.Labels[annotations.LabelPlan]}); cm != nil && cm.UID != run.UID && string(cm.UID) == plan {
		c.Telemetry.Events.Event(cm, corev1.EventTypeWarning, "RunTornAway", message)
	}
}

// recorded says whether a run stands in the status of its plan, which comes before
// its first act. A plan that is not there has no ledger that could start it again.
func (c *Controller) recorded(l *store.CachedRun) bool {
	if c.Stores.Runs.IsRecorded(l.Key()) {
		return true
	}
	cm := c.Stores.Documents.Plan(l.PlanKey())
	if cm == nil || string(cm.UID) != l.Run.PlanUID || cm.DeletionTimestamp != nil {
		return true
	}
	phase, made := store.WasMade(cm, l.Run.Name)
	return made && phase == run.Running
}
