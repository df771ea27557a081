package runs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/queue"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/steppool"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

// unwatchedPause is how often a step looks that waits for what is not watched (a guess).
const unwatchedPause = 15 * time.Second

// retryDelay is when a pass that could not even be made is tried again.
const retryDelay = 2 * time.Second

// launch does an act beside the workers, which look at the run again afterwards.
func (c *Controller) launch(ctx context.Context, l *store.CachedRun, m workflow.Action) {
	s, attempt := stepKey(l, m), l.Journal.Attempt(m.Path)
	act, by := m.Act, m.WakeAt // many may wait for a place: they hold no run and no step
	c.Steps.Start(ctx, s, act, attempt, func(inner context.Context) {
		l := c.Stores.Runs.Get(s.Run)
		if l == nil || l.Broken != nil || act == workflow.ActPass && !l.Journal.AtWork(s.Path, attempt) {
			return // the next look at the run says so
		}
		m := workflow.Action{Act: act, Path: s.Path, WakeAt: by}
		m.Step, _ = l.Run.Tree().Find(s.Path)
		c.complete(ctx, l, c.guardedAct(inner, l, m, s, attempt))
	})
}

// complete takes in what came of an act, and opens the watch that it asks for: in this
// order, for the watch wakes the step at once.
// taken says that its run still lives: else there is nothing more to be done for it.
func (c *Controller) complete(ctx context.Context, l *store.CachedRun, o steppool.Outcome) (taken bool) {
	if c.Stores.Runs.Live(l.Key()) == nil {
		return false
	}
	c.Steps.Complete(o)
	if o.Watch != nil && !c.watches.Keep(ctx, o.Step, l.Account(), o.Clients, *o.Watch) {
		pause := unwatchedPause
		if o.Step.DriftCheck {
			pause = unwatchedLook
		}
		c.Steps.RequeueBy(o.Step, c.Now().Add(pause))
	}
	if c.Stores.Runs.Live(l.Key()) == nil { // it was let go while this was taken in
		c.watches.DropRun(l.Key())
		c.Steps.Forget(l.Key())
		return false
	}
	return true
}

// guardedAct is an act whose errors, and whose panics, are tried again later.
func (c *Controller) guardedAct(ctx context.Context, l *store.CachedRun, m workflow.Action, s store.StepKey, attempt int) (out steppool.Outcome) {
	later := func(err error) steppool.Outcome {
		if ctx.Err() == nil {
			c.Telemetry.Log.Warn("will try again", "run", s.Run.String(), "step", s.Path, "error", err.Error())
		}
		rec := l.Journal.Record(s.Path)
		if rec == nil {
			return steppool.Outcome{Step: s}
		}
		o := c.later(rec, c.Now().Add(executors.RetryAfter(err)))
		o.Step = s
		return o
	}
	defer func() {
		if p := recover(); p != nil {
			c.Telemetry.Metrics.Panicked()
			out = later(fmt.Errorf("internal error over step %s: %v", s.Path, p))
		}
	}()
	o, err := c.act(ctx, l, m)
	if err != nil {
		return later(err)
	}
	o.Step, o.Attempt = s, attempt
	return o
}

func stepKey(l *store.CachedRun, m workflow.Action) store.StepKey {
	return store.StepKey{Run: l.Key(), Path: m.Path, DriftCheck: m.Act == workflow.ActCheckDrift}
}

// dispatch does what a move asks for. One act alone is done at once, and its
// outcome goes into the next write; acts side by side run beside the workers.
// more says that an outcome is there to be written, or that what the move was decided on has changed.
func (c *Controller) dispatch(ctx context.Context, l *store.CachedRun, next workflow.Action, on store.Basis) (wake time.Time, more bool, err error) {
	var acts []workflow.Action
	moves := next.All()
	beside := len(moves)
	for _, m := range moves {
		s := stepKey(l, m)
		if m.Act == workflow.ActWait || c.Steps.IsExecuting(s) {
			wake = queue.Soonest(wake, m.WakeAt)
			continue
		}
		if until, rests := c.Steps.Waits(s, l.Journal.Record(m.Path), c.Now()); rests {
			if s.DriftCheck {
				beside--
			}
			wake = queue.Soonest(wake, m.WakeAt, until)
			continue
		}
		acts = append(acts, m)
	}
	if begins := func(m workflow.Action) bool { return m.Act == workflow.ActPass && l.Journal.Idle(m.Path) }; slices.ContainsFunc(acts, begins) {
		unchanged, failed := c.Stores.Documents.Confirm(ctx, l.PlanKey(), on)
		if failed != nil || !unchanged { // what is at work goes on
			acts = slices.DeleteFunc(acts, begins)
			if len(acts) == 0 {
				return time.Time{}, failed == nil, failed
			}
			again := c.Now()
			if failed != nil {
				again = again.Add(heldDelay)
			}
			wake = queue.Soonest(wake, again)
		}
	}
	// Nothing may begin beside it, but in a rollout, where another node may be granted.
	if beside == 1 && len(acts) == 1 && c.Steps.Count(l.Key()) == 0 && !l.RollsOut() {
		if leave, free := c.Steps.TakeInline(l.Key().Namespace); free {
			defer leave()
			return c.doNow(ctx, l, acts[0])
		}
	}
	for _, m := range acts {
		c.launch(ctx, l, m)
		wake = queue.Soonest(wake, m.WakeAt)
	}
	return wake, false, nil
}

func (c *Controller) doNow(ctx context.Context, l *store.CachedRun, m workflow.Action) (time.Time, bool, error) {
	s := stepKey(l, m)
	o, cut, err := c.actNow(ctx, l, m, s)
	if cut && err != nil { // the next look at the run decides
		return c.Now(), false, nil
	}
	if err != nil {
		return time.Time{}, false, err
	}
	if !c.complete(ctx, l, o) {
		return time.Time{}, false, queue.ErrConflict
	}
	if o.Note != nil {
		return time.Time{}, true, nil
	}
	if o.Wait != nil {
		return queue.Soonest(m.WakeAt, o.Wait.Wake), false, nil
	}
	return c.Now(), false, nil
}

// actNow does an act, and says whether it was cut off. Where the act panics, it is under
// way no more all the same: else nothing would be done about its step ever again.
func (c *Controller) actNow(ctx context.Context, l *store.CachedRun, m workflow.Action, s store.StepKey) (o steppool.Outcome, cut bool, err error) {
	attempt := l.Journal.Attempt(m.Path)
	inner, end := c.Steps.Begin(ctx, s, m.Act, attempt)
	defer end()
	o, err = c.act(inner, l, m)
	o.Step, o.Attempt = s, attempt
	return o, errors.Is(context.Cause(inner), steppool.ErrCanceled), err
}
