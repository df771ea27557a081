package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// closeTorn ends the entries of runs that vanished without us: somebody took
// their finalizers off. What they had begun cannot be undone any more; their
// slots must not start again, and it is said aloud.
func (a *Agent) closeTorn(ctx context.Context, k types.NamespacedName) error {
	for _, l := range a.runs.tornOf(k) {
		uid, run := a.planOf(l), l.object.Name
		led, err := a.ledgers.get(ctx, k, uid)
		if err != nil {
			return err
		}
		if led != nil {
			entry, open := led.OpenEntry(run)
			if !open { // it ended, and the watch was faster than our own reply
				a.runs.mended(l.key())
				continue
			}
			if l.broken == nil {
				if err := a.keepTurns(ctx, l, a.now()); err != nil {
					return err
				}
			}
			err = a.ledgers.edit(ctx, k, uid, func(led ledger.Ledger) ledger.Ledger { return closeTornEntry(led, entry, l, a.now()) })
		}
		if err != nil {
			return err
		}
		a.tellTorn(l.object, run, "its finally did not run")
		a.runs.mended(l.key())
		a.letGo(l.key())
	}
	return nil
}

// planOf is the uid of a run's plan. A run that cannot be read does not say it.
func (a *Agent) planOf(l *liveRun) string {
	if cm := a.document(l.planKey()); l.broken != nil && cm != nil {
		return string(cm.UID)
	}
	return l.run.PlanUID
}

// closeTornEntry ends the claim of a run that is gone, by its journal; where that
// could not be read, by the label that says whether it had begun.
func closeTornEntry(led ledger.Ledger, e ledger.Entry, l *liveRun, now time.Time) ledger.Ledger {
	if l.broken == nil {
		j := l.journal
		j.End = &run.End{Phase: run.RunAborted, Reason: run.TornAway, Message: "its object was removed against its finalizer"}
		return closeEntry(led, l.run, j, now)
	}
	var started *time.Time
	if l.object.Labels[annotations.LabelPhase] != string(run.RunPending) {
		started = &l.object.CreationTimestamp.Time
	}
	return led.Taken(e, started, now)
}

// tellTorn says that a run was taken away, on what is left to say it on.
func (a *Agent) tellTorn(run *corev1.ConfigMap, name, what string) {
	message := fmt.Sprintf("Run %s was removed against its finalizer; its slot does not run again; %s", name, what)
	a.events.Event(run, corev1.EventTypeWarning, "RunTornAway", message)
	if cm := a.document(types.NamespacedName{Namespace: run.Namespace, Name: run.Labels[annotations.LabelPlan]}); cm != nil && cm.UID != run.UID {
		a.events.Event(cm, corev1.EventTypeWarning, "RunTornAway", message)
	}
}

// recorded says whether a run stands in the status of its plan, which comes before
// its first act. A plan that is not there has no ledger that could start it again.
func (a *Agent) recorded(l *liveRun) bool {
	if a.runs.isRecorded(l.key()) {
		return true
	}
	cm := a.document(l.planKey())
	if cm == nil || string(cm.UID) != l.run.PlanUID || cm.DeletionTimestamp != nil {
		return true
	}
	phase, made := wasMade(cm, l.run.Name)
	return made && phase == run.RunRunning
}

// record lets runs act that stand in the status of their plan now, or whose plan
// takes no status.
func (a *Agent) record(live []*liveRun, err error) {
	if err != nil && !notTaken(err) {
		return
	}
	live = slices.DeleteFunc(live, func(l *liveRun) bool { return l.broken != nil || l.journal.Phase != run.RunRunning })
	for _, l := range a.runs.record(live) {
		a.ringRun(l.key())
	}
}

// liveRuns are the runs that were made, each with its phase, as the status of their
// plan says it: an agent that begins tells by it a claim whose run was never made
// from one whose run was taken away while nobody looked.
func liveRuns(runs []*liveRun) string {
	var out []string
	for _, l := range runs {
		phase := string(l.journal.Phase)
		if l.broken != nil {
			phase = l.object.Labels[annotations.LabelPhase]
		}
		if len(out) < ledger.MaxOpen {
			out = append(out, l.object.Name+"="+phase)
		}
	}
	return strings.Join(out, ",")
}

// wasMade says whether a plan bears the trace of a run, and in which phase it was.
func wasMade(cm *corev1.ConfigMap, r string) (phase run.RunPhase, made bool) {
	for _, one := range strings.Split(cm.Annotations[annotations.StatusRuns], ",") {
		if name, phase, ok := strings.Cut(one, "="); ok && name == r {
			return run.RunPhase(phase), true
		}
	}
	return "", false
}

// taken ends the claim of a run that was made and is not there any more. Where it
// is there, our watch lags behind.
func (a *Agent) taken(ctx context.Context, k types.NamespacedName, cm *corev1.ConfigMap, e ledger.Entry, phase run.RunPhase) error {
	err := a.adopt(ctx, k, e)
	if !apierrors.IsNotFound(err) {
		return err
	}
	var started *time.Time
	if phase != run.RunPending {
		started = startOfLast(cm, e)
	}
	err = a.ledgers.edit(ctx, k, string(cm.UID), func(l ledger.Ledger) ledger.Ledger { return l.Taken(e, started, a.now()) })
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
