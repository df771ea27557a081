package trigger_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/coretest"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/trigger"
)

func TestAClaimIsUnstartedUntilItsRunIsLive(t *testing.T) {
	at := coretest.SlotAt("02:00")
	l := ledger.Ledger{Open: []ledger.Entry{
		{Run: "live", Request: &at},
		{Run: "missing", Request: &at},
		{Run: "of an agent that kept no request"},
		{Run: "missing too", Request: &at},
	}}
	var got []string
	for _, e := range trigger.Unstarted(l, []trigger.ActiveRun{{Name: "live"}, {Name: "another"}}) {
		got = append(got, e.Run)
	}
	if diff := cmp.Diff([]string{"missing", "missing too"}, got); diff != "" {
		t.Error(diff)
	}
	if got := trigger.Unstarted(ledger.Ledger{}, nil); len(got) > 0 {
		t.Errorf("of no claims: %v", got)
	}
}

func TestANewRunIsThePlanAsItIsNow(t *testing.T) {
	f := coretest.Facts("02:00")
	request := run.Request{Kind: run.ByWatch, Rule: "r", Body: []byte(`{"kind":"Pod"}`)}
	templates := map[string]plan.TemplateSpec{"restart": {}}
	got := f.NewRun(ledger.Entry{Run: "orders-1", Request: &request, TargetUID: "target"}, templates)
	want := run.Run{
		APIVersion: "maint.dev/v1alpha1", Kind: "Run", Name: "orders-1", Namespace: "shop", Plan: "orders", PlanUID: "uid",
		Request: run.Request{Kind: run.ByWatch, Rule: "r"}, TargetUID: "target", Spec: f.Plan.Spec, Templates: templates,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if request.Body == nil {
		t.Error("the claim's own request lost its object")
	}
}

// Nodes take the windows that they take, also where a template rolls out.
func TestTheTimeLimitOfANewRun(t *testing.T) {
	f := coretest.Facts("02:00")
	rollout := plan.TemplateSpec{Steps: []plan.Step{{Name: "r", Type: plan.TypeForEachNode}}}
	for name, c := range map[string]struct {
		template plan.TemplateSpec
		says     string
		want     string
	}{
		"an hour":                   {template: plan.TemplateSpec{Steps: []plan.Step{{Name: "a", Type: "suspend"}}}, want: "1h0m0s"},
		"none of a rollout":         {template: rollout},
		"what it says, of one, too": {template: rollout, says: "2h", want: "2h0m0s"},
		"what it says without one":  {says: "2h", want: "2h0m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := plan.Spec{Steps: []plan.Step{{Name: "t", Type: "template/t"}}}
			if c.says != "" {
				spec.MaxDuration = coretest.Duration(c.says)
			}
			f.Plan.Spec = spec.Defaulted()
			got := f.NewRun(ledger.Entry{Run: "r", Request: &run.Request{}}, map[string]plan.TemplateSpec{"t": c.template}).Spec.MaxDuration
			if got == nil != (c.want == "") || got != nil && got.Duration.String() != c.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestAnAdmissionIsWrittenIntoTheJournal(t *testing.T) {
	now := coretest.Clock("02:00")
	jane := &intent.Actor{Name: "jane", Reason: "fine"}
	was := run.Journal{Phase: run.Pending, Waiting: run.WaitWindow, Message: "waits", Steps: []run.Record{{Path: "a", Phase: run.StepPending}}}
	for _, c := range []struct {
		name     string
		answer   trigger.Admission
		from     run.Journal
		want     run.Journal
		stepsEnd run.StepPhase
	}{
		{"void", trigger.Admission{Void: true, Message: "no such claim"}, was, was, run.StepPending},
		{"it ends", trigger.Admission{Result: run.Missed, Reason: run.ReasonDeadline, Message: "too late"}, was, run.Journal{
			Phase: run.Pending, Section: plan.SectionClosing, Message: "too late",
			End: &run.End{Phase: run.Aborted, Result: run.Missed, Reason: run.ReasonDeadline, Message: "too late"},
		}, run.StepSkipped},
		{"somebody rejects it", trigger.Admission{Result: run.Skipped, Reason: run.ReasonRejected, Message: jane.Said("rejected"), By: jane}, was, run.Journal{
			Phase: run.Pending, Section: plan.SectionClosing, Message: jane.Said("rejected"),
			End: &run.End{Phase: run.Aborted, Result: run.Skipped, Reason: run.ReasonRejected, Message: jane.Said("rejected"), By: jane},
		}, run.StepSkipped},
		{"it is approved", trigger.Admission{Approve: jane}, was, run.Journal{Phase: run.Pending, Approved: jane, Message: jane.Said("approved")}, run.StepPending},
		{"it starts", trigger.Admission{Start: true}, was, run.Journal{Phase: run.Running, Section: plan.SectionSteps, StartedAt: &now}, run.StepPending},
		{"it waits", trigger.Admission{Waiting: run.WaitLock, Message: "another has it"}, was, run.Journal{Phase: run.Pending, Waiting: run.WaitLock, Message: "another has it"}, run.StepPending},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.want.Steps = []run.Record{{Path: "a", Phase: c.stepsEnd}}
			if diff := cmp.Diff(c.want, trigger.Admitted(c.from, c.answer, now)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWhatIsToldOfAnActiveRun(t *testing.T) {
	r := coretest.NewRun()
	r.TargetUID = "t"
	r.Request = run.Request{Kind: run.ByLabel, Label: "k", Ordinal: 3}
	j := run.Journal{Phase: run.Running, Message: "at work", StartedAt: coretest.On("02:00"), Steps: []run.Record{
		{Path: "a", Phase: run.StepSucceeded}, {Path: "b", Phase: run.StepRunning}, {Path: "c"},
	}}
	want := trigger.ActiveRun{
		Name: "r", Phase: run.Running, Message: "at work", Request: r.Request, StartedAt: coretest.On("02:00"),
		TargetUID: "t", Label: "k", Ordinal: 3,
	}
	if diff := cmp.Diff(want, trigger.ActiveRunOf(r, j)); diff != "" {
		t.Errorf("of a plan without a target: %s", diff)
	}
	r.Spec.Target = &plan.ObjectRef{APIVersion: "apps/v1", Kind: "Deployment", Name: "orders"}
	want.Step = "b 2/3"
	if diff := cmp.Diff(want, trigger.ActiveRunOf(r, j)); diff != "" {
		t.Errorf("of a plan with a target: %s", diff)
	}
	j.Steps[1].Waits = "a Secret"
	want.Waits, want.Message = true, "step b waits: a Secret"
	if diff := cmp.Diff(want, trigger.ActiveRunOf(r, j)); diff != "" {
		t.Errorf("where a step waits: %s", diff)
	}
}
