package workflow_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/coretest"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

// stage plays a run: it does what Advance says, with scripted passes, and notes
// each act. It is the agent's loop without a cluster.
type stage struct {
	t       testing.TB
	run     run.Run
	j       run.Journal
	now     time.Time
	sig     workflow.Signals
	script  map[string][]workflow.StepResult // per path; the last one stays; default: done
	at      map[string]func(*stage)          // before the first pass of a path
	acts    []string
	restore string // how restores end
	why     string // and what they say
}

func played(t *testing.T, r run.Run, edits ...func(*stage)) *stage {
	t.Helper()
	s := &stage{t: t, run: r, now: coretest.Clock("02:00"), j: workflow.NewJournal(r).Start(coretest.Clock("02:00")), script: map[string][]workflow.StepResult{}, at: map[string]func(*stage){}, restore: run.RestoreDone}
	for _, e := range edits {
		e(s)
	}
	s.play()
	return s
}

func (s *stage) play() {
	s.t.Helper()
	for range 500 {
		j, m := workflow.Advance(s.run, s.j, s.now, s.sig)
		if again, same := workflow.Advance(s.run, j, s.now, s.sig); !reflect.DeepEqual(again, j) || !sameMove(m, same) {
			s.t.Fatalf("asked twice, it moves on: %s", cmp.Diff(j, again))
		}
		s.j = j
		if s.did(m) {
			continue
		}
		if m.Act == workflow.ActClose {
			s.j = s.j.Finish(s.now)
			return
		}
		wake := m.WakeAt
		for _, beside := range m.Besides {
			if beside.Act != workflow.ActCheckDrift && (wake.IsZero() || beside.WakeAt.Before(wake)) {
				wake = beside.WakeAt
			}
		}
		s.note("wait until %s", stampOf(wake))
		if wake.IsZero() || s.sig.Held != "" && len(s.acts) > 50 {
			return
		}
		s.now = wake
	}
	s.t.Fatalf("the run does not end: %v", s.acts[len(s.acts)-20:])
}

// did does the acts of a move, one after another, and says whether there were any.
func (s *stage) did(m workflow.Action) bool {
	any := false
	for _, m := range m.All() {
		any = any || m.Act != workflow.ActWait && m.Act != workflow.ActClose && m.Act != workflow.ActCheckDrift
		switch m.Act {
		case workflow.ActPass:
			s.pass(m)
		case workflow.ActStop:
			s.note("stop %s", m.Path)
			s.j = workflow.NoteStop(s.j, m.Path, nil)
		case workflow.ActRestore:
			s.note("restore %s", m.Path)
			s.j = workflow.NoteRestore(s.j, m.Path, s.restore, s.why, nil)
		case workflow.ActKeep:
			s.note("keep %s", m.Path)
			s.j = workflow.NoteKeep(s.j, m.Path, nil, s.now.Add(5*time.Minute), "")
		case workflow.ActRelease:
			s.note("release %s", m.Path)
			s.j = workflow.NoteRelease(s.j, m.Path, "")
		}
	}
	return any
}

func sameMove(a, b workflow.Action) bool { return a.Act == b.Act && a.Path == b.Path }

func (s *stage) note(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	if len(s.acts) == 0 || s.acts[len(s.acts)-1] != line {
		s.acts = append(s.acts, line)
	}
}

func stampOf(t time.Time) string {
	if t.IsZero() {
		return "told"
	}
	return t.Format("15:04:05")
}

// notYet is a pass with nothing to write: it is called again at its WakeAt.
var notYet = workflow.StepResult{Reason: "not yet"} //nolint:gochecknoglobals // a value

func (s *stage) pass(m workflow.Action) {
	if before := s.at[m.Path]; before != nil {
		delete(s.at, m.Path)
		before(s)
		return
	}
	rec := coretest.Record(s.j, m.Path)
	s.note("%s #%d", m.Path, rec.Attempt)
	rep := workflow.StepResult{Done: true}
	if list := s.script[m.Path]; len(list) > 0 {
		rep = list[0]
		if len(list) > 1 {
			s.script[m.Path] = list[1:]
		}
	}
	if rep.Reason == "not yet" {
		if m.WakeAt.IsZero() {
			s.t.Fatalf("%s would wait for ever", m.Path)
		}
		s.now = m.WakeAt
		return
	}
	s.now = s.now.Add(time.Second)
	s.j = workflow.Note(s.run, s.j, m.Path, rep, s.now)
}

// phases are the steps' ends in short.
func phases(j run.Journal) string {
	var out []string
	for _, r := range j.Steps {
		text := r.Path + "=" + string(r.Phase)
		if r.Reason != "" {
			text += "(" + r.Reason + ")"
		}
		if r.Restored != "" {
			text += "~" + r.Restored
		}
		out = append(out, text)
	}
	return strings.Join(out, " ")
}

func end(j run.Journal) string {
	out := string(j.Phase)
	if j.End != nil && j.End.Reason != "" {
		out += "(" + j.End.Reason + ")"
	}
	return out
}

func script(path string, reports ...workflow.StepResult) func(*stage) {
	return func(s *stage) { s.script[path] = reports }
}

func when(path string, do func(*stage)) func(*stage) {
	return func(s *stage) { s.at[path] = do }
}

func failed(reason string) workflow.StepResult {
	return workflow.StepResult{Failed: true, Reason: reason, Message: reason}
}

func permanent(reason string) workflow.StepResult { r := failed(reason); r.Permanent = true; return r }

func before(s string) workflow.StepResult { return workflow.StepResult{Before: json.RawMessage(s)} }

func abort(s *stage) {
	s.sig.Abort = &run.End{Phase: run.Aborted, Reason: "Aborted", Message: "aborted by jane", Actor: "jane"}
}

func replaced(s *stage) { s.sig.Replace = true }

func onFailure(names ...string) func(*plan.Spec) {
	return func(s *plan.Spec) { s.OnFailure = append(s.OnFailure, webhooks(names)...) }
}

func finally(names ...string) func(*plan.Spec) {
	return func(s *plan.Spec) { s.Finally = append(s.Finally, webhooks(names)...) }
}

func webhooks(names []string) (out []plan.Step) {
	for _, n := range names {
		out = append(out, plan.Step{Name: n, Type: "webhook"})
	}
	return out
}

func stepOf(i int, edit func(*plan.Step)) func(*plan.Spec) {
	return func(s *plan.Spec) { edit(&s.Steps[i]) }
}

func when1(i int, text string) func(*plan.Spec) { return stepOf(i, func(s *plan.Step) { s.If = text }) }

func restoring(i int) func(*plan.Spec) {
	return stepOf(i, func(s *plan.Step) { s.Type, s.Properties = "scale", map[string]any{"restoreAfter": true} })
}

func timeout(i int, d string) func(*plan.Spec) {
	return stepOf(i, func(s *plan.Step) { s.Timeout = coretest.Duration(d) })
}

func TestRuns(t *testing.T) {
	retries := stepOf(0, func(s *plan.Step) {
		s.Retry = &plan.Retry{Limit: 2, Backoff: coretest.Duration("10s"), MaxBackoff: coretest.Duration("15s")}
	})
	all := []func(*plan.Spec){onFailure("of"), finally("fin")}
	with := func(edits ...func(*plan.Spec)) run.Run { return coretest.NewRun(append(edits, all...)...) }
	for _, c := range []struct {
		name  string
		run   run.Run
		edits []func(*stage)
		acts  string
		steps string
		end   string
	}{
		{
			"all is well", with(), nil,
			"a #1, b #1, c #1, finally/fin #1",
			"a=Succeeded b=Succeeded c=Succeeded onFailure/of=Pending finally/fin=Succeeded", "Succeeded",
		},
		{
			"a failed step: the later ones are skipped, onFailure and finally run", with(),
			[]func(*stage){script("b", failed("Boom"))},
			"a #1, b #1, onFailure/of #1, finally/fin #1",
			"a=Succeeded b=Failed(Boom) c=Skipped(EarlierFailure) onFailure/of=Succeeded finally/fin=Succeeded", "Failed(StepFailed)",
		},
		{
			"if: always runs after a failure", with(when1(2, "always")),
			[]func(*stage){script("a", failed("Boom"))},
			"a #1, c #1, onFailure/of #1, finally/fin #1",
			"a=Failed(Boom) b=Skipped(EarlierFailure) c=Succeeded onFailure/of=Succeeded finally/fin=Succeeded", "Failed(StepFailed)",
		},
		{
			"if: a condition over a failed step", with(when1(1, "steps['a'].phase == 'Failed' && steps.a.reason == 'Boom'")),
			[]func(*stage){script("a", failed("Boom"))},
			"a #1, b #1, onFailure/of #1, finally/fin #1",
			"a=Failed(Boom) b=Succeeded c=Skipped(EarlierFailure) onFailure/of=Succeeded finally/fin=Succeeded", "Failed(StepFailed)",
		},
		{
			"if: false is no failure", with(when1(1, "false")), nil,
			"a #1, c #1, finally/fin #1",
			"a=Succeeded b=Skipped(Condition) c=Succeeded onFailure/of=Pending finally/fin=Succeeded", "Succeeded",
		},
		{
			"if: over outputs", with(when1(1, "steps.a.outputs.n > 2")),
			[]func(*stage){script("a", workflow.StepResult{Done: true, Outputs: map[string]any{"n": 3.0}})},
			"a #1, b #1, c #1, finally/fin #1",
			"a=Succeeded b=Succeeded c=Succeeded onFailure/of=Pending finally/fin=Succeeded", "Succeeded",
		},
		{
			"if: what is missing is an error", with(when1(1, "steps.a.outputs.n > 2")), nil,
			"a #1, onFailure/of #1, finally/fin #1",
			"a=Succeeded b=Failed(BadCondition) c=Skipped(EarlierFailure) onFailure/of=Succeeded finally/fin=Succeeded", "Failed(StepFailed)",
		},
		{
			"retries, with a backoff that doubles to its bound", with(retries),
			[]func(*stage){script("a", failed("Once"), failed("Twice"), workflow.StepResult{Done: true})},
			"a #1, wait until 02:00:11, a #2, wait until 02:00:27, a #3, b #1, c #1, finally/fin #1",
			"a=Succeeded b=Succeeded c=Succeeded onFailure/of=Pending finally/fin=Succeeded", "Succeeded",
		},
		{
			"retries have an end", with(retries),
			[]func(*stage){script("a", failed("Boom"))},
			"a #1, wait until 02:00:11, a #2, wait until 02:00:27, a #3, onFailure/of #1, finally/fin #1",
			"a=Failed(Boom) b=Skipped(EarlierFailure) c=Skipped(EarlierFailure) onFailure/of=Succeeded finally/fin=Succeeded", "Failed(StepFailed)",
		},
		{
			"what no attempt can mend is not retried", with(retries),
			[]func(*stage){script("a", permanent("Forbidden"))},
			"a #1, onFailure/of #1, finally/fin #1",
			"a=Failed(Forbidden) b=Skipped(EarlierFailure) c=Skipped(EarlierFailure) onFailure/of=Succeeded finally/fin=Succeeded", "Failed(StepFailed)",
		},
		{
			"a step's timeout spans its attempts", with(retries, timeout(0, "15s")),
			[]func(*stage){script("a", failed("Boom"))},
			"a #1, wait until 02:00:11, a #2, wait until 02:00:15, stop a, onFailure/of #1, finally/fin #1",
			"a=Failed(Timeout) b=Skipped(EarlierFailure) c=Skipped(EarlierFailure) onFailure/of=Succeeded finally/fin=Succeeded", "Failed(StepFailed)",
		},
		{
			"a step that hangs is stopped at its timeout", with(timeout(0, "5m")),
			[]func(*stage){script("a", notYet)},
			"a #1, stop a, onFailure/of #1, finally/fin #1",
			"a=Failed(Timeout) b=Skipped(EarlierFailure) c=Skipped(EarlierFailure) onFailure/of=Succeeded finally/fin=Succeeded", "Failed(StepFailed)",
		},
		{
			"maxDuration: then onFailure and finally", with(),
			[]func(*stage){script("b", notYet)},
			"a #1, b #1, stop b, onFailure/of #1, finally/fin #1",
			"a=Succeeded b=Failed(Timeout) c=Skipped(Timeout) onFailure/of=Succeeded finally/fin=Succeeded", "Failed(Timeout)",
		},
		{
			"maxDuration noticed after the last step (nobody was there): the run is what its steps are", with(),
			[]func(*stage){script("c", workflow.StepResult{Done: true}), when("finally/fin", func(*stage) {}), func(s *stage) {
				s.j = run.Journal{}
				s.j = workflow.NewJournal(s.run).Start(s.now)
				for i := range 3 {
					s.j.Steps[i].Phase = run.StepSucceeded
				}
				s.now = s.now.Add(5 * time.Hour)
			}},
			"finally/fin #1",
			"a=Succeeded b=Succeeded c=Succeeded onFailure/of=Pending finally/fin=Succeeded", "Succeeded",
		},
		{
			"abort: no onFailure, but finally", with(),
			[]func(*stage){when("b", abort)},
			"a #1, stop b, finally/fin #1",
			"a=Succeeded b=Failed(Aborted) c=Skipped(Aborted) onFailure/of=Pending finally/fin=Succeeded", "Aborted(Aborted)",
		},
		{
			"replaced: as an abort", with(),
			[]func(*stage){when("b", replaced)},
			"a #1, stop b, finally/fin #1",
			"a=Succeeded b=Failed(Replaced) c=Skipped(Replaced) onFailure/of=Pending finally/fin=Succeeded", "Replaced(Replaced)",
		},
		{
			"abort between attempts", with(retries),
			[]func(*stage){script("a", failed("Boom")), func(s *stage) {
				s.script["a"] = []workflow.StepResult{failed("Boom")}
				s.at["a"] = func(s *stage) { s.at["a"] = abort }
			}},
			"stop a, finally/fin #1",
			"a=Failed(Aborted) b=Skipped(Aborted) c=Skipped(Aborted) onFailure/of=Pending finally/fin=Succeeded", "Aborted(Aborted)",
		},
		{
			"abort in onFailure: it goes on, the run stays Failed", with(),
			[]func(*stage){script("a", failed("Boom")), when("onFailure/of", abort)},
			"a #1, onFailure/of #1, finally/fin #1",
			"a=Failed(Boom) b=Skipped(EarlierFailure) c=Skipped(EarlierFailure) onFailure/of=Succeeded finally/fin=Succeeded", "Failed(StepFailed)",
		},
		{
			"abort in finally: it goes on, the run stays Succeeded", with(),
			[]func(*stage){when("finally/fin", abort)},
			"a #1, b #1, c #1, finally/fin #1",
			"a=Succeeded b=Succeeded c=Succeeded onFailure/of=Pending finally/fin=Succeeded", "Succeeded",
		},
		{
			"abort between admission and first step: it never started, nothing runs", with(),
			[]func(*stage){abort},
			"",
			"a=Skipped b=Skipped c=Skipped onFailure/of=Skipped finally/fin=Skipped", "Aborted(aborted)",
		},
		{
			"replaced between admission and first step", with(),
			[]func(*stage){replaced},
			"",
			"a=Skipped b=Skipped c=Skipped onFailure/of=Skipped finally/fin=Skipped", "Aborted(superseded)",
		},
		{
			"restores, the last first, before finally", with(restoring(0), restoring(1)),
			[]func(*stage){script("a", before("1"), workflow.StepResult{Done: true}), script("b", before("2"), workflow.StepResult{Done: true})},
			"a #1, b #1, c #1, restore b, restore a, finally/fin #1",
			"a=Succeeded~done b=Succeeded~done c=Succeeded onFailure/of=Pending finally/fin=Succeeded", "Succeeded",
		},
		{
			"restores also after a failure, with the failed step itself", with(restoring(0), restoring(1)),
			[]func(*stage){script("a", before("1"), workflow.StepResult{Done: true}), script("b", before("2"), failed("Boom"))},
			"a #1, b #1, onFailure/of #1, restore b, restore a, finally/fin #1",
			"a=Succeeded~done b=Failed(Boom)~done c=Skipped(EarlierFailure) onFailure/of=Succeeded finally/fin=Succeeded", "Failed(StepFailed)",
		},
		{
			"restores also after an abort", with(restoring(0)),
			[]func(*stage){script("a", before("1"), workflow.StepResult{Done: true}), when("b", abort)},
			"a #1, stop b, restore a, finally/fin #1",
			"a=Succeeded~done b=Failed(Aborted) c=Skipped(Aborted) onFailure/of=Pending finally/fin=Succeeded", "Aborted(Aborted)",
		},
		{
			"restores nothing that was not found", with(restoring(0)), nil,
			"a #1, b #1, c #1, finally/fin #1",
			"a=Succeeded b=Succeeded c=Succeeded onFailure/of=Pending finally/fin=Succeeded", "Succeeded",
		},
		{
			"restores nothing where the step does not ask", with(),
			[]func(*stage){script("a", before("1"), workflow.StepResult{Done: true})},
			"a #1, b #1, c #1, finally/fin #1",
			"a=Succeeded b=Succeeded c=Succeeded onFailure/of=Pending finally/fin=Succeeded", "Succeeded",
		},
		{
			"restores where a ${…} asked for it", with(stepOf(0, func(s *plan.Step) {
				s.Properties = map[string]any{"restoreAfter": "${run.parameters.undo == 'yes'}"}
			})),
			[]func(*stage){script("a", before("1"), workflow.StepResult{Done: true})},
			"a #1, b #1, c #1, restore a, finally/fin #1",
			"a=Succeeded~done b=Succeeded c=Succeeded onFailure/of=Pending finally/fin=Succeeded", "Succeeded",
		},
		{
			"a failed restore is no success", with(restoring(0), restoring(1)),
			[]func(*stage){script("a", before("1"), workflow.StepResult{Done: true}), script("b", before("2"), workflow.StepResult{Done: true}), func(s *stage) { s.restore = run.RestoreFailed }},
			"a #1, b #1, c #1, restore b, restore a, finally/fin #1",
			"a=Succeeded~failed b=Succeeded~failed c=Succeeded onFailure/of=Pending finally/fin=Succeeded", "Failed(CleanupFailed)",
		},
		{
			"somebody's change that stays is none", with(restoring(0)),
			[]func(*stage){script("a", before("1"), workflow.StepResult{Done: true}), func(s *stage) { s.restore = run.RestoreChanged }},
			"a #1, b #1, c #1, restore a, finally/fin #1",
			"a=Succeeded~changed b=Succeeded c=Succeeded onFailure/of=Pending finally/fin=Succeeded", "Succeeded",
		},
		{
			"a failed finally is no success, and the others run", coretest.NewRun(finally("x", "y")),
			[]func(*stage){script("finally/x", failed("Boom"))},
			"a #1, b #1, c #1, finally/x #1, finally/y #1",
			"a=Succeeded b=Succeeded c=Succeeded finally/x=Failed(Boom) finally/y=Succeeded", "Failed(CleanupFailed)",
		},
		{
			"a failed finally after a failure keeps the first reason", coretest.NewRun(finally("x")),
			[]func(*stage){script("a", failed("First")), script("finally/x", failed("Boom"))},
			"a #1, finally/x #1",
			"a=Failed(First) b=Skipped(EarlierFailure) c=Skipped(EarlierFailure) finally/x=Failed(Boom)", "Failed(StepFailed)",
		},
		{
			"finally has 15 minutes, and what was not done is no success", coretest.NewRun(finally("x", "y")),
			[]func(*stage){script("finally/x", notYet)},
			"a #1, b #1, c #1, finally/x #1, stop finally/x",
			"a=Succeeded b=Succeeded c=Succeeded finally/x=Failed(Timeout) finally/y=Skipped(Timeout)", "Failed(CleanupFailed)",
		},
		{
			"a finally that was cut off in between is no success either", coretest.NewRun(finally("x", "y")),
			[]func(*stage){when("finally/y", func(s *stage) {
				s.j.Steps[4].Phase, s.j.Steps[4].StartedAt = run.StepPending, nil // died after x
				s.now = s.now.Add(16 * time.Minute)
			})},
			"a #1, b #1, c #1, finally/x #1",
			"a=Succeeded b=Succeeded c=Succeeded finally/x=Succeeded finally/y=Skipped(Timeout)", "Failed(CleanupFailed)",
		},
		{
			"the 15 minutes count from when somebody is there to clean up", coretest.NewRun(finally("x", "y")),
			[]func(*stage){when("finally/y", func(s *stage) {
				s.j.Steps[4].Phase, s.j.Steps[4].StartedAt = run.StepPending, nil
				s.now = s.now.Add(16 * time.Hour)
				s.sig.LeadingSince = s.now
			})},
			"a #1, b #1, c #1, finally/x #1, finally/y #1",
			"a=Succeeded b=Succeeded c=Succeeded finally/x=Succeeded finally/y=Succeeded", "Succeeded",
		},
		{
			"onFailure has 15 minutes of its own, then finally has", with(),
			[]func(*stage){script("a", failed("Boom")), script("onFailure/of", notYet)},
			"a #1, onFailure/of #1, stop onFailure/of, finally/fin #1",
			"a=Failed(Boom) b=Skipped(EarlierFailure) c=Skipped(EarlierFailure) onFailure/of=Failed(Timeout) finally/fin=Succeeded", "Failed(StepFailed)",
		},
		{
			"after a failure with no onFailure", coretest.NewRun(finally("x")),
			[]func(*stage){script("c", failed("Boom"))},
			"a #1, b #1, c #1, finally/x #1",
			"a=Succeeded b=Succeeded c=Failed(Boom) finally/x=Succeeded", "Failed(StepFailed)",
		},
		{
			"conditions in finally see how the run went", coretest.NewRun(func(s *plan.Spec) {
				s.Finally = []plan.Step{{Name: "bad", Type: "webhook", If: "run.phase == 'Failed'"}, {Name: "good", Type: "webhook", If: "run.phase == 'Succeeded'"}}
			}),
			[]func(*stage){script("c", failed("Boom"))},
			"a #1, b #1, c #1, finally/bad #1",
			"a=Succeeded b=Succeeded c=Failed(Boom) finally/bad=Succeeded finally/good=Skipped(Condition)", "Failed(StepFailed)",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := played(t, c.run, c.edits...)
			if diff := cmp.Diff(c.acts, strings.Join(s.acts, ", ")); diff != "" {
				t.Errorf("acts: %s", diff)
			}
			if diff := cmp.Diff(c.steps, phases(s.j)); diff != "" {
				t.Errorf("steps: %s", diff)
			}
			if got := end(s.j); got != c.end {
				t.Errorf("ends %s, not %s: %s", got, c.end, s.j.Message)
			}
			if !s.j.Phase.Ended() || s.j.FinishedAt == nil || s.j.Message == "" {
				t.Errorf("%s at %v: %q", s.j.Phase, s.j.FinishedAt, s.j.Message)
			}
			if began := s.j.StartedAt != nil; began != (coretest.Record(s.j, "a").StartedAt != nil || strings.HasPrefix(c.name, "maxDuration noticed")) {
				t.Errorf("started at %v", s.j.StartedAt)
			}
		})
	}
}

func TestSuspend(t *testing.T) {
	r := coretest.NewRun(stepOf(1, func(s *plan.Step) { s.Type = "suspend" }))
	at := func(path string, j run.Journal) run.Journal { // the run stands at a path
		for i := range j.Steps {
			if j.Steps[i].Path == path {
				break
			}
			j.Steps[i].Phase = run.StepSucceeded
		}
		return j
	}
	begun := at("b", workflow.NewJournal(r).Start(coretest.Clock("02:00")))
	resume := workflow.Signals{Resume: &workflow.Answer{Actor: intent.Actor{Name: "jane"}}}

	// Resume ends the present suspend, not one to come.
	j, m := workflow.Advance(r, begun, coretest.Clock("02:01"), resume)
	if m.Act != workflow.ActPass || coretest.Record(j, "b").Resumed != nil {
		t.Errorf("a suspend that has just begun was resumed: %+v", coretest.Record(j, "b"))
	}
	j, _ = workflow.Advance(r, j, coretest.Clock("02:02"), resume)
	if coretest.Record(j, "b").Resumed == nil || coretest.Record(j, "b").Resumed.Name != "jane" {
		t.Error("the present suspend was not resumed")
	}
	// A webhook is no suspend.
	j, _ = workflow.Advance(r, workflow.NewJournal(r).Start(coretest.Clock("02:00")), coretest.Clock("02:00"), workflow.Signals{})
	j, _ = workflow.Advance(r, j, coretest.Clock("02:00"), resume)
	if coretest.Record(j, "a").Resumed != nil {
		t.Error("a webhook was resumed")
	}
	// The absolute end is kept, the first one.
	j, _ = workflow.Advance(r, begun, coretest.Clock("02:01"), workflow.Signals{})
	first, second := coretest.Clock("02:30"), coretest.Clock("02:40")
	j = workflow.Note(r, j, "b", workflow.StepResult{ResumeAt: &first}, coretest.Clock("02:01"))
	j = workflow.Note(r, j, "b", workflow.StepResult{ResumeAt: &second}, coretest.Clock("02:10"))
	if got := coretest.Record(j, "b").ResumeAt; !got.Equal(first) {
		t.Errorf("ends at %s", got)
	}
	// A suspend counts towards maxDuration.
	j, m = workflow.Advance(r, j, coretest.Clock("03:00"), workflow.Signals{})
	if j.End == nil || j.End.Reason != "Timeout" || m.Act != workflow.ActStop {
		t.Errorf("%+v %+v", j.End, m)
	}
}

func TestPausedRunBeginsNoStep(t *testing.T) {
	r := coretest.NewRun(finally("fin"))
	j, _ := workflow.Advance(r, workflow.NewJournal(r).Start(coretest.Clock("02:00")), coretest.Clock("02:00"), workflow.Signals{})
	held := workflow.Signals{Held: "paused: no new step begins"}
	var m workflow.Action
	if _, m = workflow.Advance(r, j, coretest.Clock("02:01"), held); m.Act != workflow.ActPass || m.Path != "a" {
		t.Errorf("the step at work does not go on: %+v", m)
	}
	j = workflow.Note(r, j, "a", workflow.StepResult{Done: true}, coretest.Clock("02:02"))
	k, m := workflow.Advance(r, j, coretest.Clock("02:03"), held)
	if m.Act != workflow.ActWait || !m.WakeAt.IsZero() || k.Message != held.Held || coretest.Record(k, "b").Phase != run.StepPending {
		t.Errorf("%+v %q", m, k.Message)
	}
	if k, m = workflow.Advance(r, k, coretest.Clock("02:04"), workflow.Signals{}); m.Path != "b" || m.Act != workflow.ActPass {
		t.Errorf("does not go on when resumed: %+v", m)
	}
	// Cleanup is no new step.
	k.End, k.Section = &run.End{Phase: run.Failed}, plan.SectionFinally
	if _, m = workflow.Advance(r, k, coretest.Clock("02:05"), held); m.Act != workflow.ActPass || m.Path != "finally/fin" {
		t.Errorf("finally is held: %+v", m)
	}
}

// What failed is said while a pause or a closed gate keeps its cleanup from beginning.
func TestAHeldRunSaysWhichStepFailed(t *testing.T) {
	closed := &run.ClosedGate{Reason: "outside of the window"}
	for name, c := range map[string]struct {
		spec string
		fail []string
		sig  workflow.Signals
		want string
	}{
		"paused":             {"steps: [{name: a, type: suspend}, {name: b, type: suspend}]\nfinally: [{name: fin, type: suspend}]", []string{"a"}, workflow.Signals{Held: "paused: no new step begins"}, "paused: no new step begins; step a failed: HTTP 500; what cleans up after it waits, too"},
		"in a group":         {"steps: [{name: g, type: step-group, properties: {steps: [{name: a, type: suspend}, {name: b, type: suspend}]}}]", []string{"g/a"}, workflow.Signals{Held: "paused"}, "paused; step g/a failed: HTTP 500; what cleans up after it waits, too"},
		"side by side":       {"steps: [{name: g, type: step-group, properties: {mode: parallel, steps: [{name: a, type: suspend}, {name: b, type: suspend, dependsOn: [a]}]}}]", []string{"g/a"}, workflow.Signals{Held: "paused"}, "paused; step g/a failed: HTTP 500; what cleans up after it waits, too"},
		"the gate is closed": {"onWindowClose: wait\nsteps: [{name: a, type: suspend}, {name: b, type: suspend, if: always}]", []string{"a"}, workflow.Signals{Hold: closed}, closed.Message() + "; step a failed: HTTP 500; what cleans up after it waits, too"},
		"nothing failed":     {"steps: [{name: a, type: suspend}, {name: b, type: suspend}]", nil, workflow.Signals{Held: "paused"}, "paused"},
	} {
		t.Run(name, func(t *testing.T) {
			r := coretest.RunOf(t, c.spec)
			j, m := workflow.Advance(r, workflow.NewJournal(r).Start(coretest.Clock("02:00")), coretest.Clock("02:00"), workflow.Signals{})
			for _, path := range c.fail {
				j = workflow.Note(r, j, path, workflow.StepResult{Failed: true, Permanent: true, Message: "HTTP 500"}, coretest.Clock("02:01"))
			}
			if c.fail == nil {
				j = workflow.Note(r, j, m.Path, workflow.StepResult{Done: true}, coretest.Clock("02:01"))
			}
			j, m = workflow.Advance(r, j, coretest.Clock("02:02"), c.sig)
			if m.Act != workflow.ActWait || j.Message != c.want || j.End != nil {
				t.Errorf("%+v %q %+v", m, j.Message, j.End)
			}
			if j, m = workflow.Advance(r, j, coretest.Clock("02:03"), workflow.Signals{}); m.Path == "b" && c.fail != nil { // it runs whatever failed before it
				j, _ = workflow.Advance(r, workflow.Note(r, j, "b", workflow.StepResult{Done: true}, coretest.Clock("02:03")), coretest.Clock("02:03"), workflow.Signals{})
			}
			if c.fail != nil && (j.End == nil || j.End.Phase != run.Failed || j.Message != "") {
				t.Errorf("resumed, it does not end: %q %+v", j.Message, j.End)
			}
		})
	}
}

func TestOutputsAreCapped(t *testing.T) {
	many := coretest.Repeat(func(i int) string { return fmt.Sprintf("s%d", i) }, 12)
	r := coretest.NewRun(func(s *plan.Spec) {
		s.Steps = webhooks(many)
		s.Steps[0].Retry = &plan.Retry{Limit: 5}
	})
	j, _ := workflow.Advance(r, workflow.NewJournal(r).Start(coretest.Clock("02:00")), coretest.Clock("02:00"), workflow.Signals{})
	big := map[string]any{"text": strings.Repeat("x", run.MaxStepOutput)}
	for _, rep := range []workflow.StepResult{{Done: true, Outputs: big}, {Failed: true, Outputs: big}, {Failed: true, Permanent: true, Outputs: big}} {
		k := workflow.Note(r, j, "s0", rep, coretest.Clock("02:00"))
		if diff := cmp.Diff(map[string]any{"truncated": true}, coretest.Record(k, "s0").Outputs); diff != "" || !k.Truncated {
			t.Errorf("%+v: %s", rep.Failed, document.Cut(diff, 300))
		}
	}
	fits := map[string]any{"text": strings.Repeat("x", run.MaxStepOutput-100)}
	for i, name := range many {
		if i > 0 {
			j, _ = workflow.Advance(r, j, coretest.Clock("02:00"), workflow.Signals{})
		}
		j = workflow.Note(r, j, name, workflow.StepResult{Done: true, Outputs: fits}, coretest.Clock("02:00"))
	}
	b, err := json.Marshal(j)
	if err != nil || len(b) > run.MaxRunOutput+64<<10 || !j.Truncated {
		t.Errorf("the journal has %d bytes, %v", len(b), err)
	}
	// What cannot be written is not kept.
	j, _ = workflow.Advance(r, workflow.NewJournal(r).Start(coretest.Clock("02:00")), coretest.Clock("02:00"), workflow.Signals{})
	k := workflow.Note(r, j, "s0", workflow.StepResult{Done: true, Outputs: map[string]any{"c": make(chan int)}, Message: strings.Repeat("m", 5000)}, coretest.Clock("02:00"))
	if _, err := json.Marshal(k); err != nil || len(coretest.Record(k, "s0").Message) > document.MaxMessage {
		t.Error(err)
	}
}

func TestAChangedResourceIsListedOnce(t *testing.T) {
	r := coretest.NewRun()
	j, _ := workflow.Advance(r, workflow.NewJournal(r).Start(coretest.Clock("02:00")), coretest.Clock("02:00"), workflow.Signals{})
	scaled := run.Change{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "orders", What: "scaled"}
	restarted := scaled
	restarted.What = "restarted"
	for range 2 {
		j = workflow.Note(r, j, "a", workflow.StepResult{Changed: []run.Change{scaled, restarted}}, coretest.Clock("02:01"))
	}
	if diff := cmp.Diff([]run.Change{scaled, restarted}, coretest.Record(j, "a").Changed); diff != "" {
		t.Error(diff)
	}
	for i := range 60 {
		other := scaled
		other.Name = fmt.Sprint("orders-", i)
		j = workflow.Note(r, j, "a", workflow.StepResult{Changed: []run.Change{other}}, coretest.Clock("02:02"))
	}
	if got := len(coretest.Record(j, "a").Changed); got != 50 {
		t.Errorf("%d changes are listed", got)
	}
}

func TestNoteIsOfTheStepAtWork(t *testing.T) {
	r := coretest.NewRun()
	j, _ := workflow.Advance(r, workflow.NewJournal(r).Start(coretest.Clock("02:00")), coretest.Clock("02:00"), workflow.Signals{})
	done := workflow.Note(r, j, "a", workflow.StepResult{Done: true}, coretest.Clock("02:01"))
	if diff := cmp.Diff(done, workflow.Note(r, done, "a", failed("late"), coretest.Clock("02:02"))); diff != "" {
		t.Errorf("a step that ended ends again: %s", diff)
	}
	if diff := cmp.Diff(j, workflow.Note(r, j, "c", workflow.StepResult{Done: true}, coretest.Clock("02:02"))); diff != "" {
		t.Errorf("a step that has not begun ends: %s", diff)
	}
	if diff := cmp.Diff(j, workflow.Note(r, j, "nobody", workflow.StepResult{Done: true}, coretest.Clock("02:02"))); diff != "" {
		t.Error(diff)
	}
	if coretest.Record(j, "a").Phase != run.StepRunning {
		t.Error("Note changes the journal it was given")
	}
	stopped := workflow.NoteStop(done, "a", errors.New("no right"))
	if !strings.Contains(coretest.Record(stopped, "a").Message, "no right") {
		t.Error(coretest.Record(stopped, "a").Message)
	}
}

func TestBackoffDoublesToItsBound(t *testing.T) {
	for attempt, want := range map[int]time.Duration{1: 10 * time.Second, 2: 20 * time.Second, 3: 40 * time.Second, 6: 5 * time.Minute, 1000: 5 * time.Minute} {
		if got := workflow.Backoff(plan.Retry{}, attempt); got != want {
			t.Errorf("after attempt %d: %s", attempt, got)
		}
	}
	huge := plan.Retry{Backoff: coretest.Duration("36500d"), MaxBackoff: coretest.Duration("36500d")}
	if got := workflow.Backoff(huge, 100); got != 36500*24*time.Hour {
		t.Error(got)
	}
	if got := workflow.Backoff(plan.Retry{Backoff: coretest.Duration("1h"), MaxBackoff: coretest.Duration("1m")}, 1); got != time.Minute {
		t.Error(got)
	}
}

// A journal that was damaged still ends, undoes what it knows, and is no success.
func TestDamagedJournalsEnd(t *testing.T) {
	r := coretest.NewRun(restoring(0), onFailure("of"), finally("fin"))
	whole := workflow.NewJournal(r).Start(coretest.Clock("02:00"))
	whole.Steps[0].Phase, whole.Steps[0].Before = run.StepSucceeded, json.RawMessage("1")
	for name, damage := range map[string]func(*run.Journal){
		"no records":             func(j *run.Journal) { j.Steps = nil },
		"a step is missing":      func(j *run.Journal) { j.Steps = append(j.Steps[:1:1], j.Steps[2:]...) },
		"finally is missing":     func(j *run.Journal) { j.Steps = j.Steps[:4] },
		"an unknown section":     func(j *run.Journal) { j.Section = "later" },
		"closing without an end": func(j *run.Journal) { j.Section = plan.SectionClosing },
		"finally without an end": func(j *run.Journal) { j.Section = plan.SectionFinally },
		"restore without an end": func(j *run.Journal) { j.Section = plan.SectionRestore },
		"no start":               func(j *run.Journal) { j.StartedAt, j.Steps = nil, nil },
	} {
		t.Run(name, func(t *testing.T) {
			s := played(t, r, func(s *stage) { s.j = document.Clone(whole); damage(&s.j) })
			if name == "finally is missing" {
				if !strings.Contains(strings.Join(s.acts, " "), "finally/fin #1") {
					t.Errorf("finally did not run: %v", s.acts)
				}
			}
			if s.j.Phase != run.Failed {
				t.Errorf("ends %s: %s", end(s.j), phases(s.j))
			}
		})
	}
}

// A journal that does not say in which section it is stands at its steps.
func TestAJournalWithoutASectionStandsAtItsSteps(t *testing.T) {
	s := played(t, coretest.NewRun(finally("fin")), func(s *stage) { s.j.Section = "" })
	if got, want := strings.Join(s.acts, ", "), "a #1, b #1, c #1, finally/fin #1"; got != want || s.j.Phase != run.Succeeded {
		t.Errorf("%s ends %s, want %s", got, end(s.j), want)
	}
}

func TestARunSaysWhatItDidNotPutBack(t *testing.T) {
	for name, c := range map[string]struct {
		spec  run.Run
		edits []func(*stage)
		want  string
	}{
		"one step": {
			coretest.NewRun(restoring(0)),
			[]func(*stage){script("a", before("1"), workflow.StepResult{Done: true})},
			"the steps succeeded, but what step a found was not put back: no right",
		},
		"two steps: how many, and the first": {
			coretest.NewRun(restoring(0), restoring(1)),
			[]func(*stage){script("a", before("1"), workflow.StepResult{Done: true}), script("b", before("2"), workflow.StepResult{Done: true})},
			"the steps succeeded, but what 2 steps found was not put back, of step a: no right",
		},
		"a step that failed itself": {
			coretest.NewRun(restoring(0)),
			[]func(*stage){script("a", before("1"), failed("Boom"))},
			"step a failed: Boom; what step a found was not put back: no right",
		},
		"a cleanup that failed after a step": {
			coretest.NewRun(onFailure("undo"), finally("up")),
			[]func(*stage){script("a", failed("Boom")), script("onFailure/undo", failed("Undone")), script("finally/up", failed("404"))},
			"step a failed: Boom; onFailure/undo failed: Undone; finally/up failed: 404",
		},
		"a cleanup that failed after an abort": {
			coretest.NewRun(finally("up")),
			[]func(*stage){when("b", abort), script("finally/up", failed("404"))},
			"aborted by jane; finally/up failed: 404",
		},
		"a cleanup that failed after success": {
			coretest.NewRun(finally("up", "down")),
			[]func(*stage){script("finally/up", failed("404")), script("finally/down", failed("405"))},
			"the steps succeeded, but finally/up failed: 404; finally/down failed: 405",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := played(t, c.spec, append(c.edits, func(s *stage) { s.restore, s.why = run.RestoreFailed, "no right" })...)
			if s.j.Message != c.want {
				t.Errorf("it says %q, want %q", s.j.Message, c.want)
			}
		})
	}
}
