package runs

import (
	"context"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

// unwatchedLook is how often what may not be watched is looked at (a guess).
const unwatchedLook = time.Minute

// look sees whether what a step did is as it left it, and watches it until the next look.
func (c *Controller) look(ctx context.Context, l *store.CachedRun, m workflow.Action) (outcome, error) {
	s := stepKey(l, m)
	rec := l.Journal.Record(m.Path)
	rests := func(until time.Time) outcome { return outcome{wait: &stepWait{record: *rec, wake: until}} }
	executor, _ := c.Executor(m.Step.Type)
	drifter, ok := executor.(executors.Drifter)
	if !ok || c.Scope.DryRun {
		return rests(time.Time{}), nil
	}
	call, failed, err := c.prepared(ctx, l, m)
	if err != nil {
		return outcome{}, err
	}
	if failed != nil {
		return rests(c.Now().Add(unwatchedLook)), nil
	}
	refused := c.watches.Failure(ctx, s, call.Clients, c.Now())
	found, watch, err := drifter.Drift(ctx, call)
	if err != nil { // the step itself is not at stake: it is looked at again
		return rests(c.Now().Add(executors.LookAgain(err))), ctx.Err()
	}
	d := found.Drift
	now := l.Journal
	if fresh := c.Stores.Runs.Get(l.Key()); fresh != nil {
		with, _ := c.withOutcomes(fresh)
		now = with.Journal
	}
	if d != nil && now.Writing(m.Path) { // it may be the run itself
		return rests(c.Now().Add(retryDelay)), nil
	}
	if d != nil && workflow.SetByRun(l.Run, now, m.Path, found.Kind, found.Name, d.Field) {
		d = nil
	}
	note := func(j run.Journal) run.Journal {
		return workflow.NoteUnwatched(workflow.NoteDrift(j, m.Path, d, c.Now()), m.Path, refused != nil)
	}
	after := note(l.Journal).Record(m.Path)
	o := outcome{wait: &stepWait{record: *after}, watch: watch, clients: call.Clients}
	if watch != nil {
		o.wait.least = c.Now().Add(watch.Every)
	}
	if refused != nil {
		c.watches.Drop(s)
		o.watch, o.wait.wake = nil, c.Now().Add(unwatchedLook)
	}
	if !reflect.DeepEqual(after, rec) {
		o.note = note
	}
	return o, nil
}

// recordDrift sends an Event of each step whose effect somebody changed, or put right again,
// and of each that its account may not watch.
func (c *Controller) recordDrift(l *store.CachedRun, before, now run.Journal) {
	about := c.aboutRun(l)
	for _, rec := range now.Steps {
		was := before.Record(rec.Path)
		if was == nil {
			continue
		}
		switch {
		case rec.Drift == nil || reflect.DeepEqual(was.Drift, rec.Drift):
		case rec.Drift.Accepted != nil:
			c.Telemetry.Events.Eventf(about, corev1.EventTypeNormal, "DriftAccepted", "Run %s, step %s: %s; %s", l.Run.Name, rec.Path, rec.Drift.Said(), rec.Drift.Accepted.Said("resumed"))
		case rec.Drift.Over != nil:
			c.Telemetry.Events.Eventf(about, corev1.EventTypeNormal, "DriftOver", "Run %s, step %s: %s of %s is %s again", l.Run.Name, rec.Path, rec.Drift.Field, rec.Drift.Object, rec.Drift.Want)
		default:
			c.Telemetry.Events.Eventf(about, corev1.EventTypeWarning, "Drift", "Run %s, step %s: %s", l.Run.Name, rec.Path, rec.Drift.Said())
		}
		if rec.Unwatched && !was.Unwatched {
			c.Telemetry.Events.Eventf(about, corev1.EventTypeNormal, "DriftUnwatched", "Run %s, step %s: what it did is checked once a minute, because ServiceAccount %s may not watch it", l.Run.Name, rec.Path, l.Account().User())
		}
	}
}
