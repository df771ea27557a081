package runs

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
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/informer"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/stuck"
	"github.com/kubectl-maint/kubectl-maint/pkg/trigger"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

// maxActs is how many acts of one run are done before others get their turn.
const maxActs = 64

// reconcile moves one run as far as it goes now and says when to look again. What the
// API server would refuse for ever is said on the plan: on the run it may not stand.
func (c *Controller) reconcile(ctx context.Context, k types.NamespacedName) (time.Time, error) {
	wake, err := c.advance(ctx, k)
	why, unclaimed := "", errors.Is(err, errUnclaimed)
	var lost ledgerLostError
	if !errors.As(err, &lost) {
		c.memory.refusals.Clear(store.StepKey{Run: k})
	}
	var held heldError
	switch {
	case errors.As(err, &lost):
		err = nil
		wake, why = c.ledgerAwaited(k, lost)
	case errors.As(err, &held):
		why, wake, err = held.Error(), c.Now().Add(heldDelay), nil
	case unclaimed: // whoever ends it wakes it
		abort := intent.Command(k.Namespace, "abort", k.Name)
		why, wake, err = err.Error()+"; "+abort+" puts back what it changed and ends it", c.Now().Add(queue.ResyncPeriod), nil
	case err != nil && client.IsRejectedForGood(err):
		why = "the API server refuses what it writes: " + err.Error()
	}
	if l := c.Stores.Runs.Live(k); l != nil {
		if l.Broken != nil { // its plan says so, and why: nothing but another key may have made it so
			why = l.Broken.Error()
		}
		if c.Stores.Runs.MarkStuck(k, why) {
			c.Plans.Add(l.PlanKey())
		}
	}
	if c.Stores.Runs.Live(k) != nil && c.Stores.Runs.MarkUnclaimed(k, unclaimed) {
		c.Nodes.Enqueue()
	}
	return wake, err
}

func (c *Controller) advance(ctx context.Context, k types.NamespacedName) (time.Time, error) {
	l := c.Stores.Runs.Get(k)
	if l == nil {
		c.release(k)
		return time.Time{}, nil
	}
	if c.Stores.Documents.Terminating(k.Namespace) {
		return time.Time{}, c.abandon(ctx, l)
	}
	if l.Broken != nil {
		c.Telemetry.Events.Event(l.Object, corev1.EventTypeWarning, "RunBroken", document.Cut(brokenRun(l), document.MaxMessage))
		return time.Time{}, nil
	}
	if c.Scope.DryRun && !l.Run.Request.DryRun { // an agent that may change something goes on with it
		return time.Time{}, nil
	}
	if l.Journal.Phase == run.Pending && l.Journal.Section != plan.SectionClosing {
		return c.admit(ctx, l)
	}
	return c.reconcileLive(ctx, l)
}

// brokenRun says why a run is left alone, and what helps.
func brokenRun(l *store.CachedRun) string {
	if unsigned := new(annotations.SignatureError); errors.As(l.Broken, &unsigned) {
		return fmt.Sprintf("This run is left alone: %s. Or delete it and remove its finalizer: then nothing of it is put back. While its plan's ledger has it open, no other run of that plan starts, unless the plan's concurrencyPolicy is Allow or Replace", store.WhyUnsigned(l.Object, unsigned))
	}
	return fmt.Sprintf("This run cannot be read and is left alone: %s", l.Broken)
}

// errUnclaimed says that a run that has begun has no open entry in its plan's ledger: it
// ended once, and somebody put an old state of it back.
var errUnclaimed = errors.New(stuck.NoOpenEntry) //nolint:gochecknoglobals // a sentinel for errors.Is

// claimed says whether the ledger knows a run that is at work: without its open entry it
// does nothing but end. Where the ledger itself is gone, its plan makes it anew first, and
// again is when to look.
func (c *Controller) claimed(ctx context.Context, l *store.CachedRun) (again time.Time, err error) {
	cm := c.Stores.Documents.Plan(l.PlanKey())
	if l.Journal.Phase != run.Running || l.Journal.End != nil || cm == nil || string(cm.UID) != l.Run.PlanUID {
		return time.Time{}, nil
	}
	led, err := c.Stores.Ledgers.Get(ctx, l.PlanKey(), l.Run.PlanUID)
	switch {
	case err != nil:
		return time.Time{}, err
	case led == nil:
		c.Plans.Add(l.PlanKey())
		return c.Now().Add(time.Second), nil
	}
	if led.IsOpen(l.Run.Name) {
		return time.Time{}, nil
	}
	c.Stores.Ledgers.Invalidate(l.PlanKey(), l.Run.PlanUID) // somebody may have put an older one back
	if led, err = c.Stores.Ledgers.Get(ctx, l.PlanKey(), l.Run.PlanUID); err != nil || led == nil {
		return c.Now().Add(time.Second), err
	}
	if !led.IsOpen(l.Run.Name) {
		return time.Time{}, errUnclaimed
	}
	return time.Time{}, nil
}

// release gives back what was held for a run that is no longer live.
func (c *Controller) release(k types.NamespacedName) {
	c.Stores.Runs.Holds.Drop(k, c.Now())
	c.watches.DropRun(k)
	c.Steps.Forget(k)
	c.memory.refusals.Forget(func(s store.StepKey) bool { return s.Run == k })
	c.Nodes.Want(k, nil)
	c.Nodes.Enqueue()
	c.Stores.Locks.Release(k.String())
	c.enqueueWaiting(k.Namespace)
}

// enqueueWaiting looks again at the pending runs of a namespace, and at those that
// wait for a target, which may be one of the cluster: a lock or a place may be free.
func (c *Controller) enqueueWaiting(namespace string) {
	for _, l := range c.Stores.Runs.Filter(func(l *store.LiveRun) bool {
		return l.Journal.Phase == run.Pending && (l.Object.Namespace == namespace || l.Journal.Waiting == run.WaitLock)
	}) {
		c.Queue.Add(l.Key())
	}
}

// signals are what has been asked of a run: by intents on its plan, by the
// deletion of either, or by a newer run that wants its place. They are read off
// the cluster each time, so none can be lost with a process.
func (c *Controller) signals(l *store.CachedRun) workflow.Signals {
	sig := c.asked(l)
	sig.Leader = c.Scope.Identity
	return sig
}

func (c *Controller) asked(l *store.CachedRun) workflow.Signals {
	cm := c.Stores.Documents.Plan(l.PlanKey())
	if cm == nil || string(cm.UID) != l.Run.PlanUID || cm.DeletionTimestamp != nil {
		return workflow.Signals{Abort: &run.End{Phase: run.Aborted, Reason: "PlanDeleted", Message: "its plan was deleted"}}
	}
	if l.Object.DeletionTimestamp != nil {
		return workflow.Signals{Abort: &run.End{Phase: run.Aborted, Reason: "Deleted", Message: "the run was deleted"}}
	}
	in := c.memory.answered.Pending(cm, c.Stores.Documents.Intent(cm))
	now := c.Now()
	sig := workflow.SignalsOf(in, l.Run, l.Journal, c.Stores.Documents.Pauses(l.Object.Namespace), now)
	sig.LeadingSince = c.Scope.LeadingSince()
	sig.Replace = trigger.Yields(l.Run, c.siblings(l))
	if l.Journal.Phase == run.Running {
		c.askGates(&sig, l, cm, in, now)
	}
	sig.Nodes = c.Nodes.States(l.Key())
	return sig
}

// siblings are the live runs of a run's plan.
func (c *Controller) siblings(l *store.CachedRun) []trigger.ActiveRun {
	var out []trigger.ActiveRun
	for _, other := range c.Stores.Runs.OfPlan(l.PlanKey()) {
		if other.Broken == nil {
			out = append(out, other.ActiveRun())
		}
	}
	return out
}

// admit asks whether a pending run may start, and does what the answer says.
func (c *Controller) admit(ctx context.Context, l *store.CachedRun) (time.Time, error) {
	on := c.Stores.Documents.Basis(l.PlanKey())
	standing, err := c.admissionFacts(ctx, l)
	lost := errors.As(err, new(ledgerLostError))
	if err != nil && !lost {
		return time.Time{}, err
	}
	verdict, inDoubt := trigger.Admit(l.Run, standing), false // whether an earlier start may have been written
	if lost && !verdict.Ends() {                              // what ends waits for the ledger when it closes
		return time.Time{}, c.ledgerLost(l, standing.Now)
	}
	if verdict.Start {
		if unchanged, err := c.Stores.Documents.Confirm(ctx, l.PlanKey(), on); err != nil || !unchanged {
			c.Queue.Add(l.Key())
			return time.Time{}, err
		}
	}
	if verdict.Start {
		inDoubt = c.Stores.Locks.Holds(l.Key().String())
		if held := new(heldError); errors.As(c.acquire(ctx, l), held) {
			standing.PlanBusy, standing.LockedBy = held.plan, held.target
			verdict = trigger.Admit(l.Run, standing)
		}
	}
	switch {
	case verdict.Void:
		return time.Time{}, c.void(ctx, l, verdict.Message)
	case verdict.Ends():
		l = &store.CachedRun{Object: l.Object, Run: l.Run, Journal: trigger.Admitted(l.Journal, verdict, c.Now())}
		return c.reconcileLive(ctx, l)
	case verdict.Approve != nil:
		return time.Time{}, c.approve(ctx, l, verdict)
	case verdict.Start:
		return c.start(ctx, l, verdict, standing.Now, inDoubt)
	}
	return verdict.Until, c.wait(ctx, l, verdict)
}

// approve writes down that a run was approved; then it is asked again whether it
// may start.
func (c *Controller) approve(ctx context.Context, l *store.CachedRun, v trigger.Admission) error {
	asked := c.Stores.Documents.Plan(l.PlanKey())
	fresh, err := c.write(ctx, l, trigger.Admitted(l.Journal, v, c.Now()))
	if err != nil {
		return err
	}
	c.Queue.Add(l.Key())
	return c.consumeAnswers(ctx, fresh, asked, workflow.Signals{})
}

func (c *Controller) start(ctx context.Context, l *store.CachedRun, v trigger.Admission, now time.Time, inDoubt bool) (time.Time, error) {
	started := &store.CachedRun{Object: l.Object, Run: l.Run, Journal: trigger.Admitted(l.Journal, v, now)}
	started.Journal.Passed, started.Journal.Allowed = c.passedBy(l, now)
	wake, err := c.reconcileLive(ctx, started)
	if c.isUnwritten(ctx, l, err, inDoubt) {
		c.Stores.Locks.Release(l.Key().String()) // somebody else may be first
	}
	if err == nil {
		c.Telemetry.Metrics.RunStarted(l.Run, now)
		c.recordStart(l)
		c.recordBypass(l, started.Journal.Passed, "started")
		c.Telemetry.Log.Info("run started", "plan", l.PlanKey().String(), "run", l.Run.Name, "reason", l.Run.Request.Why(), "version", l.Object.ResourceVersion)
		c.Plans.AddAfter(l.PlanKey(), status.Delay)
	}
	return wake, err
}

// isUnwritten says whether the start of a run was certainly not written. A reply that is lost says
// nothing of it; after that a refusal of the next try says nothing of the first one, and the run is read
// again, as it is after a conflict.
func (c *Controller) isUnwritten(ctx context.Context, l *store.CachedRun, err error, inDoubt bool) bool {
	conflict := errors.Is(err, queue.ErrConflict)
	switch {
	case err != nil && !conflict && executors.Unanswered(err):
		return false
	case inDoubt && !conflict && !errors.Is(c.reread(ctx, l), queue.ErrConflict):
		return false
	}
	held := c.Stores.Runs.Live(l.Key())
	return held != nil && held.Journal.Phase == run.Pending
}

// recordBypass sends an Event where a run started, or goes on, through a closed gate.
func (c *Controller) recordBypass(l *store.CachedRun, by *intent.Actor, how string) {
	if cm := c.Stores.Documents.Plan(l.PlanKey()); cm != nil && by != nil {
		c.Telemetry.Events.Eventf(cm, corev1.EventTypeWarning, "GateBypassed", "Run %s (%s) %s although change is not permitted: %s", l.Run.Name, l.Run.Request.Said(), how, by.SaidOrUnknown("let through"))
	}
}

// wait writes down what a pending run waits for, if that is new. What it holds since a start that
// may have been lost on its way it gives back: where that comes to be written after all, the run
// takes it again before it acts.
func (c *Controller) wait(ctx context.Context, l *store.CachedRun, v trigger.Admission) error {
	if l.Journal.Waiting == v.Waiting && l.Journal.Message == v.Message {
		c.giveBack(l)
		return nil
	}
	_, err := c.write(ctx, l, trigger.Admitted(l.Journal, v, c.Now()))
	if err == nil {
		c.giveBack(l)
	}
	if err == nil && v.Waiting == run.WaitApproval {
		c.recordQuestion(l, v.Message)
	}
	c.Plans.Add(l.PlanKey())
	if v.Waiting != run.WaitJitter && l.Run.Spec.ConcurrencyPolicy == plan.Replace {
		for _, other := range c.Stores.Runs.OfPlan(l.PlanKey()) { // the one at work gives way now, and what waits
			c.Queue.Add(other.Key())
		}
	}
	return err
}

// giveBack frees what a pending run holds for those that wait for it.
func (c *Controller) giveBack(l *store.CachedRun) {
	if k := l.Key(); c.Stores.Locks.Holds(k.String()) {
		c.Stores.Locks.Release(k.String())
		c.enqueueWaiting(k.Namespace)
	}
}

// heldError says which run holds what another needs: its plan, or its target.
type heldError struct{ plan, target string }

// Error is error's.
func (e heldError) Error() string { return stuck.ForRun(e.plan, e.target) }

// heldDelay is how soon a run at work looks again for what another one holds (a guess: it comes
// only of a start that was lost on its way).
const heldDelay = 10 * time.Second

// acquire gives a run what it holds while it works; heldError where another one has it.
func (c *Controller) acquire(ctx context.Context, l *store.CachedRun) error {
	held, by := c.Stores.Locks.Acquire(l.Key().String(), c.claims(ctx, l))
	switch by = nameFrom(l.Object.Namespace, by); {
	case by == "":
		return nil
	case held == planLock(l):
		return heldError{plan: by}
	}
	return heldError{target: by}
}

func planLock(l *store.CachedRun) string {
	return fmt.Sprintf("plan/%s dryRun=%t", l.Run.PlanUID, l.Run.Request.DryRun)
}

// claims are the names that a run holds while it works: its plan, unless runs
// may overlap, and its target, unless it runs dry. Whoever may only read that holds up no run of another namespace
// that may change it.
func (c *Controller) claims(ctx context.Context, l *store.CachedRun) []string {
	var names []string
	if l.Run.Spec.ConcurrencyPolicy != plan.Allow {
		names = append(names, planLock(l))
	}
	if l.Run.TargetUID == "" || l.Run.Request.DryRun {
		return names
	}
	names = append(names, store.TargetLockIn(l.Object.Namespace, l.Run.TargetUID))
	if c.mayChange(ctx, l) {
		return append(names, store.TargetLock(l.Run.TargetUID))
	}
	return append(names, store.TargetLockOfReaders(l.Run.TargetUID))
}

// mayChange says whether a run's account may change its target, as the API server says once.
func (c *Controller) mayChange(ctx context.Context, l *store.CachedRun) bool {
	return l.Run.Spec.Target == nil || c.Stores.Locks.MayChange(l.Key().String(), l.Run.TargetUID, func() (bool, error) {
		return onTarget(ctx, c, l, false, func(ctx context.Context, from client.ClusterAccess) (bool, error) {
			return targets.MayChange(ctx, from, *l.Run.Spec.Target)
		})
	})
}

// admissionFacts gathers what surrounds a pending run; with ledgerLostError, that its plan has no ledger.
func (c *Controller) admissionFacts(ctx context.Context, l *store.CachedRun) (trigger.AdmissionFacts, error) {
	sig := c.signals(l)
	s := trigger.AdmissionFacts{Approved: l.Journal.Approved != nil, Approve: sig.Approve.OfRun(), Reject: sig.Reject.OfRun(), Now: c.Now(), Abort: sig.Abort, Paused: sig.Paused, Doubt: trigger.Doubt{Why: c.Clients.ClockDoubt()}, Superseded: trigger.Superseded(l.Run, l.Journal.Waiting, c.siblings(l))}
	s.Doubt.From, s.Doubt.Until = c.Clients.Doubted()
	ledger, err := c.Stores.Ledgers.Get(ctx, l.PlanKey(), l.Run.PlanUID)
	if err != nil {
		return s, err
	}
	var lost error
	s.EntryOpen = ledger.IsOpen(l.Run.Name)
	switch cm := c.Stores.Documents.Plan(l.PlanKey()); {
	case cm == nil || string(cm.UID) != l.Run.PlanUID:
		s.EntryOpen = true // its ledger went with its plan: it is aborted, not void
	default:
		if ledger == nil && c.hasPlan(l) {
			lost = ledgerLostError{}
		}
		s.EntryOpen = s.EntryOpen || ledger == nil
		s.Hold = c.holdOf(l, cm, c.Stores.Documents.Intent(cm), s.Now)
	}
	c.heldBy(ctx, l, &s)
	if l.Run.Request.Kind != run.ByLabel || l.Run.Spec.Target == nil || sig.Abort != nil {
		return s, lost
	}
	object, err := c.readTarget(ctx, l)
	var gone targets.GoneError
	switch {
	case errors.As(err, &gone):
		s.TargetGone = true
	case apierrors.IsForbidden(err), err != nil && l.Run.Spec.ConnectorRef != nil:
		s.NotReady = err.Error()
	case err != nil:
		return s, err
	default:
		s.Target = object.Facts([]string{l.Run.Request.Label})
	}
	return s, lost
}

// heldBy finds started runs in the way. The locks say it too, but only after
// each started run was looked at once since this agent began: then it takes its own.
func (c *Controller) heldBy(ctx context.Context, l *store.CachedRun, s *trigger.AdmissionFacts) {
	for _, other := range c.Stores.Runs.InTheWay(l) {
		itsPlan, itsTarget := trigger.Holds(other.Head, other.Journal.Phase, l.Run)
		if itsPlan {
			s.PlanBusy = other.Head.Name
		}
		if itsTarget && (other.Object.Namespace == l.Object.Namespace || c.mayChange(ctx, l) == c.mayChange(ctx, c.Stores.Runs.ReadWhole(other))) {
			s.LockedBy = nameFrom(l.Object.Namespace, other.Key().String())
		}
	}
}

// nameFrom is a run as it is named within a namespace: another's with its own.
func nameFrom(namespace, run string) string { return strings.TrimPrefix(run, namespace+"/") }

// reconcileLive advances a run act by act. Before an act the journal is written if it
// changed; the act's outcome goes into the same write as the next intent.
func (c *Controller) reconcileLive(ctx context.Context, l *store.CachedRun) (time.Time, error) {
	written, err := c.current(l)
	if written == nil {
		return time.Time{}, err
	}
	if at := c.Steps.AdvancesAt(l, c.Now()); !at.IsZero() {
		return at, nil
	}
	left := true // it is still to be seen, once in a look, whether an answer that was taken up is left
	for range maxActs {
		with, outcomes := c.Steps.WithOutcomes(l)
		on := c.Stores.Documents.Basis(l.PlanKey())
		asked := c.Stores.Documents.Plan(l.PlanKey())
		sig := c.signals(with)
		journal, next := c.Steps.Advance(l, with.Journal, c.Now(), sig)
		if journal.BeginsStep(written.Journal) {
			if unchanged, err := c.Stores.Documents.Confirm(ctx, l.PlanKey(), on); err != nil {
				return time.Time{}, err
			} else if !unchanged {
				continue
			}
		}
		before := written
		if changed(written.Journal, journal) {
			fresh, err := c.write(ctx, l, journal)
			if err != nil {
				return time.Time{}, err
			}
			if l.Journal.Passed == nil && journal.Passed != nil {
				c.recordBypass(l, journal.Passed, "goes on")
			}
			c.recordQuestions(l, l.Journal, journal)
			c.recordDrift(l, written.Journal, journal)
			c.Steps.Began(l.Key(), written.Journal, journal, c.Now())
			l, written = fresh, fresh
			if l.Journal.TakesNodes() {
				c.Nodes.Enqueue()
			}
		}
		if written != before || left && c.memory.answered.Remains(asked, l.Run.Name) {
			left = false
			err := c.consumeAnswers(ctx, l, asked, sig)
			if again := err != nil && !errors.Is(err, queue.ErrConflict); again && written != before {
				return time.Time{}, err
			} else if again { // it was taken up before: the run, its cleanup above all, does not stop for it
				c.Telemetry.Log.Warn("an answer stays on its plan", "run", l.Key().String(), "error", err.Error())
			}
		}
		c.Steps.ForgetOutcomes(l.Key(), outcomes)
		c.Steps.CancelStale(l.Key(), l.Journal)
		c.Nodes.Want(l.Key(), next.Wants)
		if next.Act == workflow.ActClose {
			return time.Time{}, c.close(ctx, l)
		}
		if slices.ContainsFunc(next.All(), func(m workflow.Action) bool { return m.Act != workflow.ActWait }) && !c.recorded(l) {
			c.Plans.Add(l.PlanKey()) // its status comes first, and then the run again
			return time.Time{}, nil
		}
		if again, err := c.mayAct(ctx, l); err != nil || !again.IsZero() {
			return again, err
		}
		wake, more, err := c.dispatch(ctx, l, next, on)
		if err != nil || !more {
			return wake, err
		}
	}
	c.Queue.Add(l.Key())
	return time.Time{}, nil
}

// mayAct says what keeps a run from its next act: its entry is not open, another run holds its target
// or its plan, or its target is still to be frozen. again is when to look then.
func (c *Controller) mayAct(ctx context.Context, l *store.CachedRun) (again time.Time, err error) {
	if again, err = c.claimed(ctx, l); err != nil || !again.IsZero() {
		return again, err
	}
	if l.Journal.Phase == run.Running && !c.Stores.Locks.Holds(l.Key().String()) { // what it started with it keeps
		if err := c.acquire(ctx, l); err != nil {
			return time.Time{}, err
		}
	}
	return c.untilFrozen(ctx, l), nil
}

// current is a run as it is held: nil where it lives no more, and ErrConflict where it has
// moved on from what is looked at. The newer journal may already say what would be written
// now: then nothing would be written, and steps would begin from the older state.
func (c *Controller) current(l *store.CachedRun) (*store.CachedRun, error) {
	held := c.Stores.Runs.Get(l.Key())
	if held != nil && (held.Object.UID != l.Object.UID || held.Object.ResourceVersion != l.Object.ResourceVersion) {
		return nil, queue.ErrConflict
	}
	return held, nil
}

// freezeDelay is when a run looks again for its target to be frozen by itself (a guess): who
// publishes that wakes it, unless the API server could not be asked.
const freezeDelay = 2 * time.Second

// untilFrozen is when to look again where a run's target is to be frozen and is not yet.
// Where it cannot be, that is said, and the run goes on.
func (c *Controller) untilFrozen(ctx context.Context, l *store.CachedRun) time.Time {
	if !l.Run.Spec.FreezeTarget || l.Run.Spec.Target == nil || l.Run.Request.DryRun || l.Journal.Phase != run.Running || l.Journal.Section != plan.SectionSteps {
		return time.Time{}
	}
	held, why := c.Freezes.Holds(ctx, l)
	switch {
	case held:
		return time.Time{}
	case why == "":
		return c.Now().Add(freezeDelay)
	}
	c.Telemetry.Events.Event(l.Object, corev1.EventTypeWarning, "TargetNotFrozen", document.Cut("The target is not frozen for others while this run lives: "+why, document.MaxMessage))
	return time.Time{}
}

// write stores a journal on top of the state that was read; whoever was first
// wins, and the other looks again.
func (c *Controller) write(ctx context.Context, l *store.CachedRun, j run.Journal) (*store.CachedRun, error) {
	object, err := annotations.WithJournal(l.Object, j)
	if err != nil {
		return nil, err
	}
	// What a ConfigMap cannot hold would be refused for ever. What goes from records
	// that stand compressed makes less room than it takes: the more goes the next time.
	for cut, over := 1, annotations.TooLarge(object); over > 0 && cut < 100; cut, over = 4*cut, annotations.TooLarge(object) {
		j = j.WithoutOutputs(cut * over)
		if object, err = annotations.WithJournal(l.Object, j); err != nil {
			return nil, err
		}
	}
	return c.store(ctx, l, object, j)
}

func (c *Controller) store(ctx context.Context, l *store.CachedRun, object *corev1.ConfigMap, j run.Journal) (*store.CachedRun, error) {
	if err := c.Stores.Keys.Sign(object); err != nil {
		return nil, err
	}
	maps := c.Clients.Kube.CoreV1().ConfigMaps(object.Namespace)
	got, err := maps.Update(ctx, object, client.UpdateOptions())
	if apierrors.IsConflict(err) {
		return nil, c.reread(ctx, l)
	}
	if apierrors.IsNotFound(err) {
		c.Stores.Runs.MarkVanished(l)
		c.Plans.Add(l.PlanKey())
		return nil, queue.ErrConflict
	}
	if err != nil {
		return nil, fmt.Errorf("write run %s: %w", l.Key(), err)
	}
	got.ManagedFields = nil
	fresh := &store.CachedRun{Object: got, Run: l.Run, Journal: j}
	if j.Phase.Ended() {
		c.Stores.Runs.Drop(l.Key(), informer.VersionOf(got))
		return fresh, nil
	}
	c.Stores.Runs.Put(fresh)
	// Only from here is that told, where it is written: whoever told the plan earlier would have
	// it read the journal of before.
	if was := trigger.ActiveRunOf(l.Run, l.Journal); trigger.ActiveRunOf(l.Run, j).SaysOther(was, l.Run.Spec.Target != nil) {
		c.Plans.AddAfter(l.PlanKey(), status.Delay)
	}
	return fresh, nil
}

// reread takes in what somebody else wrote on a run.
func (c *Controller) reread(ctx context.Context, l *store.CachedRun) error {
	cm, err := c.Clients.Kube.CoreV1().ConfigMaps(l.Object.Namespace).Get(ctx, l.Object.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		c.Stores.Runs.MarkVanished(l)
		c.Plans.Add(l.PlanKey())
		return queue.ErrConflict
	}
	if err != nil {
		return fmt.Errorf("read run %s: %w", l.Key(), err)
	}
	cm.ManagedFields = nil
	c.Stores.Runs.Observe(cm)
	return queue.ErrConflict
}

// close ends a run: its label goes, its entry in the ledger is closed, and only
// then does it lose its finalizer. Each of these can be done twice.
func (c *Controller) close(ctx context.Context, l *store.CachedRun) error {
	now := c.Now()
	if err := c.awaitLedger(ctx, l, now); err != nil {
		return err
	}
	removed, err := c.endLabel(ctx, l)
	left := err != nil && c.leavesLabel(l, err, now)
	if err != nil && !left {
		return c.labelStays(ctx, l, err)
	}
	if err := c.saveTurns(ctx, l.Live(), now); err != nil { // before the entry closes: the next run lists after it
		return err
	}
	if err := c.closeEntry(ctx, l, removed, now); err != nil {
		return err
	}
	j := l.Run.Finished(l.Journal, now)
	if left {
		j.Message = document.Cut(fmt.Sprintf("%s; the label %s stays: %s", document.Cut(j.Message, document.MaxMessage/2), l.Run.Request.Label, client.MissingMessage(l.Account())), document.MaxMessage)
	}
	object, err := annotations.WithJournal(l.Object, j)
	if err != nil {
		return err
	}
	annotations.Retire(object, l.Run)
	if _, err := c.store(ctx, l, object, j); err != nil {
		return err
	}
	c.Telemetry.Metrics.RunEnded(l.Run, j)
	c.recordEnd(l, j)
	c.release(l.Key())
	c.Plans.Add(l.PlanKey())
	return nil
}

// void takes away a run whose request was answered by another.
func (c *Controller) void(ctx context.Context, l *store.CachedRun, why string) error {
	j := l.Run.Finished(l.Journal.EndUnstarted(run.End{Phase: run.Aborted, Reason: "Void", Message: why}, c.Now()), c.Now())
	object, err := annotations.WithJournal(l.Object, j)
	if err != nil {
		return err
	}
	annotations.Retire(object, l.Run)
	_, err = c.store(ctx, l, object, j)
	return err
}

// abandon lets a run go whose namespace is being deleted: its accounts are gone,
// so nothing more can run, and a finalizer would hold the namespace up.
func (c *Controller) abandon(ctx context.Context, l *store.CachedRun) error {
	object, err := c.whole(ctx, l.Object)
	if err != nil {
		return fmt.Errorf("read run %s: %w", l.Key(), err)
	}
	annotations.Retire(object, l.Run)
	object.OwnerReferences = nil
	_, err = c.Clients.Kube.CoreV1().ConfigMaps(object.Namespace).Update(ctx, object, client.UpdateOptions())
	switch {
	case apierrors.IsConflict(err):
		return c.reread(ctx, l)
	case err != nil && !apierrors.IsNotFound(err):
		return fmt.Errorf("release run %s: %w", l.Key(), err)
	}
	c.Stores.Runs.Drop(l.Key(), 0)
	c.release(l.Key())
	pending := run.ProgressOf(l.Journal)
	namespace := &corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Name: object.Namespace}
	c.Telemetry.Events.Eventf(namespace, corev1.EventTypeWarning, "RunCutOff", "The namespace is being deleted: run %s of plan %s was abandoned after %d of %d steps; its finally steps did not run",
		l.Object.Name, l.Object.Labels[annotations.LabelPlan], pending.Done, pending.Total)
	return nil
}

// whole is a copy of a run's object to write on; one that was emptied is read.
func (c *Controller) whole(ctx context.Context, cm *corev1.ConfigMap) (*corev1.ConfigMap, error) {
	if !annotations.IsEmptied(cm) {
		return cm.DeepCopy(), nil
	}
	live, err := c.Clients.Kube.CoreV1().ConfigMaps(cm.Namespace).Get(ctx, cm.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return cm.DeepCopy(), nil
	}
	return live, err
}

// changed says whether two journals differ in anything that is written.
func changed(was, is run.Journal) bool { return !reflect.DeepEqual(was, is) }
