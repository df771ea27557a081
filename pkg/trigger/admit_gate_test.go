package trigger_test

import (
	"strings"
	"testing"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/coretest"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
	"github.com/kubectl-maint/kubectl-maint/pkg/trigger"
)

func TestAPendingRunWaitsForItsWindowUpToItsDeadline(t *testing.T) {
	r := coretest.NewRun(func(s *plan.Spec) { s.StartDeadline = &document.Duration{Duration: 30 * time.Minute} })
	hold := &run.ClosedGate{Reason: "closed", Until: coretest.Clock("03:00")}
	a := trigger.Admit(r, trigger.AdmissionFacts{Now: coretest.Clock("02:00"), EntryOpen: true, Hold: hold})
	if a.Start || a.Waiting != run.WaitWindow || !a.Until.Equal(coretest.Clock("02:30").Add(time.Nanosecond)) {
		t.Errorf("in time: %+v", a)
	}
	late := coretest.Clock("02:30").Add(time.Nanosecond)
	if a = trigger.Admit(r, trigger.AdmissionFacts{Now: late, EntryOpen: true, Hold: hold}); a.Result != run.Missed || a.Reason != run.ReasonWindow {
		t.Errorf("too late: %+v", a)
	}
	hold.NotReady = true
	if a = trigger.Admit(r, trigger.AdmissionFacts{Now: late, EntryOpen: true, Hold: hold}); a.Result != run.Missed || a.Reason != run.ReasonNotReady {
		t.Errorf("too late, and its policy is not ready: %+v", a)
	}
	r.Request = run.Request{Kind: run.ByToken, Token: "t", At: coretest.Clock("02:00")}
	if a = trigger.Admit(r, trigger.AdmissionFacts{Now: coretest.Clock("23:00"), EntryOpen: true, Hold: hold}); a.Waiting != run.WaitWindow {
		t.Errorf("a request without a slot does not wait: %+v", a)
	}
}

func TestAPolicyThatIsNotReadyHoldsEverythingButWhatIsAskedForOutsideIt(t *testing.T) {
	unready := schedule.NewGate(schedule.GateSpec{Policies: []*schedule.Policy{schedule.PolicyNotReady("p", "it is broken")}})
	f := trigger.Facts{
		Now: coretest.Clock("02:00"), LeadingSince: coretest.Clock("01:00"), Plan: trigger.Plan{
			Namespace: "shop", Name: "orders", UID: "uid", CreatedAt: coretest.Clock("01:00"),
			Spec:   coretest.NewRun().Spec,
			Intent: intent.Intent{Token: "t"},
		}, Ready: trigger.Readiness{OK: true}, Gate: unready, State: trigger.State{Ledger: &ledger.Ledger{PlanUID: "uid", Watermark: coretest.Clock("01:00"), Created: true}}, NameOf: func(r run.Request) string { return "run-" + r.Token },
	}
	d := trigger.Decide(f)
	if len(d.Claims) != 0 || d.Status.Ready.OK || d.Status.Phase != trigger.PhaseWaiting || !strings.Contains(d.Status.Message, "it is broken") {
		t.Errorf("claims %v, ready %+v, %s: %s", d.Claims, d.Status.Ready, d.Status.Phase, d.Status.Message)
	}
	f.Plan.Intent.Asked = intent.TriggerOptions{Token: "t", OutsideWindow: true, Reason: "fire"}
	if d = trigger.Decide(f); len(d.Claims) != 1 || !d.Claims[0].OutsideWindow {
		t.Errorf("claims %v", d.Claims)
	}
	f.Plan.Intent.Asked.Token = "another"
	if d = trigger.Decide(f); len(d.Claims) != 0 {
		t.Errorf("the options of another trigger let it through: %v", d.Claims)
	}
	f.Ready = trigger.Readiness{Reason: run.ReasonTarget, Message: "its target is gone"}
	f.Plan.Intent.Asked.Token = "t"
	if d = trigger.Decide(f); len(d.Claims) != 0 || !strings.Contains(d.Status.Message, "its target is gone") {
		t.Errorf("what the plan itself lacks is not said: claims %v, %s", d.Claims, d.Status.Message)
	}
}

func TestAPlanThatIsNotReadyForItselfSaysSoUnderAnyPolicy(t *testing.T) {
	for name, gate := range map[string]schedule.GateSpec{
		"no policy":          {},
		"a policy not ready": {Policies: []*schedule.Policy{schedule.PolicyNotReady("p", "it is broken")}},
	} {
		f := coretest.Facts("01:00", coretest.NotReady(run.ReasonTarget))
		f.Gate = schedule.NewGate(gate)
		if d := trigger.Decide(f); d.Status.Phase != trigger.PhaseWaiting || d.Status.Message != "not yet" {
			t.Errorf("%s: %s: %s", name, d.Status.Phase, d.Status.Message)
		}
	}
}

func TestAdmitAsksForApproval(t *testing.T) {
	r := pending(coretest.SlotAt("02:00"))
	r.Request.At = coretest.Clock("02:00")
	r.Spec.RequiresApproval = true
	jane := &intent.Actor{Name: "jane"}
	closed := &run.ClosedGate{Reason: "closed", Until: coretest.Clock("08:00")}
	for _, c := range []struct {
		name, want string
		s          trigger.AdmissionFacts
	}{
		{"it waits longer than its deadline", "wait approval until 02:00:00", standing("09:00")},
		{"while it is asked, nothing else is waited for", "wait approval until 02:00:00", standing("02:00", func(s *trigger.AdmissionFacts) { s.Hold = closed })},
		{"an approval is written down first", "approve jane", standing("09:00", func(s *trigger.AdmissionFacts) { s.Approve = jane })},
		{"approved, it has met its deadline", "start", standing("09:00", func(s *trigger.AdmissionFacts) { s.Approved = true })},
		{"approved, it waits for its window without end", "wait window until 08:00:00", standing("04:00", func(s *trigger.AdmissionFacts) { s.Approved, s.Hold = true, closed })},
		{"rejected", "Skipped(rejected)", standing("09:00", func(s *trigger.AdmissionFacts) { s.Reject, s.Approve = jane, jane })},
		{"rejected after it was approved", "start", standing("09:00", func(s *trigger.AdmissionFacts) { s.Reject, s.Approved = jane, true })},
		{"nobody answered", "Missed(approval)", standing("+1 02:00")},
		{"an approval that came late, and was not seen before", "approve jane", standing("+1 03:00", func(s *trigger.AdmissionFacts) { s.Approve = jane })},
		{"aborted", "Skipped(aborted)", standing("09:00", func(s *trigger.AdmissionFacts) { s.Abort = &run.End{Phase: run.Aborted} })},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := trigger.Admit(r, c.s)
			got := verdictOf(a)
			if a.Approve != nil {
				got = "approve " + a.Approve.Name
			}
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
	t.Run("a dry run asks nobody", func(t *testing.T) {
		dry := r
		dry.Request.DryRun = true
		if a := trigger.Admit(dry, standing("02:00")); !a.Start {
			t.Errorf("%+v", a)
		}
	})
}
