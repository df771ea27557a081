package workflow_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/coretest"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

func TestSignalsAreWhatTheAnnotationsSayOfThisRun(t *testing.T) {
	now := coretest.Clock("02:00")
	said := func(what string) (intent.Actor, intent.Intent) {
		jane := intent.Actor{Name: "jane", Reason: "because"}
		return intent.Actor{Name: "jane", Reason: "because", At: now}, intent.Intent{Actors: map[string]intent.Actor{what: jane}}
	}
	waits := run.Journal{Steps: []run.Record{{Path: "pause", Type: "suspend", Phase: run.StepRunning}}}
	over := run.Journal{Steps: []run.Record{{Path: "pause", Type: "suspend", Phase: run.StepSucceeded}}}
	jane, abort := said("abort")
	_, resume := said("resume")
	_, approve := said("approve")
	_, reject := said("reject")
	abort.Abort, resume.Resume = intent.RunRef{Run: "r"}, intent.RunRef{Run: "r"}
	approve.Approve, reject.Reject = intent.RunRef{Run: "r", Step: "ask"}, intent.RunRef{Run: "r"}
	ofStep := func(step string) intent.Intent {
		one := resume
		one.Resume.Step = step
		return one
	}
	others := abort
	others.Abort, others.Resume, others.Approve, others.Reject = intent.RunRef{Run: "q"}, intent.RunRef{Run: "q"}, intent.RunRef{Run: "q"}, intent.RunRef{Run: "q"}
	for _, c := range []struct {
		name   string
		in     intent.Intent
		j      run.Journal
		paused bool
		want   workflow.Signals
	}{
		{"nothing", intent.Intent{}, waits, false, workflow.Signals{}},
		{"another run is meant", others, waits, false, workflow.Signals{}},
		{"abort", abort, waits, false, workflow.Signals{Abort: &run.End{Phase: run.Aborted, Reason: "Aborted", Actor: "jane", Message: jane.Said("aborted"), By: &jane}}},
		{"resume", resume, waits, false, workflow.Signals{Resume: &workflow.Answer{Actor: jane}}},
		{"resume of a step", ofStep("pause"), waits, false, workflow.Signals{Resume: &workflow.Answer{Step: "pause", Actor: jane}}},
		{"resume of a step that is not suspended", ofStep("nonsense"), waits, false, workflow.Signals{}},
		{"resume with nothing suspended", resume, over, false, workflow.Signals{}},
		{"approve of a step", approve, waits, false, workflow.Signals{Approve: &workflow.Answer{Step: "ask", Actor: jane}}},
		{"reject", reject, waits, false, workflow.Signals{Reject: &workflow.Answer{Actor: jane}}},
		{"paused", intent.Intent{}, waits, true, workflow.Signals{Held: "paused: no new step begins", Paused: "paused"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := workflow.SignalsOf(c.in, run.Run{Name: "r"}, c.j, map[bool][]schedule.Pause{true: {{On: true}}}[c.paused], now)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Of suspends side by side, a resume of one ends that one.
func TestAResumeOfAStepEndsNoOtherSuspend(t *testing.T) {
	r := coretest.RunOf(t, "steps: [{name: g, type: step-group, properties: {mode: parallel, steps: [{name: a, type: suspend}, {name: b, type: suspend}]}}]")
	j, _ := workflow.Advance(r, workflow.NewJournal(r).Start(coretest.Clock("02:00")), coretest.Clock("02:00"), workflow.Signals{})
	for step, want := range map[string][2]bool{"": {true, true}, "a": {true, false}, "g/b": {false, true}, "nonsense": {false, false}} {
		sig := workflow.SignalsOf(intent.Intent{Resume: intent.RunRef{Run: r.Name, Step: step}}, r, j, nil, coretest.Clock("02:01"))
		got, _ := workflow.Advance(r, j, coretest.Clock("02:01"), sig)
		if resumed := [2]bool{coretest.Record(got, "g/a").Resumed != nil, coretest.Record(got, "g/b").Resumed != nil}; resumed != want {
			t.Errorf("%s/%s resumes %v, want %v", r.Name, step, resumed, want)
		}
	}
}

func TestAnAnswerOfAStepIsNoneOfTheRun(t *testing.T) {
	jane := intent.Actor{Name: "jane"}
	if got := (&workflow.Answer{Actor: jane}).OfRun(); got == nil || got.Name != "jane" {
		t.Errorf("of the run: %v", got)
	}
	if got := (&workflow.Answer{Step: "ask", Actor: jane}).OfRun(); got != nil {
		t.Errorf("of a step: %v", got)
	}
	if got := (*workflow.Answer)(nil).OfRun(); got != nil {
		t.Errorf("of nobody: %v", got)
	}
}
