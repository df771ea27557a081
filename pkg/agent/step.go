package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/expr"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

var errAsked = errors.New("the run was asked to end") //nolint:gochecknoglobals // a cause for errors.Is

// longestPass bounds one pass, so that a hanging one cannot hold a worker for ever.
const longestPass = 11 * time.Minute

// flights are the passes under way, so that an abort can cut one short.
type flights struct {
	mu     sync.Mutex
	cancel map[key]context.CancelCauseFunc
}

func (f *flights) begin(ctx context.Context, k key) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	f.mu.Lock()
	f.cancel[k] = cancel
	f.mu.Unlock()
	return ctx, func() {
		f.mu.Lock()
		delete(f.cancel, k)
		f.mu.Unlock()
		cancel(nil)
	}
}

// cutFor ends a pass under way when its run is to end; what the pass did or not
// is found by the next one.
func (f *flights) cutFor(k key, abort bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if cancel := f.cancel[k]; cancel != nil && abort {
		cancel(errAsked)
	}
}

// act does one act and returns the journal after it, or nil and when to look
// again where there is nothing more to do now.
func (a *Agent) act(ctx context.Context, l *liveRun, m plan.Move) (*plan.Journal, time.Time, error) {
	switch m.Act {
	case plan.ActWait:
		return nil, m.WakeAt, nil
	case plan.ActPass:
		return a.pass(ctx, l, m)
	case plan.ActStop:
		return a.stop(ctx, l, m)
	case plan.ActRestore:
		return a.restore(ctx, l, m)
	}
	return nil, time.Time{}, fmt.Errorf("run %s: unknown act %d", l.key(), m.Act)
}

// pass calls the executor of a step for one bounded piece.
func (a *Agent) pass(ctx context.Context, l *liveRun, m plan.Move) (*plan.Journal, time.Time, error) {
	began := a.now()
	out, clients, err := a.call(ctx, l, m)
	if err != nil {
		return nil, time.Time{}, err
	}
	a.metrics.pass(m.Step.Type, out.State, a.now().Sub(began))
	if out.State == executors.NotYet {
		return a.notYet(ctx, l, m, clients, out)
	}
	if out.State != executors.Record {
		a.watches.drop(l.key())
	}
	j := plan.Note(l.run, l.journal, m.Path, report(out), a.now())
	return &j, time.Time{}, nil
}

func report(o executors.Outcome) plan.Report {
	return plan.Report{
		Done: o.State == executors.Done, Failed: o.State == executors.Failed, Permanent: o.Permanent, Reason: o.Reason, Message: o.Message,
		Outputs: o.Outputs, Before: o.Before, ResumeAt: o.ResumeAt, Changed: o.Changed,
	}
}

// notYet keeps the watch a step asked for. A message is worth a write only when
// it is new.
func (a *Agent) notYet(ctx context.Context, l *liveRun, m plan.Move, c executors.Clients, out executors.Outcome) (*plan.Journal, time.Time, error) {
	wake := m.WakeAt
	if !out.WakeAt.IsZero() && (wake.IsZero() || out.WakeAt.Before(wake)) {
		wake = out.WakeAt
	}
	a.watchFor(ctx, l, a.account(l), c, out.Watch)
	if rec := find(l.journal, m.Path); rec != nil && out.Message != "" && rec.Message != out.Message {
		j := plan.Note(l.run, l.journal, m.Path, report(out), a.now())
		if _, err := a.write(ctx, l, j); err != nil {
			return nil, time.Time{}, err
		}
	}
	return nil, wake, nil
}

func find(j plan.Journal, path string) *plan.Record {
	for i := range j.Steps {
		if j.Steps[i].Path == path {
			return &j.Steps[i]
		}
	}
	return nil
}

// call expands a step's properties and passes it to its executor. What is wrong
// with the step itself is a failure of the step, not of the agent.
func (a *Agent) call(ctx context.Context, l *liveRun, m plan.Move) (executors.Outcome, executors.Clients, error) {
	w := a.account(l)
	clients, err := a.accounts.clients(w, l.run.Name)
	if err != nil {
		return executors.Outcome{}, clients, err
	}
	if refused := a.watches.failure(l.key()); refused != "" {
		a.watches.drop(l.key())
		return executors.Refuse("Forbidden", "%s", refused), clients, nil
	}
	missing, err := a.accounts.exists(ctx, w)
	if err != nil {
		return executors.Outcome{}, clients, err
	}
	if missing != "" {
		return executors.Refuse("NoServiceAccount", "%s", missing), clients, nil
	}
	executor, known := a.options.Executor(m.Step.Type)
	if !known {
		return executors.Refuse("UnknownType", "this agent cannot run steps of type %s", m.Step.Type), clients, nil
	}
	call, failed := a.prepare(ctx, l, m, clients)
	if failed != nil {
		return *failed, clients, nil
	}
	out := a.bounded(ctx, l, m, func(ctx context.Context) executors.Outcome { return executor.Pass(ctx, call) })
	return out, clients, ctx.Err()
}

// bounded runs one pass within its time. A pass that was cut off by an abort has
// no outcome: the next look at the run decides.
func (a *Agent) bounded(ctx context.Context, l *liveRun, m plan.Move, pass func(context.Context) executors.Outcome) executors.Outcome {
	limit := a.now().Add(longestPass)
	if !m.WakeAt.IsZero() && m.WakeAt.Before(limit) {
		limit = m.WakeAt
	}
	inner, done := a.flights.begin(ctx, l.key())
	defer done()
	inner, cancel := context.WithTimeout(inner, limit.Sub(a.now()))
	defer cancel()
	out := pass(inner)
	if out.State == executors.Failed && inner.Err() != nil {
		return executors.Outcome{State: executors.NotYet, WakeAt: a.now()}
	}
	return out
}

// prepare builds the call: its properties with every ${…} evaluated.
func (a *Agent) prepare(ctx context.Context, l *liveRun, m plan.Move, clients executors.Clients) (executors.Call, *executors.Outcome) {
	rec := find(l.journal, m.Path)
	call := executors.Call{
		Run: l.run.Name, Plan: l.run.Plan, Namespace: l.run.Namespace, Account: plan.Account(l.run.Spec), Path: m.Path, Attempt: rec.Attempt,
		Manager: annotations.PlanManager(l.run.Namespace, l.run.Plan), DryRun: l.run.Request.DryRun, Target: l.run.Spec.Target, TargetUID: l.run.TargetUID,
		Before: rec.Before, ResumeAt: rec.ResumeAt, Resumed: rec.Resumed != nil, Now: a.now(), Clients: clients,
	}
	fail := func(reason string, err error) (executors.Call, *executors.Outcome) {
		out := executors.Refuse(reason, "%s", err)
		return call, &out
	}
	target, err := a.templateTarget(ctx, l, m.Step)
	if err != nil {
		return fail("TargetUnreadable", err)
	}
	expanded, err := expr.Expand(anyMap(m.Step.Properties), plan.Vars(l.run, l.journal, target))
	if err != nil {
		return fail("BadTemplate", err)
	}
	kind, _ := plan.StepTypeNamed(m.Step.Type)
	props := kind.New()
	if faults := plan.DecodeValue(expanded, "properties", nil, false, props); len(faults) > 0 {
		return fail("BadProperties", faults)
	}
	call.Properties = props
	return call, nil
}

func anyMap(m map[string]any) any {
	if m == nil {
		return map[string]any{}
	}
	return expr.Whole(plan.Clone(m))
}

// templateTarget reads the target where a step speaks of it.
func (a *Agent) templateTarget(ctx context.Context, l *liveRun, s plan.Step) (map[string]any, error) {
	b, err := json.Marshal(s.Properties)
	if err != nil || l.run.Spec.Target == nil || !bytes.Contains(b, []byte("target")) || !strings.Contains(string(b), "${") {
		return nil, err
	}
	u, err := a.readTarget(ctx, a.account(l), *l.run.Spec.Target)
	if err != nil {
		return nil, err
	}
	return u.Object, nil
}

// stop ends what an abandoned step left working. After a minute of trying it is
// said and left.
func (a *Agent) stop(ctx context.Context, l *liveRun, m plan.Move) (*plan.Journal, time.Time, error) {
	a.watches.drop(l.key())
	executor, _ := a.options.Executor(m.Step.Type)
	stopper, ok := executor.(executors.Stopper)
	if !ok {
		j := plan.NoteStop(l.journal, m.Path, nil)
		return &j, time.Time{}, nil
	}
	clients, err := a.accounts.clients(a.account(l), l.run.Name)
	if err != nil {
		return nil, time.Time{}, err
	}
	call, failed := a.prepare(ctx, l, m, clients)
	if failed != nil { // what could not be prepared was never started
		j := plan.NoteStop(l.journal, m.Path, nil)
		return &j, time.Time{}, nil
	}
	err = stopper.Stop(ctx, call)
	if err != nil && !apierrors.IsForbidden(err) && a.now().Before(find(l.journal, m.Path).FinishedAt.Add(time.Minute)) {
		return nil, a.now().Add(2 * time.Second), nil
	}
	j := plan.NoteStop(l.journal, m.Path, err)
	return &j, time.Time{}, nil
}

// restore puts back what a step with restoreAfter found.
func (a *Agent) restore(ctx context.Context, l *liveRun, m plan.Move) (*plan.Journal, time.Time, error) {
	executor, _ := a.options.Executor(m.Step.Type)
	restorer, ok := executor.(executors.Restorer)
	if !ok {
		j := plan.NoteRestore(l.journal, m.Path, plan.RestoreFailed, "steps of type "+m.Step.Type+" cannot be restored", nil)
		return &j, time.Time{}, nil
	}
	clients, err := a.accounts.clients(a.account(l), l.run.Name)
	if err != nil {
		return nil, time.Time{}, err
	}
	call, failed := a.prepare(ctx, l, m, clients)
	if failed != nil {
		j := plan.NoteRestore(l.journal, m.Path, plan.RestoreFailed, failed.Message, nil)
		return &j, time.Time{}, nil
	}
	out := a.bounded(ctx, l, m, func(ctx context.Context) executors.Outcome { return restorer.Restore(ctx, call) })
	if ctx.Err() != nil {
		return nil, time.Time{}, ctx.Err()
	}
	how := plan.RestoreDone
	switch {
	case out.State == executors.NotYet:
		return nil, soonest(out.WakeAt, m.WakeAt, a.now().Add(2*time.Second)), nil
	case out.State == executors.Failed && !out.Permanent:
		return nil, soonest(m.WakeAt, a.now().Add(2*time.Second)), nil
	case out.State == executors.Failed:
		how = plan.RestoreFailed
	case out.Reason == "ChangedMeanwhile":
		how = plan.RestoreChanged
	case out.Reason == "Gone":
		how = plan.RestoreGone
	}
	j := plan.NoteRestore(l.journal, m.Path, how, out.Message, out.Changed)
	return &j, time.Time{}, nil
}

func soonest(times ...time.Time) time.Time {
	var out time.Time
	for _, t := range times {
		if !t.IsZero() && (out.IsZero() || t.Before(out)) {
			out = t
		}
	}
	return out
}
