package agent

import (
	"context"
	"fmt"
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

// closeTorn ends the entries of runs that vanished without us: somebody took
// their finalizers off. What they had begun cannot be undone any more; their
// slots must not start again, and it is said aloud.
func (a *Agent) closeTorn(ctx context.Context, k types.NamespacedName) error {
	for _, l := range a.runs.OrphansOf(k) {
		uid, run := a.planOf(l), l.Object.Name
		led, err := a.ledgers.Get(ctx, k, uid)
		if err != nil {
			return err
		}
		if led != nil {
			entry, open := led.OpenEntry(run)
			if !open { // it ended, and the watch was faster than our own reply
				a.runs.OrphanClosed(l.Key())
				continue
			}
			if l.Broken == nil {
				if err := a.keepTurns(ctx, l, a.now()); err != nil {
					return err
				}
			}
			err = a.ledgers.Edit(ctx, k, uid, func(led ledger.Ledger) ledger.Ledger { return closeTornEntry(led, entry, l, a.now()) })
		}
		if err != nil {
			return err
		}
		a.tellTorn(l.Object, run, "its finally did not run")
		a.runs.OrphanClosed(l.Key())
		a.letGo(l.Key())
	}
	return nil
}

// planOf is the uid of a run's plan. A run that cannot be read does not say it.
func (a *Agent) planOf(l *store.CachedRun) string {
	if cm := a.docs.Plan(l.PlanKey()); l.Broken != nil && cm != nil {
		return string(cm.UID)
	}
	return l.Run.PlanUID
}

// closeTornEntry ends the claim of a run that is gone, by its journal; where that
// could not be read, by the label that says whether it had begun.
func closeTornEntry(led ledger.Ledger, e ledger.Entry, l *store.CachedRun, now time.Time) ledger.Ledger {
	if l.Broken == nil {
		j := l.Journal
		j.End = &run.End{Phase: run.Aborted, Reason: run.TornAway, Message: "its object was removed against its finalizer"}
		return store.CloseEntry(led, l.Run, j, now)
	}
	var started *time.Time
	if l.Object.Labels[annotations.LabelPhase] != string(run.Pending) {
		started = &l.Object.CreationTimestamp.Time
	}
	return led.Taken(e, started, now)
}

// tellTorn says that a run was taken away, on what is left to say it on.
func (a *Agent) tellTorn(run *corev1.ConfigMap, name, what string) {
	message := fmt.Sprintf("Run %s was removed against its finalizer; its slot does not run again; %s", name, what)
	a.events.Event(run, corev1.EventTypeWarning, "RunTornAway", message)
	if cm := a.docs.Plan(types.NamespacedName{Namespace: run.Namespace, Name: run.Labels[annotations.LabelPlan]}); cm != nil && cm.UID != run.UID {
		a.events.Event(cm, corev1.EventTypeWarning, "RunTornAway", message)
	}
}

// recorded says whether a run stands in the status of its plan, which comes before
// its first act. A plan that is not there has no ledger that could start it again.
func (a *Agent) recorded(l *store.CachedRun) bool {
	if a.runs.IsRecorded(l.Key()) {
		return true
	}
	cm := a.docs.Plan(l.PlanKey())
	if cm == nil || string(cm.UID) != l.Run.PlanUID || cm.DeletionTimestamp != nil {
		return true
	}
	phase, made := store.WasMade(cm, l.Run.Name)
	return made && phase == run.Running
}

// record lets runs act that stand in the status of their plan now, or whose plan
// takes no status.
func (a *Agent) record(live []*store.CachedRun, err error) {
	if err != nil && !client.NotTaken(err) {
		return
	}
	live = slices.DeleteFunc(live, func(l *store.CachedRun) bool { return l.Broken != nil || l.Journal.Phase != run.Running })
	for _, l := range a.runs.MarkRecorded(live) {
		a.ringRun(l.Key())
	}
}

// taken ends the claim of a run that was made and is not there any more. Where it
// is there, our watch lags behind.
func (a *Agent) taken(ctx context.Context, k types.NamespacedName, cm *corev1.ConfigMap, e ledger.Entry, phase run.Phase) error {
	err := a.adopt(ctx, k, e)
	if !apierrors.IsNotFound(err) {
		return err
	}
	var started *time.Time
	if phase != run.Pending {
		started = startOfLast(cm, e)
	}
	err = a.ledgers.Edit(ctx, k, string(cm.UID), func(l ledger.Ledger) ledger.Ledger { return l.Taken(e, started, a.now()) })
	if err != nil {
		return err
	}
	what := "it had not begun"
	if started != nil {
		what = "what it had begun was neither ended nor put back, and nobody knows how far it came"
	}
	a.tellTorn(cm, e.Run, what)
	a.ringPlan(k)
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
