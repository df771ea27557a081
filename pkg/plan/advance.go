package plan

import (
	"fmt"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/expr"
)

// IfAlways is the condition of a step that runs whatever failed before it.
const IfAlways = "always"

// Signals are what has been asked of a run since it began.
type Signals struct {
	Abort   *End   // by a person, a deletion, or the plan's end
	Replace bool   // a newer run wants its place
	Resume  *Actor // somebody resumed the present suspend
	// Held says why no new step may begin now; empty when it may.
	Held string
	// Hold is the closed gate, for a run that looks at it before each step.
	Hold *Hold
	// Passed is who lets the run go on through a closed gate.
	Passed *Actor
	// LookingSince is since when the present agent looks. The limits of cleanup
	// count from there at the earliest: that nobody was there to clean up must
	// not be the reason for which nobody ever does. Zero: always.
	LookingSince time.Time
}

// Act is what the one who runs a run has to do next.
type Act int

// The acts. Before any of them the journal that came with it is written, if it
// changed: intent before effect.
const (
	ActWait    Act = iota // nothing until WakeAt
	ActPass               // call the executor for one bounded piece
	ActStop               // end what the step left working in the cluster
	ActRestore            // put back what the step found
	ActClose              // take the trigger label away and close the ledger's entry
)

// Move is one act on one step.
type Move struct {
	Act    Act
	Path   string
	Step   Step
	WakeAt time.Time // the latest instant to look again; zero: only when something changes
}

// NewJournal is the journal of a run that was just created, with the first
// attempt of its first step written down, so that its start is one write.
func NewJournal(r Run) Journal {
	j := Journal{Phase: RunPending, Section: SectionSteps}
	for _, s := range sections(r.Spec) {
		for _, step := range s.steps {
			j.Steps = append(j.Steps, Record{Path: StepPath(s.name, step.Name), Type: step.Type, Phase: StepPending})
		}
	}
	if len(j.Steps) > 0 {
		j.Steps[0].Attempt = 1
	}
	return j
}

// Start is the journal of a run that begins now.
func (j Journal) Start(now time.Time) Journal {
	j.Phase, j.Waiting, j.Message, j.Section = RunRunning, "", "", SectionSteps
	j.StartedAt = at(now)
	return j
}

// EndBefore is the journal of a run whose wait ends without a start: neither
// onFailure nor finally runs, for nothing was done.
func (j Journal) EndBefore(end End, now time.Time) Journal {
	j.Steps = append([]Record(nil), j.Steps...)
	for i := range j.Steps {
		j.Steps[i].Phase, j.Steps[i].Attempt = StepSkipped, 0
	}
	j.End, j.Section, j.Message, j.Waiting = &end, SectionClosing, end.Message, ""
	return j
}

// Finish is the journal of a run that is over.
func (j Journal) Finish(now time.Time) Journal {
	j.Phase, j.FinishedAt = RunFailed, at(now)
	if j.End != nil {
		j.Phase, j.Message = j.End.Phase, j.End.Message
	}
	if j.Phase == RunSucceeded && j.Message == "" {
		j.Message = "all steps are done"
	}
	return j
}

func at(t time.Time) *time.Time {
	t = t.UTC()
	return &t
}

// Advance says what a started run does next, and the journal to be written
// before it is done. It is a pure function of the journal, so that whoever comes
// after a crash goes on where the journal says.
func Advance(r Run, j Journal, now time.Time, sig Signals) (Journal, Move) {
	j.Steps = append([]Record(nil), j.Steps...)
	a := advance{run: r, j: &j, now: now, sig: sig}
	for {
		if m, ok := a.step(); ok {
			return j, m
		}
	}
}

type advance struct {
	run   Run
	j     *Journal
	now   time.Time
	sig   Signals
	begun string // path of the step that this look began
}

// step moves within the present section, or on to the next; ok once there is
// something to do or to wait for.
func (a *advance) step() (Move, bool) {
	if m, ok := a.stopping(); ok {
		return m, true
	}
	if a.j.End == nil && a.j.Section != SectionSteps && a.j.Section != "" {
		a.broken("it is past its steps and does not say how they ended")
	}
	switch a.j.Section {
	case SectionSteps, "":
		a.interrupt()
		if a.j.End == nil {
			return a.section(SectionSteps, a.run.Spec.Steps)
		}
		a.enter(a.afterSteps())
	case SectionOnFailure:
		if a.cleanupDeadline(SectionOnFailure) {
			return Move{}, false
		}
		return a.section(SectionOnFailure, a.run.Spec.OnFailure)
	case SectionRestore:
		return a.restore()
	case SectionFinally:
		if a.cleanupDeadline(SectionFinally) {
			return Move{}, false
		}
		return a.section(SectionFinally, a.run.Spec.Finally)
	case SectionClosing:
		return Move{Act: ActClose}, true
	default:
		a.broken("there is no section " + string(a.j.Section))
		a.enter(SectionRestore)
	}
	return Move{}, false
}

// broken ends a run whose journal was damaged: what is known is undone.
func (a *advance) broken(how string) {
	if a.j.End == nil || a.j.End.Phase == RunSucceeded {
		a.j.End = &End{Phase: RunFailed, Reason: "JournalBroken", Message: "the journal is damaged: " + how}
	}
}

// stopping ends what abandoned steps left working, before anything else.
func (a *advance) stopping() (Move, bool) {
	for _, rec := range a.j.Steps {
		if rec.Stopping {
			return Move{Act: ActStop, Path: rec.Path, Step: a.find(rec.Path), WakeAt: a.now.Add(time.Minute)}, true
		}
	}
	return Move{}, false
}

// interrupt ends the steps when the run is aborted, replaced or out of time.
func (a *advance) interrupt() {
	if a.j.End != nil || a.through() {
		return
	}
	if (a.sig.Abort != nil || a.sig.Replace) && a.untouched() {
		a.neverBegan()
		return
	}
	switch {
	case a.sig.Abort != nil:
		a.cut(*a.sig.Abort)
	case a.sig.Replace:
		a.cut(End{Phase: RunReplaced, Reason: "Replaced", Message: "a newer run takes its place"})
	case !a.now.Before(a.deadline()) && !a.behindGate():
		a.cut(End{Phase: RunFailed, Reason: "Timeout", Message: fmt.Sprintf("did not end within maxDuration %s", a.run.Spec.MaxDuration)})
	}
}

// behindGate says whether the next step waits for the gate, or will once it is
// asked: that counts nowhere.
func (a *advance) behindGate() bool {
	if a.sig.Hold == nil || a.run.Spec.OnWindowClose != CloseWait {
		return false
	}
	for _, rec := range a.j.Steps {
		if SectionOf(rec.Path) == SectionSteps && rec.Phase == StepRunning {
			return false
		}
	}
	return a.j.HeldSince != nil || a.sig.Hold.Since == nil || a.sig.Hold.Since.Before(a.deadline())
}

// through says whether every step has ended: then there is nothing left to cut,
// however late it is noticed.
func (a *advance) through() bool {
	if len(a.j.Steps) == 0 {
		return false
	}
	for _, rec := range a.j.Steps {
		if SectionOf(rec.Path) == SectionSteps && !rec.Phase.Ended() {
			return false
		}
	}
	return true
}

// untouched says whether no step has begun yet.
func (a *advance) untouched() bool {
	for _, rec := range a.j.Steps {
		if rec.Phase != StepPending {
			return false
		}
	}
	return true
}

// neverBegan ends a run that was asked to end between its admission and its
// first step: it is one whose wait ended without a start.
func (a *advance) neverBegan() {
	end := End{Phase: RunAborted, Result: Missed, Reason: ReasonSuperseded, Message: "a newer run takes its place"}
	if a.sig.Abort != nil {
		end = *a.sig.Abort
		end.Result, end.Reason = Skipped, ReasonAborted
	}
	a.release()
	j := a.j.EndBefore(end, a.now)
	j.StartedAt = nil
	*a.j = j
}

// deadline leaves out the time in which the gate held the run.
func (a *advance) deadline() time.Time {
	if a.j.StartedAt == nil {
		return a.now.Add(time.Hour)
	}
	limit := a.j.StartedAt.Add(a.run.Spec.MaxDuration.Or(DefaultMaxDuration)).Add(time.Duration(a.j.HeldSeconds) * time.Second)
	if a.j.HeldSince != nil && a.now.After(*a.j.HeldSince) {
		limit = limit.Add(a.now.Sub(*a.j.HeldSince))
	}
	return limit
}

// held says whether a step may not begin yet: its gate is closed, or the plan is
// paused. The gate comes first, for the time behind it counts nowhere.
func (a *advance) held(name Section, step Step) (Move, bool) {
	if name != SectionSteps {
		return Move{}, false
	}
	closed := a.closed(step)
	switch {
	case a.j.End != nil:
		return Move{}, true
	case a.sig.Held != "":
		a.j.Message = a.sig.Held
		if closed {
			return Move{Act: ActWait, WakeAt: a.sig.Hold.Until}, true
		}
		return Move{Act: ActWait, WakeAt: a.deadline()}, true
	case closed:
		return Move{Act: ActWait, WakeAt: a.sig.Hold.Until}, true
	}
	return Move{}, false
}

// closed asks the gate before a step that has not begun. Under wait the run is
// held until it opens; under abort it ends here.
func (a *advance) closed(step Step) bool {
	looks := a.run.Spec.OnWindowClose == CloseWait || a.run.Spec.OnWindowClose == CloseAbort
	if a.sig.Hold == nil || !looks || step.Disruptive != nil && !*step.Disruptive {
		a.release()
		return false
	}
	if a.run.Spec.OnWindowClose == CloseAbort && !a.sig.Hold.NotReady { // doubt holds, and ends nothing
		a.windowClosed()
		return true
	}
	a.hold()
	a.j.Message = a.sig.Hold.Message()
	return true
}

// hold notes since when the gate holds the run: also where nobody looked when it
// closed.
func (a *advance) hold() {
	if a.j.HeldSince != nil {
		return
	}
	since := a.now
	if s := a.sig.Hold.Since; s != nil && s.Before(since) {
		since = *s
		if rest := a.atRestSince(); rest.After(since) {
			since = rest
		}
	}
	a.j.HeldSince = at(since)
}

// atRestSince is when the last step ended, or else the run began.
func (a *advance) atRestSince() time.Time {
	var last time.Time
	if a.j.StartedAt != nil {
		last = *a.j.StartedAt
	}
	for _, rec := range a.j.Steps {
		if rec.FinishedAt != nil && rec.FinishedAt.After(last) {
			last = *rec.FinishedAt
		}
	}
	return last
}

// release ends a hold and notes how long it was.
func (a *advance) release() {
	if a.j.HeldSince == nil {
		return
	}
	if held := a.now.Sub(*a.j.HeldSince); held > 0 {
		a.j.HeldSeconds += int64((held + time.Second - 1) / time.Second)
	}
	a.j.HeldSince, a.j.Message = nil, ""
}

// windowClosed ends a run whose window closed between two of its steps.
func (a *advance) windowClosed() {
	if a.untouched() {
		j := a.j.EndBefore(End{Phase: RunAborted, Result: Missed, Reason: ReasonWindow, Message: "the window closed before its first step"}, a.now)
		j.StartedAt = nil
		*a.j = j
		return
	}
	a.cut(End{Phase: RunAborted, Reason: "WindowClosed", Message: a.sig.Hold.Message()})
	a.enter(a.afterSteps())
}

// cut ends the steps that have not ended, and with them the section.
func (a *advance) cut(end End) {
	a.release()
	for i := range a.j.Steps {
		rec := &a.j.Steps[i]
		if SectionOf(rec.Path) != SectionSteps || rec.Phase.Ended() {
			continue
		}
		if rec.Phase == StepRunning {
			end.Step = or(end.Step, rec.Path)
			a.abandon(rec, end.Reason, end.Message)
			continue
		}
		rec.Phase, rec.Attempt, rec.Reason, rec.Message = StepSkipped, 0, end.Reason, end.Message
	}
	a.j.End = &end
}

// abandon fails a step in mid-work; what it left working is stopped next.
func (a *advance) abandon(rec *Record, reason, message string) {
	rec.Phase, rec.Reason, rec.Message, rec.FinishedAt = StepFailed, reason, message, at(a.now)
	rec.Stopping = true
}

func (a *advance) enter(s Section) {
	a.j.Section, a.j.SectionAt = s, at(a.now)
}

// afterSteps decides where cleanup begins. onFailure is for failure alone.
func (a *advance) afterSteps() Section {
	if a.j.End.Phase == RunFailed && len(a.run.Spec.OnFailure) > 0 {
		return SectionOnFailure
	}
	return SectionRestore
}

// section walks the steps of one section in order.
func (a *advance) section(name Section, steps []Step) (Move, bool) {
	failed := ""
	for _, step := range steps {
		rec := a.record(StepPath(name, step.Name))
		if rec == nil { // a journal that lacks a step of its own snapshot is broken
			a.broken(fmt.Sprintf("it lacks the step %s", StepPath(name, step.Name)))
			if name == SectionSteps {
				a.enter(SectionRestore)
				return Move{}, false
			}
			a.j.Steps = append(a.j.Steps, Record{Path: StepPath(name, step.Name), Type: step.Type, Phase: StepPending})
			rec = a.record(StepPath(name, step.Name)) // what undoes is done all the same
		}
		if rec.Phase == StepPending {
			if m, held := a.held(name, step); held {
				return m, a.j.End == nil
			}
			a.begin(rec, step, failed, name != SectionSteps)
		}
		if rec.Phase == StepRunning {
			if m, ok := a.running(rec, step); ok {
				return m, true
			}
			return a.stopping()
		}
		left := rec.Phase == StepSkipped && rec.Reason == "Timeout" && name != SectionSteps // cleanup that was not done
		if (rec.Phase == StepFailed || left) && failed == "" {
			failed = rec.Path
		}
	}
	a.endSection(name, failed)
	return Move{}, false
}

// endSection decides how the steps ended, or that a cleanup section failed.
func (a *advance) endSection(name Section, failed string) {
	switch name {
	case SectionSteps:
		a.j.End = &End{Phase: RunSucceeded}
		if failed != "" {
			rec := a.record(failed)
			a.j.End = &End{Phase: RunFailed, Reason: "StepFailed", Step: failed, Message: fmt.Sprintf("step %s failed: %s", failed, rec.Message)}
		}
		a.enter(a.afterSteps())
	case SectionOnFailure:
		a.enter(SectionRestore)
	default:
		a.cleanupFailed(failed)
		a.enter(SectionClosing)
	}
}

// cleanupFailed keeps a run whose undoing failed from being called a success.
func (a *advance) cleanupFailed(path string) {
	if path == "" || a.j.End == nil || a.j.End.Phase != RunSucceeded {
		return
	}
	a.j.End = &End{Phase: RunFailed, Reason: "CleanupFailed", Step: path, Message: fmt.Sprintf("the steps succeeded, but %s failed", path)}
}

// begin starts a step, or skips it where its condition says so. In cleanup
// sections every step runs by default: one failed undo must not keep the next
// from being done.
func (a *advance) begin(rec *Record, step Step, failed string, cleanup bool) {
	ok, err := a.wanted(step, failed, cleanup)
	switch {
	case err != nil:
		rec.Phase, rec.Reason, rec.Message, rec.FinishedAt = StepFailed, "BadCondition", Cut(err.Error(), MaxMessage), at(a.now)
	case !ok && step.If == "":
		rec.Phase, rec.Attempt, rec.Reason, rec.Message = StepSkipped, 0, "EarlierFailure", fmt.Sprintf("step %s failed before it", failed)
	case !ok:
		rec.Phase, rec.Attempt, rec.Reason, rec.Message = StepSkipped, 0, "Condition", fmt.Sprintf("its condition is false: %s", step.If)
	default:
		rec.Phase, rec.Attempt, rec.StartedAt, rec.AttemptAt = StepRunning, 1, at(a.now), at(a.now)
		if a.j.Passed == nil {
			a.j.Passed = a.sig.Passed
		}
		a.begun = rec.Path
	}
}

func (a *advance) wanted(step Step, failed string, cleanup bool) (bool, error) {
	switch step.If {
	case "":
		return failed == "" || cleanup, nil
	case IfAlways:
		return true, nil
	}
	return expr.Bool(step.If, Vars(a.run, *a.j, nil))
}

// running looks at the clock before another pass of a step at work.
func (a *advance) running(rec *Record, step Step) (Move, bool) {
	limit := a.limit(rec, step)
	if !limit.IsZero() && !a.now.Before(limit) {
		a.abandon(rec, "Timeout", fmt.Sprintf("did not end within its timeout %s", step.Timeout.Or(DefaultCleanupDuration)))
		return Move{}, false
	}
	if a.sig.Resume != nil && step.Type == "suspend" && rec.Resumed == nil && rec.Path != a.begun { // a suspend that nobody has seen was not meant
		rec.Resumed = a.sig.Resume
	}
	wake := earliest(limit, a.sectionLimit(rec.Path))
	if rec.NotBefore != nil && a.now.Before(*rec.NotBefore) {
		return Move{Act: ActWait, Path: rec.Path, WakeAt: earliest(wake, *rec.NotBefore)}, true
	}
	return Move{Act: ActPass, Path: rec.Path, Step: step, WakeAt: wake}, true
}

// limit is when a step is out of time; zero: never by itself.
func (a *advance) limit(rec *Record, step Step) time.Time {
	if step.Timeout == nil || rec.StartedAt == nil {
		return time.Time{}
	}
	return a.since(rec.Path, *rec.StartedAt).Add(step.Timeout.Duration)
}

func (a *advance) sectionLimit(path string) time.Time {
	if SectionOf(path) == SectionSteps {
		return a.deadline()
	}
	if a.j.SectionAt == nil {
		return time.Time{}
	}
	return a.since(path, *a.j.SectionAt).Add(DefaultCleanupDuration)
}

// since is when the time of a step or section began to count.
func (a *advance) since(path string, began time.Time) time.Time {
	if SectionOf(path) != SectionSteps && a.sig.LookingSince.After(began) {
		return a.sig.LookingSince
	}
	return began
}

// cleanupDeadline fails the steps of a cleanup section that takes too long, and
// says whether there were any.
func (a *advance) cleanupDeadline(name Section) bool {
	limit := a.sectionLimit(StepPath(name, "x"))
	if limit.IsZero() || a.now.Before(limit) {
		return false
	}
	late := false
	for i := range a.j.Steps {
		rec := &a.j.Steps[i]
		if SectionOf(rec.Path) != name || rec.Phase.Ended() {
			continue
		}
		late = true
		if rec.Phase == StepPending {
			rec.Phase, rec.Reason, rec.Message = StepSkipped, "Timeout", fmt.Sprintf("%s did not end within %s", name, DefaultCleanupDuration)
			continue
		}
		a.abandon(rec, "Timeout", fmt.Sprintf("%s did not end within %s", name, DefaultCleanupDuration))
	}
	return late
}

// restore undoes steps with restoreAfter, the last first.
func (a *advance) restore() (Move, bool) {
	limit := a.sectionLimit(StepPath(SectionRestore, "x"))
	failed := ""
	for i := len(a.j.Steps) - 1; i >= 0; i-- {
		rec := &a.j.Steps[i]
		step := a.find(rec.Path)
		if rec.Before == nil || !restores(step) || rec.Restored != "" && rec.Restored != RestoreFailed {
			continue
		}
		if rec.Restored == RestoreFailed {
			failed = rec.Path
			continue
		}
		if !limit.IsZero() && !a.now.Before(limit) {
			rec.Restored, rec.RestoreMessage = RestoreFailed, fmt.Sprintf("was not restored within %s", DefaultCleanupDuration)
			failed = rec.Path
			continue
		}
		return Move{Act: ActRestore, Path: rec.Path, Step: step, WakeAt: limit}, true
	}
	a.cleanupFailed(failed)
	a.enter(SectionFinally)
	return Move{}, false
}

// The ends of a restore.
const (
	RestoreDone    = "done"
	RestoreChanged = "changed" // somebody changed it meanwhile; theirs stays
	RestoreGone    = "gone"
	RestoreFailed  = "failed"
)

// restores says whether a step may have something to put back. A ${…} there is
// evaluated by the step itself, which writes nothing down where it is false.
func restores(s Step) bool {
	switch v := s.Properties["restoreAfter"].(type) {
	case bool:
		return v
	case string:
		return v != ""
	}
	return false
}

func (a *advance) record(path string) *Record {
	for i := range a.j.Steps {
		if a.j.Steps[i].Path == path {
			return &a.j.Steps[i]
		}
	}
	return nil
}

func (a *advance) find(path string) Step {
	for _, s := range sections(a.run.Spec) {
		for _, step := range s.steps {
			if StepPath(s.name, step.Name) == path {
				return step
			}
		}
	}
	return Step{}
}

func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
