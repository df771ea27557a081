package workflow

import (
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// held says whether a step may not begin yet: its gate is closed, or the plan is
// paused. The gate comes first, for the time behind it counts nowhere. A step that is only
// skipped, because of another that failed or by its condition, asks no gate: nothing of it begins.
func (a *advance) held(s scope, step plan.Step, failed string) bool {
	if gated := a.sig.Hold != nil || a.sig.Namespace != nil; gated && !s.cleanup() {
		if ok, err := a.wanted(s.path(step.Name), step, failed, false); err != nil || !ok {
			return a.stopped(s, nil)
		}
	}
	return a.stopped(s, a.closed(s, step, false))
}

// heldItem asks the same before an item of a loop, which always looks at the gate.
func (a *advance) heldItem(s scope, loop plan.Step) bool {
	return a.stopped(s, a.closed(s, loop, true))
}

// heldAgain asks the same of a step that has begun and of which nothing is under way: another attempt
// of it is due, or it waits for a right and has done nothing yet. What changes nothing goes on.
func (a *advance) heldAgain(s scope, step plan.Step, rec *run.Record) bool {
	if s.cleanup() || !a.idle(*rec) {
		return false
	}
	if !changesNothing(a.tree, step) {
		by := a.sig.Namespace // what waits for a right may have lost it in mid-work: its window ends nothing
		if rec.NotBefore != nil || s.begun {
			by = a.closed(s, step, false)
		}
		if a.stopped(s, by) {
			return true
		}
	}
	if rec.NotBefore != nil { // from here on it is at work
		rec.NotBefore, rec.AttemptAt = nil, new(a.now.UTC())
	}
	a.notePassage(s, step, false)
	return false
}

// notePassage notes who lets a step begin that would not without them: by a bypass, or by having opened for a
// time what it asks.
func (a *advance) notePassage(s scope, step plan.Step, always bool) {
	if a.j.Passed == nil {
		a.j.Passed = a.sig.Passed
	}
	if a.j.Allowed == nil && !s.cleanup() && !s.begun {
		calm := s.open || !a.tree.Disruptive(step)
		a.j.Allowed = a.sig.Opened.By(!calm && (always || a.looksAgain()), !calm || !changesNothing(a.tree, step))
	}
}

// idle says whether nothing of a step that has begun is under way, although it is its turn.
func (a *advance) idle(rec run.Record) bool {
	if rec.Holds() {
		return false
	}
	if rec.NotBefore != nil {
		return !a.now.Before(*rec.NotBefore)
	}
	return rec.Untouched()
}

func (a *advance) stopped(s scope, by *run.ClosedGate) bool {
	switch {
	case s.cleanup():
		return false
	case a.j.End != nil:
		return true
	case by != nil:
		a.found.shut = by
		a.waits("", by.Until)
		return true
	case a.sig.Held != "":
		a.found.paused = true
		a.waits("", time.Time{}) // until it is told so
		return true
	}
	return false
}

// closed asks what the run's namespace says, and the gate of its plan, before a step that
// has not begun; nil where it may begin. Under wait the run is held until the gate opens;
// under abort it ends here. What the namespace restricts holds every run: that a plan calls a
// step not disruptive lets it pass there only where its type changes nothing.
func (a *advance) closed(s scope, step plan.Step, always bool) *run.ClosedGate {
	if s.cleanup() || s.begun || a.sig.Hold == nil && a.sig.Namespace == nil {
		return nil
	}
	gate, calm := a.sig.Hold, s.open || !a.tree.Disruptive(step)
	if calm || !always && !a.looksAgain() {
		gate = nil
	}
	if gate == nil && (a.sig.Namespace == nil || calm && changesNothing(a.tree, step)) {
		return nil
	}
	if gate == nil {
		gate = a.sig.Namespace
	}
	if a.run.Spec.OnWindowClose == plan.CloseAbort && !gate.NotReady && a.j.End == nil { // doubt holds, and ends nothing
		a.windowClosed(gate)
	}
	return gate
}

// changesNothing says whether a step only waits, asks, measures or tells, or holds only such steps.
func changesNothing(t plan.Tree, s plan.Step) bool {
	harmless, seen := true, 0
	note := func(s plan.Step) {
		seen++
		harmless = harmless && (plan.ChangesNothing(s.Type) || s.Holds() && s.Type != plan.TypeForEachNode)
	}
	note(s)
	t.WalkBelow(s, note)
	return harmless && (seen > 1 || !s.Holds()) // a template that is not there may be anything
}

// looksAgain says whether the run looks at the gate of its plan before each step.
func (a *advance) looksAgain() bool {
	return a.run.Spec.OnWindowClose == plan.CloseWait || a.run.Spec.OnWindowClose == plan.CloseAbort
}

// updateHold notes what holds the run between two steps. Time in which it is paused, or
// waits for its gate or for an approval, and nothing of it works, counts nowhere.
func (a *advance) updateHold() {
	asks := a.asking()
	switch {
	case a.working() || a.found.shut == nil && !a.found.paused && asks.IsZero():
		a.release()
	case a.found.shut != nil:
		a.hold(a.found.shut)
		a.j.Message = a.found.shut.Message() + a.nodesLeft() + a.failedMeanwhile()
	case a.found.paused && asks.IsZero():
		a.hold(nil)
	default:
		if rest := a.atRestSince(); rest.After(asks) {
			asks = rest // until then something else was at work
		}
		if a.j.HeldSince == nil {
			a.j.HeldSince = new(asks.UTC())
		}
		a.j.Message = "waits for approval: " + intent.Command(a.run.Namespace, "approve", a.run.Name)
	}
	if a.sig.Held != "" && !a.working() && asks.IsZero() {
		a.j.Message = a.sig.Held + a.failedMeanwhile()
	}
}

// failedMeanwhile names the step that failed of a run that is held: its end, and what
// cleans up after it, come only when it goes on.
func (a *advance) failedMeanwhile() string {
	if a.found.broke == "" {
		return ""
	}
	return document.Cut("; "+a.whatFailed(a.found.broke), document.MaxMessage/2) + "; what cleans up after it waits, too"
}

// working says whether a step of the run is at work. One that asks a person is
// not, until it has its answer, nor is one of which nothing is under way.
func (a *advance) working() bool {
	for _, rec := range a.j.Steps {
		if rec.Phase == run.StepRunning && !rec.Holds() && !asksStill(rec) && !a.idle(rec) && plan.SectionOf(rec.Path) == plan.SectionSteps {
			return true
		}
	}
	return a.looking()
}

// looking says whether a loop reads its items or looks at what a batch did.
func (a *advance) looking() bool {
	for _, m := range a.found.moves {
		if m.Act == ActPass && plan.IsLoop(m.Step.Type) {
			return true
		}
	}
	return false
}

func asksStill(rec run.Record) bool { return rec.Type == plan.TypeApproval && rec.Approval == nil }

// asking is since when a step asks a person; zero when none does.
func (a *advance) asking() time.Time {
	var since time.Time
	for _, rec := range a.j.Steps {
		if asksStill(rec) && rec.Phase == run.StepRunning && rec.StartedAt != nil && plan.SectionOf(rec.Path) == plan.SectionSteps {
			since = schedule.Earliest(since, *rec.StartedAt)
		}
	}
	return since
}

// hold notes since when the gate or a pause holds the run: also where nobody looked
// when it closed. A pause does not say since when it stands. Whoever paused stopped
// the run for as long as nothing of it was at work: the doubt is in its favour.
func (a *advance) hold(by *run.ClosedGate) {
	if a.j.HeldSince != nil {
		return
	}
	since, rest := a.now, a.atRestSince()
	switch {
	case a.sig.Held != "":
		since = rest
	case by.Since != nil:
		since = *by.Since
		if rest.After(since) {
			since = rest
		}
	}
	if since.After(a.now) {
		since = a.now
	}
	a.j.HeldSince = new(since.UTC())
}

// release ends a hold and notes how long it was.
func (a *advance) release() {
	if a.j.HeldSince == nil {
		return
	}
	a.j.HeldSeconds = a.heldSeconds()
	a.j.HeldSince, a.j.Message = nil, ""
	a.worked(&a.now)
}

// heldSeconds is how long the run was held, the present hold with it.
func (a *advance) heldSeconds() int64 {
	held := a.j.HeldSeconds
	if since := a.j.HeldSince; since != nil && a.now.After(*since) {
		held += int64((a.now.Sub(*since) + time.Second - 1) / time.Second)
	}
	return held
}

// worked notes until when the run worked, where that would be forgotten.
func (a *advance) worked(until *time.Time) {
	if until != nil && (a.j.WorkedAt == nil || until.After(*a.j.WorkedAt)) {
		a.j.WorkedAt = new(until.UTC())
	}
}

// holdAhead notes a hold that began while nobody looked, before the clock is asked:
// would another walk come to a closed gate or a pause, and nothing be at work?
func (a *advance) holdAhead() {
	gated := a.sig.Namespace != nil || a.sig.Hold != nil && (a.looksAgain() || a.tree.Loops())
	if !gated && a.sig.Held == "" || a.j.HeldSince != nil || a.j.RetryAt != nil && a.now.Before(*a.j.RetryAt) || a.working() {
		return
	}
	j := *a.j
	j.Steps = append([]run.Record(nil), j.Steps...)
	ahead := &advance{run: a.run, tree: a.tree, j: &j, now: a.now, sig: a.sig, timeless: true}
	if _, _, more := ahead.walk(plan.SectionSteps, a.run.Spec.Steps); more && (ahead.found.shut != nil || ahead.found.paused) && !ahead.working() {
		a.hold(ahead.found.shut)
	}
}
