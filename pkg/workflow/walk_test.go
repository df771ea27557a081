package workflow_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/kubectl-maint/kubectl-maint/pkg/coretest"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

// walk drives one run to its end through an agent that dies wherever it can:
// what was not written is lost, what was done in the world stays done.
type walk struct {
	t       *rapid.T
	run     run.Run
	durable run.Journal
	begun   bool // the start was written
	now     time.Time
	since   time.Time // since when the present agent looks
	abort   *run.End
	replace bool
	held    bool
	paused  bool // when the run was asked last
	resume  bool

	crashes int            // left
	done    map[string]int // effects by path and attempt
	passes  map[string]int // passes by path
	value   map[string]int // by path: what a restoring step changed; 0 is how it was
	stopped map[string]bool
	quiet   bool // nothing fails any more
	moved   bool // time went by since the run was asked
}

// dies draws whether the agent dies here.
func (w *walk) dies(where string) bool {
	if w.crashes == 0 || !rapid.Bool().Draw(w.t, "dies "+where) {
		return false
	}
	w.crashes--
	w.now = w.now.Add(rapid.SampledFrom([]time.Duration{0, time.Second, 10 * time.Minute, 20 * time.Minute, 3 * time.Hour}).Draw(w.t, "is away"))
	w.since = w.now
	return true
}

// live is one agent's life: it goes on from what is written, as the agent's loop
// does, and says whether the run has ended.
func (w *walk) live() bool {
	j := w.durable
	if !w.begun {
		j = j.Start(w.now)
	}
	for range 400 {
		sig := workflow.Signals{Abort: w.abort, Replace: w.replace, LeadingSince: w.since}
		if w.paused = w.held; w.held {
			sig.Held = "paused"
		}
		if w.resume {
			sig.Resume = &workflow.Answer{Actor: intent.Actor{Name: "jane"}}
		}
		next, m := workflow.Advance(w.run, j, w.now, sig)
		if !same(next, w.durable) {
			if w.dies("before a write") {
				return false
			}
			w.durable, w.begun = document.Clone(next), true
			if w.dies("after a write") {
				return false
			}
		}
		j = document.Clone(w.durable)
		w.people()
		if m.Act == workflow.ActClose {
			w.durable = j.Finish(w.now)
			return true
		}
		after, ok := w.act(j, m)
		if !ok {
			return false
		}
		j = after
	}
	w.t.Fatalf("the run does not end: %s", phases(j))
	return false
}

func same(a, b run.Journal) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}

// people ask for things at any time; in the end they have asked for all they will.
func (w *walk) people() {
	if w.quiet {
		w.held = false
		return
	}
	switch rapid.IntRange(0, 30).Draw(w.t, "people") {
	case 1:
		w.abort = &run.End{Phase: run.Aborted, Reason: "Aborted", Message: "by jane"}
	case 2:
		w.replace = true
	case 3, 4:
		w.held = !w.held
	case 5, 6, 7:
		w.resume = !w.resume
	case 8:
		w.now = w.now.Add(time.Duration(rapid.IntRange(1, 50).Draw(w.t, "minutes")) * time.Minute)
		w.moved = true
	}
}

func (w *walk) act(j run.Journal, m workflow.Action) (run.Journal, bool) {
	switch m.Act {
	case workflow.ActWait:
		w.later(m.WakeAt)
		return j, true
	case workflow.ActPass:
		return w.pass(j, m)
	case workflow.ActStop:
		if w.dies("before a stop") {
			return j, false
		}
		w.stopped[m.Path] = true
		return workflow.NoteStop(j, m.Path, nil), !w.dies("after a stop")
	case workflow.ActRestore:
		if w.dies("before a restore") {
			return j, false
		}
		w.value[m.Path] = 0
		return workflow.NoteRestore(j, m.Path, run.RestoreDone, "", nil), !w.dies("after a restore")
	}
	w.t.Fatalf("unknown act %d", m.Act)
	return j, false
}

// later lets time go by until the run wants to look again.
func (w *walk) later(wake time.Time) {
	if wake.IsZero() && !w.paused {
		w.t.Fatal("waits for ever")
	}
	if wake.IsZero() { // only a person ends a pause
		w.held = false
		w.now = w.now.Add(5 * time.Hour)
		return
	}
	if !wake.After(w.now) && !w.moved {
		w.t.Fatalf("wakes at %s, and it is %s", wake, w.now)
	}
	if wake.After(w.now) {
		w.now = wake
	}
	w.moved = false
}

// pass is what executors do: record first, then act, then say so.
func (w *walk) pass(j run.Journal, m workflow.Action) (run.Journal, bool) {
	rec := coretest.Record(w.durable, m.Path)
	if rec.Phase != run.StepRunning || rec.Attempt < 1 {
		w.t.Fatalf("%s is passed, and written is %s, attempt %d", m.Path, rec.Phase, rec.Attempt)
	}
	if rec.NotBefore != nil && w.now.Before(*rec.NotBefore) {
		w.t.Fatalf("%s is tried again before its time", m.Path)
	}
	if strings.HasPrefix(m.Path, "b") {
		for _, earlier := range w.durable.Steps[:1] {
			if !earlier.Phase.Ended() {
				w.t.Fatalf("%s begins before %s has ended", m.Path, earlier.Path)
			}
		}
	}
	w.passes[m.Path]++
	if m.Step.Type == "suspend" {
		return w.suspend(j, m, rec)
	}
	if restoring, _ := m.Step.Properties["restoreAfter"].(bool); restoring && rec.Before == nil {
		return workflow.Note(w.run, j, m.Path, before("0"), w.now), true
	}
	outcome := "done"
	if !w.quiet {
		outcome = rapid.SampledFrom([]string{"done", "done", "done", "fails", "fails for good", "takes its time", "dies before", "dies after"}).Draw(w.t, m.Path)
	}
	if outcome == "dies before" && w.dies("before an effect") {
		return j, false
	}
	if outcome == "takes its time" {
		if m.WakeAt.IsZero() {
			w.now = w.now.Add(time.Minute)
			return j, true
		}
		w.later(earlier(m.WakeAt, w.now.Add(7*time.Minute)))
		return j, true
	}
	w.effect(m, rec)
	if outcome == "dies after" && w.dies("after an effect") {
		return j, false
	}
	switch outcome {
	case "fails":
		return workflow.Note(w.run, j, m.Path, failed("Boom"), w.now), true
	case "fails for good":
		return workflow.Note(w.run, j, m.Path, permanent("Boom"), w.now), true
	}
	return workflow.Note(w.run, j, m.Path, workflow.StepResult{Done: true}, w.now), true
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// effect is what the world sees: keyed by run and path, counted by attempt.
func (w *walk) effect(m workflow.Action, rec run.Record) {
	w.done[fmt.Sprintf("%s#%d", m.Path, rec.Attempt)]++
	if rec.Before != nil {
		w.value[m.Path] = 1
	}
	limit := 0
	if m.Step.Retry != nil {
		limit = m.Step.Retry.Limit
	}
	if rec.Attempt > limit+1 {
		w.t.Fatalf("%s: attempt %d of %d", m.Path, rec.Attempt, limit+1)
	}
}

func (w *walk) suspend(j run.Journal, m workflow.Action, rec run.Record) (run.Journal, bool) {
	switch {
	case rec.ResumeAt == nil:
		until := w.now.Add(20 * time.Minute)
		return workflow.Note(w.run, j, m.Path, workflow.StepResult{ResumeAt: &until}, w.now), true
	case rec.Resumed != nil || !w.now.Before(*rec.ResumeAt):
		return workflow.Note(w.run, j, m.Path, workflow.StepResult{Done: true}, w.now), true
	}
	w.later(earlier(m.WakeAt, *rec.ResumeAt))
	return j, true
}

// The run always ends; what it promised is done, whatever dies in between.
func TestTheWalk(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := coretest.NewRun(restoring(0), stepOf(0, func(s *plan.Step) { s.Retry = &plan.Retry{Limit: rapid.IntRange(0, 3).Draw(t, "retries")} }),
			stepOf(1, func(s *plan.Step) { s.Type = "suspend" }),
			stepOf(2, func(s *plan.Step) {
				s.If = rapid.SampledFrom([]string{"", "always", "steps.a.phase == 'Failed'"}).Draw(t, "if")
			}),
			func(s *plan.Spec) {
				if rapid.Bool().Draw(t, "restores two") {
					s.Steps = append(s.Steps, plan.Step{Name: "d", Type: "scale", Properties: map[string]any{"restoreAfter": true}, Timeout: coretest.Duration("10m")})
				}
			}, onFailure("of1", "of2"), finally("fin1", "fin2"))
		w := &walk{
			t: t, run: r, durable: workflow.NewJournal(r), now: coretest.Clock("02:00"), since: coretest.Clock("02:00"), crashes: rapid.IntRange(0, 12).Draw(t, "crashes"),
			done: map[string]int{}, passes: map[string]int{}, value: map[string]int{}, stopped: map[string]bool{},
		}
		for lives := 0; ; lives++ {
			if lives > 15 {
				w.crashes = 0
			}
			if lives > 30 {
				t.Fatalf("the run does not end: %s", phases(w.durable))
			}
			w.quiet = w.crashes == 0 && lives > 10
			if w.live() {
				break
			}
		}
		w.judge()
	})
}

func (w *walk) judge() {
	j, t := w.durable, w.t
	if !j.Phase.Ended() {
		t.Fatalf("ends %s", j.Phase)
	}
	if j.StartedAt == nil { // it was asked to end before its first step
		if len(w.done) > 0 || len(w.passes) > 0 {
			t.Fatalf("never started, and did %v", w.done)
		}
		return
	}
	for _, rec := range j.Steps {
		section := plan.SectionOf(rec.Path)
		onFailureRan := j.End.Phase == run.Failed && j.End.Reason != "CleanupFailed"
		switch {
		case section == plan.SectionOnFailure && !onFailureRan:
			if rec.Phase != run.StepPending || w.passes[rec.Path] > 0 {
				t.Fatalf("%s ran in a run that ends %s", rec.Path, end(j))
			}
		case !rec.Phase.Ended():
			t.Fatalf("%s is %s at the end", rec.Path, rec.Phase)
		case section == plan.SectionFinally || section == plan.SectionOnFailure:
			// Each is tried, unless the ones before it took all of their 15 minutes.
			if w.passes[rec.Path] == 0 && rec.Reason != "Timeout" {
				t.Fatalf("%s never ran: %s(%s)", rec.Path, rec.Phase, rec.Reason)
			}
		}
		if w.value[rec.Path] != 0 && rec.Restored == "" {
			t.Fatalf("%s was not put back: %s", rec.Path, phases(j))
		}
		if rec.Stopping || rec.Phase == run.StepFailed && (rec.Reason == "Timeout" || rec.Reason == "Aborted" || rec.Reason == "Replaced") && !w.stopped[rec.Path] {
			t.Fatalf("what %s left at work was not stopped", rec.Path)
		}
		if rec.Phase == run.StepSucceeded && w.passes[rec.Path] == 0 {
			t.Fatalf("%s succeeded, and nobody passed it", rec.Path)
		}
		if j.Phase == run.Succeeded && (rec.Phase == run.StepFailed || rec.Restored == run.RestoreFailed || rec.Phase == run.StepSkipped && rec.Reason != "Condition") {
			t.Fatalf("succeeded with %s %s(%s)", rec.Path, rec.Phase, rec.Reason)
		}
	}
	if w.abort == nil && j.Phase == run.Aborted || !w.replace && j.Phase == run.Replaced {
		t.Fatalf("ends %s, and nobody asked for it", j.Phase)
	}
}

// Without anybody's doing, a crash at any one point changes nothing about how the
// run ends. Every point is tried.
func TestOneCrashAtEveryPoint(t *testing.T) {
	r := coretest.NewRun(restoring(0), stepOf(1, func(s *plan.Step) { s.Type = "suspend" }), onFailure("of"), finally("fin"))
	for _, fails := range []bool{false, true} {
		want := ""
		for point := 0; ; point++ {
			got, effects, reached := crashAt(t, r, point, fails)
			if point == 0 {
				want = got // point 0 never comes: nobody dies
			}
			if got != want {
				t.Fatalf("dying at point %d: %s, not %s", point, got, want)
			}
			for key, n := range effects {
				if n > 2 {
					t.Fatalf("dying at point %d: %s took effect %d times", point, key, n)
				}
			}
			if !reached && point > 0 {
				t.Logf("%d points", point-1)
				break
			}
		}
	}
}

// crashAt runs to the end with one death at the n-th point where one can happen.
func crashAt(t *testing.T, r run.Run, point int, fails bool) (phasesAtEnd string, effects map[string]int, reached bool) {
	t.Helper()
	durable, now, begun := workflow.NewJournal(r), coretest.Clock("02:00"), false
	effects = map[string]int{}
	n := 0
	dies := func() bool {
		n++
		if n == point {
			reached = true
		}
		return n == point
	}
life:
	for range 3 {
		j := durable
		if !begun {
			j = j.Start(now)
		}
		for range 200 {
			next, m := workflow.Advance(r, j, now, workflow.Signals{})
			if !same(next, durable) {
				if dies() {
					continue life
				}
				durable, begun = document.Clone(next), true
				if dies() {
					continue life
				}
			}
			j = document.Clone(durable)
			switch m.Act {
			case workflow.ActClose:
				durable = j.Finish(now)
				return phases(durable) + " " + end(durable), effects, reached
			case workflow.ActRestore:
				effects["restore "+m.Path]++
				if dies() {
					continue life
				}
				j = workflow.NoteRestore(j, m.Path, run.RestoreDone, "", nil)
			case workflow.ActPass:
				rec := coretest.Record(durable, m.Path)
				switch {
				case m.Step.Type == "suspend" && rec.ResumeAt == nil:
					until := now.Add(time.Minute)
					j = workflow.Note(r, j, m.Path, workflow.StepResult{ResumeAt: &until}, now)
					continue
				case m.Step.Type == "suspend" && now.Before(*rec.ResumeAt):
					now = *rec.ResumeAt
					continue
				case m.Step.Type == "scale" && rec.Before == nil:
					j = workflow.Note(r, j, m.Path, before("1"), now)
					continue
				}
				effects[m.Path]++
				if dies() {
					continue life
				}
				rep := workflow.StepResult{Done: true}
				if fails && m.Path == "c" {
					rep = failed("Boom")
				}
				j = workflow.Note(r, j, m.Path, rep, now)
			default:
				t.Fatalf("unexpected act %d", m.Act)
			}
		}
	}
	t.Fatal("the run does not end")
	return "", nil, false
}
