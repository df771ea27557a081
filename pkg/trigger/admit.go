package trigger

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// AdmissionFacts is what surrounds a pending run when it asks to start.
type AdmissionFacts struct {
	Now        time.Time
	EntryOpen  bool   // its claim stands in the ledger
	Paused     string // the pause that holds it, in words: paused by jane: CHG-1
	Abort      *run.End
	Superseded bool
	Target     *Target // live; nil where the plan has none or it is gone
	TargetGone bool
	NotReady   string          // why its account or target would not let it run
	Hold       *run.ClosedGate // its gate is closed
	LockedBy   string          // a started run on the same target; with its namespace where that is another
	PlanBusy   string          // a started run of the same plan, unless they may overlap
	Approved   bool            // somebody approved it, and that is written down
	Approve    *intent.Actor   // somebody approves it now
	Reject     *intent.Actor   // somebody rejects it now
	Doubt      Doubt           // the last one
}

// Admission says whether a pending run starts, waits or ends without a start.
type Admission struct {
	Start   bool
	Void    bool          // its claim is not open: it is taken away without a trace in the ledger
	Approve *intent.Actor // its approval is to be written down first
	Waiting string
	Message string
	Until   time.Time  // the latest instant to ask again; zero: only on change
	Result  run.Result // when it ends: Skipped or Missed
	Reason  string
	Said    string        // when it ends: what kept it from its start, in words
	By      *intent.Actor // who ended it; nil: nobody did
}

// Ends says whether the run ends without having started.
func (a Admission) Ends() bool { return a.Result != "" }

// Admit decides over a pending run.
func Admit(r run.Run, s AdmissionFacts) Admission {
	if !s.EntryOpen {
		return Admission{Void: true, Message: "its entry in the ledger is not open: another run has answered this request"}
	}
	if s.Abort != nil {
		return Admission{Result: run.Skipped, Reason: run.ReasonAborted, Message: s.Abort.Message, By: s.Abort.By}
	}
	if s.Doubt.Why != "" { // nothing starts and nothing is recorded
		return Admission{Waiting: run.WaitClock, Message: s.Doubt.Why, Until: s.Now.Add(30 * time.Second)}
	}
	if s.Superseded {
		waiting, _, _ := waits(r, s)
		return Admission{Result: run.Missed, Reason: run.ReasonSuperseded, Message: "a newer slot takes its place"}.because(keptFrom(s, waiting))
	}
	if a, over := admitLabel(r, s); over {
		return a
	}
	if a, over := admitApproval(r, s); over {
		return a
	}
	waiting, message, until := waits(r, s)
	if waiting == run.WaitQueue && forbids(r) {
		return Admission{Result: run.Skipped, Reason: run.ReasonBusy, Message: "run " + s.PlanBusy + " of this plan was at work when its time came"}
	}
	if a, over := tooLate(r, s, waiting); over {
		return a
	}
	if waiting == "" {
		return Admission{Start: true}
	}
	deadline := deadlineOf(r)
	if s.Approved {
		deadline = time.Time{}
	}
	return Admission{Waiting: waiting, Message: message, Until: schedule.Earliest(until, deadline)}
}

// admitApproval asks a person before anything else is waited for: who approves
// need not stay awake until the window opens. A dry run asks nobody. An approved
// run has met its deadline.
func admitApproval(r run.Run, s AdmissionFacts) (Admission, bool) {
	if !unapproved(r, s.Approved) {
		return Admission{}, false
	}
	limit := r.Request.At.Add(r.Spec.ApprovalTimeout.Or(plan.DefaultApprovalTimeout))
	switch {
	case s.Reject != nil:
		return Admission{Result: run.Skipped, Reason: run.ReasonRejected, Message: s.Reject.Said("rejected"), By: s.Reject}, true
	case s.Approve != nil:
		return Admission{Approve: s.Approve}, true
	case !s.Now.Before(limit):
		return Admission{Result: run.Missed, Reason: run.ReasonApproval, Message: "nobody approved or rejected it until " + limit.UTC().Format(time.RFC3339)}, true
	}
	message := fmt.Sprintf("waits for approval until %s (%s)", limit.UTC().Format(time.RFC3339), intent.Command(r.Namespace, "approve", r.Name))
	return Admission{Waiting: run.WaitApproval, Message: message, Until: limit}, true
}

// unapproved says whether a run waits for an approval that it does not have.
func unapproved(r run.Run, approved bool) bool {
	return r.Spec.RequiresApproval && !r.Request.DryRun && !approved
}

// admitLabel ends a label run whose label was taken away, or was already
// handled under a number at least as high.
func admitLabel(r run.Run, s AdmissionFacts) (Admission, bool) {
	if r.Request.Kind != run.ByLabel {
		return Admission{}, false
	}
	gone := Admission{Result: run.Skipped, Reason: run.ReasonAborted, Message: "its label was removed before its first step"}
	if s.TargetGone || s.Target == nil && s.NotReady == "" {
		gone.Message = "its target is gone"
		return gone, true
	}
	if s.Target == nil {
		return Admission{}, false
	}
	if s.Target.UID != r.Request.TargetUID {
		gone.Message = "its target was replaced by another object of that name"
		return gone, true
	}
	if s.Target.Handled[r.Request.Label] >= r.Request.Ordinal {
		return Admission{Result: run.Skipped, Reason: run.ReasonAborted, Message: fmt.Sprintf("request %d of label %s was already handled", r.Request.Ordinal, r.Request.Label)}, true
	}
	have, present := s.Target.Labels[r.Request.Label]
	if present && have.Value != r.Request.Value {
		gone.Message = "its label has another value now, which is a new request"
	}
	if !present || have.Value != r.Request.Value {
		return gone, true
	}
	return Admission{}, false
}

// forbids says whether the run may not wait for another of its plan: under
// Forbid, one whose time came, by its jitter, while another was at work.
func forbids(r run.Run) bool {
	policy := cmp.Or(r.Spec.ConcurrencyPolicy, plan.Forbid)
	return policy == plan.Forbid && r.Request.Slot != nil && startOf(r).After(*r.Request.Slot)
}

func waits(r run.Run, s AdmissionFacts) (waiting, message string, until time.Time) {
	if s.Paused != "" {
		return run.WaitPause, "paused", time.Time{}
	}
	if s.NotReady != "" {
		return run.WaitNotReady, s.NotReady, s.Now.Add(30 * time.Second)
	}
	if start := startOf(r); s.Now.Before(start) {
		return run.WaitJitter, "starts at " + start.UTC().Format(time.RFC3339), start
	}
	if s.Hold != nil {
		hold := *s.Hold
		hold.Deadline = deadlineOf(r)
		return run.WaitWindow, hold.Message(), hold.Until
	}
	if s.PlanBusy != "" {
		return run.WaitQueue, "waits for run " + s.PlanBusy, time.Time{}
	}
	if s.LockedBy != "" {
		return run.WaitLock, fmt.Sprintf("waits for run %s, which holds the same target", s.LockedBy), time.Time{}
	}
	return "", "", time.Time{}
}

func startOf(r run.Run) time.Time {
	if r.Request.Slot == nil {
		return r.Request.At
	}
	return StartsAt(r.Spec, r.Namespace, r.Plan, *r.Request.Slot, r.Request.Schedule)
}

// deadlineOf is the first instant at which a slot's run may no longer start;
// zero for other runs, which wait without end.
func deadlineOf(r run.Run) time.Time {
	if r.Request.Slot == nil {
		return time.Time{}
	}
	return startOf(r).Add(r.Spec.StartDeadline.Or(plan.DefaultStartDeadline) + time.Nanosecond)
}

// tooLate ends a slot's run whose deadline passed, with what it waited for as
// the reason. Where the clock was in doubt at the deadline, that kept it from starting in time.
func tooLate(r run.Run, s AdmissionFacts, waiting string) (Admission, bool) {
	deadline := deadlineOf(r)
	if s.Approved || deadline.IsZero() || s.Now.Before(deadline) {
		return Admission{}, false
	}
	a := Admission{Result: run.Missed, Reason: run.ReasonDeadline, Message: fmt.Sprintf("did not start within startDeadline %s", r.Spec.StartDeadline.Or(plan.DefaultStartDeadline))}
	if waiting == run.WaitLock {
		a.Message += ": run " + s.LockedBy + " held the same target"
	}
	switch {
	case s.Doubt.Covers(deadline):
		a.Reason, a.Message = run.ReasonClock, a.Message+": the clock was in doubt then"
		return a, true
	case waiting == run.WaitWindow && s.Hold.NotReady:
		a.Reason = run.ReasonNotReady
	case waiting == run.WaitPause:
		a.Result, a.Reason = run.Skipped, run.ReasonPaused
	case slices.Contains([]string{run.WaitWindow, run.WaitLock, run.WaitApproval}, waiting):
		a.Reason = waiting
	case waiting == run.WaitNotReady:
		a.Reason = run.ReasonNotReady
	}
	return a.because(keptFrom(s, waiting)), true
}

// because is the end of a slot's run with what kept it from its start: who paused or froze what,
// and why, or what was not ready. Empty: only the message is known.
func (a Admission) because(said string) Admission {
	if a.Said = said; said != "" {
		a.Message += ": " + said
	}
	return a
}

// keptFrom says in words what a run waits for, where somebody decided that or can change it.
func keptFrom(s AdmissionFacts, waiting string) string {
	switch waiting {
	case run.WaitPause:
		return s.Paused
	case run.WaitNotReady:
		return s.NotReady
	case run.WaitWindow:
		return s.Hold.Reason
	}
	return ""
}

// Yields says whether, under Replace, a later run of the plan waits for this one
// and for nothing else: one that waits for its window or its jitter could not take
// the place yet. A dry run takes none from a run that changes something.
func Yields(r run.Run, others []ActiveRun) bool {
	return r.Spec.ConcurrencyPolicy == plan.Replace && slices.ContainsFunc(others, func(o ActiveRun) bool {
		return o.Name != r.Name && o.Phase == run.Pending && o.Waiting == run.WaitQueue && !o.Request.At.Before(r.Request.At) && mayYield(r.Request, o.Request)
	})
}

// Superseded says whether a newer slot of the plan was claimed while this slot's
// run still waits for its window, or, under Replace, for whatever else than its jitter.
func Superseded(r run.Run, waiting string, others []ActiveRun) bool {
	if r.Request.Slot == nil {
		return false
	}
	replaced := r.Spec.ConcurrencyPolicy == plan.Replace && !jittered(waiting)
	return slices.ContainsFunc(others, func(o ActiveRun) bool {
		newer := o.Request.Slot != nil && o.Request.Slot.After(*r.Request.Slot) && mayYield(r.Request, o.Request)
		return newer && (waiting == run.WaitWindow || replaced && (o.Phase != run.Pending || !jittered(o.Waiting)))
	})
}

// jittered says whether a pending run may still wait for its jitter. Where that is longer than the
// time between two slots, each would give way to the next before it could begin.
func jittered(waiting string) bool { return waiting == "" || waiting == run.WaitJitter }

// Holds says what of a pending run another one holds that has started: its plan, unless its runs may
// overlap, and its target. A dry run holds no target, and what changes something waits for none.
func Holds(other run.Run, phase run.Phase, r run.Run) (itsPlan, itsTarget bool) {
	if phase != run.Running || other.Namespace == r.Namespace && other.Name == r.Name || Passes(r.Request, other.Request) {
		return false, false
	}
	itsPlan = other.PlanUID == r.PlanUID && r.Spec.ConcurrencyPolicy != plan.Allow
	itsTarget = r.TargetUID != "" && other.TargetUID == r.TargetUID && !other.Request.DryRun
	return itsPlan, itsTarget
}

// LabelEnd says what the end of a run does to its trigger label.
type LabelEnd struct {
	Write  bool // the target is to be patched
	Remove bool // and the label goes with it
	Number int64
}

// LabelSharers are other plans that answer the same request by a label: the same value of the key
// on the same object. Each plan counts its own requests, so they may know it by other numbers.
type LabelSharers struct {
	Need    bool  // a run of one still needs the label
	Highest int64 // the highest number by which one knows the request; 0: none does
}

// EndLabel decides it. Of several plans the last one removes the label, and writes the highest
// number: to a plan that had a higher one the next label would not be a new request. A label whose
// value changed since is a new request and stays.
func EndLabel(r run.Run, target *Target, others LabelSharers) LabelEnd {
	if r.Request.Kind != run.ByLabel || target == nil || target.UID != r.Request.TargetUID || others.Need {
		return LabelEnd{}
	}
	if target.Handled[r.Request.Label] >= r.Request.Ordinal {
		return LabelEnd{}
	}
	have, present := target.Labels[r.Request.Label]
	if present && have.Value != r.Request.Value {
		return LabelEnd{} // another plan may have claimed it under the same number
	}
	return LabelEnd{Write: true, Remove: present, Number: max(r.Request.Ordinal, others.Highest)}
}
