package runs

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/queue"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/steppool"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

// act does one act on a step and says what came of it.
func (c *Controller) act(ctx context.Context, l *store.CachedRun, m workflow.Action) (steppool.Outcome, error) {
	if err := c.Clients.Fence.Check(); err != nil {
		return steppool.Outcome{}, err
	}
	switch m.Act {
	case workflow.ActPass:
		return c.pass(ctx, l, m)
	case workflow.ActStop:
		return c.stop(ctx, l, m)
	case workflow.ActRestore:
		return c.restore(ctx, l, m)
	case workflow.ActKeep:
		return c.keep(ctx, l, m)
	case workflow.ActRelease:
		return c.releaseLease(ctx, l, m)
	case workflow.ActCheckDrift:
		return c.look(ctx, l, m)
	}
	return steppool.Outcome{}, fmt.Errorf("run %s: unknown act %d", l.Key(), m.Act)
}

// passed is what a pass came to.
type passed struct {
	Outcome executors.Outcome
	clients executors.Clients
	looked  bool // whether the nodes that earlier steps closed are still closed
	held    bool // it began long ago, and would not begin now: nothing was done
}

// pass calls the executor of a step for one bounded piece.
func (c *Controller) pass(ctx context.Context, l *store.CachedRun, m workflow.Action) (steppool.Outcome, error) {
	began := c.Now()
	out, err := c.call(ctx, l, m)
	if err != nil {
		return steppool.Outcome{}, err
	}
	if out.held {
		return steppool.Outcome{Note: func(j run.Journal) run.Journal { return steppool.Again(j, m.Path, c.Now()) }}, nil
	}
	out.Outcome = c.judge(l, m.Path, out.Outcome)
	c.Telemetry.Metrics.StepPass(l.Run, m.Step.Type, out.Outcome.State, c.Now().Sub(began))
	if out.Outcome.State == executors.NotYet {
		return c.notYet(l, m, out), nil
	}
	s := store.StepKey{Run: l.Key(), Path: m.Path}
	if out.Outcome.State != executors.Record {
		c.watches.Drop(s)
	}
	rep := c.report(l, m, out)
	return steppool.Outcome{Note: func(j run.Journal) run.Journal { return workflow.Note(l.Run, j, m.Path, rep, c.Now()) }}, nil
}

func (c *Controller) report(l *store.CachedRun, m workflow.Action, o passed) workflow.StepResult {
	checked := len(l.Run.ClosedNodes(l.Journal, m.Path)) > 0
	rep := workflow.StepResult{
		Done: o.Outcome.State == executors.Done, Failed: o.Outcome.State == executors.Failed, Permanent: o.Outcome.Permanent, Reason: o.Outcome.Reason, Message: o.Outcome.Message,
		Outputs: o.Outcome.Outputs, Before: o.Outcome.Before, Anew: o.Outcome.Anew, ResumeAt: o.Outcome.ResumeAt, Changed: o.Outcome.Changed, Memory: o.Outcome.Memory,
		Seen:  workflow.Seen{NodeSeen: checked && o.looked && o.Outcome.State != executors.Record},
		Items: workflow.ItemList{Listed: o.Outcome.Listing.Listed, List: o.Outcome.Listing.Items, APIVersion: o.Outcome.Listing.ItemVersion, Kind: o.Outcome.Listing.ItemKind},
	}
	if rep.Failed && !o.Outcome.WakeAt.IsZero() {
		rep.NotBefore = &o.Outcome.WakeAt
	}
	if o.Outcome.State == executors.NotYet && isRefusal(o.Outcome) {
		rep.Seen.Waits = o.Outcome.Message
	}
	if executor, _ := c.Executor(m.Step.Type); executor != nil && rep.Done && !o.Outcome.WakeAt.IsZero() {
		if _, keeps := executor.(executors.Keeper); keeps {
			rep.KeepAt = &o.Outcome.WakeAt
		}
	}
	return rep
}

// notYet lets the step rest, and keeps the watch it asked for. A message or a
// memory is worth a write only when it is new.
func (c *Controller) notYet(l *store.CachedRun, m workflow.Action, out passed) steppool.Outcome {
	rec := l.Journal.Record(m.Path)
	rep := c.report(l, m, out)
	after := workflow.Note(l.Run, l.Journal, m.Path, rep, c.Now())
	o := steppool.Outcome{Wait: &steppool.Wait{Record: *after.Record(m.Path), Wake: out.Outcome.WakeAt}, Watch: out.Outcome.Watch, Clients: out.clients}
	if out.Outcome.Watch != nil && out.Outcome.Watch.Every > 0 {
		o.Wait.Least = c.Now().Add(out.Outcome.Watch.Every)
	}
	if m.Step.Type == plan.TypeDrain {
		c.DrainBlocked(l, m.Path, run.NewlyBlocked(rec.Memory, out.Outcome.Memory), out.Outcome.Message)
	}
	if !reflect.DeepEqual(*after.Record(m.Path), *rec) {
		o.Note = func(j run.Journal) run.Journal { return workflow.Note(l.Run, j, m.Path, rep, c.Now()) }
	}
	return o
}

// call expands a step's properties and passes it to its executor. What is wrong
// with the step itself is a failure of the step, not of the agent.
func (c *Controller) call(ctx context.Context, l *store.CachedRun, m workflow.Action) (out passed, err error) {
	w := l.Account()
	if out.clients, err = c.Clients.Accounts.Clients(w, l.Run.Name); err != nil {
		return out, err
	}
	missing, err := c.noAccount(ctx, w)
	if err != nil {
		return out, err
	}
	failed := missing
	home := out.clients
	if failed == nil {
		out.clients, failed = c.clientsAt(ctx, l, m.Path, home)
	}
	if failed == nil {
		failed = c.watches.Failure(ctx, store.StepKey{Run: l.Key(), Path: m.Path}, out.clients, c.Now())
	}
	executor, known := c.Executor(m.Step.Type)
	if failed == nil && !known {
		failed = new(executors.Refuse("UnknownType", "this agent cannot run steps of type %s", m.Step.Type))
	}
	if failed == nil {
		failed = c.denied(ctx, l, m)
	}
	var call executors.Call
	if failed == nil {
		call, failed = c.prepare(ctx, l, m, out.clients)
	}
	if failed == nil {
		failed = c.stillClosed(ctx, l, m, home)
		out.looked = failed == nil || isLeftOpen(*failed)
	}
	if failed != nil {
		out.Outcome = *failed
		return out, nil
	}
	if out.held = c.heldMeanwhile(ctx, l, m); out.held {
		return out, ctx.Err()
	}
	if _, takes := executor.(executors.Requirer); !takes {
		call.Objects.Required = nil
		executors.ReservationOf(ctx).Release()
	}
	out.Outcome = placed(c.bounded(ctx, m, func(ctx context.Context) executors.Outcome { return executor.Pass(ctx, call) }), out.clients)
	if out.Outcome.State == executors.Failed && !c.Clients.Fence.Valid() { // it is we who failed, and nothing was sent
		return out, client.ErrFenced
	}
	return out, ctx.Err()
}

// heldMeanwhile says whether a step that has waited long for its first pass would not begin any more: a
// freeze or a pause that came meanwhile holds it, or nobody knows whether one has come.
func (c *Controller) heldMeanwhile(ctx context.Context, l *store.CachedRun, m workflow.Action) bool {
	if !c.Steps.Passes(stepKey(l, m), l.Journal.Attempt(m.Path), c.Now()) || m.Step.Holds() {
		return false
	}
	_, err := c.Stores.Documents.Confirm(ctx, l.PlanKey(), c.Stores.Documents.Basis(l.PlanKey())) // from here on the caches are new
	return err != nil || steppool.HeldBack(l.Run, l.Journal, m.Path, c.Now(), c.signals(l))
}

// denied refuses a step that the agent's configuration does not allow where it runs, whenever the plan
// was taken up. Cleanup goes on, but for a run that no ledger knows to be at work: somebody may have put
// an old state of it back.
func (c *Controller) denied(ctx context.Context, l *store.CachedRun, m workflow.Action) *executors.Outcome {
	if !slices.Contains(c.Denied(l.Object.Namespace), m.Step.Type) {
		return nil
	}
	if led, err := c.Stores.Ledgers.Get(ctx, l.PlanKey(), l.Run.PlanUID); l.Journal.Section != plan.SectionSteps && err == nil && led.IsOpen(l.Run.Name) {
		return nil
	}
	return new(executors.Refuse("Denied", "the agent's configuration does not allow steps of type %s in namespace %s", m.Step.Type, l.Object.Namespace))
}

// bounded runs one pass within its time. A pass that was cut off by an abort has
// no outcome: the next look at the run decides.
func (c *Controller) bounded(ctx context.Context, m workflow.Action, pass func(context.Context) executors.Outcome) executors.Outcome {
	limit := c.Now().Add(store.LongestPass)
	if !m.WakeAt.IsZero() && m.WakeAt.Before(limit) {
		limit = m.WakeAt
	}
	inner, cancel := context.WithTimeout(ctx, limit.Sub(c.Now()))
	defer cancel()
	out := pass(inner)
	if out.State == executors.Failed && !out.Permanent && inner.Err() != nil {
		return executors.Outcome{State: executors.NotYet, WakeAt: c.Now()}
	}
	return out
}

// stop ends what an abandoned step left working. After a minute of trying it is
// said and left.
func (c *Controller) stop(ctx context.Context, l *store.CachedRun, m workflow.Action) (steppool.Outcome, error) {
	c.watches.Drop(store.StepKey{Run: l.Key(), Path: m.Path})
	stopped := func(err error) steppool.Outcome {
		return steppool.Outcome{Note: func(j run.Journal) run.Journal { return workflow.NoteStop(j, m.Path, err) }}
	}
	executor, _ := c.Executor(m.Step.Type)
	stopper, ok := executor.(executors.Stopper)
	if !ok {
		return stopped(nil), nil
	}
	call, failed, err := c.prepared(ctx, l, m)
	if err != nil {
		return steppool.Outcome{}, err
	}
	rec := l.Journal.Record(m.Path)
	within := func(limit time.Duration) bool {
		return rec.FinishedAt != nil && c.Now().Before(queue.Latest(*rec.FinishedAt, c.Scope.LeadingSince()).Add(limit))
	}
	switch {
	case failed != nil && isRefusal(*failed) && within(plan.DefaultCleanupDuration):
		return c.waitsFor(l, m.Path, *failed), nil
	case failed != nil && failed.State == executors.NotYet && within(time.Minute):
		return c.later(rec, failed.WakeAt), nil
	case failed != nil && (failed.State == executors.NotYet || isRefusal(*failed)):
		return stopped(errors.New(failed.Message)), nil
	case failed != nil: // what could not be prepared was never started
		return stopped(nil), nil
	}
	err = stopper.Stop(ctx, call)
	var late *executors.LateError
	switch {
	case err == nil:
		return stopped(nil), nil
	case errors.As(err, &late):
		return c.later(rec, late.Until), nil
	case executors.RefusalOf(err, call.User()) != executors.NotRefused && within(plan.DefaultCleanupDuration):
		return c.waitsFor(l, m.Path, executors.Fail(executors.ReasonForbidden, "what it left working cannot be ended: %s", err)), nil
	case within(time.Minute):
		return c.later(rec, c.Now().Add(executors.RetryAfter(err))), nil
	}
	return stopped(err), nil
}

// later is an act that could not be done now, and is tried again: not before the
// instant that somebody asked for.
func (c *Controller) later(rec *run.Record, notBefore time.Time) steppool.Outcome {
	return steppool.Outcome{Wait: &steppool.Wait{Record: *rec, Wake: queue.Latest(notBefore, c.Now().Add(retryDelay))}}
}

// prepared is a call of a step with clients of its own, for what cleans up after
// it: an account that is gone is waited for.
func (c *Controller) prepared(ctx context.Context, l *store.CachedRun, m workflow.Action) (executors.Call, *executors.Outcome, error) {
	clients, err := c.Clients.Accounts.Clients(l.Account(), l.Run.Name)
	if err != nil {
		return executors.Call{}, nil, err
	}
	if missing, err := c.noAccount(ctx, l.Account()); err != nil || missing != nil {
		return executors.Call{}, missing, err
	}
	clients, failed := c.clientsAt(ctx, l, m.Path, clients)
	if failed != nil {
		return executors.Call{}, failed, nil
	}
	call, failed := c.prepare(ctx, l, m, clients)
	return call, failed, nil
}

// keep renews the lease that a step left.
func (c *Controller) keep(ctx context.Context, l *store.CachedRun, m workflow.Action) (steppool.Outcome, error) {
	executor, _ := c.Executor(m.Step.Type)
	keeper, ok := executor.(executors.Keeper)
	if !ok {
		return steppool.Outcome{Note: func(j run.Journal) run.Journal { return workflow.NoteRelease(j, m.Path, "") }}, nil
	}
	call, failed, err := c.prepared(ctx, l, m)
	if err != nil {
		return steppool.Outcome{}, err
	}
	out := executors.Outcome{State: executors.Failed, Message: "cannot be renewed"}
	if failed == nil {
		out = c.bounded(ctx, m, func(ctx context.Context) executors.Outcome { return keeper.Keep(ctx, call) })
	} else {
		out.Message += ": " + failed.Message
	}
	next := out.WakeAt
	if out.State != executors.Done || next.IsZero() {
		next = queue.Latest(next, c.Now().Add(15*time.Second)) // a guess: well within any lease
	}
	return steppool.Outcome{Note: func(j run.Journal) run.Journal { return workflow.NoteKeep(j, m.Path, out.Memory, next, out.Message) }}, nil
}

// releaseLease ends the lease that a step left.
func (c *Controller) releaseLease(ctx context.Context, l *store.CachedRun, m workflow.Action) (steppool.Outcome, error) {
	released := func(message string) steppool.Outcome {
		return steppool.Outcome{Note: func(j run.Journal) run.Journal { return workflow.NoteRelease(j, m.Path, message) }}
	}
	executor, _ := c.Executor(m.Step.Type)
	keeper, ok := executor.(executors.Keeper)
	if !ok {
		return released(""), nil
	}
	call, failed, err := c.prepared(ctx, l, m)
	if err != nil {
		return steppool.Outcome{}, err
	}
	var out executors.Outcome
	if failed != nil {
		out = *failed
	} else {
		out = c.bounded(ctx, m, func(ctx context.Context) executors.Outcome { return keeper.Release(ctx, call) })
	}
	switch {
	case isRefusal(out):
		return c.waitsFor(l, m.Path, out), nil
	case out.State == executors.NotYet || out.State == executors.Failed && !out.Permanent:
		return c.later(l.Journal.Record(m.Path), out.WakeAt), nil
	}
	return released(out.Message), nil
}

// restore puts back what a step with restoreAfter found.
func (c *Controller) restore(ctx context.Context, l *store.CachedRun, m workflow.Action) (steppool.Outcome, error) {
	rec := l.Journal.Record(m.Path)
	ended := func(how, message string, changed []run.Change) steppool.Outcome {
		c.Stores.Runs.Holds.Release(l.Key(), m.Path, c.Now())
		return steppool.Outcome{Note: func(j run.Journal) run.Journal { return workflow.NoteRestore(j, m.Path, how, message, changed) }}
	}
	defer c.Stores.Runs.Holds.LockRestore(store.ObjectIDOf(rec.Before))()
	executor, _ := c.Executor(m.Step.Type)
	restorer, ok := executor.(executors.Restorer)
	if !ok {
		return ended(run.RestoreFailed, c.toPutBack(m, rec, "steps of type "+m.Step.Type+" cannot be restored"), nil), nil
	}
	call, failed, err := c.prepared(ctx, l, m)
	if err != nil {
		return steppool.Outcome{}, err
	}
	var out executors.Outcome
	if failed != nil {
		out = *failed
	} else {
		out = placed(c.bounded(ctx, m, func(ctx context.Context) executors.Outcome { return restorer.Restore(ctx, call) }), call.Clients)
	}
	if ctx.Err() != nil {
		return steppool.Outcome{}, ctx.Err()
	}
	how := run.RestoreDone
	if out.State != executors.Done {
		out.Message = c.toPutBack(m, rec, out.Message)
	}
	switch {
	case isRefusal(out):
		return c.waitsFor(l, m.Path, out), nil
	case out.State == executors.NotYet, out.State == executors.Failed && !out.Permanent:
		return c.restoreLater(l, m, out), nil
	case out.State == executors.Failed:
		how = run.RestoreFailed
	case out.Reason == "ChangedMeanwhile":
		how = run.RestoreChanged
	case out.Reason == "Gone":
		how = run.RestoreGone
	case out.Reason == executors.ReasonHanded:
		how = run.RestoreHanded
	}
	return ended(how, out.Message, out.Changed), nil
}

// restoreLater is a restore that could not be done now. Why is written down: who
// looks at the run wants to know, and others go ahead of it then. A text that changes
// is written with pauses, for errors may hold what is new each time.
func (c *Controller) restoreLater(l *store.CachedRun, m workflow.Action, out executors.Outcome) steppool.Outcome {
	const pause = 15 * time.Second // a guess
	rec := l.Journal.Record(m.Path)
	o := c.later(rec, out.WakeAt)
	waits := document.Cut(out.Message, document.MaxMessage)
	if waits == "" || waits == rec.Waits || out.Reason == executors.ReasonConflict {
		return o
	}
	o.Note = func(j run.Journal) run.Journal { return workflow.NoteWaits(j, m.Path, waits) }
	if rec.Waits != "" {
		o.Wait.Wake = queue.Latest(o.Wait.Wake, c.Now().Add(pause))
	}
	return o
}

// DrainBlocked says of nodes, on their plan and to the sinks, that a run's drain of
// them is blocked for good.
func (c *Controller) DrainBlocked(l *store.CachedRun, path string, names []string, words string) {
	if len(names) == 0 || l.Run.Request.DryRun || c.Scope.DryRun {
		return
	}
	text := document.Cut(fmt.Sprintf("Run %s, step %s: %s", l.Run.Name, path, words), document.MaxMessage)
	c.Telemetry.Events.Event(c.aboutRun(l), corev1.EventTypeWarning, nodes.EventBlocked, text)
	for _, node := range names {
		c.Telemetry.Notify.DrainBlocked(l.PlanKey(), l.Run.Name, node, text)
	}
}
