package agent

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/queue"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

// refusals remembers since when something has been refused without a break. It is
// in memory: a new leader begins the half minute anew.
type refusals[K comparable] struct {
	mu    sync.Mutex
	since map[K]workflow.Refusal
}

func newRefusals[K comparable]() *refusals[K] { return &refusals[K]{since: map[K]workflow.Refusal{}} }

// again notes another refusal, and says whether it is final.
func (r *refusals[K]) again(of K, now time.Time) (workflow.Refusal, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	next, final := r.since[of].Again(now)
	r.since[of] = next
	return next, final
}

// over notes that something is refused no more.
func (r *refusals[K]) over(of K) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.since, of)
}

// forget drops what match is true for.
func (r *refusals[K]) forget(match func(K) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for of := range r.since {
		if match(of) {
			delete(r.since, of)
		}
	}
}

// isRefusal says whether an outcome speaks of a right, an account or an admission
// that somebody has to give, and not of the step itself.
func isRefusal(out executors.Outcome) bool {
	gives := out.State == executors.Failed || out.State == executors.NotYet
	return gives && slices.Contains([]string{executors.ReasonForbidden, executors.ReasonDenied, executors.ReasonNoAccount}, out.Reason)
}

// judge says what a refusal means for a step. A missing right is final when it was
// missing for half a minute; an admission's no is a failed attempt. What undoes
// (onFailure, finally) waits for all of them until its own time is over.
func (a *Agent) judge(s spot, out executors.Outcome) executors.Outcome {
	if !isRefusal(out) {
		a.refusals.over(s)
		return out
	}
	now := a.now()
	r, final := a.refusals.again(s, now)
	later := func(what string, at time.Time) executors.Outcome {
		out.State, out.Permanent, out.Message = executors.NotYet, false, document.Cut(out.Message+what, document.MaxMessage)
		out.WakeAt = queue.Latest(out.WakeAt, at)
		return out
	}
	switch {
	case plan.SectionOf(s.path) != plan.SectionSteps:
		return later(waitsInCleanup(), r.RetryAt(now))
	case out.State == executors.NotYet && out.Reason == executors.ReasonForbidden: // it says nothing of the account
		return later("", r.RetryAt(now))
	case out.State == executors.NotYet && final: // whoever refuses it, it is not for want of a right
		out.State = executors.Failed
	case out.State == executors.NotYet:
		return later("", r.VerdictAt(now))
	case out.Reason == executors.ReasonForbidden && !final:
		return later("; unless that is so by "+r.Since.Add(workflow.RefusalPatience).UTC().Format(time.TimeOnly)+" UTC, the step fails", r.VerdictAt(now))
	}
	a.refusals.over(s)
	return out
}

func waitsInCleanup() string {
	return fmt.Sprintf("; cleanup waits for it, %s at most", plan.DefaultCleanupDuration)
}

// waitsFor is an act of cleanup that is refused: it is tried again, more and more
// rarely, and the run says for what it waits.
func (a *Agent) waitsFor(l *liveRun, path string, out executors.Outcome) outcome {
	now := a.now()
	r, _ := a.refusals.again(spot{l.key(), path}, now)
	waits := document.Cut(out.Message+waitsInCleanup(), document.MaxMessage)
	o := outcome{lull: &lull{record: *l.journal.Record(path), wake: queue.Latest(out.WakeAt, r.RetryAt(now))}}
	if l.journal.Record(path).Waits != waits {
		o.note = func(j run.Journal) run.Journal { return workflow.NoteWaits(j, path, waits) }
	}
	return o
}

// noAccount says that a run's account is not there; nil where it is.
func (a *Agent) noAccount(ctx context.Context, w client.Account) (*executors.Outcome, error) {
	missing, err := a.accounts.Missing(ctx, w)
	if err != nil || missing == "" {
		return nil, err
	}
	out := executors.Refuse(executors.ReasonNoAccount, "%s", missing)
	return &out, nil
}
