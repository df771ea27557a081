package agent

import (
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

// refusedRuns remember when claims whose runs the API server does not take are
// tried again. The claims themselves, and why, stand in their plans' ledgers: a new
// leader tries them at once.
type refusedRuns struct {
	mu     sync.Mutex
	byPlan map[types.NamespacedName]map[string]refusedRun
}

type refusedRun struct {
	refusal workflow.Refusal
	next    time.Time
	text    string // hash of the plan that was refused: another text may be taken
}

// next is when the run of a claim is tried again; zero: now.
func (r *refusedRuns) next(k types.NamespacedName, run, text string) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	if found := r.byPlan[k][run]; found.text == text {
		return found.next
	}
	return time.Time{}
}

// again notes another refusal. final says that it was said for half a minute.
func (r *refusedRuns) again(k types.NamespacedName, run, text string, now time.Time) (next time.Time, final bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byPlan[k] == nil {
		r.byPlan[k] = map[string]refusedRun{}
	}
	found := r.byPlan[k][run]
	found.refusal, final = found.refusal.Again(now)
	found.next, found.text = found.refusal.RetryAt(now), text
	r.byPlan[k][run] = found
	return found.next, final
}

// keep forgets what is claimed no more.
func (r *refusedRuns) keep(k types.NamespacedName, open []ledger.Entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for run := range r.byPlan[k] {
		if !slices.ContainsFunc(open, func(e ledger.Entry) bool { return e.Run == run }) {
			delete(r.byPlan[k], run)
		}
	}
	if len(r.byPlan[k]) == 0 {
		delete(r.byPlan, k)
	}
}

// notTaken says whether the API server refuses an object, for now or as it is.
func notTaken(err error) bool {
	return executors.RefusalOf(err, "") != executors.NotRefused && !apierrors.IsUnauthorized(err) || neverTaken(err)
}

// neverTaken says whether the same object would be refused for ever.
func neverTaken(err error) bool {
	if executors.RefusalOf(err, "") != executors.NotRefused {
		return false
	}
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err)
}

// refuseRun is a claim whose run the API server does not take. It waits, and says
// for what: a slot until its deadline, or until it is known that it never will be
// taken, everything else without end.
func (a *Agent) refuseRun(ctx context.Context, k types.NamespacedName, cm *corev1.ConfigMap, known *knownPlan, e ledger.Entry, refusal error) (retry time.Time, err error) {
	if neverTaken(refusal) && e.Slot != nil {
		a.events.Eventf(cm, corev1.EventTypeWarning, "RunRefused", "The API server did not take run %s: %s", e.Run, refusal)
		return time.Time{}, a.ledgers.edit(ctx, k, string(cm.UID), func(l ledger.Ledger) ledger.Ledger {
			return l.Close(e.Run, run.Missed, run.ReasonRefused, nil, a.now())
		})
	}
	next, final := a.refusedRuns.again(k, e.Run, known.observed, a.now())
	if executors.RefusalOf(refusal, "") == executors.RefusedAgent && !final { // as one that starts does to everybody
		a.log.Warn("will try again", "plan", k.String(), "run", e.Run, "error", refusal.Error())
		return next, nil
	}
	why := ledger.Entry{Run: e.Run}
	why = ledger.Ledger{Open: []ledger.Entry{why}}.Refuse(e.Run, refusal.Error()).Open[0]
	if e.Refused == why.Refused {
		return next, nil
	}
	if e.Refused == "" {
		a.events.Eventf(cm, corev1.EventTypeWarning, "RunRefused", "The API server does not take run %s, which is tried again: %s", e.Run, document.Cut(refusal.Error(), document.MaxMessage))
	}
	a.planQueue.AddAfter(k, settle) // what it waits for goes into the status
	return next, a.ledgers.edit(ctx, k, string(cm.UID), func(l ledger.Ledger) ledger.Ledger { return l.Refuse(e.Run, why.Refused) })
}
