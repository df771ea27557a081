package agent

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/queue"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/status"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

// act does one act on a step and says what came of it.
func (a *Agent) act(ctx context.Context, l *store.CachedRun, m workflow.Action) (outcome, error) {
	if err := a.fence.Check(); err != nil {
		return outcome{}, err
	}
	switch m.Act {
	case workflow.ActPass:
		return a.pass(ctx, l, m)
	case workflow.ActStop:
		return a.stop(ctx, l, m)
	case workflow.ActRestore:
		return a.restore(ctx, l, m)
	case workflow.ActKeep:
		return a.keep(ctx, l, m)
	case workflow.ActRelease:
		return a.giveBack(ctx, l, m)
	}
	return outcome{}, fmt.Errorf("run %s: unknown act %d", l.Key(), m.Act)
}

// pass calls the executor of a step for one bounded piece.
func (a *Agent) pass(ctx context.Context, l *store.CachedRun, m workflow.Action) (outcome, error) {
	began := a.now()
	out, clients, err := a.call(ctx, l, m)
	if err != nil {
		return outcome{}, err
	}
	out = a.judge(store.StepKey{Run: l.Key(), Path: m.Path}, out)
	if l.Journal.Record(m.Path).Waits != "" && out.State != executors.NotYet { // the plan speaks of a wait that is over
		a.planQueue.AddAfter(l.PlanKey(), status.Delay)
	}
	a.metrics.StepPass(m.Step.Type, out.State, a.now().Sub(began))
	if out.State == executors.NotYet {
		return a.notYet(l, m, clients, out), nil
	}
	s := store.StepKey{Run: l.Key(), Path: m.Path}
	if out.State != executors.Record {
		a.watches.drop(s)
	}
	rep := a.report(l, m, out)
	return outcome{note: func(j run.Journal) run.Journal { return workflow.Note(l.Run, j, m.Path, rep, a.now()) }}, nil
}

func (a *Agent) report(l *store.CachedRun, m workflow.Action, o executors.Outcome) workflow.StepResult {
	checked := len(l.Run.ClosedNodes(l.Journal, m.Path)) > 0
	rep := workflow.StepResult{
		Done: o.State == executors.Done, Failed: o.State == executors.Failed, Permanent: o.Permanent, Reason: o.Reason, Message: o.Message,
		Outputs: o.Outputs, Before: o.Before, ResumeAt: o.ResumeAt, Changed: o.Changed, Memory: o.Memory,
		NodeSeen: checked && o.State != executors.Record && o.Reason != reasonUnlooked,
		Listed:   o.Listed, Items: o.Items, ItemVersion: o.ItemVersion, ItemKind: o.ItemKind,
	}
	if rep.Failed && !o.WakeAt.IsZero() {
		rep.NotBefore = &o.WakeAt
	}
	if o.State == executors.NotYet && isRefusal(o) {
		rep.Waits = o.Message
	}
	if executor, _ := a.options.Executor(m.Step.Type); executor != nil && rep.Done && !o.WakeAt.IsZero() {
		if _, keeps := executor.(executors.Keeper); keeps {
			rep.KeepAt = &o.WakeAt
		}
	}
	return rep
}

// notYet lets the step rest, and keeps the watch it asked for. A message or a
// memory is worth a write only when it is new.
func (a *Agent) notYet(l *store.CachedRun, m workflow.Action, c executors.Clients, out executors.Outcome) outcome {
	rec := l.Journal.Record(m.Path)
	rep := a.report(l, m, out)
	after := workflow.Note(l.Run, l.Journal, m.Path, rep, a.now())
	o := outcome{lull: &lull{record: *after.Record(m.Path), wake: out.WakeAt}, watch: out.Watch, client: c.Dynamic}
	if out.Watch != nil && out.Watch.Every > 0 {
		o.lull.least = a.now().Add(out.Watch.Every)
	}
	if m.Step.Type == plan.TypeDrain {
		a.drainBlocked(l, m.Path, run.NewlyBlocked(rec.Memory, out.Memory), out.Message)
	}
	if rec.Waits != rep.Waits { // the plan says it, too
		a.planQueue.AddAfter(l.PlanKey(), status.Delay)
	}
	if !reflect.DeepEqual(*after.Record(m.Path), *rec) {
		o.note = func(j run.Journal) run.Journal { return workflow.Note(l.Run, j, m.Path, rep, a.now()) }
	}
	return o
}

// call expands a step's properties and passes it to its executor. What is wrong
// with the step itself is a failure of the step, not of the agent.
func (a *Agent) call(ctx context.Context, l *store.CachedRun, m workflow.Action) (executors.Outcome, executors.Clients, error) {
	w := l.Account()
	clients, err := a.accounts.Clients(w, l.Run.Name)
	if err != nil {
		return executors.Outcome{}, clients, err
	}
	missing, err := a.noAccount(ctx, w)
	if err != nil {
		return executors.Outcome{}, clients, err
	}
	if missing != nil {
		return *missing, clients, nil
	}
	if unwatched := a.watches.failure(ctx, store.StepKey{Run: l.Key(), Path: m.Path}, clients, a.now()); unwatched != nil {
		return *unwatched, clients, nil
	}
	executor, known := a.options.Executor(m.Step.Type)
	if !known {
		return executors.Refuse("UnknownType", "this agent cannot run steps of type %s", m.Step.Type), clients, nil
	}
	call, failed := a.prepare(ctx, l, m, clients)
	if failed == nil {
		failed = a.stillClosed(ctx, l, m, clients)
	}
	if failed != nil {
		return *failed, clients, nil
	}
	out := a.bounded(ctx, m, func(ctx context.Context) executors.Outcome { return executor.Pass(ctx, call) })
	if out.State == executors.Failed && !a.fence.Valid() { // it is we who failed, and nothing was sent
		return out, clients, client.ErrFenced
	}
	return out, clients, ctx.Err()
}

// bounded runs one pass within its time. A pass that was cut off by an abort has
// no outcome: the next look at the run decides.
func (a *Agent) bounded(ctx context.Context, m workflow.Action, pass func(context.Context) executors.Outcome) executors.Outcome {
	limit := a.now().Add(store.LongestPass)
	if !m.WakeAt.IsZero() && m.WakeAt.Before(limit) {
		limit = m.WakeAt
	}
	inner, cancel := context.WithTimeout(ctx, limit.Sub(a.now()))
	defer cancel()
	out := pass(inner)
	if out.State == executors.Failed && !out.Permanent && inner.Err() != nil {
		return executors.Outcome{State: executors.NotYet, WakeAt: a.now()}
	}
	return out
}

// stop ends what an abandoned step left working. After a minute of trying it is
// said and left.
func (a *Agent) stop(ctx context.Context, l *store.CachedRun, m workflow.Action) (outcome, error) {
	a.watches.drop(store.StepKey{Run: l.Key(), Path: m.Path})
	stopped := func(err error) outcome {
		return outcome{note: func(j run.Journal) run.Journal { return workflow.NoteStop(j, m.Path, err) }}
	}
	executor, _ := a.options.Executor(m.Step.Type)
	stopper, ok := executor.(executors.Stopper)
	if !ok {
		return stopped(nil), nil
	}
	call, failed, err := a.prepared(ctx, l, m)
	if err != nil {
		return outcome{}, err
	}
	rec := l.Journal.Record(m.Path)
	within := func(limit time.Duration) bool {
		return rec.FinishedAt != nil && a.now().Before(queue.Latest(*rec.FinishedAt, a.lookingSince()).Add(limit))
	}
	switch {
	case failed != nil && isRefusal(*failed) && within(plan.DefaultCleanupDuration):
		return a.waitsFor(l, m.Path, *failed), nil
	case failed != nil && failed.State == executors.NotYet && within(time.Minute):
		return a.later(rec, failed.WakeAt), nil
	case failed != nil && (failed.State == executors.NotYet || isRefusal(*failed)):
		return stopped(errors.New(failed.Message)), nil
	case failed != nil: // what could not be prepared was never started
		return stopped(nil), nil
	}
	err = stopper.Stop(ctx, call)
	switch {
	case err == nil:
		return stopped(nil), nil
	case executors.RefusalOf(err, l.Account().User()) != executors.NotRefused && within(plan.DefaultCleanupDuration):
		return a.waitsFor(l, m.Path, executors.Fail(executors.ReasonForbidden, "what it left working cannot be ended: %s", err)), nil
	case within(time.Minute):
		return a.later(rec, a.now().Add(executors.RetryAfter(err))), nil
	}
	return stopped(err), nil
}

// later is an act that could not be done now, and is tried again: not before the
// instant that somebody asked for.
func (a *Agent) later(rec *run.Record, notBefore time.Time) outcome {
	return outcome{lull: &lull{record: *rec, wake: queue.Latest(notBefore, a.now().Add(again))}}
}

// prepared is a call of a step with clients of its own, for what cleans up after
// it: an account that is gone is waited for.
func (a *Agent) prepared(ctx context.Context, l *store.CachedRun, m workflow.Action) (executors.Call, *executors.Outcome, error) {
	clients, err := a.accounts.Clients(l.Account(), l.Run.Name)
	if err != nil {
		return executors.Call{}, nil, err
	}
	if missing, err := a.noAccount(ctx, l.Account()); err != nil || missing != nil {
		return executors.Call{}, missing, err
	}
	call, failed := a.prepare(ctx, l, m, clients)
	return call, failed, nil
}

// keep renews the lease that a step left.
func (a *Agent) keep(ctx context.Context, l *store.CachedRun, m workflow.Action) (outcome, error) {
	executor, _ := a.options.Executor(m.Step.Type)
	keeper, ok := executor.(executors.Keeper)
	if !ok {
		return outcome{note: func(j run.Journal) run.Journal { return workflow.NoteRelease(j, m.Path, "") }}, nil
	}
	call, failed, err := a.prepared(ctx, l, m)
	if err != nil {
		return outcome{}, err
	}
	out := executors.Outcome{State: executors.Failed, Message: "cannot be renewed"}
	if failed == nil {
		out = a.bounded(ctx, m, func(ctx context.Context) executors.Outcome { return keeper.Keep(ctx, call) })
	} else {
		out.Message += ": " + failed.Message
	}
	next := out.WakeAt
	if out.State != executors.Done || next.IsZero() {
		next = queue.Latest(next, a.now().Add(15*time.Second)) // a guess: well within any lease
	}
	return outcome{note: func(j run.Journal) run.Journal { return workflow.NoteKeep(j, m.Path, out.Memory, next, out.Message) }}, nil
}

// giveBack ends the lease that a step left.
func (a *Agent) giveBack(ctx context.Context, l *store.CachedRun, m workflow.Action) (outcome, error) {
	released := func(message string) outcome {
		return outcome{note: func(j run.Journal) run.Journal { return workflow.NoteRelease(j, m.Path, message) }}
	}
	executor, _ := a.options.Executor(m.Step.Type)
	keeper, ok := executor.(executors.Keeper)
	if !ok {
		return released(""), nil
	}
	call, failed, err := a.prepared(ctx, l, m)
	if err != nil {
		return outcome{}, err
	}
	var out executors.Outcome
	if failed != nil {
		out = *failed
	} else {
		out = a.bounded(ctx, m, func(ctx context.Context) executors.Outcome { return keeper.Release(ctx, call) })
	}
	switch {
	case isRefusal(out):
		return a.waitsFor(l, m.Path, out), nil
	case out.State == executors.NotYet || out.State == executors.Failed && !out.Permanent:
		return a.later(l.Journal.Record(m.Path), out.WakeAt), nil
	}
	return released(out.Message), nil
}

// restore puts back what a step with restoreAfter found.
func (a *Agent) restore(ctx context.Context, l *store.CachedRun, m workflow.Action) (outcome, error) {
	rec := l.Journal.Record(m.Path)
	ended := func(how, message string, changed []run.Change) outcome {
		a.runs.Holds.Over(l.Key(), m.Path, a.now())
		return outcome{note: func(j run.Journal) run.Journal { return workflow.NoteRestore(j, m.Path, how, message, changed) }}
	}
	defer a.runs.Holds.Restoring(store.UIDOf(rec.Before))()
	executor, _ := a.options.Executor(m.Step.Type)
	restorer, ok := executor.(executors.Restorer)
	if !ok {
		return ended(run.RestoreFailed, a.toPutBack(m, rec, "steps of type "+m.Step.Type+" cannot be restored"), nil), nil
	}
	call, failed, err := a.prepared(ctx, l, m)
	if err != nil {
		return outcome{}, err
	}
	var out executors.Outcome
	if failed != nil {
		out = *failed
	} else {
		out = a.bounded(ctx, m, func(ctx context.Context) executors.Outcome { return restorer.Restore(ctx, call) })
	}
	if ctx.Err() != nil {
		return outcome{}, ctx.Err()
	}
	how := run.RestoreDone
	if out.State != executors.Done {
		out.Message = a.toPutBack(m, rec, out.Message)
	}
	switch {
	case isRefusal(out):
		return a.waitsFor(l, m.Path, out), nil
	case out.State == executors.NotYet, out.State == executors.Failed && !out.Permanent:
		return a.restoreLater(l, m, out), nil
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
func (a *Agent) restoreLater(l *store.CachedRun, m workflow.Action, out executors.Outcome) outcome {
	const pause = 15 * time.Second // a guess
	rec := l.Journal.Record(m.Path)
	o := a.later(rec, out.WakeAt)
	waits := document.Cut(out.Message, document.MaxMessage)
	if waits == "" || waits == rec.Waits || out.Reason == executors.ReasonConflict {
		return o
	}
	o.note = func(j run.Journal) run.Journal { return workflow.NoteWaits(j, m.Path, waits) }
	if rec.Waits != "" {
		o.lull.wake = queue.Latest(o.lull.wake, a.now().Add(pause))
	}
	return o
}

// drainBlocked says of nodes, on their plan and to the sinks, that a run's drain of
// them is blocked for good.
func (a *Agent) drainBlocked(l *store.CachedRun, path string, names []string, words string) {
	if len(names) == 0 || l.Run.Request.DryRun || a.options.DryRun {
		return
	}
	text := document.Cut(fmt.Sprintf("Run %s, step %s: %s", l.Run.Name, path, words), document.MaxMessage)
	a.events.Event(a.aboutRun(l), corev1.EventTypeWarning, nodes.EventBlocked, text)
	for _, node := range names {
		a.herald.DrainBlocked(l.PlanKey(), l.Run.Name, node, text)
	}
}
