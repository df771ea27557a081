package runs

import (
	"context"
	"reflect"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/steppool"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

// unwatchedLook is how often what may not be watched is looked at (a guess).
const unwatchedLook = time.Minute

// look sees whether what a step did is as it left it, and watches it until the next look.
func (c *Controller) look(ctx context.Context, l *store.CachedRun, m workflow.Action) (steppool.Outcome, error) {
	s := stepKey(l, m)
	rec := l.Journal.Record(m.Path)
	rests := func(until time.Time) steppool.Outcome {
		return steppool.Outcome{Wait: &steppool.Wait{Record: *rec, Wake: until}}
	}
	executor, _ := c.Executor(m.Step.Type)
	drifter, ok := executor.(executors.Drifter)
	if !ok || c.Scope.DryRun {
		return rests(time.Time{}), nil
	}
	call, failed, err := c.prepared(ctx, l, m)
	if err != nil {
		return steppool.Outcome{}, err
	}
	if failed != nil {
		return unchecked(l.Journal, rec, failed.Reason != executors.ReasonUnavailable, failed.Message, c.Now().Add(unwatchedLook)), nil
	}
	unwatched, again := c.unwatched(ctx, s, call.Clients, rec.Unwatched)
	found, watch, err := drifter.Drift(ctx, call)
	if err != nil { // the step itself is not at stake: it is looked at again
		return unchecked(l.Journal, rec, !executors.PassesByItself(err), err.Error(), c.Now().Add(executors.RecheckAfter(err))), ctx.Err()
	}
	d := found.Drift
	now := l.Journal
	if fresh := c.Stores.Runs.Get(l.Key()); fresh != nil {
		with, _ := c.Steps.WithOutcomes(fresh)
		now = with.Journal
	}
	if d != nil && now.Writing(m.Path) { // it may be the run itself
		return rests(c.Now().Add(retryDelay)), nil
	}
	d = d.Without(func(one run.Drift) bool {
		return workflow.SetByRun(l.Run, now, m.Path, found.Kind, found.Name, one.Field)
	})
	note := func(j run.Journal) run.Journal {
		j = workflow.NoteUnchecked(workflow.NoteDrift(j, m.Path, d, c.Now()), m.Path, "")
		return workflow.NoteUnwatched(j, m.Path, unwatched)
	}
	after := note(l.Journal).Record(m.Path)
	o := steppool.Outcome{Wait: &steppool.Wait{Record: *after}, Watch: watch, Clients: call.Clients}
	if watch != nil {
		o.Wait.Least = c.Now().Add(watch.Every)
	}
	if o.Wait.Wake = again; unwatched && !again.IsZero() {
		c.watches.Drop(s)
		o.Watch = nil
	}
	if !reflect.DeepEqual(after, rec) {
		o.Note = note
	}
	return o, nil
}

// unwatched says whether a run's account may not watch what a step did, and when to look again for
// want of a watch. An API server that has just started refuses everybody: see judge.
func (c *Controller) unwatched(ctx context.Context, s store.StepKey, as executors.Clients, was bool) (is bool, again time.Time) {
	now := c.Now()
	if c.watches.Failure(ctx, s, as, now) == nil {
		stands := c.watches.IsSynced(s)
		if stands {
			c.memory.refusals.Clear(s)
		}
		return was && !stands, time.Time{}
	}
	r, final := c.memory.refusals.Record(s, now)
	if final {
		return true, now.Add(unwatchedLook)
	}
	return was, r.VerdictAt(now)
}

// unchecked is the outcome of a look that failed; what passes by itself is not noted.
func unchecked(j run.Journal, rec *run.Record, refused bool, why string, again time.Time) steppool.Outcome {
	if !refused || rec.Unchecked != "" {
		return steppool.Outcome{Wait: &steppool.Wait{Record: *rec, Wake: again}}
	}
	path := rec.Path
	note := func(j run.Journal) run.Journal { return workflow.NoteUnchecked(j, path, why) }
	return steppool.Outcome{Wait: &steppool.Wait{Record: *note(j).Record(path), Wake: again}, Note: note}
}

// recordDrift sends an Event of each step whose effect somebody changed, or put right again,
// and of each that its account may not watch or read.
func (c *Controller) recordDrift(l *store.CachedRun, before, now run.Journal) {
	for _, e := range now.DriftEvents(before, l.Account().User()) {
		c.Telemetry.Events.Eventf(c.aboutRun(l), e.Type, e.Reason, "Run %s, %s", l.Run.Name, e.Message)
	}
}
