package workflow_test

import (
	"strings"
	"testing"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/coretest"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

func TestAWindowThatClosesHoldsTheNextDisruptiveStepAndCountsNowhere(t *testing.T) {
	gentle := false
	r := coretest.NewRun(func(s *plan.Spec) {
		s.OnWindowClose, s.MaxDuration = plan.CloseWait, &document.Duration{Duration: 30 * time.Minute}
		s.Steps[1].Disruptive = &gentle
	})
	closed := workflow.Signals{Hold: &run.ClosedGate{Reason: "closed", Until: coretest.Clock("05:00")}}
	j := workflow.NewJournal(r).Start(coretest.Clock("02:00"))
	next := func(at string, sig workflow.Signals) workflow.Action {
		t.Helper()
		var m workflow.Action
		j, m = workflow.Advance(r, j, coretest.Clock(at), sig)
		return m
	}
	done := func(at, path string) {
		j = workflow.Note(r, j, path, workflow.StepResult{Done: true}, coretest.Clock(at))
	}
	if m := next("02:00", workflow.Signals{}); m.Path != "a" {
		t.Fatalf("first: %+v", m)
	}
	done("02:10", "a")
	if m := next("02:10", closed); m.Act != workflow.ActPass || m.Path != "b" {
		t.Fatalf("a step that disrupts nothing is held: %+v", m)
	}
	done("02:11", "b")
	m := next("02:11", closed)
	if m.Act != workflow.ActWait || !m.WakeAt.Equal(coretest.Clock("05:00")) || j.HeldSince == nil || j.Steps[2].Phase != run.StepPending {
		t.Fatalf("behind a closed gate: %+v %+v", m, j)
	}
	if m = next("04:59", closed); m.Act != workflow.ActWait || j.End != nil {
		t.Fatalf("the wait counts in maxDuration: %+v %+v", m, j.End)
	}
	if m = next("05:00", workflow.Signals{}); m.Act != workflow.ActPass || m.Path != "c" || j.HeldSince != nil || j.HeldSeconds != int64((2*time.Hour+49*time.Minute).Seconds()) {
		t.Fatalf("once it opens: %+v held %d s", m, j.HeldSeconds)
	}
	if m = next("05:18", workflow.Signals{}); m.Act != workflow.ActPass {
		t.Fatalf("29 of 30 minutes were used: %+v", m)
	}
	if m = next("05:20", workflow.Signals{}); j.End == nil || j.End.Reason != "Timeout" {
		t.Fatalf("31 of 30 minutes were used: %+v", m)
	}
}

func TestAWindowThatClosesEndsARunThatSaysSo(t *testing.T) {
	closed := workflow.Signals{Hold: &run.ClosedGate{Reason: "closed", Until: coretest.Clock("05:00")}}
	r := coretest.NewRun(func(s *plan.Spec) { s.OnWindowClose = plan.CloseAbort })
	j, m := workflow.Advance(r, workflow.NewJournal(r).Start(coretest.Clock("02:00")), coretest.Clock("02:00"), closed)
	if m.Act != workflow.ActClose || j.End == nil || j.End.Result != run.Missed || j.End.Reason != run.ReasonWindow || j.StartedAt != nil {
		t.Errorf("before its first step: %+v %+v", m, j.End)
	}
	j, _ = workflow.Advance(r, workflow.NewJournal(r).Start(coretest.Clock("02:00")), coretest.Clock("02:00"), workflow.Signals{})
	j = workflow.Note(r, j, "a", workflow.StepResult{Done: true}, coretest.Clock("02:01"))
	j, m = workflow.Advance(r, j, coretest.Clock("02:02"), closed)
	if m.Act != workflow.ActClose || j.End == nil || j.End.Phase != run.Aborted || j.End.Reason != "WindowClosed" || j.Steps[1].Phase != run.StepSkipped {
		t.Errorf("between two steps: %+v %+v", m, j.End)
	}
	r.Spec.OnWindowClose = plan.CloseFinish
	j, _ = workflow.Advance(r, workflow.NewJournal(r).Start(coretest.Clock("02:00")), coretest.Clock("02:00"), closed)
	if j.Steps[0].Phase != run.StepRunning {
		t.Errorf("what has started may finish: %+v", j.Steps[0])
	}
}

// A step whose condition is false begins nothing: no gate is asked for it.
func TestAStepWhoseConditionIsFalseAsksNoGate(t *testing.T) {
	closed := &run.ClosedGate{Reason: "closed", Until: coretest.Clock("05:00")}
	for name, c := range map[string]struct {
		on   plan.OnWindowClose
		sig  workflow.Signals
		cond string
		want run.StepPhase // of the step, b
		end  string
	}{
		"under wait it is skipped":                  {on: plan.CloseWait, sig: workflow.Signals{Hold: closed}, cond: "false", want: run.StepSkipped},
		"under abort, too":                          {on: plan.CloseAbort, sig: workflow.Signals{Hold: closed}, cond: "false", want: run.StepSkipped},
		"also where the namespace restricts change": {on: plan.CloseFinish, sig: workflow.Signals{Namespace: closed}, cond: "false", want: run.StepSkipped},
		"not while the plan is paused":              {on: plan.CloseWait, sig: workflow.Signals{Hold: closed, Held: "paused"}, cond: "false", want: run.StepPending},
		"one that is to begin waits":                {on: plan.CloseWait, sig: workflow.Signals{Hold: closed}, cond: "true", want: run.StepPending},
		"and ends the run under abort":              {on: plan.CloseAbort, sig: workflow.Signals{Hold: closed}, cond: "true", want: run.StepSkipped, end: "WindowClosed"},
	} {
		t.Run(name, func(t *testing.T) {
			r := coretest.NewRun(when1(1, c.cond), func(s *plan.Spec) { s.OnWindowClose, s.Steps = c.on, s.Steps[:2] })
			j, _ := workflow.Advance(r, workflow.NewJournal(r).Start(coretest.Clock("02:00")), coretest.Clock("02:00"), workflow.Signals{})
			j = workflow.Note(r, j, "a", workflow.StepResult{Done: true}, coretest.Clock("02:01"))
			j, _ = workflow.Advance(r, j, coretest.Clock("02:02"), c.sig)
			if got := coretest.Record(j, "b").Phase; got != c.want {
				t.Errorf("the step is %s, not %s", got, c.want)
			}
			switch {
			case c.end == "" && c.want == run.StepPending && j.End != nil:
				t.Errorf("it ends: %+v", j.End)
			case c.end == "" && c.want == run.StepSkipped && (j.End == nil || j.End.Phase != run.Succeeded):
				t.Errorf("it ends: %+v", j.End)
			case c.end != "" && (j.End == nil || j.End.Reason != c.end):
				t.Errorf("it ends: %+v", j.End)
			}
		})
	}
}

func TestTheTimeBehindAGateCountsNowhereWhoeverWasLooking(t *testing.T) {
	since := coretest.Clock("02:05")
	hold := &run.ClosedGate{Reason: "closed", Since: &since, Until: coretest.Clock("08:00")}
	r := coretest.NewRun(func(s *plan.Spec) {
		s.OnWindowClose, s.MaxDuration = plan.CloseWait, &document.Duration{Duration: time.Hour}
	})
	begin := func() run.Journal {
		j, _ := workflow.Advance(r, workflow.NewJournal(r).Start(coretest.Clock("02:00")), coretest.Clock("02:00"), workflow.Signals{})
		return workflow.Note(r, j, "a", workflow.StepResult{Done: true}, coretest.Clock("02:01"))
	}
	t.Run("a pause came first", func(t *testing.T) {
		j, m := workflow.Advance(r, begin(), coretest.Clock("02:06"), workflow.Signals{Held: "paused", Hold: hold})
		if m.Act != workflow.ActWait || j.HeldSince == nil || j.Message != "paused" {
			t.Fatalf("%+v, held since %v, %q", m, j.HeldSince, j.Message)
		}
		if j, _ = workflow.Advance(r, j, coretest.Clock("07:00"), workflow.Signals{Held: "paused", Hold: hold}); j.End != nil {
			t.Errorf("it ended: %+v", j.End)
		}
	})
	t.Run("nobody looked when it closed", func(t *testing.T) {
		j, m := workflow.Advance(r, begin(), coretest.Clock("06:00"), workflow.Signals{Hold: hold})
		if j.End != nil || m.Act != workflow.ActWait || j.HeldSince == nil || !j.HeldSince.Equal(since) {
			t.Fatalf("%+v, held since %v, end %+v", m, j.HeldSince, j.End)
		}
		if j, m = workflow.Advance(r, j, coretest.Clock("08:00"), workflow.Signals{}); j.End != nil || m.Path != "b" {
			t.Errorf("once it opens: %+v, end %+v", m, j.End)
		}
	})
	t.Run("nobody looked, and it was late already", func(t *testing.T) {
		late := coretest.Clock("04:00")
		j, _ := workflow.Advance(r, begin(), coretest.Clock("06:00"), workflow.Signals{Hold: &run.ClosedGate{Reason: "closed", Since: &late, Until: coretest.Clock("08:00")}})
		if j.End == nil || j.End.Reason != "Timeout" {
			t.Errorf("end %+v", j.End)
		}
	})
	t.Run("an abort ends the hold, too", func(t *testing.T) {
		j, _ := workflow.Advance(r, begin(), coretest.Clock("02:06"), workflow.Signals{Hold: hold})
		j, _ = workflow.Advance(r, j, coretest.Clock("02:07"), workflow.Signals{Hold: hold, Abort: &run.End{Phase: run.Aborted, Reason: "Aborted"}})
		if j.HeldSince != nil || strings.Contains(j.Message, "window") {
			t.Errorf("held since %v, %q", j.HeldSince, j.Message)
		}
	})
	t.Run("doubt holds a run that would end at the window's end", func(t *testing.T) {
		r := r
		r.Spec.OnWindowClose = plan.CloseAbort
		j, m := workflow.Advance(r, begin(), coretest.Clock("02:06"), workflow.Signals{Hold: &run.ClosedGate{Reason: "not there yet", NotReady: true}})
		if j.End != nil || m.Act != workflow.ActWait {
			t.Errorf("%+v, end %+v", m, j.End)
		}
	})
	t.Run("who lets it go on is written down", func(t *testing.T) {
		j, _ := workflow.Advance(r, begin(), coretest.Clock("02:06"), workflow.Signals{Passed: &intent.Actor{Name: "ann", Reason: "fire"}})
		if j.Passed == nil || j.Passed.Name != "ann" {
			t.Errorf("passed: %+v", j.Passed)
		}
	})
	t.Run("who opened for a time what would hold it is written down", func(t *testing.T) {
		ann, joe := &intent.Actor{Name: "ann"}, &intent.Actor{Name: "joe"}
		for _, c := range []struct {
			close  plan.OnWindowClose
			opened run.Opened
			want   *intent.Actor
		}{
			{plan.CloseWait, run.Opened{Plan: ann}, ann},
			{plan.CloseWait, run.Opened{Plan: ann, Namespace: joe}, ann},
			{plan.CloseWait, run.Opened{Namespace: joe}, joe},
			{plan.CloseFinish, run.Opened{Plan: ann}, nil}, // it would begin its step without them
			{plan.CloseFinish, run.Opened{Plan: ann, Namespace: joe}, joe},
			{plan.CloseWait, run.Opened{}, nil},
		} {
			r := r
			r.Spec.OnWindowClose = c.close
			if j, _ := workflow.Advance(r, begin(), coretest.Clock("02:06"), workflow.Signals{Opened: c.opened}); j.Allowed != c.want {
				t.Errorf("%s, %+v: allowed by %+v", c.close, c.opened, j.Allowed)
			}
		}
	})
}

func TestAPauseInMidRunCountsNowhere(t *testing.T) {
	r := coretest.NewRun(func(s *plan.Spec) { s.MaxDuration = &document.Duration{Duration: 30 * time.Minute} })
	paused := workflow.Signals{Held: "paused: no new step begins"}
	begin := func() run.Journal {
		j, _ := workflow.Advance(r, workflow.NewJournal(r).Start(coretest.Clock("02:00")), coretest.Clock("02:00"), workflow.Signals{})
		return j
	}
	ends := func(j run.Journal, at string) run.Journal {
		return workflow.Note(r, j, "a", workflow.StepResult{Done: true}, coretest.Clock(at))
	}
	t.Run("from the end of the step at work until it is resumed", func(t *testing.T) {
		j, m := workflow.Advance(r, begin(), coretest.Clock("02:05"), paused)
		if j.HeldSince != nil || m.Act != workflow.ActPass {
			t.Fatalf("the step at work goes on, and its time counts: %+v, held since %v", m, j.HeldSince)
		}
		j, m = workflow.Advance(r, ends(j, "02:10"), coretest.Clock("02:10"), paused)
		if m.Act != workflow.ActWait || j.HeldSince == nil || !j.HeldSince.Equal(coretest.Clock("02:10")) || j.Message != paused.Held {
			t.Fatalf("%+v, held since %v, %q", m, j.HeldSince, j.Message)
		}
		if !m.WakeAt.IsZero() {
			t.Errorf("it wakes at %s, and nothing is to be done before somebody resumes it", m.WakeAt)
		}
		if j, _ = workflow.Advance(r, j, coretest.Clock("+1 02:10"), paused); j.End != nil {
			t.Fatalf("after a day: %+v", j.End)
		}
		j, m = workflow.Advance(r, j, coretest.Clock("+1 02:10"), workflow.Signals{})
		if j.End != nil || m.Path != "b" || j.HeldSeconds != 24*3600 || j.Message != "" {
			t.Fatalf("%+v, held for %d s, %q, end %+v", m, j.HeldSeconds, j.Message, j.End)
		}
		if j, _ = workflow.Advance(r, j, coretest.Clock("+1 02:29"), workflow.Signals{}); j.End != nil {
			t.Errorf("29 of 30 minutes were used: %+v", j.End)
		}
		if j, _ = workflow.Advance(r, j, coretest.Clock("+1 02:30"), workflow.Signals{}); j.End == nil || j.End.Reason != "Timeout" {
			t.Errorf("30 of 30 minutes were used: %+v", j.End)
		}
	})
	t.Run("also where nobody looked when it was paused", func(t *testing.T) {
		j, m := workflow.Advance(r, ends(begin(), "02:10"), coretest.Clock("09:00"), paused)
		if j.End != nil || m.Act != workflow.ActWait || j.HeldSince == nil || !j.HeldSince.Equal(coretest.Clock("02:10")) {
			t.Errorf("%+v, held since %v, end %+v", m, j.HeldSince, j.End)
		}
	})
	t.Run("a step's own timeout goes on", func(t *testing.T) {
		r := r
		r.Spec.Steps = append([]plan.Step(nil), r.Spec.Steps...)
		r.Spec.Steps[0].Timeout = coretest.Duration("5m")
		j, _ := workflow.Advance(r, workflow.NewJournal(r).Start(coretest.Clock("02:00")), coretest.Clock("02:00"), workflow.Signals{})
		if j, _ = workflow.Advance(r, j, coretest.Clock("02:06"), paused); j.Record("a").Reason != "Timeout" {
			t.Errorf("a: %+v", j.Record("a"))
		}
	})
	t.Run("an abort ends it all the same", func(t *testing.T) {
		j, _ := workflow.Advance(r, ends(begin(), "02:10"), coretest.Clock("02:10"), paused)
		sig := paused
		sig.Abort = &run.End{Phase: run.Aborted, Reason: "Aborted", Message: "by jane"}
		j, m := workflow.Advance(r, j, coretest.Clock("02:20"), sig)
		if j.End == nil || j.End.Reason != "Aborted" || m.Act != workflow.ActClose || j.HeldSince != nil {
			t.Errorf("%+v, end %+v, held since %v", m, j.End, j.HeldSince)
		}
	})
}

// What holds the run holds the clocks of its groups, also where nobody looked when it
// began; a step at work keeps its own.
func TestAGroupsTimeStandsStillWhileTheRunIsHeld(t *testing.T) {
	since := coretest.Clock("02:02")
	closed := workflow.Signals{Hold: &run.ClosedGate{Reason: "closed", Since: &since, Until: coretest.Clock("08:00")}}
	r := coretest.RunOf(t, "onWindowClose: wait\nmaxDuration: 1h\nsteps: [{name: g, type: step-group, timeout: 5m, properties: {steps: ["+coretest.Hook("a")+", "+coretest.Hook("b")+"]}}]")
	begin := func(t *testing.T) run.Journal {
		t.Helper()
		j, _ := workflow.Advance(r, workflow.NewJournal(r).Start(coretest.Clock("02:00")), coretest.Clock("02:00"), workflow.Signals{})
		return workflow.Note(r, j, "g/a", workflow.StepResult{Done: true}, coretest.Clock("02:01"))
	}
	for name, c := range map[string]struct {
		first string // when somebody looks first
		open  string // when the gate is open again
		fails bool
	}{
		"somebody looks when it closes":           {"02:02", "08:00", false},
		"nobody looks for hours":                  {"06:00", "08:00", false},
		"its time goes on when the gate is open":  {"06:00", "08:02", false},
		"and is over when what it had is used up": {"06:00", "08:03", true},
	} {
		t.Run(name, func(t *testing.T) {
			j, m := workflow.Advance(r, begin(t), coretest.Clock(c.first), closed)
			if j.End != nil || j.HeldSince == nil || !j.HeldSince.Equal(since) || m.Act != workflow.ActWait {
				t.Fatalf("held since %v, end %+v, %+v", j.HeldSince, j.End, m)
			}
			j, _ = workflow.Advance(r, j, coretest.Clock("08:00"), workflow.Signals{})
			j, _ = workflow.Advance(r, j, coretest.Clock(c.open), workflow.Signals{})
			if fails := j.Record("g").Reason == "Timeout"; fails != c.fails || fails == (j.Record("g/b").Phase == run.StepRunning) {
				t.Errorf("g is %s (%s), g/b is %s", j.Record("g").Phase, j.Record("g").Reason, j.Record("g/b").Phase)
			}
		})
	}
}

// What held the run before a group began is none of the group's time.
func TestAGroupHasNoTimeFromBeforeItBegan(t *testing.T) {
	r := coretest.RunOf(t, "onWindowClose: wait\nmaxDuration: 1h\nsteps: ["+coretest.Hook("a")+", {name: g, type: step-group, timeout: 5m, properties: {steps: ["+coretest.Hook("b")+"]}}]")
	j, _ := workflow.Advance(r, workflow.NewJournal(r).Start(coretest.Clock("02:00")), coretest.Clock("02:00"), workflow.Signals{})
	j = workflow.Note(r, j, "a", workflow.StepResult{Done: true}, coretest.Clock("02:01"))
	j, _ = workflow.Advance(r, j, coretest.Clock("02:01"), workflow.Signals{Hold: closedSince("02:01")})
	j, _ = workflow.Advance(r, j, coretest.Clock("05:00"), workflow.Signals{})
	if g := j.Record("g"); g.Phase != run.StepRunning || g.HeldBefore == 0 {
		t.Fatalf("g is %s, held before for %d s", g.Phase, g.HeldBefore)
	}
	if at, _ := workflow.Advance(r, j, coretest.Clock("05:04:59"), workflow.Signals{}); at.Record("g").Phase != run.StepRunning {
		t.Errorf("before its timeout g is %s", at.Record("g").Phase)
	}
	if at, _ := workflow.Advance(r, j, coretest.Clock("05:05"), workflow.Signals{}); at.Record("g").Reason != "Timeout" {
		t.Errorf("at its timeout g is %s (%s)", at.Record("g").Phase, at.Record("g").Reason)
	}
}

// What a namespace restricts holds the steps of every run, whatever its plan says of its
// own window; what a run cleans up, and what disrupts nothing, goes on.
func TestANamespaceThatIsRestrictiveHoldsTheNextDisruptiveStepOfEveryRun(t *testing.T) {
	since := coretest.Clock("02:05")
	until := coretest.Clock("05:00")
	closed := func() *run.ClosedGate {
		return &run.ClosedGate{Reason: "namespace: RestrictiveUntil 05:00 by jane: inventory", Since: &since, Opens: &until, Until: until}
	}
	const steps = `steps:
- {name: hold, type: suspend, properties: {duration: 10h}}
- {name: look, type: wait, disruptive: false, properties: {resource: {apiVersion: v1, kind: ConfigMap, name: ready}, condition: "object.data.x == '1'"}}
- {name: call, type: webhook, properties: {url: "https://h.example"}}
onFailure: [{name: tell, type: webhook, properties: {url: "https://h.example"}}]
finally: [{name: fin, type: webhook, properties: {url: "https://h.example"}}]`
	suspended := func(t *testing.T, more string) (run.Run, run.Journal) {
		t.Helper()
		r := coretest.RunOf(t, more+"\n"+steps)
		j, _ := workflow.Advance(r, workflow.NewJournal(r).Start(coretest.Clock("02:00")), coretest.Clock("02:00"), workflow.Signals{})
		return r, j
	}
	looked := func(t *testing.T, more string) (run.Run, run.Journal) {
		t.Helper()
		r, j := suspended(t, more)
		j = workflow.Note(r, j, "hold", workflow.StepResult{Done: true}, coretest.Clock("02:01"))
		j, _ = workflow.Advance(r, j, coretest.Clock("02:01"), workflow.Signals{Namespace: closed()})
		return r, workflow.Note(r, j, "look", workflow.StepResult{Done: true}, coretest.Clock("02:02"))
	}
	for _, onClose := range []string{"finish", "wait"} {
		t.Run(onClose, func(t *testing.T) {
			r, j := suspended(t, "maxDuration: 1h\nonWindowClose: "+onClose)
			sig := workflow.Signals{Namespace: closed()}
			if onClose == "wait" {
				sig.Hold = closed()
			}
			j, m := workflow.Advance(r, j, coretest.Clock("02:10"), sig)
			if m.Path != "hold" || j.HeldSince != nil {
				t.Fatalf("the step at work goes on: %+v, held since %v", m, j.HeldSince)
			}
			j = workflow.Note(r, j, "hold", workflow.StepResult{Done: true}, coretest.Clock("02:20"))
			j, m = workflow.Advance(r, j, coretest.Clock("02:20"), sig)
			if m.Act != workflow.ActPass || m.Path != "look" {
				t.Fatalf("a step that disrupts nothing: %+v", m)
			}
			j = workflow.Note(r, j, "look", workflow.StepResult{Done: true}, coretest.Clock("02:21"))
			j, m = workflow.Advance(r, j, coretest.Clock("02:21"), sig)
			if m.Act != workflow.ActWait || !m.WakeAt.Equal(until) || coretest.Record(j, "call").Phase != run.StepPending {
				t.Fatalf("%+v, call is %s", m, coretest.Record(j, "call").Phase)
			}
			if j.HeldSince == nil || !j.HeldSince.Equal(coretest.Clock("02:21")) || !strings.Contains(j.Message, "05:00:00Z") || !strings.Contains(j.Message, "by jane: inventory") {
				t.Errorf("held since %v, it says %q", j.HeldSince, j.Message)
			}
			if j, _ = workflow.Advance(r, j, coretest.Clock("04:59"), sig); j.End != nil {
				t.Fatalf("the wait counts in maxDuration: %+v", j.End)
			}
			j, m = workflow.Advance(r, j, until, workflow.Signals{})
			if m.Act != workflow.ActPass || m.Path != "call" || j.HeldSince != nil || j.Message != "" {
				t.Errorf("once it may go on: %+v, held since %v, %q", m, j.HeldSince, j.Message)
			}
		})
	}
	t.Run("under abort it ends also before what the plan calls not disruptive", func(t *testing.T) {
		r := coretest.RunOf(t, `onWindowClose: abort
steps: [{name: hold, type: suspend}, {name: call, type: webhook, disruptive: false, properties: {url: "https://h.example"}}]`)
		j, _ := workflow.Advance(r, workflow.NewJournal(r).Start(coretest.Clock("02:00")), coretest.Clock("02:00"), workflow.Signals{})
		j = workflow.Note(r, j, "hold", workflow.StepResult{Done: true}, coretest.Clock("02:20"))
		j, _ = workflow.Advance(r, j, coretest.Clock("02:20"), workflow.Signals{Namespace: closed(), Hold: closed()})
		if j.End == nil || j.End.Reason != "WindowClosed" || !strings.Contains(j.End.Message, "by jane: inventory") {
			t.Errorf("%+v", j.End)
		}
	})
	t.Run("what a plan calls not disruptive is held if it changes something", func(t *testing.T) {
		const calls = `{name: b, type: webhook, properties: {url: "https://h.example"}}`
		group := func(steps string) string {
			return `{name: call, type: step-group, disruptive: false, properties: {steps: [` + steps + `]}}`
		}
		for step, want := range map[string]run.StepPhase{
			strings.Replace(calls, "name: b", "name: call, disruptive: false", 1):                                   run.StepPending,
			group(`{name: a, type: suspend}, ` + calls):                                                             run.StepPending,
			group(`{name: g, type: step-group, properties: {steps: [` + calls + `]}}`):                              run.StepPending,
			group(`{name: a, type: suspend}`):                                                                       run.StepRunning,
			group(`{name: g, type: step-group, properties: {steps: [{name: a, type: suspend}]}}`):                   run.StepRunning,
			`{name: call, type: approval, disruptive: false}`:                                                       run.StepRunning,
			`{name: call, type: for-each-node, disruptive: false, properties: {steps: [{name: a, type: suspend}]}}`: run.StepPending,
		} {
			r := coretest.RunOf(t, "onWindowClose: wait\nsteps: [{name: hold, type: suspend}, "+step+"]")
			j, _ := workflow.Advance(r, workflow.NewJournal(r).Start(coretest.Clock("02:00")), coretest.Clock("02:00"), workflow.Signals{})
			j = workflow.Note(r, j, "hold", workflow.StepResult{Done: true}, coretest.Clock("02:20"))
			held, _ := workflow.Advance(r, j, coretest.Clock("02:20"), workflow.Signals{Namespace: closed(), Hold: closed()})
			if got := coretest.Record(held, "call").Phase; got != want || strings.Contains(held.Message, "by jane: inventory") != (want == run.StepPending) {
				t.Errorf("%s: %s, %q", step, got, held.Message)
			}
			if strings.Contains(step, "for-each") { // it looks at its window before each item
				continue
			}
			if own, _ := workflow.Advance(r, j, coretest.Clock("02:20"), workflow.Signals{Hold: closed()}); coretest.Record(own, "call").Phase != run.StepRunning {
				t.Errorf("%s: its own window holds it", step)
			}
		}
	})
	t.Run("the window of its own plan holds no step under finish", func(t *testing.T) {
		r, j := looked(t, "")
		if _, m := workflow.Advance(r, j, coretest.Clock("02:21"), workflow.Signals{Hold: closed()}); m.Path != "call" {
			t.Errorf("%+v", m)
		}
	})
	t.Run("cleanup goes on", func(t *testing.T) {
		r, j := suspended(t, "")
		sig := workflow.Signals{Namespace: closed()}
		j = workflow.Note(r, j, "hold", permanent("Down"), coretest.Clock("02:20"))
		j, m := workflow.Advance(r, j, coretest.Clock("02:20"), sig)
		if m.Act != workflow.ActPass || m.Path != "onFailure/tell" {
			t.Fatalf("after a failure: %+v %+v", m, j.End)
		}
		j = workflow.Note(r, j, "onFailure/tell", workflow.StepResult{Done: true}, coretest.Clock("02:21"))
		if _, m = workflow.Advance(r, j, coretest.Clock("02:21"), sig); m.Path != "finally/fin" {
			t.Errorf("in the end: %+v", m)
		}
	})
	t.Run("an abort of a run that is held cleans up at once", func(t *testing.T) {
		r, j := looked(t, "")
		sig := workflow.Signals{Namespace: closed(), Abort: &run.End{Phase: run.Aborted, Reason: "Aborted"}}
		if _, m := workflow.Advance(r, j, coretest.Clock("02:30"), sig); m.Path != "finally/fin" {
			t.Errorf("%+v", m)
		}
	})
	t.Run("nobody looked when it closed", func(t *testing.T) {
		r, j := looked(t, "maxDuration: 1h")
		j, _ = workflow.Advance(r, j, coretest.Clock("04:30"), workflow.Signals{Namespace: closed()})
		if j.End != nil || j.HeldSince == nil || !j.HeldSince.Equal(since) {
			t.Errorf("held since %v, end %+v", j.HeldSince, j.End)
		}
	})
	t.Run("a step beside it that is at work goes on", func(t *testing.T) {
		r := coretest.RunOf(t, "steps: ["+parallel(0, coretest.Hook("a"), coretest.Hook("b", "dependsOn: [c]"), coretest.Hook("c"))+"]")
		j, _ := workflow.Advance(r, workflow.NewJournal(r).Start(coretest.Clock("02:00")), coretest.Clock("02:00"), workflow.Signals{})
		j = workflow.Note(r, j, "g/c", workflow.StepResult{Done: true}, coretest.Clock("02:10"))
		j, m := workflow.Advance(r, j, coretest.Clock("02:10"), workflow.Signals{Namespace: closed()})
		if m.Path != "g/a" || coretest.Record(j, "g/b").Phase != run.StepPending || j.HeldSince != nil {
			t.Errorf("%+v, b is %s, held since %v", m, coretest.Record(j, "g/b").Phase, j.HeldSince)
		}
	})
	t.Run("a loop takes no other item, and says why", func(t *testing.T) {
		r := coretest.RunOf(t, "steps: ["+loopOf("", coretest.Hook("x"))+"]")
		j, _ := workflow.Advance(r, workflow.NewJournal(r).Start(coretest.Clock("02:00")), coretest.Clock("02:00"), workflow.Signals{})
		j = workflow.Note(r, j, "roll", picks("i", "k"), coretest.Clock("02:01"))
		j, m := workflow.Advance(r, j, coretest.Clock("02:06"), workflow.Signals{Namespace: closed(), Hold: closed()})
		if m.Act != workflow.ActWait || !strings.Contains(j.Message, "inventory") {
			t.Errorf("%+v, it says %q", m, j.Message)
		}
	})
}

// Another attempt of a step begins only where the step itself would, and so does the effect of one
// that waited for a right. What is under way goes on, and so does what changes nothing.
func TestWhatHoldsAStepHoldsItsNextAttemptToo(t *testing.T) {
	closed := &run.ClosedGate{Reason: "closed", Since: new(coretest.Clock("02:00")), Until: coretest.Clock("12:00")}
	frozen, shut, paused := workflow.Signals{Namespace: closed}, workflow.Signals{Hold: closed}, workflow.Signals{Held: "paused"}
	retry := "timeout: 10m, retry: {limit: 5, backoff: 1s}"
	boom := workflow.StepResult{Failed: true, Reason: "Boom"}
	waits := workflow.StepResult{Seen: workflow.Seen{Waits: "a right"}}
	started := waits
	started.Changed = []run.Change{{Kind: "Deployment", Name: "web"}}
	gentle := "disruptive: false, " + retry
	for name, c := range map[string]struct {
		spec  string
		first workflow.StepResult // what its first pass says
		again bool                // another pass was made of the next attempt before
		sig   workflow.Signals
		held  bool
		ends  string
	}{
		"a freeze of its namespace":                 {spec: coretest.Hook("a", retry), first: boom, sig: frozen, held: true},
		"also where it is called not disruptive":    {spec: coretest.Hook("a", gentle), first: boom, sig: frozen, held: true},
		"a pause":                                   {spec: coretest.Hook("a", retry), first: boom, sig: paused, held: true},
		"both":                                      {spec: coretest.Hook("a", retry), first: boom, sig: workflow.Signals{Namespace: closed, Held: "paused"}, held: true},
		"its window, under wait":                    {spec: "onWindowClose: wait\n" + coretest.Hook("a", retry), first: boom, sig: shut, held: true},
		"its window, under abort":                   {spec: "onWindowClose: abort\n" + coretest.Hook("a", retry), first: boom, sig: shut, held: true, ends: "WindowClosed"},
		"not its window under finish":               {spec: coretest.Hook("a", retry), first: boom, sig: shut},
		"nor its window where it is not disruptive": {spec: "onWindowClose: wait\n" + coretest.Hook("a", gentle), first: boom, sig: shut},
		"not one that only looks":                   {spec: "{name: a, type: health-check, properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: web}}, " + retry + "}", first: boom, sig: workflow.Signals{Namespace: closed, Held: "paused"}},
		"not the attempt at work":                   {spec: coretest.Hook("a", retry), first: boom, again: true, sig: workflow.Signals{Namespace: closed, Held: "paused"}},
		"one that waits for a right":                {spec: coretest.Hook("a"), first: waits, sig: frozen, held: true},
		"a pause holds that, too":                   {spec: coretest.Hook("a"), first: waits, sig: paused, held: true},
		"a freeze ends no such run":                 {spec: "onWindowClose: abort\n" + coretest.Hook("a"), first: waits, sig: frozen, held: true},
		"its window does not hold it":               {spec: "onWindowClose: abort\n" + coretest.Hook("a"), first: waits, sig: shut},
		"not one that lost its right in mid-work":   {spec: coretest.Hook("a"), first: started, sig: frozen},
		"in a group as anywhere":                    {spec: "{name: g, type: step-group, properties: {steps: [" + coretest.Hook("a", retry) + "]}}", first: boom, sig: frozen, held: true},
		"side by side as anywhere":                  {spec: "{name: g, type: step-group, properties: {mode: parallel, steps: [" + coretest.Hook("a", retry) + "]}}", first: boom, sig: paused, held: true},
		"not where nothing closes":                  {spec: coretest.Hook("a", retry), first: boom},
	} {
		t.Run(name, func(t *testing.T) {
			head, steps, found := strings.Cut(c.spec, "\n")
			if !found {
				head, steps = "", c.spec
			}
			s := begun(t, head+"\nmaxDuration: 30m\nsteps: ["+steps+"]", 0)
			path := s.advance("02:00").Path
			s.j = workflow.Note(s.run, s.j, path, c.first, s.now)
			if c.again {
				s.advance("02:01")
			}
			s.sig = c.sig
			m := s.advance("02:02")
			for _, at := range []string{"02:05", "11:59"} {
				if c.held {
					m = s.advance(at)
				}
			}
			switch {
			case c.ends != "":
				if s.j.End == nil || s.j.End.Reason != c.ends || m.Act != workflow.ActStop || m.Path != path {
					t.Errorf("%+v, end %+v", m, s.j.End)
				}
				return
			case !c.held && (m.Act != workflow.ActPass || s.j.HeldSince != nil || s.j.Record(path).NotBefore != nil):
				t.Errorf("it does not go on: %+v, held since %v, %+v", m, s.j.HeldSince, s.j.Record(path))
			case c.held && (m.Act != workflow.ActWait || s.j.End != nil || s.j.HeldSince == nil || s.j.Message == ""):
				t.Errorf("it goes on: %+v, held since %v, end %+v, %q", m, s.j.HeldSince, s.j.End, s.j.Message)
			}
			s.sig = workflow.Signals{}
			if m = s.advance("12:00"); c.held && (m.Act != workflow.ActPass || m.Path != path || s.j.HeldSince != nil || s.j.Record(path).NotBefore != nil) {
				t.Errorf("once it opens: %+v, held since %v, end %+v", m, s.j.HeldSince, s.j.End)
			}
		})
	}
}

// The undoing of a run waits for no gate, also between its attempts.
func TestWhatCleansUpIsTriedAgainBehindAGate(t *testing.T) {
	s := begun(t, "steps: ["+coretest.Hook("a")+"]\nfinally: ["+coretest.Hook("z", "retry: {limit: 5, backoff: 1s}")+"]", 0)
	s.advance("02:00")
	s.done("a")
	s.sig = workflow.Signals{Namespace: &run.ClosedGate{Reason: "closed"}, Held: "paused"}
	m := s.advance("02:01")
	s.j = workflow.Note(s.run, s.j, m.Path, workflow.StepResult{Failed: true, Reason: "Boom"}, s.now)
	if m = s.advance("02:02"); m.Act != workflow.ActPass || m.Path != "finally/z" {
		t.Errorf("%+v", m)
	}
}
