package hibernation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/queue"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/restoredata"
)

// How long a pass may take, and when a target is looked at again (guesses).
const (
	passTimeout = 30 * time.Second
	passWait    = 5 * time.Second // after which other targets go on
	workPause   = 2 * time.Second // while it falls asleep or wakes
	sleepPause  = time.Minute     // while it sleeps: what is new sleeps, too
	// The same where watches say what has changed.
	watchedWorkPause  = 15 * time.Second
	watchedSleepPause = 15 * time.Minute
)

// errBeforeEffect is a pass that could not write down what it was about to touch: nothing was touched.
var errBeforeEffect = errors.New("nothing was changed, since it could not be recorded first") //nolint:gochecknoglobals // a sentinel for errors.Is

// passes goes on with all targets that are at work, beside each other, and says when to
// look again. A target whose world does not answer is not waited for: the plan goes on, and is
// looked at again when the target's pass is over.
func (c *Controller) passes(ctx context.Context, k types.NamespacedName, acts []hibernate.Act) (time.Time, error) {
	var over passResults
	done := make(chan struct{})
	var group sync.WaitGroup
	for _, act := range acts {
		s := c.records.find(k.Namespace, hibernate.Record{Plan: k.Name, Target: act.Target})
		if s == nil || s.broken != nil || !c.slow.begin(k, act.Target) {
			continue
		}
		group.Go(func() {
			at, err := c.pass(ctx, k, s)
			c.slow.end(k, act.Target)
			if over.add(at, err) {
				return
			}
			if err != nil && !errors.Is(err, queue.ErrConflict) {
				c.Telemetry.Log.Warn("hibernation target", "plan", k.String(), "target", act.Target, "err", err)
				at = c.Clock.Now().Add(workPause)
			}
			c.Queue.AddAfter(k, max(0, at.Sub(c.Clock.Now())))
		})
	}
	c.slow.group.Go(func() { group.Wait(); close(done) })
	wait := time.NewTimer(passWait)
	defer wait.Stop()
	select {
	case <-done:
	case <-wait.C:
	}
	return over.taken()
}

// pass is one bounded piece of a target's operation: look, write down, act.
func (c *Controller) pass(ctx context.Context, k types.NamespacedName, from *stored) (time.Time, error) {
	r := from.record
	if r.Waits(c.Clock.Now()) {
		return *r.NotBefore, nil
	}
	before := r
	seen, err := c.operate(ctx, k, from, &r)
	if err != nil {
		return time.Time{}, err
	}
	step, failure, written := seen.step, seen.failure, r
	now := c.Clock.Now().UTC()
	working := r.State != hibernate.Asleep
	waits := step.Done || seen.held != "" && len(step.Due) == 0
	if failure == "" && working && !waits && r.StartedAt != nil && now.Sub(restoredata.WaitsSince(r, step.Due)) > c.operationTimeout(r) {
		failure = fmt.Sprintf("it is not %s after %s: %s", map[hibernate.Operation]string{hibernate.Shutdown: "asleep", hibernate.Wake: "awake"}[r.Operation], c.operationTimeout(r), document.Few(idsOf(step.Due), 3))
	}
	r = r.Passed(step.Done, failure, r.Snapshot.Spec.Retries(), now)
	if failure == "" && !step.Done {
		r.Message = restoredata.WaitMessage(r.Message, seen.held)
	}
	if !reflect.DeepEqual(written, r) { // the time for a pass is not that for what came of it
		if _, err := c.write(ctx, k, cmp.Or(seen.written, from), r); err != nil {
			return time.Time{}, err
		}
	}
	if !reflect.DeepEqual(before, r) {
		c.reportChange(k, before, r)
	}
	if before.State != r.State {
		c.Queue.Add(k) // others may have waited for it
	}
	return c.next(r, seen), nil
}

// operationTimeout is how long the operation may take in all, with a timeout for each attempt.
func (c *Controller) operationTimeout(r hibernate.Record) time.Duration {
	one := hibernate.DefaultTimeout
	if t, found := targetOf(r); found {
		one = hibernate.Timeout(t.Params())
	}
	return one * time.Duration(r.Attempts+1)
}

// next is when to look at a target again, if nothing is heard of it before.
func (c *Controller) next(r hibernate.Record, l look) time.Time {
	now, step, work, sleep := c.Clock.Now(), l.step, workPause, sleepPause
	if l.watched {
		work, sleep = watchedWorkPause, watchedSleepPause
	}
	switch {
	case r.NotBefore != nil:
		return *r.NotBefore
	case r.State == hibernate.Asleep && step.Done:
		return queue.Soonest(now.Add(sleep), step.Again)
	case r.State == hibernate.Awake:
		return time.Time{}
	case len(step.Due) == 0 && !step.Again.IsZero():
		return queue.Soonest(now.Add(sleep), step.Again)
	}
	return queue.Soonest(now.Add(work), step.Again)
}

func targetOf(r hibernate.Record) (hibernate.Target, bool) {
	for _, t := range r.Snapshot.Spec.Targets {
		if t.Name == r.Target {
			return t, true
		}
	}
	return hibernate.Target{}, false
}

// look is what came of one look at a target.
type look struct {
	step    hibernate.Step
	failure string  // what went wrong in the target's world
	watched bool    // whatever changes of it is heard
	held    string  // which runs have changed what is to wake; empty: none has
	written *stored // what was written of it; nil: nothing was
}

// operate looks at a target's resources, writes down what is about to be touched, and has
// it done. err is what went wrong in our world.
func (c *Controller) operate(work context.Context, k types.NamespacedName, from *stored, r *hibernate.Record) (l look, err error) {
	ctx, cancel := context.WithTimeout(executors.WithNamespace(work, k.Namespace), passTimeout)
	defer cancel()
	sleeper, known := c.Executors.Sleepers[r.Executor]
	target, found := targetOf(*r)
	if !known || !found {
		return look{failure: fmt.Sprintf("there is no executor for targets of type %s in this version", r.Executor)}, nil
	}
	if r.Operation == hibernate.Shutdown {
		if denied := c.denied(k.Namespace, target); denied != "" {
			return look{failure: denied}, nil
		}
	}
	if r.Operation == hibernate.Wake && len(r.Resources) == 0 { // nothing was ever touched, whether its world is still there or not
		return look{step: hibernate.Step{Record: *r, Done: true}}, nil
	}
	call, failure, err := c.call(ctx, k, r, target)
	if failure != "" || err != nil {
		return look{failure: failure}, err
	}
	l.watched = c.watch(work, ctx, k, sleeper, call)
	if r.Operation == hibernate.Shutdown && len(r.Resources) == 0 {
		if err := sleeper.Validate(ctx, call); err != nil {
			return look{failure: said(call, err.Error(), err)}, nil
		}
	}
	seen, err := sleeper.Observe(ctx, call)
	if err != nil {
		return look{failure: said(call, err.Error(), err)}, nil
	}
	there, failure := restoredata.VerifyCluster(*r, call.Clients.Address, seen)
	if failure != "" {
		return look{failure: failure}, nil
	}
	*r = there
	if l.step, l.held, err = c.follow(ctx, k, *r, seen, call); err != nil {
		return look{failure: document.Cut(err.Error(), document.MaxMessage)}, nil
	}
	if failure := c.overQuota(k, *r, l.step.Record); failure != "" {
		return look{failure: failure}, nil
	}
	l.step = inTurn(sleeper, call, *r, l.step)
	if !reflect.DeepEqual(l.step.Record, *r) {
		l.written, err = c.write(ctx, k, from, l.step.Record)
		if tooMany := new(annotations.TooManyResources); errors.As(err, &tooMany) {
			return look{failure: err.Error()}, nil
		}
		if err != nil {
			return look{}, fmt.Errorf("%w: %w", errBeforeEffect, err)
		}
	}
	asked := *r
	*r, l.failure = c.effects(ctx, sleeper, call, asked, l.step)
	return l, nil
}

// follow is what follows for a target from how its resources are, and which runs it waits for.
func (c *Controller) follow(ctx context.Context, k types.NamespacedName, r hibernate.Record, seen []hibernate.Observation, call executors.SleepCall) (step hibernate.Step, held string, err error) {
	now, back, steps := c.Clock.Now().UTC(), c.cameBack(k, r), c.holders(call, false)
	expected := queue.Latest(back, c.alone(k, r)).Add(executors.RestoreTimeout)
	if !back.IsZero() {
		r = r.Adopted(seen)
	}
	r = restoredata.DropEndedRuns(r, steps)
	if r.Operation == hibernate.Wake {
		step, held = restoredata.WaitForRuns(r, r.ToWake(seen, now).Expecting(r, now, expected), seen, steps)
		return step, held, nil
	}
	if seen, err = c.withoutOwnMachines(ctx, seen); err != nil {
		return step, "", err
	}
	return restoredata.RecordRuns(r, r.ToSleep(seen, now).Expecting(r, now, expected), now, c.holders(call, true)), "", nil
}

// holders are the steps of runs that put back what they changed of a resource, or did since it was seen. What
// they recorded may have to be unpacked, and is asked for by whoever needs it.
func (c *Controller) holders(call executors.SleepCall, records bool) restoredata.Steps {
	of := c.Stores.Holders(records)
	return func(uid string) (out []restoredata.Step) {
		for _, h := range of(executors.ObjectID(uid, call.Clients.Server)) {
			if h.Over.IsZero() || !h.Over.Before(call.Now) {
				out = append(out, restoredata.Step{Run: h.Run, Path: h.Path, Record: h.Before, Over: !h.Over.IsZero()})
			}
		}
		return out
	}
}

// cameBack is when a plan, or its restore data, was made anew, as out of a backup: the plan
// is another one, or the data is older than its object. Zero: neither was.
func (c *Controller) cameBack(k types.NamespacedName, r hibernate.Record) time.Time {
	var back time.Time
	if s := c.records.find(k.Namespace, r); s != nil {
		back = client.RecoveredAt(s.object.CreationTimestamp.Time, r.Snapshot.BeganAt)
	}
	if cm := c.Stores.Documents.Any(k); cm != nil && string(cm.UID) != r.PlanUID {
		back = queue.Latest(back, cm.CreationTimestamp.Time)
	}
	return back
}

// alone is when restore data was made whose plan is not there. Zero: its plan is. A backup may put
// it back first, so soon after it was written that no clock tells the one from the other.
func (c *Controller) alone(k types.NamespacedName, r hibernate.Record) time.Time {
	if s := c.records.find(k.Namespace, r); s != nil && c.Stores.Documents.Any(k) == nil {
		return s.object.CreationTimestamp.Time
	}
	return time.Time{}
}

// watch has the target's resources watched, where they can be, and says whether that stands.
func (c *Controller) watch(work, ctx context.Context, k types.NamespacedName, sleeper executors.Sleeper, call executors.SleepCall) bool {
	watcher, can := sleeper.(executors.SleepWatcher)
	if !can {
		return false
	}
	list, all, err := watcher.Watches(ctx, call)
	if err != nil {
		return false // what is wrong shows when the resources are listed
	}
	stands := c.watches.Keep(work, k, call.Target, client.Account{Namespace: call.Plan.Namespace, Name: call.Plan.Account}, call.Clients, list)
	return stands && all
}

// effects has what is due done, and says what was refused. The record is what came of it.
func (c *Controller) effects(ctx context.Context, sleeper executors.Sleeper, call executors.SleepCall, before hibernate.Record, step hibernate.Step) (r hibernate.Record, failure string) {
	if len(step.Due) == 0 {
		return step.Record, ""
	}
	act := sleeper.Shutdown
	if call.Operation == hibernate.Wake {
		act = sleeper.Wake
	}
	results := act(ctx, call, step.Due)
	refused, faults := refusals(results)
	if len(faults) == 0 || call.Operation == hibernate.Wake {
		return step.Record, said(call, refused, faults...)
	}
	return untouched(before, step, results), said(call, refused, faults...)
}

// call is what a sleeper is asked with: as the plan's account, by its snapshot. What the
// connectors are goes into the record, which is written before the first effect.
func (c *Controller) call(ctx context.Context, k types.NamespacedName, r *hibernate.Record, target hibernate.Target) (call executors.SleepCall, failure string, err error) {
	w := client.Account{Namespace: k.Namespace, Name: r.Snapshot.Spec.Account()}
	missing, err := c.Clients.Accounts.Missing(ctx, w)
	if err != nil || missing != "" {
		return call, missing, err
	}
	c.missing.Note(w, false, c.Clock.Now()) // what the plan says of it follows
	clients, failure, err := c.clients(ctx, w, r, target)
	if failure != "" || err != nil {
		return call, failure, err
	}
	cloud, failure, err := c.cloud(ctx, w, r, target)
	if failure != "" || err != nil {
		return call, failure, err
	}
	call = executors.SleepCall{
		Plan: executors.PlanRef{Name: k.Name, Namespace: k.Namespace, Account: w.Name, Manager: annotations.PlanManager(k.Namespace, k.Name)}, Cycle: r.Cycle, Target: r.Target, Operation: r.Operation,
		Params: target.Params(), Recorded: r.Resources, Failures: r.Attempts, AttemptsBefore: r.AttemptsBefore, Now: c.Clock.Now(), Clients: clients,
		Cloud: cloud, Snapshots: r.Snapshot.Spec.Snapshots(), AgentNamespace: c.Scope.Namespace,
	}
	if r.StartedAt != nil {
		call.StartedAt = *r.StartedAt
	}
	return call, "", nil
}
