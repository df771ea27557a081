package runs

import (
	"context"
	"slices"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/queue"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/steppool"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

// isRefusal says whether an outcome speaks of a right, an account, an admission or a
// connection that somebody has to give, and not of the step itself.
func isRefusal(out executors.Outcome) bool {
	gives := out.State == executors.Failed || out.State == executors.NotYet
	return gives && slices.Contains([]string{executors.ReasonForbidden, executors.ReasonDenied, executors.ReasonNoAccount, executors.ReasonNoConnection}, out.Reason)
}

// judge says what a refusal means for a step. A missing right or connection is final when
// it was missing for half a minute: a Secret that is replaced may be gone for a moment; an admission's no is a failed attempt. What undoes
// (onFailure, finally) waits for all of them until its own time is over.
func (c *Controller) judge(l *store.CachedRun, path string, out executors.Outcome) executors.Outcome {
	s := store.StepKey{Run: l.Key(), Path: path}
	if !isRefusal(out) {
		c.memory.refusals.Clear(s)
		return out
	}
	now := c.Now()
	r, final := c.memory.refusals.Record(s, now)
	later := func(what string, at time.Time) executors.Outcome {
		out.State, out.Permanent, out.Message = executors.NotYet, false, document.Cut(out.Message+what, document.MaxMessage)
		out.WakeAt = queue.Latest(out.WakeAt, at)
		out.Anew = false // the attempt goes on: one that recorded again each time would never be refused for good
		return out
	}
	switch {
	case plan.SectionOf(path) != plan.SectionSteps:
		return later(c.cleanupWaits(l, path), r.RetryAt(now))
	case out.State == executors.NotYet && out.Reason == executors.ReasonForbidden: // it says nothing of the account
		return later("", r.RetryAt(now))
	case out.State == executors.NotYet && final: // whoever refuses it, it is not for want of a right
		out.State = executors.Failed
	case out.State == executors.NotYet:
		return later("", r.VerdictAt(now))
	case (out.Reason == executors.ReasonForbidden || out.Reason == executors.ReasonNoConnection) && !final:
		return later(workflow.FailsBy(r.Since.Add(workflow.RefusalTimeout)), r.VerdictAt(now))
	}
	c.memory.refusals.Clear(s)
	return out
}

// cleanupWaits says until when the cleanup of a run, or what ends a step, waits.
func (c *Controller) cleanupWaits(l *store.CachedRun, path string) string {
	return workflow.CleanupWaitsUntil(workflow.CleanupEnds(l.Journal, path, c.Scope.LeadingSince()))
}

// waitsFor is an act of cleanup that is refused: it is tried again, more and more
// rarely, and the run says for what it waits.
func (c *Controller) waitsFor(l *store.CachedRun, path string, out executors.Outcome) steppool.Outcome {
	now := c.Now()
	r, _ := c.memory.refusals.Record(store.StepKey{Run: l.Key(), Path: path}, now)
	waits := document.Cut(out.Message+c.cleanupWaits(l, path), document.MaxMessage)
	o := steppool.Outcome{Wait: &steppool.Wait{Record: *l.Journal.Record(path), Wake: queue.Latest(out.WakeAt, r.RetryAt(now))}}
	if l.Journal.Record(path).Waits != waits {
		o.Note = func(j run.Journal) run.Journal { return workflow.NoteWaits(j, path, waits) }
	}
	return o
}

// noAccount says that a run's account is not there; nil where it is.
func (c *Controller) noAccount(ctx context.Context, w client.Account) (*executors.Outcome, error) {
	missing, err := c.Clients.Accounts.Missing(ctx, w)
	if err != nil || missing == "" {
		return nil, err
	}
	out := executors.Refuse(executors.ReasonNoAccount, "%s", missing)
	return &out, nil
}
