package agent

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/queue"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/status"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/targets"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/informer"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
	"github.com/kubectl-maint/kubectl-maint/pkg/trigger"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

// maxPasses is how many acts of one run are done before others get their turn.
const maxPasses = 64

// syncRun moves one run as far as it goes now and says when to look again. What the
// API server would refuse for ever is said on the plan: on the run it may not stand.
func (a *Agent) syncRun(ctx context.Context, k types.NamespacedName) (time.Time, error) {
	wake, err := a.moveRun(ctx, k)
	stuck := ""
	if err != nil && client.NeverTaken(err) {
		stuck = err.Error()
	}
	if l := a.runs.Get(k); l != nil && a.runs.MarkStuck(k, stuck) {
		a.ringPlan(l.PlanKey())
	}
	return wake, err
}

func (a *Agent) moveRun(ctx context.Context, k types.NamespacedName) (time.Time, error) {
	l := a.runs.Get(k)
	if l == nil {
		a.letGo(k)
		return time.Time{}, nil
	}
	if a.docs.Terminating(k.Namespace) {
		return time.Time{}, a.release(ctx, l)
	}
	if l.Broken != nil {
		a.events.Eventf(l.Object, corev1.EventTypeWarning, "RunBroken", "This run cannot be read and is left alone: %s", l.Broken)
		return time.Time{}, nil
	}
	if l.Journal.Phase == run.Pending && l.Journal.Section != plan.SectionClosing {
		return a.admit(ctx, l)
	}
	return a.move(ctx, l)
}

// letGo gives back what was held for a run that is no longer live.
func (a *Agent) letGo(k types.NamespacedName) {
	a.runs.Holds.Drop(k, a.now())
	a.watches.dropRun(k)
	a.passes.forget(k)
	a.refusals.Forget(func(s store.StepKey) bool { return s.Run == k })
	a.keeper.want(k, nil)
	a.keeper.ring()
	a.locks.Free(k.String())
	a.ringWaiting(k.Namespace)
}

// ringWaiting looks again at the pending runs of a namespace, and at those that
// wait for a target, which may be one of the cluster: a lock or a place may be free.
func (a *Agent) ringWaiting(namespace string) {
	for _, l := range a.runs.Where(func(l *store.CachedRun) bool {
		return l.Journal.Phase == run.Pending && (l.Object.Namespace == namespace || l.Journal.Waiting == run.WaitLock)
	}) {
		a.ringRun(l.Key())
	}
}

// signals are what has been asked of a run: by intents on its plan, by the
// deletion of either, or by a newer run that wants its place. They are read off
// the cluster each time, so none can be lost with a process.
func (a *Agent) signals(l *store.CachedRun) workflow.Signals {
	sig := a.asked(l)
	sig.Leader = a.options.Identity
	return sig
}

func (a *Agent) asked(l *store.CachedRun) workflow.Signals {
	cm := a.docs.Plan(l.PlanKey())
	if cm == nil || string(cm.UID) != l.Run.PlanUID || cm.DeletionTimestamp != nil {
		return workflow.Signals{Abort: &run.End{Phase: run.Aborted, Reason: "PlanDeleted", Message: "its plan was deleted"}}
	}
	if l.Object.DeletionTimestamp != nil {
		return workflow.Signals{Abort: &run.End{Phase: run.Aborted, Reason: "Deleted", Message: "the run was deleted"}}
	}
	in := annotations.Intent(cm.Annotations)
	sig := workflow.Signals{LookingSince: a.lookingSince()}
	if in.Abort.For(l.Run.Name) {
		actor := in.Actors["abort"]
		sig.Abort = &run.End{Phase: run.Aborted, Reason: "Aborted", Actor: actor.Name, Message: actor.Said("aborted")}
	}
	if in.Resume.For(l.Run.Name) && suspended(l.Journal) {
		actor := in.Actors["resume"]
		actor.At = a.now().UTC()
		sig.Resume = &actor
	}
	if in.Approve.For(l.Run.Name) {
		sig.Approve = a.answer(in, "approve", in.Approve)
	}
	if in.Reject.For(l.Run.Name) {
		sig.Reject = a.answer(in, "reject", in.Reject)
	}
	sig.Replace = trigger.Yields(l.Run, a.siblings(l))
	if in.Pause.Holds(a.now()) || anyHolds(a.docs.Pauses(l.Object.Namespace), a.now()) {
		sig.Held = "paused: no new step begins"
	}
	if l.Journal.Phase == run.Running && looksAtGate(l) {
		now := a.now()
		sig.Hold = a.holdOf(l, cm, in, now)
		if sig.Hold == nil {
			sig.Passed = a.passedBy(l, now)
			sig.ClosesAt = a.closesAt(l, cm, in, now)
		}
	}
	sig.Nodes = a.keeper.see(l.Key())
	return sig
}

func (a *Agent) answer(in intent.Intent, asked string, ask intent.RunRef) *workflow.Answer {
	actor := in.Actors[asked]
	actor.At = a.now().UTC()
	return &workflow.Answer{Step: ask.Step, Actor: actor}
}

// toRun is what was said of the run itself, and not of one of its steps.
func toRun(answer *workflow.Answer) *intent.Actor {
	if answer == nil || answer.Step != "" {
		return nil
	}
	return &answer.Actor
}

// suspended says whether a run waits at a suspend.
func suspended(j run.Journal) bool {
	return slices.ContainsFunc(j.Steps, func(r run.Record) bool { return r.Type == "suspend" && r.Phase == run.StepRunning })
}

func anyHolds(switches []schedule.Pause, now time.Time) bool {
	for _, s := range switches {
		if s.Holds(now) {
			return true
		}
	}
	return false
}

// siblings are the live runs of a run's plan.
func (a *Agent) siblings(l *store.CachedRun) []trigger.ActiveRun {
	var out []trigger.ActiveRun
	for _, other := range a.runs.OfPlan(l.PlanKey()) {
		if other.Broken == nil {
			out = append(out, other.ActiveRun())
		}
	}
	return out
}

// admit asks whether a pending run may start, and does what the answer says.
func (a *Agent) admit(ctx context.Context, l *store.CachedRun) (time.Time, error) {
	on := a.docs.Basis(l.PlanKey())
	standing, err := a.standing(ctx, l)
	if err != nil {
		return time.Time{}, err
	}
	verdict := trigger.Admit(l.Run, standing)
	if verdict.Start {
		if sure, err := a.docs.Sure(ctx, l.PlanKey(), on); err != nil || !sure {
			a.ringRun(l.Key())
			return time.Time{}, err
		}
	}
	if verdict.Start {
		names := a.claims(l)
		if held, by := a.locks.Take(l.Key().String(), names); by != "" {
			by = nameFrom(l.Object.Namespace, by)
			if held == planLock(l) {
				standing.PlanBusy = by
			} else {
				standing.LockedBy = by
			}
			verdict = trigger.Admit(l.Run, standing)
		}
	}
	switch {
	case verdict.Void:
		return time.Time{}, a.void(ctx, l, verdict.Message)
	case verdict.Ends():
		end := run.End{Phase: run.Aborted, Result: verdict.Result, Reason: verdict.Reason, Message: verdict.Message}
		l = &store.CachedRun{Object: l.Object, Run: l.Run, Journal: l.Journal.EndBefore(end, a.now())}
		return a.move(ctx, l)
	case verdict.Approve != nil:
		return time.Time{}, a.approve(ctx, l, *verdict.Approve)
	case verdict.Start:
		return a.start(ctx, l, standing.Now)
	}
	return verdict.Until, a.wait(ctx, l, verdict)
}

// approve writes down that a run was approved; then it is asked again whether it
// may start.
func (a *Agent) approve(ctx context.Context, l *store.CachedRun, by intent.Actor) error {
	asked, j := a.docs.Plan(l.PlanKey()), l.Journal
	j.Approved, j.Waiting, j.Message = &by, "", by.Said("approved")
	fresh, err := a.write(ctx, l, j)
	if err != nil {
		return err
	}
	a.ringRun(l.Key())
	return a.tell(ctx, fresh, asked, workflow.Signals{})
}

func (a *Agent) start(ctx context.Context, l *store.CachedRun, now time.Time) (time.Time, error) {
	started := &store.CachedRun{Object: l.Object, Run: l.Run, Journal: l.Journal.Start(now)}
	started.Journal.Passed = a.passedBy(l, now)
	wake, err := a.move(ctx, started)
	if held := a.runs.Get(l.Key()); held != nil && held.Journal.Phase == run.Pending {
		a.locks.Free(l.Key().String()) // the start was not written: somebody else may be first
	}
	if err == nil {
		a.metrics.RunStarted(l.Run, now)
		a.tellPassed(l, started.Journal.Passed)
		a.log.Info("run started", "plan", l.PlanKey().String(), "run", l.Run.Name, "reason", l.Run.Request.Why(), "version", l.Object.ResourceVersion)
		a.planQueue.AddAfter(l.PlanKey(), status.Delay)
	}
	return wake, err
}

// tellPassed sends an Event where a run started through a closed gate.
func (a *Agent) tellPassed(l *store.CachedRun, by *intent.Actor) {
	if cm := a.docs.Plan(l.PlanKey()); cm != nil && by != nil {
		a.events.Eventf(cm, corev1.EventTypeWarning, "GateBypassed", "Run %s started although its gate is closed: %s", l.Run.Name, by.Said("let through"))
	}
}

// wait writes down what a pending run waits for, if that is new.
func (a *Agent) wait(ctx context.Context, l *store.CachedRun, v trigger.Admission) error {
	if l.Journal.Waiting == v.Waiting && l.Journal.Message == v.Message {
		return nil
	}
	j := l.Journal
	j.Waiting, j.Message = v.Waiting, v.Message
	_, err := a.write(ctx, l, j)
	if err == nil && v.Waiting == run.WaitApproval {
		a.tellAsks(l, v.Message)
	}
	a.ringPlan(l.PlanKey())
	if v.Waiting == run.WaitQueue && l.Run.Spec.ConcurrencyPolicy == plan.Replace {
		for _, other := range a.runs.OfPlan(l.PlanKey()) { // the one at work gives way now
			a.ringRun(other.Key())
		}
	}
	return err
}

func planLock(l *store.CachedRun) string   { return "plan/" + l.Run.PlanUID }
func targetLock(l *store.CachedRun) string { return "target/" + l.Run.TargetUID }

// claims are the names that a run holds while it works: its plan, unless runs
// may overlap, and its target.
func (a *Agent) claims(l *store.CachedRun) []string {
	var names []string
	if l.Run.Spec.ConcurrencyPolicy != plan.Allow {
		names = append(names, planLock(l))
	}
	if l.Run.TargetUID != "" {
		names = append(names, targetLock(l))
	}
	return names
}

// standing gathers what surrounds a pending run.
func (a *Agent) standing(ctx context.Context, l *store.CachedRun) (trigger.AdmissionFacts, error) {
	sig := a.signals(l)
	s := trigger.AdmissionFacts{Approved: l.Journal.Approved != nil, Approve: toRun(sig.Approve), Reject: toRun(sig.Reject), Now: a.now(), Abort: sig.Abort, Paused: sig.Held != "", ClockDoubt: a.clock.Doubt(), Superseded: trigger.Superseded(l.Run, l.Journal.Waiting, a.siblings(l))}
	ledger, err := a.ledgers.Get(ctx, l.PlanKey(), l.Run.PlanUID)
	if err != nil {
		return s, err
	}
	if ledger != nil {
		_, s.EntryOpen = ledger.OpenEntry(l.Run.Name)
	}
	switch cm := a.docs.Plan(l.PlanKey()); {
	case cm == nil || string(cm.UID) != l.Run.PlanUID:
		s.EntryOpen = true // its ledger went with its plan: it is aborted, not void
	default:
		s.Hold = a.holdOf(l, cm, annotations.Intent(cm.Annotations), s.Now)
	}
	a.heldBy(l, &s)
	if l.Run.Request.Kind != run.ByLabel || l.Run.Spec.Target == nil || sig.Abort != nil {
		return s, nil
	}
	u, err := targets.Read(ctx, a.accounts, l.Account(), *l.Run.Spec.Target)
	var gone targets.GoneError
	switch {
	case errors.As(err, &gone):
		s.TargetGone = true
	case apierrors.IsForbidden(err):
		s.NotReady = err.Error()
	case err != nil:
		return s, err
	default:
		s.Target = targets.Slim(u).Facts([]string{l.Run.Request.Label})
	}
	return s, nil
}

// heldBy finds started runs in the way. The locks say it too, but only after
// each started run was looked at once since this agent began.
func (a *Agent) heldBy(l *store.CachedRun, s *trigger.AdmissionFacts) {
	for _, other := range a.runs.Where(func(o *store.CachedRun) bool { return o.Journal.Phase == run.Running && o.Run.Name != l.Run.Name }) {
		if other.Run.PlanUID == l.Run.PlanUID && l.Run.Spec.ConcurrencyPolicy != plan.Allow {
			s.PlanBusy = other.Run.Name
		}
		if l.Run.TargetUID != "" && other.Run.TargetUID == l.Run.TargetUID {
			s.LockedBy = nameFrom(l.Object.Namespace, other.Key().String())
		}
	}
}

// nameFrom is a run as it is named within a namespace: another's with its own.
func nameFrom(namespace, run string) string { return strings.TrimPrefix(run, namespace+"/") }

// move advances a run act by act. Before an act the journal is written if it
// changed; the act's outcome goes into the same write as the next intent.
func (a *Agent) move(ctx context.Context, l *store.CachedRun) (time.Time, error) {
	written := a.runs.Get(l.Key())
	if written == nil {
		return time.Time{}, nil
	}
	for range maxPasses {
		with, outcomes := a.withOutcomes(l)
		on := a.docs.Basis(l.PlanKey())
		asked := a.docs.Plan(l.PlanKey())
		sig := a.signals(with)
		journal, next := workflow.Advance(l.Run, with.Journal, a.now(), sig)
		if journal.Begins(written.Journal) {
			if sure, err := a.docs.Sure(ctx, l.PlanKey(), on); err != nil {
				return time.Time{}, err
			} else if !sure {
				continue
			}
		}
		if changed(written.Journal, journal) {
			fresh, err := a.write(ctx, l, journal)
			if err != nil {
				return time.Time{}, err
			}
			if l.Journal.Passed == nil && journal.Passed != nil {
				a.tellPassed(l, journal.Passed)
			}
			a.tellQuestions(l, l.Journal, journal)
			l, written = fresh, fresh
			if l.Drains() {
				a.keeper.ring()
			}
			if err := a.tell(ctx, l, asked, sig); err != nil && !errors.Is(err, queue.ErrConflict) {
				return time.Time{}, err
			}
		}
		a.passes.noted(l.Key(), outcomes)
		a.passes.cutStale(l.Key(), l.Journal)
		a.keeper.want(l.Key(), next.Wants)
		if next.Act == workflow.ActClose {
			return time.Time{}, a.close(ctx, l)
		}
		if slices.ContainsFunc(next.All(), func(m workflow.Action) bool { return m.Act != workflow.ActWait }) && !a.recorded(l) {
			a.ringPlan(l.PlanKey()) // its status comes first, and then the run again
			return time.Time{}, nil
		}
		wake, more, err := a.dispatch(ctx, l, next)
		if err != nil || !more {
			return wake, err
		}
	}
	a.ringRun(l.Key())
	return time.Time{}, nil
}

// write stores a journal on top of the state that was read; whoever was first
// wins, and the other looks again.
func (a *Agent) write(ctx context.Context, l *store.CachedRun, j run.Journal) (*store.CachedRun, error) {
	object, err := annotations.WithJournal(l.Object, j)
	if err != nil {
		return nil, err
	}
	// What a ConfigMap cannot hold would be refused for ever. What goes from records
	// that stand compressed makes less room than it takes: the more goes the next time.
	for cut, over := 1, annotations.TooLarge(object); over > 0 && cut < 100; cut, over = 4*cut, annotations.TooLarge(object) {
		j = j.Shrunk(cut * over)
		if object, err = annotations.WithJournal(l.Object, j); err != nil {
			return nil, err
		}
	}
	return a.store(ctx, l, object, j)
}

func (a *Agent) store(ctx context.Context, l *store.CachedRun, object *corev1.ConfigMap, j run.Journal) (*store.CachedRun, error) {
	maps := a.kube.CoreV1().ConfigMaps(object.Namespace)
	got, err := maps.Update(ctx, object, client.UpdateOptions())
	if apierrors.IsConflict(err) {
		return nil, a.reread(ctx, l)
	}
	if apierrors.IsNotFound(err) {
		a.runs.Vanished(l)
		a.ringPlan(l.PlanKey())
		return nil, queue.ErrConflict
	}
	if err != nil {
		return nil, fmt.Errorf("write run %s: %w", l.Key(), err)
	}
	got.ManagedFields = nil
	fresh := &store.CachedRun{Object: got, Run: l.Run, Journal: j}
	if j.Phase.Ended() {
		a.runs.Drop(l.Key(), informer.VersionOf(got))
		return fresh, nil
	}
	a.runs.Put(fresh)
	return fresh, nil
}

// reread takes in what somebody else wrote on a run.
func (a *Agent) reread(ctx context.Context, l *store.CachedRun) error {
	cm, err := a.kube.CoreV1().ConfigMaps(l.Object.Namespace).Get(ctx, l.Object.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		a.runs.Vanished(l)
		a.ringPlan(l.PlanKey())
		return queue.ErrConflict
	}
	if err != nil {
		return fmt.Errorf("read run %s: %w", l.Key(), err)
	}
	cm.ManagedFields = nil
	a.runs.Observe(cm)
	return queue.ErrConflict
}

// close ends a run: its label goes, its entry in the ledger is closed, and only
// then does it lose its finalizer. Each of these can be done twice.
func (a *Agent) close(ctx context.Context, l *store.CachedRun) error {
	removed, err := a.endLabel(ctx, l)
	if err != nil {
		return a.labelStays(ctx, l, err)
	}
	now := a.now()
	if err := a.keepTurns(ctx, l, now); err != nil { // before the entry closes: the next run lists after it
		return err
	}
	err = a.ledgers.Edit(ctx, l.PlanKey(), l.Run.PlanUID, func(led ledger.Ledger) ledger.Ledger {
		led = store.CloseEntry(led, l.Run, l.Journal, now)
		if removed {
			led = led.LabelTaken(l.Run.Request)
		}
		return led
	})
	if err != nil {
		return err
	}
	j := l.Journal.Finish(now)
	object, err := annotations.WithJournal(l.Object, j)
	if err != nil {
		return err
	}
	annotations.Retire(object, l.Run)
	if _, err := a.store(ctx, l, object, j); err != nil {
		return err
	}
	a.metrics.RunEnded(l.Run, j)
	a.tellEnd(l, j)
	a.letGo(l.Key())
	a.ringPlan(l.PlanKey())
	return nil
}

// void takes away a run whose request was answered by another.
func (a *Agent) void(ctx context.Context, l *store.CachedRun, why string) error {
	j := l.Journal.EndBefore(run.End{Phase: run.Aborted, Reason: "Void", Message: why}, a.now()).Finish(a.now())
	object, err := annotations.WithJournal(l.Object, j)
	if err != nil {
		return err
	}
	annotations.Retire(object, l.Run)
	_, err = a.store(ctx, l, object, j)
	return err
}

// release lets a run go whose namespace is being deleted: its accounts are gone,
// so nothing more can run, and a finalizer would hold the namespace up.
func (a *Agent) release(ctx context.Context, l *store.CachedRun) error {
	object := l.Object.DeepCopy()
	annotations.Retire(object, l.Run)
	object.OwnerReferences = nil
	_, err := a.kube.CoreV1().ConfigMaps(object.Namespace).Update(ctx, object, client.UpdateOptions())
	switch {
	case apierrors.IsConflict(err):
		return a.reread(ctx, l)
	case err != nil && !apierrors.IsNotFound(err):
		return fmt.Errorf("release run %s: %w", l.Key(), err)
	}
	a.runs.Drop(l.Key(), 0)
	a.letGo(l.Key())
	pending := run.ProgressOf(l.Journal)
	namespace := &corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Name: object.Namespace}
	a.events.Eventf(namespace, corev1.EventTypeWarning, "RunCutOff", "The namespace is being deleted: run %s of plan %s was let go after %d of %d steps; its finally did not run",
		l.Object.Name, l.Object.Labels[annotations.LabelPlan], pending.Done, pending.Total)
	return nil
}

// changed says whether two journals differ in anything that is written.
func changed(was, is run.Journal) bool { return !reflect.DeepEqual(was, is) }
