package flow

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/sleepertest"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

func TestApproval(t *testing.T) {
	now := time.Date(2026, 3, 1, 2, 0, 0, 0, time.UTC)
	inAnHour, byDefault := now.Add(time.Hour), now.Add(plan.DefaultApprovalTimeout)
	hour := &document.Duration{Duration: time.Hour}
	yes := &run.Approval{Approved: true, Actor: intent.Actor{Name: "eva", Reason: "seen", Verified: true}}
	no := &run.Approval{Actor: intent.Actor{Name: "eva", Reason: "not today"}}
	for name, c := range map[string]struct {
		properties plan.ApprovalProperties
		call       executors.Call
		want       executors.Outcome
	}{
		"the end of the wait is recorded before anybody waits": {
			plan.ApprovalProperties{Timeout: hour, Message: "is the backup good?"},
			executors.Call{},
			executors.Outcome{State: executors.Record, ResumeAt: &inAnHour, Message: "waits for approval until 2026-03-01T03:00:00Z: is the backup good? ('kubectl maint -n shop approve r/ask')"},
		},
		"without a timeout it is the default's": {
			plan.ApprovalProperties{},
			executors.Call{},
			executors.Outcome{State: executors.Record, ResumeAt: &byDefault, Message: "waits for approval until " + byDefault.Format(time.RFC3339) + " ('kubectl maint -n shop approve r/ask')"},
		},
		"it waits until the recorded end, whatever the timeout says by then": {
			plan.ApprovalProperties{},
			executors.Call{Recorded: executors.Recorded{ResumeAt: &inAnHour}},
			executors.Outcome{Reason: "Waiting", WakeAt: inAnHour, Message: "waits for approval until 2026-03-01T03:00:00Z ('kubectl maint -n shop approve r/ask')"},
		},
		"nobody answered until the end": {
			plan.ApprovalProperties{},
			executors.Call{Recorded: executors.Recorded{ResumeAt: &now}},
			executors.Refuse("ApprovalExpired", "nobody approved or rejected until 2026-03-01T02:00:00Z"),
		},
		"somebody approved": {
			plan.ApprovalProperties{},
			executors.Call{Recorded: executors.Recorded{ResumeAt: &inAnHour, Approval: yes}},
			executors.Outcome{State: executors.Done, Reason: "Approved", Message: yes.Said("approved"), Outputs: map[string]any{"by": "eva", "reason": "seen", "verified": true}},
		},
		"somebody approved in time, and the agent looks late": {
			plan.ApprovalProperties{},
			executors.Call{Recorded: executors.Recorded{ResumeAt: &now, Approval: yes}},
			executors.Outcome{State: executors.Done, Reason: "Approved", Message: yes.Said("approved"), Outputs: map[string]any{"by": "eva", "reason": "seen", "verified": true}},
		},
		"somebody rejected: no other attempt asks again": {
			plan.ApprovalProperties{},
			executors.Call{Recorded: executors.Recorded{ResumeAt: &inAnHour, Approval: no}},
			executors.Refuse("Rejected", "%s", no.Said("rejected")),
		},
		"a dry run asks nobody": {
			plan.ApprovalProperties{},
			executors.Call{DryRun: true},
			executors.Outcome{State: executors.Done, Message: "dry run: would ask for approval"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.call.Plan.Namespace, c.call.Run, c.call.Path, c.call.Now, c.call.Properties = "shop", "r", "ask", now, &c.properties
			if diff := cmp.Diff(c.want, Approver{}.Pass(t.Context(), c.call)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestStepsThatAreGivenTheWrongProperties(t *testing.T) {
	for name, e := range map[string]executors.Executor{"approval": Approver{}, "suspend": Suspender{}} {
		out := e.Pass(t.Context(), executors.Call{Path: "x", Properties: &plan.ScaleProperties{}})
		if out.State != executors.Failed || !out.Permanent || out.Reason != executors.ReasonInvalid {
			t.Errorf("%s: %+v", name, out)
		}
	}
}

// A dry run without a duration says what the run would wait for.
func TestADryRunOfASuspendWithoutAnEnd(t *testing.T) {
	out := Suspender{}.Pass(t.Context(), executors.Call{DryRun: true, Properties: &plan.SuspendProperties{}})
	if out.State != executors.Done || out.Message != "dry run: would hold the run until somebody resumes it" {
		t.Errorf("%+v", out)
	}
}

// nothing is a target of which nothing is put to sleep.
type nothing struct{ delay time.Duration }

func (nothing) Sleeper() executors.Sleeper { return Noop{} }

func (n nothing) Call() executors.SleepCall {
	return executors.SleepCall{Params: &hibernate.NoopParameters{Delay: &document.Duration{Duration: n.delay}}}
}

func (nothing) State(*testing.T) map[string]string {
	return map[string]string{noopResource: "as it is"}
}
func (nothing) Outside(string) bool      { return false }
func (nothing) Unselect(*testing.T) bool { return false }
func (nothing) Settle(*testing.T)        {}

func TestANoopSleepsAsEveryTargetDoes(t *testing.T) {
	for _, delay := range []time.Duration{0, 5 * time.Second} {
		sleepertest.Run(t, func(*testing.T) sleepertest.Backend { return nothing{delay} })
	}
}

// A target of type noop is asleep, and awake, once its delay has passed and it has failed
// as often as it was to.
func TestHowANoopIs(t *testing.T) {
	began := time.Date(2026, 3, 1, 2, 0, 0, 0, time.UTC)
	recorded := []hibernate.Resource{{ID: noopResource}}
	woken := []hibernate.Resource{{ID: noopResource, WokenAt: &began}}
	slow := hibernate.NoopParameters{Delay: &document.Duration{Duration: time.Minute}}
	fails := hibernate.NoopParameters{FailShutdown: 2, FailWakeUp: 1}
	for name, c := range map[string]struct {
		params   hibernate.NoopParameters
		op       hibernate.Operation
		after    time.Duration // since it began; below zero: it did not
		failures int
		before   int // those before somebody had it tried at once
		recorded []hibernate.Resource
		asleep   bool
		awake    bool
		ready    bool
	}{
		"before it begins it is awake":                        {op: hibernate.Shutdown, after: -1, awake: true},
		"what is not recorded does not fall asleep":           {op: hibernate.Shutdown, awake: true},
		"it falls asleep":                                     {op: hibernate.Shutdown, recorded: recorded, asleep: true},
		"not before its delay is over":                        {params: slow, op: hibernate.Shutdown, after: time.Minute - 1, recorded: recorded, awake: true},
		"at its end it does":                                  {params: slow, op: hibernate.Shutdown, after: time.Minute, recorded: recorded, asleep: true},
		"not before it has failed twice":                      {params: fails, op: hibernate.Shutdown, failures: 1, recorded: recorded, awake: true},
		"then it does":                                        {params: fails, op: hibernate.Shutdown, failures: 2, recorded: recorded, asleep: true},
		"then it does, also where it was tried at once since": {params: fails, op: hibernate.Shutdown, before: 2, recorded: recorded, asleep: true},
		"not before it has failed twice in all":               {params: fails, op: hibernate.Shutdown, failures: 1, recorded: recorded, awake: true},
		"both count":                                          {params: fails, op: hibernate.Shutdown, failures: 1, before: 1, recorded: recorded, asleep: true},
		"before the wake begins it sleeps":                    {op: hibernate.Wake, after: -1, recorded: recorded, asleep: true},
		"before it is asked to wake it sleeps":                {op: hibernate.Wake, recorded: recorded, asleep: true},
		"it wakes":                                            {op: hibernate.Wake, recorded: woken, awake: true, ready: true},
		"not before its delay is over, and sleeps until then": {params: slow, op: hibernate.Wake, after: time.Second, recorded: woken, asleep: true},
		"not before it has failed once":                       {params: fails, op: hibernate.Wake, recorded: woken, asleep: true},
		"then it wakes":                                       {params: fails, op: hibernate.Wake, failures: 1, recorded: woken, awake: true, ready: true},
	} {
		t.Run(name, func(t *testing.T) {
			call := executors.SleepCall{Params: &c.params, Operation: c.op, Failures: c.failures, AttemptsBefore: c.before, Recorded: c.recorded, Now: began.Add(c.after), StartedAt: began}
			if c.after < 0 {
				call.Now, call.StartedAt = began, time.Time{}
			}
			got, err := Noop{}.Observe(t.Context(), call)
			want := []hibernate.Observation{{ID: "noop", UID: "noop", Before: json.RawMessage(`{}`), Asleep: c.asleep, Awake: c.awake, Ready: c.ready}}
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
	if _, err := (Noop{}).Observe(t.Context(), executors.SleepCall{Params: 1}); err == nil || err.Error() != "the parameters are int" {
		t.Errorf("of other parameters: %v", err)
	}
	if err := (Noop{}).Validate(t.Context(), executors.SleepCall{}); err != nil {
		t.Error(err)
	}
}

func TestANoopFailsAsOftenAsItIsAskedTo(t *testing.T) {
	due := []hibernate.Due{{Resource: hibernate.Resource{ID: "noop"}}}
	params := &hibernate.NoopParameters{FailShutdown: 2, FailWakeUp: 1}
	for failures, want := range map[int][2]bool{0: {true, true}, 1: {true, false}, 2: {false, false}} {
		call := executors.SleepCall{Params: params, Failures: failures}
		down, up := Noop{}.Shutdown(t.Context(), call, due), Noop{}.Wake(t.Context(), call, due)
		if len(down) != 1 || len(up) != 1 || down[0].ID != "noop" || (down[0].Err != nil) != want[0] || (up[0].Err != nil) != want[1] {
			t.Errorf("after %d failures: %v, %v", failures, down, up)
		}
	}
	if down := (Noop{}).Shutdown(t.Context(), executors.SleepCall{}, due); len(down) != 1 || down[0].Err != nil {
		t.Errorf("without parameters: %v", down)
	}
}
