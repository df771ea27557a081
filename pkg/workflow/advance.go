package workflow

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// Signals are what has been asked of a run since it began.
type Signals struct {
	Abort   *run.End // by a person, a deletion, or the plan's end
	Replace bool     // a newer run wants its place
	Resume  *Answer  // somebody resumed the present suspend, or that of one step
	Approve *Answer  // somebody approved a step
	Reject  *Answer  // somebody rejected one
	// Held says why no new step may begin now; empty when it may.
	Held string
	// Paused is the pause that stands, in words; empty: none does.
	Paused string
	// Hold is the closed gate, for a run that looks at it before each step.
	Hold *run.ClosedGate
	// Namespace is the run's namespace where it restricts change: every run looks at it
	// before each disruptive step, whatever its plan says.
	Namespace *run.ClosedGate
	// Passed is who lets the run go on through a closed gate.
	Passed *intent.Actor
	// Opened is who opened for a time what would be closed.
	Opened run.Opened
	// LeadingSince is since when the present agent looks. The limits of cleanup
	// count from there at the earliest: that nobody was there to clean up must
	// not be the reason for which nobody ever does. Zero: always.
	LeadingSince time.Time
	// Nodes is what is known of the nodes that the run's rollouts take, by the
	// rollout's path and the node's name: what one of them was given is not another's.
	Nodes map[string]map[string]NodeState
	// ClosesAt is when the open gate closes; zero: that is not known, or never.
	ClosesAt time.Time
	// Leader is the agent that looks. Before the first act of another one than the
	// journal names, the journal is written: who went by an old state of the run is
	// told so by the API server, before anything was done. Empty: nobody else can be.
	Leader string
}

// Answer is what somebody said to one step, named by its path or its last part.
type Answer struct {
	Step string
	intent.Actor
}

// To says whether the answer is for the step at a path.
func (a *Answer) To(path string) bool {
	return a != nil && (a.Step == path || a.Step == path[strings.LastIndex(path, "/")+1:])
}

// Covers says whether the answer is for the step at a path, or for the run as a whole.
func (a *Answer) Covers(path string) bool { return a != nil && (a.Step == "" || a.To(path)) }

// Act is what the one who runs a run has to do next.
type Act int

// The acts. Before any of them the journal that came with it is written, if it
// changed: intent before effect.
const (
	ActWait       Act = iota // nothing until WakeAt
	ActPass                  // call the executor for one bounded piece
	ActStop                  // end what the step left working in the cluster
	ActRestore               // put back what the step found
	ActKeep                  // renew the lease that a step left
	ActRelease               // give it back
	ActCheckDrift            // look whether what the step did is still so
	ActClose                 // take the trigger label away and close the ledger's entry
)

// Action is one act on one step.
type Action struct {
	Act    Act
	Path   string
	Step   plan.Step
	WakeAt time.Time // the latest instant to look again; zero: only when something changes
	// Besides are acts that may be done at the same time.
	Besides []Action
	// Wants are the nodes that the run would take next, if the limits over all
	// maintenance of nodes let it; on the first move alone.
	Wants []NodeDemand
}

// All are the move and those beside it.
func (m Action) All() []Action {
	besides := m.Besides
	m.Besides = nil
	return append([]Action{m}, besides...)
}

// NewJournal is the journal of a run that was just created, with the first
// attempt of its first step written down, so that its start is one write.
func NewJournal(r run.Run) run.Journal {
	j := run.Journal{Phase: run.Pending, Section: plan.SectionSteps}
	tree := r.Tree()
	for _, s := range plan.Sections(r.Spec) {
		j.Steps = pending(tree, j.Steps, scope{section: s.Name, steps: s.Steps})
	}
	if len(j.Steps) > 0 {
		j.Steps[0].Attempt = 1
	}
	return j
}

// pending adds the records of steps that have not begun, with those of the steps
// that they hold. A loop's are made for each item when it begins.
func pending(t plan.Tree, records []run.Record, s scope) []run.Record {
	for _, step := range s.steps {
		path := s.path(step.Name)
		records = append(records, run.Record{Path: path, Type: step.Type, Phase: run.StepPending})
		if step.Holds() && !plan.IsLoop(step.Type) {
			records = pending(t, records, scope{section: s.section, prefix: path, steps: t.Children(step)})
		}
	}
	return records
}

// Advance says what a started run does next, and the journal to be written
// before it is done. It is a pure function of the journal, so that whoever comes
// after a crash goes on where the journal says.
func Advance(r run.Run, j run.Journal, now time.Time, sig Signals) (run.Journal, Action) {
	j.Steps = append([]run.Record(nil), j.Steps...)
	a := advance{run: r, tree: r.Tree(), j: &j, now: now, sig: sig}
	a.notePassed()
	for {
		if m, ok := a.step(); ok {
			m = a.kept(m)
			m.Wants = a.found.wants
			if slices.ContainsFunc(m.All(), func(m Action) bool { return m.Act != ActWait }) && sig.Leader != "" {
				j.Leader = sig.Leader
			}
			return j, a.looks(m)
		}
	}
}

type advance struct {
	run      run.Run
	tree     plan.Tree // of the run
	j        *run.Journal
	now      time.Time
	sig      Signals
	begun    map[string]bool // paths of the steps that this look began
	places   map[string]int  // of the records, by path; nil when they moved
	ours     map[string]bool // loops whose lists of items are no longer the caller's
	timeless bool            // it only looks ahead: nothing is out of time

	found findings
}

// findings are what a walk over the steps found. The next walk begins without any.
type findings struct {
	moves  []Action
	wait   *Action         // the wait that ends first
	moved  bool            // a step began or ended: another walk may find more
	shut   *run.ClosedGate // keeps a step from beginning
	paused bool            // a pause does
	broke  string          // path of the step that failed, where what follows from that has not come
	clock  time.Time       // when the first of the steps that hold others is out of time
	wants  []NodeDemand
}

// step moves within the present section, or on to the next; ok once there is
// something to do or to wait for.
func (a *advance) step() (Action, bool) {
	if a.j.End == nil && a.j.Section != plan.SectionSteps && a.j.Section != "" {
		a.broken("it is past its steps and does not say how they ended")
	}
	switch a.j.Section {
	case plan.SectionSteps, "":
		a.interrupt()
		if a.j.End == nil {
			return a.section(plan.SectionSteps, a.run.Spec.Steps)
		}
		if m, ok := a.stopping(); ok {
			return m, true
		}
		a.enter(a.afterSteps())
	case plan.SectionOnFailure:
		a.cleanupDeadline(plan.SectionOnFailure)
		return a.section(plan.SectionOnFailure, a.run.Spec.OnFailure)
	case plan.SectionRestore:
		return a.restore()
	case plan.SectionFinally:
		a.cleanupDeadline(plan.SectionFinally)
		return a.section(plan.SectionFinally, a.run.Spec.Finally)
	case plan.SectionClosing:
		return a.closing(), true
	default:
		a.broken("there is no section " + string(a.j.Section))
		a.enter(plan.SectionRestore)
	}
	return Action{}, false
}

// broken ends a run whose journal was damaged: what is known is undone.
func (a *advance) broken(how string) {
	if a.j.End == nil || a.j.End.Phase == run.Succeeded {
		a.j.End = &run.End{Phase: run.Failed, Reason: "JournalBroken", Message: "the journal is damaged: " + how}
	}
}

// stopping ends what abandoned steps left working, before the next section.
func (a *advance) stopping() (Action, bool) {
	a.found.moves, a.found.wait = nil, nil
	if !a.stops("") {
		return Action{}, false
	}
	return a.composed(), true
}

// stops are the acts that end what is left working at a path and below it; false
// when nothing is.
func (a *advance) stops(path string) (any bool) {
	for i := range a.j.Steps {
		rec := &a.j.Steps[i]
		if !rec.Stopping || path != "" && rec.Path != path && !plan.Below(rec.Path, path) {
			continue
		}
		any = true
		if !slices.ContainsFunc(a.found.moves, func(m Action) bool { return m.Path == rec.Path }) {
			a.found.moves = append(a.found.moves, Action{Act: ActStop, Path: rec.Path, Step: a.find(rec.Path), WakeAt: a.now.Add(time.Minute)})
		}
	}
	return any
}

// composed is what a walk found as one move.
func (a *advance) composed() Action {
	switch {
	case len(a.found.moves) == 0 && a.found.wait == nil:
		return Action{Act: ActWait}
	case len(a.found.moves) == 0:
		return *a.found.wait
	}
	m := a.found.moves[0]
	m.Besides = a.found.moves[1:]
	if a.found.wait != nil {
		m.Besides = append(m.Besides, *a.found.wait)
	}
	return m
}

// waits notes that a step waits until an instant.
func (a *advance) waits(path string, until time.Time) {
	if a.found.wait == nil {
		a.found.wait = &Action{Act: ActWait, Path: path, WakeAt: until}
		return
	}
	a.found.wait.Path, a.found.wait.WakeAt = "", schedule.Earliest(a.found.wait.WakeAt, until)
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
	a.drift()
	if a.j.End != nil {
		return
	}
	a.holdAhead()
	switch {
	case a.sig.Abort != nil:
		a.cut(*a.sig.Abort)
	case a.sig.Replace:
		a.cut(run.End{Phase: run.Replaced, Reason: "Replaced", Message: "a newer run takes its place"})
	case a.late():
		a.cut(run.End{Phase: run.Failed, Reason: "Timeout", Message: fmt.Sprintf("did not end within maxDuration %s", a.run.Spec.MaxDuration)})
	}
}

// through says whether every step has ended: then there is nothing left to cut,
// however late it is noticed.
func (a *advance) through() bool {
	if len(a.j.Steps) == 0 {
		return false
	}
	for _, rec := range a.j.Steps {
		if plan.SectionOf(rec.Path) == plan.SectionSteps && !rec.Phase.Ended() {
			return false
		}
	}
	return true
}

// untouched says whether no step has begun yet.
func (a *advance) untouched() bool {
	for _, rec := range a.j.Steps {
		if rec.Phase != run.StepPending || rec.Base > 0 {
			return false
		}
	}
	return true
}

// neverBegan ends a run that was asked to end between its admission and its
// first step: it is one whose wait ended without a start.
func (a *advance) neverBegan() {
	end := run.End{Phase: run.Aborted, Result: run.Missed, Reason: run.ReasonSuperseded, Message: "a newer run takes its place"}
	if a.sig.Abort != nil {
		end = *a.sig.Abort
		end.Result, end.Reason = run.Skipped, run.ReasonAborted
	}
	a.release()
	j := a.j.EndUnstarted(end, a.now)
	j.StartedAt = nil
	*a.j = j
}

// deadline leaves out the time in which the gate held the run.
func (a *advance) deadline() time.Time {
	if a.run.Spec.MaxDuration == nil && a.tree.RollsOut() {
		return time.Time{}
	}
	if a.j.StartedAt == nil {
		return a.now.Add(time.Hour)
	}
	return a.j.StartedAt.Add(a.run.Spec.MaxDuration.Or(plan.DefaultMaxDuration)).Add(a.heldFor())
}

// late says whether the run is out of time.
func (a *advance) late() bool {
	limit := a.deadline()
	return !limit.IsZero() && !a.now.Before(limit)
}

// heldFor is how long the run was held, which counts nowhere.
func (a *advance) heldFor() time.Duration {
	held := time.Duration(a.j.HeldSeconds) * time.Second
	if a.j.HeldSince != nil && a.now.After(*a.j.HeldSince) {
		held += a.now.Sub(*a.j.HeldSince)
	}
	return held
}

// atRestSince is when the last step ended, or one that is tried again might have
// begun; or else the run did.
func (a *advance) atRestSince() time.Time {
	var last time.Time
	if a.j.StartedAt != nil {
		last = *a.j.StartedAt
	}
	if w := a.j.WorkedAt; w != nil && w.After(last) {
		last = *w
	}
	for _, rec := range a.j.Steps {
		if rec.FinishedAt != nil && rec.FinishedAt.After(last) {
			last = *rec.FinishedAt
		}
		if again := rec.NotBefore; again != nil && again.After(last) && !again.After(a.now) {
			last = *again
		}
	}
	return last
}

// windowClosed ends a run whose window closed between two of its steps.
func (a *advance) windowClosed(by *run.ClosedGate) {
	if a.untouched() {
		j := a.j.EndUnstarted(run.End{Phase: run.Aborted, Result: run.Missed, Reason: run.ReasonWindow, Message: "the window closed before its first step"}, a.now)
		j.StartedAt = nil
		*a.j = j
		return
	}
	a.cut(run.End{Phase: run.Aborted, Reason: "WindowClosed", Message: by.Message()})
	a.enter(a.afterSteps())
}

// cut ends the steps that have not ended, and with them the section.
func (a *advance) cut(end run.End) {
	a.release()
	for _, rec := range a.j.Steps {
		if plan.SectionOf(rec.Path) == plan.SectionSteps && rec.Phase == run.StepRunning && !rec.Holds() {
			end.Step = cmp.Or(end.Step, rec.Path)
		}
	}
	a.cutSteps(func(path string) bool { return plan.SectionOf(path) == plan.SectionSteps }, end.Reason, end.Message)
	a.j.End = &end
}

// cutSteps ends the steps of some paths that have not ended: those at work have
// failed, and what they left working is stopped next; the others never begin.
func (a *advance) cutSteps(these func(path string) bool, reason, message string) {
	for i := range a.j.Steps {
		rec := &a.j.Steps[i]
		if rec.Phase.Ended() || !these(rec.Path) {
			continue
		}
		if rec.Phase == run.StepRunning {
			a.abandon(rec, reason, message)
			continue
		}
		rec.Phase, rec.Attempt, rec.Reason, rec.Message = run.StepSkipped, 0, reason, message
		a.found.moved = true
	}
}

// abandon fails a step in mid-work.
func (a *advance) abandon(rec *run.Record, reason, message string) {
	rec.Phase, rec.Reason, rec.Message, rec.FinishedAt = run.StepFailed, reason, waited(message, rec.Waits), new(a.now.UTC())
	rec.Stopping, rec.Waits = !rec.Holds(), ""
	endHold(rec)
	a.found.moved = true
	for i, item := range a.items(rec) {
		if item.Phase == run.StepRunning {
			rec.Items[i].Phase, rec.Items[i].Message = run.StepFailed, document.Cut(message, maxItemMessage)
		}
	}
}

// waited is a message with what was waited for in vain.
func waited(message, waits string) string {
	if waits == "" {
		return message
	}
	return document.Cut(message+"; it waited: "+wantOf(waits), document.MaxMessage)
}

// items are those of a loop, to be changed: copied once, for the journal that was
// handed in stays as it is.
func (a *advance) items(rec *run.Record) []run.Item {
	if !a.ours[rec.Path] {
		if a.ours == nil {
			a.ours = map[string]bool{}
		}
		a.ours[rec.Path] = true
		rec.Items = append([]run.Item(nil), rec.Items...)
	}
	return rec.Items
}

func (a *advance) enter(s plan.Section) {
	a.j.Section, a.j.SectionAt = s, new(a.now.UTC())
}

// afterSteps decides where cleanup begins. onFailure is for failure alone.
func (a *advance) afterSteps() plan.Section {
	if a.j.End.Phase == run.Failed && len(a.run.Spec.OnFailure) > 0 {
		return plan.SectionOnFailure
	}
	return plan.SectionRestore
}

// cleanupFailed keeps a run whose undoing failed from being called a success.
func (a *advance) cleanupFailed(path string) {
	if path == "" || a.j.End == nil || a.j.End.Phase != run.Succeeded {
		return
	}
	a.j.End = &run.End{Phase: run.Failed, Reason: "CleanupFailed", Step: path}
	a.j.End.Message = document.Cut("the steps succeeded, but "+a.j.NotCleaned(), document.MaxMessage)
}

// limit is when a step is out of time; zero: never by itself.
func (a *advance) limit(rec *run.Record, step plan.Step) time.Time {
	if step.Timeout == nil || rec.StartedAt == nil || a.timeless {
		return time.Time{}
	}
	limit := a.since(rec.Path, *rec.StartedAt).Add(step.Timeout.Duration)
	if rec.Type != plan.TypeApproval && plan.SectionOf(rec.Path) == plan.SectionSteps { // what holds the run counts nowhere; while a step works, nothing does
		limit = limit.Add(a.heldFor() - time.Duration(rec.HeldBefore)*time.Second)
	}
	return limit
}

func (a *advance) sectionLimit(path string) time.Time {
	if plan.SectionOf(path) == plan.SectionSteps {
		return a.deadline()
	}
	if a.j.SectionAt == nil {
		return time.Time{}
	}
	return cleanupEnd(*a.j.SectionAt, a.sig.LeadingSince)
}

// since is when the time of a step or section began to count.
func (a *advance) since(path string, began time.Time) time.Time {
	if plan.SectionOf(path) != plan.SectionSteps && a.sig.LeadingSince.After(began) {
		return a.sig.LeadingSince
	}
	return began
}

// CleanupEnds is when the time of a run's cleanup is over, or that of what ends the step at a path, for
// an agent that looks since an instant.
func CleanupEnds(j run.Journal, path string, looking time.Time) time.Time {
	began := looking
	if rec := j.Record(path); rec != nil && rec.Stopping && rec.FinishedAt != nil {
		began = *rec.FinishedAt
	} else if j.SectionAt != nil {
		began = *j.SectionAt
	}
	return cleanupEnd(began, looking)
}

// cleanupEnd is when the time of a cleanup is over: it counts only while an agent looks.
func cleanupEnd(began, looking time.Time) time.Time {
	if looking.After(began) {
		began = looking
	}
	return began.Add(plan.DefaultCleanupDuration)
}

// cleanupDeadline fails the steps of a cleanup section that takes too long.
func (a *advance) cleanupDeadline(name plan.Section) {
	limit := a.sectionLimit(plan.StepPath(name, "x"))
	if limit.IsZero() || a.now.Before(limit) {
		return
	}
	a.cutSteps(func(path string) bool { return plan.SectionOf(path) == name }, "Timeout", fmt.Sprintf("%s did not end within %s", name, plan.DefaultCleanupDuration))
}

// record is what the journal knows of a step, until records are added or dropped.
func (a *advance) record(path string) *run.Record {
	if a.places == nil {
		a.places = make(map[string]int, len(a.j.Steps))
		for i, rec := range a.j.Steps {
			if _, twice := a.places[rec.Path]; !twice {
				a.places[rec.Path] = i
			}
		}
	}
	if i, ok := a.places[path]; ok {
		return &a.j.Steps[i]
	}
	return nil
}

// records are another list of them.
func (a *advance) records(steps []run.Record) { a.j.Steps, a.places = steps, nil }

func (a *advance) find(path string) plan.Step {
	step, _ := a.tree.Find(path)
	return step
}
