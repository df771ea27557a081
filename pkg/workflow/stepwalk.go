package workflow

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// scope is a list of steps that stand under one path: a section's, a group's, a
// template's, or those of one item of a loop.
type scope struct {
	section plan.Section
	prefix  string // path of what holds them; empty for a section
	steps   []plan.Step
	open    bool      // what holds them is not disruptive: they do not ask the gate of the plan
	begun   bool      // a node that was begun, which is finished whatever the window: they ask no gate
	limit   time.Time // when what holds them is out of time; zero: never
}

func (s scope) path(name string) string {
	if s.prefix == "" {
		return plan.StepPath(s.section, name)
	}
	return s.prefix + "/" + name
}

func (s scope) cleanup() bool { return s.section != plan.SectionSteps }

// within is the scope of what a step holds, under a path at or below the step's.
func (a *advance) within(s scope, step plan.Step, prefix string) scope {
	limit := s.limit
	if rec := a.record(s.path(step.Name)); rec != nil {
		limit = schedule.Earliest(limit, a.limit(rec, step))
	}
	return scope{section: s.section, prefix: prefix, steps: a.tree.Children(step), open: s.open || !a.tree.Disruptive(step), begun: s.begun, limit: limit}
}

// section walks the steps of one section until another walk would find nothing
// new, or the section ends.
func (a *advance) section(name plan.Section, steps []plan.Step) (Action, bool) {
	if name == plan.SectionSteps && a.j.RetryAt != nil {
		if a.now.Before(*a.j.RetryAt) {
			return Action{Act: ActWait, WakeAt: schedule.Earliest(*a.j.RetryAt, a.deadline())}, true
		}
		a.worked(a.j.RetryAt)
		a.j.RetryAt = nil
	}
	over, failed, more := a.walk(name, steps)
	switch {
	case !more:
		return Action{}, false
	case over:
		a.endSection(name, failed)
		return Action{}, false
	case name == plan.SectionSteps:
		a.updateHold()
	}
	return a.timed(name), true
}

// walk walks steps until another walk would find nothing new; more is false when
// the section ended on the way.
func (a *advance) walk(name plan.Section, steps []plan.Step) (over bool, failed string, more bool) {
	for {
		a.found = findings{}
		over, failed = a.sequence(scope{section: name, steps: steps})
		if name == plan.SectionSteps && a.j.End != nil {
			return false, "", false
		}
		if over || !a.found.moved {
			return over, failed, true
		}
	}
}

// timed is what a walk found as one move that wakes when the section is out of time, or a
// step that holds others. While the run is held its clocks stand still: then they wake
// nobody.
func (a *advance) timed(name plan.Section) Action {
	if name == plan.SectionSteps && a.j.HeldSince != nil {
		return a.composed()
	}
	if !a.found.clock.IsZero() { // beside what a step is given, which is its own: another's limit does not cut it short
		a.waits("", a.found.clock)
	}
	all, limit := a.composed().All(), a.sectionLimit(plan.StepPath(name, "x"))
	for i := range all {
		all[i].WakeAt = schedule.Earliest(all[i].WakeAt, limit)
	}
	m := all[0]
	m.Besides = all[1:]
	return m
}

// sequence walks steps that run in order. failed is the path of the first that
// failed.
func (a *advance) sequence(s scope) (over bool, failed string) {
	for _, step := range s.steps {
		over, bad := a.one(s, step, failed)
		if !over {
			a.found.broke = cmp.Or(a.found.broke, failed)
			return false, failed
		}
		if failed == "" {
			failed = bad
		}
	}
	return true, failed
}

// parallel walks steps that run side by side, at most so many at once: each
// begins when those that it depends on have ended.
func (a *advance) parallel(s scope, most int) (over bool, failed string) {
	over, running := true, a.runningIn(s)
	for _, step := range s.steps {
		path, broken := s.path(step.Name), ""
		fresh := a.record(path) != nil && a.record(path).Phase == run.StepPending
		if fresh {
			ready, because := dependencies(a, s, step)
			if !ready || running >= most {
				over = false
				continue
			}
			broken = because
		}
		done, wrong := a.one(s, step, broken)
		if rec := a.record(path); fresh && rec != nil && rec.Phase == run.StepRunning {
			running++
		}
		over = over && done
		failed = cmp.Or(failed, wrong)
	}
	if !over {
		a.found.broke = cmp.Or(a.found.broke, failed)
	}
	return over, failed
}

// runningIn is how many steps of a list are at work, or are still to be stopped.
func (a *advance) runningIn(s scope) int {
	n := 0
	for _, step := range s.steps {
		if rec := a.record(s.path(step.Name)); rec != nil && (rec.Phase == run.StepRunning || a.stoppingAt(rec.Path)) {
			n++
		}
	}
	return n
}

func (a *advance) stoppingAt(path string) bool {
	for i := range a.j.Steps {
		if rec := &a.j.Steps[i]; rec.Stopping && (rec.Path == path || plan.Below(rec.Path, path)) {
			return true
		}
	}
	return false
}

// dependencies says whether all that a step depends on has ended, and which of
// them failed, or was not done because of another that did.
func dependencies(a *advance, s scope, step plan.Step) (ready bool, failed string) {
	for _, name := range step.DependsOn {
		rec := a.record(s.path(name))
		if rec == nil || !rec.Phase.Ended() || a.stoppingAt(rec.Path) {
			return false, ""
		}
		if failed == "" && (rec.Phase == run.StepFailed || rec.Phase == run.StepSkipped && rec.Reason == "EarlierFailure") {
			failed = rec.Path
		}
	}
	return true, failed
}

// one moves one step as far as it goes now. failed is a step before it that did.
func (a *advance) one(s scope, step plan.Step, failed string) (over bool, bad string) {
	path := s.path(step.Name)
	if a.record(path) == nil && !a.lacking(s, step) {
		return false, ""
	}
	if a.record(path).Phase == run.StepPending {
		if a.held(s, step, failed) {
			return false, ""
		}
		a.begin(s, step, failed)
	}
	if a.record(path).Phase == run.StepRunning {
		a.advanceOne(s, step, path)
	}
	rec := a.record(path)
	if !rec.Phase.Ended() || a.stops(path) {
		return false, ""
	}
	if rec.Failed() {
		bad = path
	}
	return true, bad
}

func (a *advance) advanceOne(s scope, step plan.Step, path string) {
	switch {
	case plan.IsLoop(step.Type):
		a.compound(s, step, path, a.loop)
	case step.Holds():
		a.compound(s, step, path, a.group)
	default:
		a.leaf(s, step, path)
	}
}

// lacking mends a journal that lacks a step of its own snapshot: the steps end
// there; what undoes is done all the same.
func (a *advance) lacking(s scope, step plan.Step) bool {
	path := s.path(step.Name)
	a.broken("it lacks the step " + path)
	if !s.cleanup() {
		a.cut(*a.j.End)
		a.enter(plan.SectionRestore)
		return false
	}
	a.records(pending(a.tree, a.j.Steps, scope{section: s.section, prefix: s.prefix, steps: []plan.Step{step}}))
	return true
}

// begin starts a step, or skips it where its condition says so. In cleanup
// sections every step runs by default: one failed undo must not keep the next
// from being done.
func (a *advance) begin(s scope, step plan.Step, failed string) {
	path, cleanup := s.path(step.Name), s.cleanup()
	ok, err := a.wanted(path, step, failed, cleanup)
	rec := a.record(path)
	a.found.moved = true
	switch {
	case err != nil:
		rec.Phase, rec.Reason, rec.Message, rec.FinishedAt = run.StepFailed, "BadCondition", document.Cut(document.OneLine(err.Error()), document.MaxMessage), new(a.now.UTC())
	case !ok && step.If == "":
		rec.Phase, rec.Attempt, rec.Reason, rec.Message = run.StepSkipped, 0, "EarlierFailure", fmt.Sprintf("step %s failed before it", failed)
	case !ok:
		rec.Phase, rec.Attempt, rec.Reason, rec.Message = run.StepSkipped, 0, "Condition", "its condition is false: "+document.OneLine(step.If)
	default:
		rec.Phase, rec.Attempt, rec.StartedAt, rec.AttemptAt = run.StepRunning, rec.Base+1, new(a.now.UTC()), new(a.now.UTC())
		if !cleanup {
			rec.HeldBefore = a.heldSeconds()
		}
		a.notePassage(s, step, false)
		if a.begun == nil {
			a.begun = map[string]bool{}
		}
		a.begun[path] = true
	}
	if rec.Phase != run.StepRunning && step.Holds() {
		a.cutSteps(func(p string) bool { return plan.Below(p, path) }, rec.Reason, rec.Message)
	}
}

func (a *advance) wanted(path string, step plan.Step, failed string, cleanup bool) (bool, error) {
	switch step.If {
	case "":
		return failed == "" || cleanup, nil
	case plan.IfAlways:
		return true, nil
	}
	return a.run.Condition(*a.j, path, step.If)
}

// leaf looks at the clock, and at what people said, before another pass of a
// step at work.
func (a *advance) leaf(s scope, step plan.Step, path string) {
	rec := a.record(path)
	limit := a.limit(rec, step)
	if !limit.IsZero() && !a.now.Before(limit) {
		text := fmt.Sprintf("did not end within its timeout %s", step.Timeout.Or(plan.DefaultCleanupDuration))
		if step.Type == "wait" && rec.Waits == "" {
			text = waited(text, rec.Message)
		}
		a.abandon(rec, "Timeout", text)
		return
	}
	if !a.begun[path] { // what was said before anybody saw the question was not meant
		a.answered(rec, step)
	}
	wake := limit
	if !asksStill(*rec) { // while it asks, what holds it is not out of time
		wake = schedule.Earliest(limit, s.limit)
	}
	if rec.NotBefore != nil && a.now.Before(*rec.NotBefore) {
		a.waits(path, schedule.Earliest(wake, *rec.NotBefore))
		return
	}
	if a.heldAgain(s, step, rec) {
		a.waits(path, wake)
		return
	}
	a.found.moves = append(a.found.moves, Action{Act: ActPass, Path: path, Step: step, WakeAt: wake})
}

// answered takes up a resume, an approval or a rejection. Doubt stops: where both
// stand, it is rejected.
func (a *advance) answered(rec *run.Record, step plan.Step) {
	switch {
	case step.Type == "suspend" && rec.Resumed == nil && a.sig.Resume.Covers(rec.Path):
		rec.Resumed = &a.sig.Resume.Actor
	case step.Type != plan.TypeApproval || rec.Approval != nil:
	case a.sig.Reject.To(rec.Path):
		rec.Approval = &run.Approval{Actor: a.sig.Reject.Actor}
	case a.sig.Approve.To(rec.Path) && a.meant(a.sig.Approve):
		rec.Approval = &run.Approval{Approved: true, Actor: a.sig.Approve.Actor}
	}
}

// meant says whether an approval means one step: by its path, or by a name under
// which no other asks. A rejection may mean several: doubt stops.
func (a *advance) meant(answer *Answer) bool {
	asking := 0
	for _, rec := range a.j.Steps {
		if rec.Path == answer.Step {
			return true
		}
		if rec.Phase == run.StepRunning && asksStill(rec) && answer.To(rec.Path) {
			asking++
		}
	}
	return asking == 1
}

// compound looks at the clock before what a step holds is moved.
func (a *advance) compound(s scope, step plan.Step, path string, move func(s scope, step plan.Step, path string)) {
	rec := a.record(path)
	limit := a.limit(rec, step)
	if !limit.IsZero() && !a.now.Before(limit) {
		a.cutSteps(func(p string) bool { return p == path || plan.Below(p, path) }, "Timeout", fmt.Sprintf("step %s did not end within its timeout %s", path, step.Timeout))
		return
	}
	a.found.clock = schedule.Earliest(a.found.clock, limit)
	switch {
	case rec.NotBefore != nil && a.now.Before(*rec.NotBefore):
		a.waits(path, *rec.NotBefore)
	case len(a.tree.Children(step)) == 0: // the validator refused it, or its template is not in the run
		rec.Phase, rec.Reason, rec.Message, rec.FinishedAt = run.StepFailed, "NoSteps", fmt.Sprintf("step %s of type %s holds no steps", path, step.Type), new(a.now.UTC())
		a.found.moved = true
	default:
		move(s, step, path)
	}
}

func (a *advance) group(s scope, step plan.Step, path string) {
	inner := a.within(s, step, path)
	var over bool
	var failed string
	if side, most := step.Parallel(); side {
		over, failed = a.parallel(inner, most)
	} else {
		over, failed = a.sequence(inner)
	}
	if !over || a.interrupted(s) {
		return
	}
	if failed == "" {
		a.succeed(path, "", nil)
		return
	}
	a.failed(s, step, path, a.whatFailed(failed))
}

// interrupted says that the walk itself ended the steps: the window closed, or
// the journal turned out to be damaged.
func (a *advance) interrupted(s scope) bool { return !s.cleanup() && a.j.End != nil }

func (a *advance) whatFailed(path string) string {
	rec := a.record(path)
	return document.Cut(fmt.Sprintf("step %s failed: %s", path, rec.Message), document.MaxMessage)
}

func (a *advance) succeed(path, message string, outputs map[string]any) {
	rec := a.record(path)
	rec.Phase, rec.FinishedAt, rec.NotBefore, rec.Outputs = run.StepSucceeded, new(a.now.UTC()), nil, outputs
	rec.Reason, rec.Message = "", message
	a.found.moved = true
}

// failed fails an attempt of a step that holds others. Where it has another, what
// failed in it begins anew then.
func (a *advance) failed(s scope, step plan.Step, path, message string) {
	rec := a.record(path)
	rec.Message = message
	fail(a.j, rec, step, StepResult{Reason: "StepFailed", Permanent: a.rejected(path)}, a.now)
	a.found.moved = true
	if rec.Phase == run.StepRunning {
		a.againBelow(s, step, path)
	}
}

// loop moves the items of the present batch, and looks whether what the batch did
// holds before the next.
func (a *advance) loop(s scope, step plan.Step, path string) {
	rec := a.record(path)
	if !rec.Listed {
		a.leaf(s, step, path)
		return
	}
	if step.Type == plan.TypeForEachNode {
		a.rollout(s, step, path)
		return
	}
	ends := run.LoopBatches(step, len(rec.Items))
	if rec.Batch >= len(ends) {
		a.endLoop(s, step, path)
		return
	}
	from := 0
	if rec.Batch > 0 {
		from = ends[rec.Batch-1]
	}
	over, failed := a.batch(s, step, path, from, ends[rec.Batch])
	switch rec = a.record(path); {
	case !over || a.interrupted(s):
	case failed && step.Properties["onError"] != "continue":
		a.endLoop(s, step, path)
	case step.Properties["until"] != nil && ends[rec.Batch] > 0:
		a.leaf(s, step, path)
	default:
		rec.Batch++
		a.found.moved = true
	}
}

// batch moves the items of one batch: first the ones at work, then as many more as
// may be.
func (a *advance) batch(s scope, step plan.Step, path string, from, to int) (over, failed bool) {
	list := a.items(a.record(path))
	through := map[string]*run.Item{}
	for i := from; i < to; i++ {
		if list[i].Phase == run.StepRunning && a.item(s, step, path, &list[i]) {
			through[list[i].Segment()] = &list[i]
		}
	}
	a.shrink(path, through)
	running, pending := 0, 0
	for _, item := range list[from:to] {
		failed = failed || item.Phase == run.StepFailed
		switch item.Phase {
		case run.StepRunning:
			running++
		case "":
			pending++
		}
	}
	if failed && step.Properties["onError"] != "continue" {
		return running == 0, failed
	}
	for i := from; i < to && running < step.Concurrency(1); i++ {
		if list[i].Phase != "" {
			continue
		}
		if a.heldItem(s, step) {
			break
		}
		a.beginItem(s, step, path, &list[i])
		running++
		pending--
	}
	return running+pending == 0, failed
}

// beginItem makes the records of an item's steps. Those that an earlier round
// left, because they hold what is to be restored, begin anew.
func (a *advance) beginItem(s scope, step plan.Step, path string, item *run.Item) {
	a.notePassage(s, step, true)
	item.Phase = run.StepRunning
	prefix := path + "/" + item.Segment()
	base := max(item.Attempts, a.record(path).ItemBase)
	if a.left(prefix) {
		a.anew(prefix)
	}
	for _, fresh := range pending(a.tree, nil, a.within(s, step, prefix)) {
		if rec := a.record(fresh.Path); rec != nil {
			rec.Base, rec.Attempt = max(rec.Base, base), max(rec.Base, base)
			rec.ItemBase = max(rec.ItemBase, rec.Base)
			continue
		}
		fresh.Base = base
		if plan.IsLoop(fresh.Type) {
			fresh.ItemBase = base
		}
		a.j.Steps = append(a.j.Steps, fresh)
		a.places[fresh.Path] = len(a.j.Steps) - 1
	}
	a.found.moved = true
}

// left says whether an earlier round left records below a path.
func (a *advance) left(path string) bool {
	for i := range a.j.Steps {
		if plan.Below(a.j.Steps[i].Path, path) {
			return true
		}
	}
	return false
}

// maxItemMessage bounds why an item failed, and maxItemMessages for how many of a
// loop that is kept (guesses: the first tell what is wrong).
const (
	maxItemMessage  = 200
	maxItemMessages = 50
)

// item moves the steps of one item, and says whether it is through.
func (a *advance) item(s scope, step plan.Step, path string, item *run.Item) bool {
	prefix := path + "/" + item.Segment()
	inner := a.within(s, step, prefix)
	inner.begun = inner.begun || step.Type == plan.TypeForEachNode
	over, failed := a.sequence(inner)
	if !over || a.interrupted(s) {
		return false
	}
	item.Phase, item.Message = run.StepSucceeded, ""
	if failed != "" {
		item.Phase = run.StepFailed
		if a.told(path) < maxItemMessages {
			item.Message = document.Cut("step "+strings.TrimPrefix(failed, prefix+"/")+": "+a.record(failed).Message, maxItemMessage)
		}
	}
	a.found.moved = true
	return true
}

// told is of how many items a loop says why they failed.
func (a *advance) told(path string) int {
	n := 0
	for _, item := range a.record(path).Items {
		if item.Message != "" {
			n++
		}
	}
	return n
}

// attemptsBelow is the last attempt of anything below a path.
func (a *advance) attemptsBelow(path string) int {
	last := 0
	for _, rec := range a.j.Steps {
		if plan.Below(rec.Path, path) {
			last = max(last, rec.Attempts())
		}
	}
	return last
}

// shrink drops the records of items that are through, but for those that hold something or are
// looked after. What the run needs to know of the others stands with the items and their loop; what
// a step changed whose record stays, only there: whoever looks after it asks who changed it since.
func (a *advance) shrink(loop string, through map[string]*run.Item) {
	if len(through) == 0 {
		return
	}
	holder := a.record(loop)
	changes, approval := holder.Changed, holder.Approval
	stay := a.staying(func(path string) bool { return through[run.SegmentIn(loop, path)] != nil })
	kept := make([]run.Record, 0, len(a.j.Steps))
	for i := range a.j.Steps {
		rec := &a.j.Steps[i]
		item := through[run.SegmentIn(loop, rec.Path)]
		if item == nil {
			kept = append(kept, *rec)
			continue
		}
		a.worked(rec.FinishedAt)
		item.Attempts = max(item.Attempts, rec.Attempts())
		if no := rec.Approval; no != nil && !no.Approved {
			approval = no
		}
		switch {
		case a.keeps(rec):
			kept = append(kept, *rec)
		case stay[rec.Path]:
			kept = append(kept, slim(*rec))
		default:
			changes = mergeChanges(changes, rec.Changed)
		}
	}
	a.records(kept)
	holder = a.record(loop)
	holder.Changed, holder.Approval = changes, approval
}

// keeps says whether a step holds something that is to be put or given back.
func (a *advance) keeps(rec *run.Record) bool {
	return rec.KeepAt != nil || rec.Before != nil && plan.Restores(a.find(rec.Path))
}

// endLoop ends a for-each by how its items ended.
func (a *advance) endLoop(s scope, step plan.Step, path string) {
	rec := a.record(path)
	var done, bad int
	first := ""
	var names []string
	for _, item := range rec.Items {
		switch item.Phase {
		case run.StepSucceeded:
			done++
		case run.StepFailed:
			bad++
			names = append(names, item.Name)
			if first == "" {
				first = fmt.Sprintf("%s: %s", item.Segment(), item.Message)
			}
		}
	}
	outputs := map[string]any{"items": int64(len(rec.Items)), "succeeded": int64(done), "failed": int64(bad)}
	if bad == 0 {
		a.succeed(path, a.loopSays(step, rec.Items, done), outputs)
		return
	}
	if step.Type == plan.TypeForEachNode { // who looks after them has to know all
		as := " stays as its steps left it; "
		if bad > 1 {
			as = " stay as their steps left them; "
		}
		first = document.Cut(strings.Join(names, ", "), document.MaxMessage/2) + as + first
	}
	a.failed(s, step, path, document.Cut(fmt.Sprintf("%d of %d failed, %d are done; %s", bad, len(rec.Items), done, first), document.MaxMessage))
	a.record(path).Outputs = outputs
}

// loopSays is what a loop says that did not fail: one that had nothing to do says
// why, since that may be a selector with a slip.
func (a *advance) loopSays(step plan.Step, items []run.Item, done int) string {
	rolls := step.Type == plan.TypeForEachNode
	idle := 0
	for _, item := range items {
		if item.At == nil && item.Phase == run.StepSucceeded {
			idle++
		}
	}
	switch {
	case len(items) == 0 && rolls:
		return run.NoNodesMessage
	case len(items) == 0 && step.Properties["when"] != nil:
		return "its selector and its when pick nothing: nothing was done"
	case len(items) == 0:
		return "its selector picks nothing: nothing was done"
	case rolls && idle == len(items):
		return fmt.Sprintf("none of its %d nodes had anything to be done", len(items))
	}
	return fmt.Sprintf("%d of %d are done", done, len(items))
}

// endSection goes on after the last step of a section. failed is the first step
// that failed in it; it fails the run unless a later section does.
func (a *advance) endSection(name plan.Section, failed string) {
	switch name {
	case plan.SectionSteps:
		a.release()
		a.j.End = &run.End{Phase: run.Succeeded}
		if failed != "" && a.tryAgain(failed) {
			return
		}
		if failed != "" {
			a.j.End = &run.End{Phase: run.Failed, Reason: "StepFailed", Step: failed, Message: a.whatFailed(failed)}
		}
		a.enter(a.afterSteps())
	case plan.SectionOnFailure:
		a.enter(plan.SectionRestore)
	default:
		a.cleanupFailed(failed)
		a.enter(plan.SectionClosing)
	}
}

// tryAgain begins the run again from its failed step, where the plan has another
// try. What a person rejected is not tried again.
func (a *advance) tryAgain(failed string) bool {
	if a.j.Retries >= a.run.Spec.RetryLimit || a.j.Retried >= MaxRetries || a.rejected("") {
		return false
	}
	a.j.End = nil
	a.j.Retries++
	a.j.RetryAt = new(a.now.Add(Backoff(plan.Retry{}, a.j.Retries)).UTC())
	a.j.Message = document.Cut(fmt.Sprintf("retry %d of %d: %s", a.j.Retries, a.run.Spec.RetryLimit, a.whatFailed(failed)), document.MaxMessage)
	a.againFrom(scope{section: plan.SectionSteps, steps: a.run.Spec.Steps}, false)
	return true
}

// rejected says whether a person rejected something at a path or below it.
func (a *advance) rejected(path string) bool {
	return slices.ContainsFunc(a.j.Steps, func(rec run.Record) bool {
		return rec.Approval != nil && !rec.Approval.Approved && (path == "" || rec.Path == path || plan.Below(rec.Path, path))
	})
}

// againFrom lets steps begin anew: those in order from the first on that failed or
// was not done, those side by side only such, and what depends on them.
func (a *advance) againFrom(s scope, side bool) {
	broke := map[string]bool{}
	hit := false
	for _, step := range s.steps {
		rec := a.record(s.path(step.Name))
		if rec == nil {
			continue
		}
		hit = hit || rec.Phase == run.StepFailed || rec.Phase == run.StepSkipped && rec.Reason != "Condition"
		broke[step.Name] = hit
		hit = hit && !side
	}
	if side {
		dependents(s.steps, broke)
	}
	for _, step := range s.steps {
		if !broke[step.Name] {
			continue
		}
		path := s.path(step.Name)
		if rec := a.record(path); step.Holds() && rec.Phase == run.StepFailed {
			a.againBelow(s, step, path)
		} else if step.Holds() {
			a.anew(path)
		}
		a.again(a.record(path))
	}
}

// dependents adds those that depend on steps, through others too.
func dependents(steps []plan.Step, on map[string]bool) {
	for more := true; more; {
		more = false
		for _, step := range steps {
			if !on[step.Name] && slices.ContainsFunc(step.DependsOn, func(name string) bool { return on[name] }) {
				on[step.Name], more = true, true
			}
		}
	}
}

// againBelow does so in what a step holds.
func (a *advance) againBelow(s scope, step plan.Step, path string) {
	if !plan.IsLoop(step.Type) {
		side, _ := step.Parallel()
		a.againFrom(a.within(s, step, path), side)
		return
	}
	rec := a.record(path)
	rec.Batch = 0 // what its batches did is looked at once more
	list := a.items(rec)
	for i := range list {
		if list[i].Phase == run.StepFailed {
			list[i].Phase, list[i].Message = "", ""
		}
	}
}

// anew lets all that stands at a path and below it begin from nothing. A loop picks
// its items anew, too: what those of the last time left is dropped, but for what
// holds something.
func (a *advance) anew(path string) {
	kept := make([]run.Record, 0, len(a.j.Steps))
	stay := a.staying(func(p string) bool { return plan.Below(p, path) && a.inItem(p, path) })
	for i := range a.j.Steps {
		rec := &a.j.Steps[i]
		at := rec.Path == path || plan.Below(rec.Path, path)
		inItem := at && a.inItem(rec.Path, path)
		if inItem {
			a.worked(rec.FinishedAt)
		}
		if !inItem || stay[rec.Path] {
			kept = append(kept, *rec)
		}
		if at && !inItem {
			last := &kept[len(kept)-1]
			if plan.IsLoop(rec.Type) {
				last.ItemBase = max(rec.Attempts(), a.attemptsBelow(rec.Path))
				last.Listed, last.Items, last.Batch = false, nil, 0
			}
			a.again(last)
		}
	}
	a.records(kept)
}

// inItem says whether a path lies in an item of a loop that stands at or below
// another path.
func (a *advance) inItem(path, under string) bool {
	return slices.ContainsFunc(a.tree.Chain(path), func(l plan.Link) bool {
		return l.Item != "" && (l.Path == under || plan.Below(l.Path, under))
	})
}

// again lets one step begin anew. Its attempts count on, so that what is named by
// them stays apart; what was there before the first of them stays to be restored.
func (a *advance) again(rec *run.Record) {
	a.worked(rec.FinishedAt)
	fresh := run.Record{
		Path: rec.Path, Type: rec.Type, Phase: run.StepPending, Base: max(rec.Base, rec.Attempt), Attempt: max(rec.Base, rec.Attempt), Changed: rec.Changed,
		Listed: rec.Listed, Items: rec.Items, ItemVersion: rec.ItemVersion, ItemKind: rec.ItemKind, Batch: rec.Batch, ItemBase: rec.ItemBase, KeepAt: rec.KeepAt,
	}
	if plan.Restores(a.find(rec.Path)) {
		fresh.Before = rec.Before
	}
	if rec.KeepAt != nil {
		fresh.Memory = rec.Memory
	}
	*rec = fresh
}

// kept adds what leases need beside a move: the ones that are due are renewed. A
// step that is tried again takes its lease anew by itself.
func (a *advance) kept(m Action) Action {
	if m.Act == ActClose || m.Act == ActRelease {
		return m
	}
	acts := map[string]bool{}
	for _, m := range m.All() {
		acts[m.Path] = acts[m.Path] || m.Act != ActWait
	}
	var next time.Time
	for _, rec := range a.j.Steps {
		switch {
		case rec.KeepAt == nil || acts[rec.Path]:
		case a.now.Before(*rec.KeepAt):
			next = schedule.Earliest(next, *rec.KeepAt)
		default:
			m.Besides = append(m.Besides, Action{Act: ActKeep, Path: rec.Path, Step: a.find(rec.Path), WakeAt: a.now.Add(time.Minute)})
		}
	}
	if !next.IsZero() {
		m.Besides = append(m.Besides, Action{Act: ActWait, WakeAt: next})
	}
	return m
}

// closing gives the leases back before the run closes. What cannot be given back
// within a minute, or for want of a right within the time of a cleanup, expires by
// itself.
func (a *advance) closing() Action {
	var moves []Action
	for i := range a.j.Steps {
		rec := &a.j.Steps[i]
		if rec.KeepAt == nil {
			continue
		}
		longest := time.Minute
		if rec.Waits != "" {
			longest = plan.DefaultCleanupDuration
		}
		if since := a.j.SectionAt; since != nil && a.now.Sub(a.since(plan.StepPath(plan.SectionClosing, "x"), *since)) > longest {
			message := strings.TrimSpace(rec.Message + "; what it holds was not given back and expires by itself")
			rec.KeepAt, rec.Message, rec.Waits = nil, waited(message, rec.Waits), ""
			continue
		}
		moves = append(moves, Action{Act: ActRelease, Path: rec.Path, Step: a.find(rec.Path), WakeAt: a.now.Add(time.Minute)})
	}
	if len(moves) == 0 {
		return Action{Act: ActClose}
	}
	m := moves[0]
	m.Besides = moves[1:]
	return m
}
