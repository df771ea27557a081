package workflow_test

import (
	"slices"
	"strings"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

// written takes in a journal that was written, and judges what it says beside the
// one before it.
func (w *ranger) written(next run.Journal, _ workflow.Action) {
	was := w.durable
	w.durable, w.begun = document.Clone(next), true
	for _, rec := range w.durable.Steps {
		old := was.Record(rec.Path)
		if rec.Phase == run.StepRunning && (old == nil || old.Phase != run.StepRunning) {
			w.mayBegin(rec)
		}
		if rec.Phase == run.StepRunning && (old == nil || old.Phase != run.StepRunning || rec.Attempt != old.Attempt) {
			w.triedAgain(rec)
		}
		cut := slices.Contains([]string{"Timeout", "Aborted", "Replaced", "WindowClosed"}, rec.Reason)
		if old != nil && old.Phase == run.StepRunning && rec.Phase == run.StepFailed && cut && !w.g.spot(rec.Path).bush.holds() {
			w.at[rec.Path] = true
		}
		if rec.Type == plan.TypeForEach {
			w.loop(rec, old)
		}
		w.agrees(rec)
	}
	w.bounded()
	w.clock()
}

// triedAgain: attempts count on, whatever is retried, and each retry has its limit.
func (w *ranger) triedAgain(rec run.Record) {
	if rec.Attempt <= w.top[rec.Path] {
		w.fail("%s: attempt %d comes after attempt %d", rec.Path, rec.Attempt, w.top[rec.Path])
	}
	w.top[rec.Path] = rec.Attempt
	w.tries[rec.Path]++
	if most := w.g.attempts(rec.Path); w.tries[rec.Path] > most {
		w.fail("%s is tried %d times, and may be %d times", rec.Path, w.tries[rec.Path], most)
	}
	limit := 1
	if retry := w.g.spot(rec.Path).bush.step.Retry; retry != nil {
		limit += retry.Limit
	}
	if rec.Attempt-rec.Base > limit {
		w.fail("%s: attempt %d of this round, and there are %d", rec.Path, rec.Attempt-rec.Base, limit)
	}
}

func (w *ranger) ended(path string) bool {
	rec := w.durable.Record(path)
	return rec != nil && rec.Phase.Ended() && !rec.Stopping && !w.atWork(path)
}

// atWork says whether something at a path or below it was cut off and is not
// stopped yet.
func (w *ranger) atWork(path string) bool {
	for cut := range w.at {
		if cut == path || strings.HasPrefix(cut, path+"/") {
			return true
		}
	}
	return false
}

// mayBegin judges a step that has just begun.
func (w *ranger) mayBegin(rec run.Record) {
	way := w.g.way(rec.Path)
	s := way[len(way)-1]
	if plan.SectionOf(rec.Path) == plan.SectionSteps {
		w.mayGo(rec.Path, way, w.binds || w.g.run.Spec.OnWindowClose != plan.CloseFinish)
	}
	for i, sibling := range s.siblings {
		if sibling == s.bush {
			if !s.side {
				w.allEnded(rec.Path, s.prefix, s.siblings[:i])
			}
			break
		}
	}
	if !s.side {
		return
	}
	for _, name := range s.bush.step.DependsOn {
		if !w.ended(s.prefix + name) {
			w.fail("%s begins, and what it depends on has not ended: %s", rec.Path, name)
		}
	}
}

func (w *ranger) allEnded(path, prefix string, steps []*bush) {
	for _, earlier := range steps {
		if !w.ended(prefix + earlier.step.Name) {
			w.fail("%s begins before %s has ended", path, prefix+earlier.step.Name)
		}
	}
}

// mayGo: nothing new begins while the plan is paused, nor what asks a gate that
// is closed.
func (w *ranger) mayGo(path string, way []spot, asks bool) {
	if w.paused {
		w.fail("%s begins while the plan is paused", path)
	}
	for _, s := range way {
		asks = asks && s.bush.disrupts()
	}
	if asks && w.gate != nil {
		w.fail("%s begins behind a closed gate", path)
	}
}

// loop judges which items of a loop are at work or done.
func (w *ranger) loop(rec run.Record, old *run.Record) {
	if old != nil && rec.Batch < old.Batch {
		delete(w.holds, rec.Path)
	}
	if rec.Phase != run.StepRunning && rec.Phase != run.StepSucceeded || !rec.Listed {
		return
	}
	b := w.g.spot(rec.Path).bush
	starts := batchStarts(b, len(rec.Items))
	if b.step.Properties["until"] != nil && len(rec.Items) > 0 && rec.Batch > w.holds[rec.Path] {
		w.fail("%s: batch %d is through, and until said so of %d", rec.Path, rec.Batch, w.holds[rec.Path])
	}
	atWork := 0
	for i, item := range rec.Items {
		if item.Phase == run.StepRunning {
			atWork++
		}
		if item.Phase == run.StepRunning && rec.Batch < starts[i] {
			w.fail("%s: %s of batch %d is %s, and %d are through", rec.Path, item.Segment(), starts[i], item.Phase, rec.Batch)
		}
		w.item(rec, old, i)
	}
	if _, most := b.side(); atWork > most || atWork > 1 && b.step.Properties["maxConcurrency"] == nil {
		w.fail("%s: %d items at once", rec.Path, atWork)
	}
}

func (w *ranger) item(rec run.Record, old *run.Record, i int) {
	item := rec.Items[i]
	fresh := old == nil || !old.Listed || old.Items[i].Phase != run.StepRunning
	if item.Phase == run.StepRunning && fresh && plan.SectionOf(rec.Path) == plan.SectionSteps {
		w.mayGo(rec.Path+"/"+item.Segment(), w.g.way(rec.Path), true)
	}
	if !item.Phase.Ended() || w.durable.Section == plan.SectionClosing { // where leases are given back
		return
	}
	for _, left := range w.durable.Steps {
		if strings.HasPrefix(left.Path, rec.Path+"/"+item.Segment()+"/") && left.Before == nil && left.KeepAt == nil {
			w.fail("%s is through, and %s is still in the journal", item.Segment(), left.Path)
		}
	}
}

// batchStarts is, for each item, how many batches are to be through before it.
func batchStarts(b *bush, n int) []int {
	var ends []int
	switch list, _ := b.step.Properties["batches"].([]any); len(list) {
	case 0:
		ends = []int{n}
	case 1:
		ends = []int{1, n}
	default:
		ends = []int{1, max(1, (n*60+99)/100), n}
	}
	ends = slices.Compact(ends)
	out := make([]int, n)
	for i := range out {
		for _, end := range ends {
			if i >= end {
				out[i]++
			}
		}
	}
	return out
}

// agrees judges what a step that holds others says beside what those say.
func (w *ranger) agrees(rec run.Record) {
	b := w.g.spot(rec.Path).bush
	if !b.holds() {
		return
	}
	if rec.Type == plan.TypeForEach {
		w.loopAgrees(rec)
		return
	}
	atWork := 0
	for _, kid := range b.kids {
		child := w.durable.Record(rec.Path + "/" + kid.step.Name)
		if child == nil { // its item is through
			continue
		}
		if child.Phase == run.StepRunning {
			atWork++
		}
		ok := true
		switch rec.Phase {
		case run.StepPending, run.StepSkipped:
			ok = child.Phase == rec.Phase || rec.Base > 0 && child.Phase != run.StepRunning
		case run.StepSucceeded:
			ok = child.Phase == run.StepSucceeded || child.Phase == run.StepSkipped && child.Reason == "Condition"
		case run.StepFailed:
			ok = child.Phase.Ended()
		}
		if !ok {
			w.fail("%s is %s, and in it %s is %s(%s)", rec.Path, rec.Phase, kid.step.Name, child.Phase, child.Reason)
		}
	}
	if _, most := b.side(); atWork > most {
		w.fail("%s: %d at once", rec.Path, atWork)
	}
}

func (w *ranger) loopAgrees(rec run.Record) {
	for _, item := range rec.Items {
		if rec.Phase == run.StepSucceeded && item.Phase != run.StepSucceeded || rec.Phase.Ended() && item.Phase == run.StepRunning {
			w.fail("%s is %s, and of its items %s is %q", rec.Path, rec.Phase, item.Segment(), item.Phase)
		}
	}
	for _, left := range w.durable.Steps {
		if rec.Phase != run.StepRunning && strings.HasPrefix(left.Path, rec.Path+"/") && left.Phase == run.StepRunning {
			w.fail("%s is %s, and %s is %s", rec.Path, rec.Phase, left.Path, left.Phase)
		}
	}
}

// bounded: each path stands once, and there are no more records than steps could
// be at work.
func (w *ranger) bounded() {
	seen := map[string]bool{}
	for _, rec := range w.durable.Steps {
		if seen[rec.Path] {
			w.fail("%s appears twice in the journal", rec.Path)
		}
		seen[rec.Path] = true
	}
}

// clock judges whether the run's time counts as it should.
func (w *ranger) clock() {
	j := w.durable
	w.before = j.HeldSince != nil
	if j.StartedAt == nil {
		return
	}
	w.heldRightly()
	if w.before {
		w.slack += time.Second
	}
	claimed := time.Duration(j.HeldSeconds) * time.Second
	if j.HeldSince != nil {
		claimed += w.now.Sub(*j.HeldSince)
	}
	if claimed > w.held+w.slack || claimed < w.held-w.slack {
		w.fail("it says that it was held for %s, and was for %s (%s)", claimed, w.held, w.slack)
	}
	used := w.now.Sub(*j.StartedAt) - w.held
	limit := w.g.run.Spec.MaxDuration.Duration
	timedOut := j.End != nil && j.End.Reason == "Timeout"
	if timedOut && j.Section == plan.SectionSteps && used < limit-w.slack {
		w.fail("was out of time after %s of %s, held for %s", used, limit, w.held)
	}
	if j.End == nil && used > limit+w.slack && !w.allDone() {
		w.fail("goes on after %s of %s, held for %s", used, limit, w.held)
	}
}

func (w *ranger) allDone() bool {
	for _, rec := range w.durable.Steps {
		if plan.SectionOf(rec.Path) == plan.SectionSteps && !rec.Phase.Ended() {
			return false
		}
	}
	return true
}

// heldRightly: time does not count only while nothing is at work and something
// asks a person or the gate.
func (w *ranger) heldRightly() {
	asks, works := false, ""
	for _, rec := range w.durable.Steps {
		if plan.SectionOf(rec.Path) != plan.SectionSteps || rec.Phase != run.StepRunning || w.g.spot(rec.Path).bush.holds() {
			continue
		}
		if rec.Type == plan.TypeApproval && rec.Approval == nil {
			asks = true
		} else if rec.NotBefore == nil || w.now.Before(*rec.NotBefore) || w.gate == nil && !w.paused {
			works = rec.Path
		}
	}
	held := w.durable.HeldSince != nil
	if held && (works != "" || !asks && w.gate == nil && !w.paused || w.durable.RetryAt != nil || w.durable.End != nil) {
		w.fail("its time does not count, and %q is at work", works)
	}
}

// closes takes in the end of the run: every lease was given back, or is left to
// expire and says so.
func (w *ranger) closes() {
	for key, next := range w.leases {
		path := strings.Trim(key, `"`)
		rec := w.durable.Record(path)
		said := rec != nil && strings.Contains(rec.Message, "expires by itself")
		if !said && w.now.Before(next.Add(leaseTime/2)) {
			w.fail("%s keeps its lease", path)
		}
	}
	w.durable = w.durable.Finish(w.now)
}

// judge is about the whole run.
func (w *ranger) judge() {
	j := w.durable
	if !j.Phase.Ended() {
		w.fail("ends %s", j.Phase)
	}
	if j.StartedAt == nil {
		if len(w.passed) > 0 {
			w.fail("never started, and did something")
		}
		return
	}
	for _, rec := range j.Steps {
		w.judgeStep(rec)
	}
	for key, n := range w.effects {
		if n > 1+w.died {
			w.fail("%s took effect %d times after %d deaths", key, n, w.died)
		}
	}
	for path, value := range w.world {
		rec := j.Record(path)
		if value == "" || plan.SectionOf(path) == plan.SectionFinally {
			continue
		}
		if rec == nil || rec.Restored != run.RestoreFailed {
			w.fail("%s was not put back: it is %q", path, value)
		}
	}
	if len(w.at) > 0 {
		w.fail("was left at work: %v", w.at)
	}
}

func (w *ranger) judgeStep(rec run.Record) {
	j := w.durable
	section := plan.SectionOf(rec.Path)
	switch {
	case section == plan.SectionOnFailure && (j.End.Phase != run.Failed || j.End.Reason == "CleanupFailed"):
		if rec.Phase != run.StepPending || w.passed[rec.Path] {
			w.fail("%s ran in a run that ends %s", rec.Path, end(j))
		}
		return
	case !rec.Phase.Ended():
		w.fail("%s is %s at the end", rec.Path, rec.Phase)
	case rec.Stopping:
		w.fail("%s is not stopped", rec.Path)
	case rec.Phase == run.StepSucceeded && !w.passed[rec.Path] && !w.g.spot(rec.Path).bush.holds():
		w.fail("%s succeeded, and nobody passed it", rec.Path)
	}
	if section == plan.SectionFinally && rec.Phase == run.StepSkipped && rec.Reason == "EarlierFailure" {
		w.fail("%s of finally was not done: %s", rec.Path, rec.Reason)
	}
	if strings.Contains(rec.Path, "/") && slices.ContainsFunc(w.g.way(rec.Path), func(s spot) bool { return s.item != "" }) {
		return // what an item left: its loop says how it ended, or has picked others since
	}
	if j.Phase == run.Succeeded && (rec.Phase == run.StepFailed || rec.Restored == run.RestoreFailed || rec.Phase == run.StepSkipped && rec.Reason != "Condition") {
		w.fail("succeeded with %s %s(%s)", rec.Path, rec.Phase, rec.Reason)
	}
}
