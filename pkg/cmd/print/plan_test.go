package print

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

const daily = "triggers: {schedules: [{cron: '0 2 * * *', timezone: Europe/Berlin}]}"

// standing is how plan orders stands, which the agent has looked at.
func standing(spec string, notes []string, l *ledger.Ledger, live ...view.Run) view.Plan {
	cm := cmdtest.Plan("orders", spec, func(cm *corev1.ConfigMap) {
		cm.CreationTimestamp.Time = cmdtest.Now().Add(-48 * time.Hour)
		cm.Annotations[annotations.StatusObserved] = annotations.Observed(cm)
		cm.Annotations[annotations.StatusPhase] = "Idle"
	}, cmdtest.Noting(notes...))
	book := policy.NewResolver("maint-system")
	book.PutPolicy(annotations.Policy(cmdtest.Policy("night", "{strategy: MaintenanceSchedule, maintenanceSchedule: {timezone: UTC, windows: [{start: '22:00', end: '02:00'}]}}")))
	parsed, _ := annotations.Plan(cm)
	return view.NewPlan(cm, view.Ledger{Head: l}, live, view.Around{Gate: book.GateIfAny(annotations.Intent(cm.Annotations).Query("shop", parsed.Policies))}, cmdtest.Now())
}

func TestThePictureOfAPlan(t *testing.T) {
	last := &ledger.Ledger{Last: &ledger.LastRun{Name: "maint-run-orders-a", Phase: run.Failed, StartedAt: cmdtest.Before(23 * time.Hour), EndedAt: *cmdtest.Before(22 * time.Hour), SuccessAt: cmdtest.Before(46 * time.Hour)}}
	conditions := `[{"type":"Valid","status":"True","reason":"Valid","message":""},{"type":"Ready","status":"False","reason":"Policy","message":"policy night is not ready"}]`
	live := cmdtest.RunOf(cmdtest.Record("call", "webhook", run.StepRunning))
	for _, c := range []struct {
		name string
		plan view.Plan
		all  bool
		want []string // lines
	}{
		{"manual alone", standing("", nil, nil), false, []string{"Plan:   orders in namespace shop", "Phase:  Idle"}},
		{"with a schedule", standing(daily, nil, nil), false, []string{"Plan:   orders in namespace shop", "Phase:  Idle", "Next:   Sat 2026-11-21 02:00 CET (2026-11-21T01:00:00Z), in 1h0m"}},
		{"with its last run", standing("", nil, last), false, []string{
			"Plan:   orders in namespace shop", "Phase:  Idle", "Last:   Failed maint-run-orders-a, started Fri 2026-11-20 02:00 CET (2026-11-20T01:00:00Z), 23h0m ago", "        last success Thu 2026-11-19 03:00 CET (2026-11-19T02:00:00Z), 46h0m ago",
		}},
		{"whose last run failed, with step and cause", standing("", nil, &ledger.Ledger{Last: last.Last, Recent: []ledger.Entry{{Result: run.Ran, Run: "maint-run-orders-a", Outcome: &ledger.Outcome{Phase: run.Failed, Step: "dump", Message: "no disk"}}}}), false, []string{
			"Plan:   orders in namespace shop", "Phase:  Idle", "Last:   Failed maint-run-orders-a, started Fri 2026-11-20 02:00 CET (2026-11-20T01:00:00Z), 23h0m ago", "        in step dump: no disk; see 'kubectl maint describe maint-run-orders-a'", "        last success Thu 2026-11-19 03:00 CET (2026-11-19T02:00:00Z), 46h0m ago",
		}},
		{"whose last run succeeded, and did not put all back", standing("", nil, &ledger.Ledger{Last: &ledger.LastRun{Name: "maint-run-orders-a", Phase: run.Succeeded, EndedAt: *cmdtest.Before(time.Hour)}, Recent: []ledger.Entry{{Result: run.Ran, Run: "maint-run-orders-a", Outcome: &ledger.Outcome{Phase: run.Succeeded, Message: "what step tag found was not put back: it changed"}}}}), false, []string{
			"Plan:   orders in namespace shop", "Phase:  Idle", "Last:   Succeeded maint-run-orders-a", "        what step tag found was not put back: it changed; see 'kubectl maint describe maint-run-orders-a'",
		}},
		{"in its window", standing(daily+", policies: [{name: night}]", nil, nil), false, []string{
			"Plan:    orders in namespace shop", "Phase:   Idle", "Next:    Sat 2026-11-21 02:00 CET (2026-11-21T01:00:00Z), in 1h0m", "Window:  open until Sat 2026-11-21 03:00 CET (2026-11-21T02:00:00Z), in 2h0m (policy night: in a window)",
		}},
		{"whose next slot lies outside of its window", standing("triggers: {schedules: [{cron: '0 12 * * *', timezone: Europe/Berlin}]}, policies: [{name: night}]", nil, nil), false, []string{
			"Plan:    orders in namespace shop", "Phase:   Idle", "Next:    Sat 2026-11-21 12:00 CET (2026-11-21T11:00:00Z), in 11h0m, outside of its window, which opens at Sat 2026-11-21 23:00 CET (2026-11-21T22:00:00Z), too late: its slot is Missed at Sat 2026-11-21 13:00 CET (2026-11-21T12:00:00Z) (policy night: outside of the windows)", "Window:  open until Sat 2026-11-21 03:00 CET (2026-11-21T02:00:00Z), in 2h0m (policy night: in a window)",
		}},
		{"paused by somebody, for a reason", standing(daily, []string{annotations.Pause, "2026-11-23T00:00:00Z", annotations.Actor(annotations.Pause), "joe", annotations.Reason(annotations.Pause), "release week", annotations.StatusPhase, "Paused", annotations.StatusMessage, "until Monday"}, nil), false, []string{
			"Plan:   orders in namespace shop", "Phase:  Paused: until Monday", "Next:   Mon 2026-11-23 02:00 CET (2026-11-23T01:00:00Z), in 2d1h", "Pause:  until Mon 2026-11-23 01:00 CET (2026-11-23T00:00:00Z), in 2d0h, by joe (unverified): release week",
		}},
		{"paused by a name that would be a line of ours", standing(daily, []string{annotations.Pause, "true", annotations.Actor(annotations.Pause), "ann\nPhase:  Succeeded\u2028", annotations.Reason(annotations.Pause), "a\n\nb"}, nil), false, []string{
			"Plan:   orders in namespace shop", "Phase:  Idle", "Next:   none, since all slots are paused or skipped", "Pause:  until resumed, by ann Phase: Succeeded (unverified): a b",
		}},
		{"paused until resumed", standing(daily, []string{annotations.Pause, "true"}, nil), false, []string{
			"Plan:   orders in namespace shop", "Phase:  Idle", "Next:   none, since all slots are paused or skipped", "Pause:  until resumed",
		}},
		{"whose last slot is past", standing("triggers: {schedules: [{at: '2026-11-20T12:00:00Z'}, {rrule: 'FREQ=DAILY;COUNT=2', dtstart: '2026-11-01T02:00:00', timezone: Europe/Berlin}]}", nil, nil), false, []string{
			"Plan:   orders in namespace shop", "Phase:  Idle", "Next:   none, since its last slot is past",
		}},
		{"with slots that are skipped", standing(daily, []string{annotations.Skip, "2026-11-21T01:00:00Z,2026-11-22T01:00:00Z"}, nil), false, []string{
			"Plan:   orders in namespace shop", "Phase:  Idle", "Next:   Mon 2026-11-23 02:00 CET (2026-11-23T01:00:00Z), in 2d1h", "Skip:   Sat 2026-11-21 02:00 CET (2026-11-21T01:00:00Z)", "        Sun 2026-11-22 02:00 CET (2026-11-22T01:00:00Z)",
		}},
		{"with a trigger that waits", standing("", []string{annotations.Trigger, "t-1", annotations.Actor(annotations.Trigger), "joe", annotations.StatusMessage, "waits to be triggered"}, nil), false, []string{
			"Plan:     orders in namespace shop", "Phase:    Idle: a trigger waits that the agent has not taken up yet", "Waiting:  a trigger that the agent has not handled yet, by joe (unverified); 'kubectl maint abort " + annotations.RunName("orders", "u-orders", run.Request{Kind: run.ByToken, Token: "t-1"}) + "' takes it back",
		}},
		{"with an annotation that is wrong", standing("", []string{annotations.Pause, "tomorrow"}, nil), false, []string{
			"Plan:   orders in namespace shop", "Phase:  Idle", "Pause:  until resumed", `Notes:  maint.dev/pause: "tomorrow" is neither true nor an RFC 3339 instant like 2026-12-01T06:00:00Z; it pauses until it is removed`,
		}},
		{"status shows the conditions that need eyes", standing("", []string{annotations.StatusConditions, conditions}, nil), false, []string{
			"Plan:        orders in namespace shop", "Phase:       Idle", "Conditions:  Ready=False (Policy) policy night is not ready",
		}},
		{"a mirror that is not written: runs go on, and doctor says what is missing", standing("", []string{annotations.StatusConditions, `[{"type":"Mirrored","status":"False","reason":"Refused","message":"the mirror on Deployment/web cannot be written: forbidden"}]`}, nil), false, []string{
			"Plan:        orders in namespace shop", "Phase:       Idle", "Conditions:  Mirrored=False (Refused) the mirror on Deployment/web cannot be written: forbidden; runs go on without it: see 'kubectl maint doctor orders'",
		}},
		{"describe shows all", standing("", []string{annotations.StatusConditions, conditions}, nil), true, []string{
			"Plan:        orders in namespace shop", "Phase:       Idle", "Conditions:  Valid=True", "             Ready=False (Policy) policy night is not ready",
		}},
		{"one that the agent has not looked at", standing("", []string{annotations.StatusObserved, "older"}, nil), false, []string{
			"Plan:   orders in namespace shop", "Phase:  Unseen: the agent has not looked at this version of the plan yet",
		}},
		{"one with faults", standing("startDeadline: soon, maxDuration: later", nil, nil), false, []string{
			"Plan:   orders in namespace shop", `Phase:  Invalid: line 1: spec.startDeadline: "soon" is no duration: write it like 90s, 15m, 1h30m or 30d (and 1 more)`, "Next:   nothing runs while the plan is invalid",
		}},
		{"with a run at work", standing("", nil, nil, live), false, []string{
			"Plan:   orders in namespace shop", "Phase:  Idle", "", "Run maint-run-p-x  Running for 1h0m, 0 of 1 steps done", "  ▶ call  webhook  Running       60s",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, offlineView().PlanLines(c.plan, c.all)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAPlanInTheCellsOfATable(t *testing.T) {
	none, some := standing("", nil, nil), standing(daily, nil, &ledger.Ledger{Last: &ledger.LastRun{Phase: run.Succeeded, EndedAt: *cmdtest.Before(3 * time.Hour)}})
	got := []string{offlineView().ShortNext(none), offlineView().ShortLast(none), offlineView().ShortNext(some), offlineView().ShortLast(some)}
	if diff := cmp.Diff([]string{"", "", "Sat 2026-11-21 02:00 CET (1h0m)", "Succeeded 3h0m ago"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestNextSaysWhatTheClockDoes(t *testing.T) {
	p := standing("triggers: {schedules: [{cron: '30 2 28 3 *', timezone: Europe/Berlin, jitter: 10m}]}", nil, nil)
	if got := offlineView().Next(p); got != "Sun 2027-03-28 03:08:14 CEST (2027-03-28T01:08:14Z), in 127d1h, clocks go forward over it: the first instant after the gap" {
		t.Error(got)
	}
}

func TestWhatIsSkippedInWords(t *testing.T) {
	at := cmdtest.Now().Add(time.Hour)
	for _, c := range []struct {
		name string
		skip intent.Skip
		want string
	}{
		{"nothing", intent.Skip{}, ""},
		{"all", intent.Skip{All: true}, "all slots, until 'unskip'"},
		{"all before a time", intent.Skip{Until: &at}, "all slots before Sat 2026-11-21 02:00 CET (2026-11-21T01:00:00Z)"},
		{"all before a time that has passed", intent.Skip{Until: cmdtest.Before(time.Hour)}, ""},
		{"the next", intent.Skip{Next: true}, "the next slot"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := offlineView().Skip(c.skip); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestTheDetailOfAStep(t *testing.T) {
	running := func(kind string, edits ...func(*run.Record)) run.Record {
		return cmdtest.Record("s", kind, run.StepRunning, edits...)
	}
	restored := func(how, message string) run.Record {
		return cmdtest.Record("s", "scale", run.StepSucceeded, func(rec *run.Record) { rec.Restored, rec.RestoreMessage = how, message })
	}
	for _, c := range []struct {
		name, want string
		rec        run.Record
	}{
		{"a message", "1 of 2 pods are new", running("restart", cmdtest.Message("1 of 2 pods are new"))},
		{"a second attempt", "attempt 2: tries again in 30s: 503", running("webhook", cmdtest.Message("503"), func(rec *run.Record) { rec.Attempt, rec.NotBefore = 2, cmdtest.After(30*time.Second) })},
		{"a suspend that somebody ends", "waits for 'kubectl maint resume maint-run-p-x'", running("suspend", cmdtest.Message("held"))},
		{"a suspend that ends by itself", "until 02:00 CET or 'kubectl maint resume maint-run-p-x'", running("suspend", func(rec *run.Record) { rec.ResumeAt = cmdtest.After(time.Hour) })},
		{"a suspend that ends on another day", "until Sun 2026-11-22 01:00 CET or 'kubectl maint resume maint-run-p-x'", running("suspend", func(rec *run.Record) { rec.ResumeAt = cmdtest.After(24 * time.Hour) })},
		{"a failure with its reason", "Timeout: after 10m", cmdtest.Record("s", "wait", run.StepFailed, cmdtest.Message("after 10m"), func(rec *run.Record) { rec.Reason = "Timeout" })},
		{"what its cleanup waits for", "sent: waits: for the right to delete pods", cmdtest.Record("s", "job", run.StepSucceeded, cmdtest.Message("sent"), func(rec *run.Record) { rec.Waits = "for the right to delete pods" })},
		{"put back", "put back as it was", restored(run.RestoreDone, "")},
		{"put back, in its own words", "uncordoned", restored(run.RestoreDone, "uncordoned")},
		{"changed meanwhile", "not put back: somebody changed replicas meanwhile", restored(run.RestoreChanged, "somebody changed replicas meanwhile")},
		{"changed meanwhile, without words", "not put back: somebody changed it meanwhile", restored(run.RestoreChanged, "")},
		{"gone", "not put back: it is gone", restored(run.RestoreGone, "")},
		{"not put back", "could not be put back: forbidden", restored(run.RestoreFailed, "forbidden")},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := offlineView().stepDetail(cmdtest.RunOf(c.rec), c.rec); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// Nobody is sent to answer a run that its plan's ledger does not have open, or that the agent leaves alone.
func TestAStepOfARunThatTakesNoAnswerProposesNone(t *testing.T) {
	for _, kind := range []string{"suspend", plan.TypeApproval} {
		rec := cmdtest.Record("s", kind, run.StepRunning, cmdtest.Message("approve it with 'kubectl maint approve maint-run-p-x/s'"))
		r := cmdtest.RunOf(rec)
		r.Unheard = true
		if got := offlineView().stepDetail(r, rec); got != "takes no answer: see 'kubectl maint why p'" {
			t.Errorf("%s: %q", kind, got)
		}
	}
}

func TestHowARunEndsInOneLine(t *testing.T) {
	ended := func(phase run.Phase, message string) func(*run.Journal) {
		return func(j *run.Journal) {
			j.Phase, j.FinishedAt, j.Message = phase, cmdtest.Before(55*time.Minute), message
		}
	}
	for _, c := range []struct {
		name, want string
		edit       func(*run.Journal)
	}{
		{"it succeeded", "Succeeded after 5m0s", ended(run.Succeeded, "")},
		{"it failed", "Failed after 5m0s: step call failed: 503", ended(run.Failed, "step call failed: 503")},
		{"it never began", "Aborted: rejected by joe", func(j *run.Journal) { j.Phase, j.StartedAt, j.Message = run.Aborted, nil, "rejected by joe" }},
		{"it left something", "Failed after 5m0s; 1 of its steps could not be put back", func(j *run.Journal) {
			ended(run.Failed, "")(j)
			j.Steps[0].Restored = run.RestoreFailed
		}},
		{"it cleans up first", "Running for 1h0m, 0 of 1 steps done: cleaning up, then Failed: step call failed", func(j *run.Journal) { j.End = &run.End{Phase: run.Failed, Message: "step call failed"} }},
		{"it has not begun", "Pending: created", func(j *run.Journal) { j.Phase, j.StartedAt, j.Message = run.Pending, nil, "created" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := cmdtest.RunOf(cmdtest.Record("call", "webhook", run.StepRunning))
			c.edit(&r.Journal)
			if got := offlineView().RunHead(r); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// Off a terminal a run is told line by line, each once, its end last.
func TestARunInPlainLines(t *testing.T) {
	for _, c := range []struct {
		name string
		run  view.Run
		want []Update
	}{
		{"at work", cmdtest.RunOf(cmdtest.Record("a", "webhook", run.StepSucceeded), cmdtest.Record("b", "webhook", run.StepRunning, func(rec *run.Record) { rec.Attempt = 2 }), cmdtest.Record("c", "webhook", run.StepPending)), []Update{
			{Of: "maint-run-p-x", Text: "run maint-run-p-x: Running"}, {Of: "maint-run-p-x/a", Text: "step a: Succeeded"}, {Of: "maint-run-p-x/b", Text: "step b: Running (attempt 2)"},
		}},
		{"waiting", cmdtest.PendingRun(func(r *view.Run) { r.Journal.Waiting, r.Journal.Message = run.WaitWindow, "waits for its window" }), []Update{{Of: "maint-run-p-x", Text: "run maint-run-p-x: Pending: waits for its window"}}},
		{"waiting until an instant", cmdtest.PendingRun(func(r *view.Run) {
			r.Journal.Waiting, r.Journal.Message = run.WaitWindow, "waits for its window, which opens at 2026-11-21T22:00:00Z"
		}), []Update{{Of: "maint-run-p-x", Text: "run maint-run-p-x: Pending: waits for its window, which opens at Sat 2026-11-21 23:00 CET"}}},
		{"a step waits until an instant", cmdtest.RunOf(cmdtest.Record("a", "scale", run.StepRunning, func(rec *run.Record) { rec.Waits = "a right; unless it is there by 2026-11-21T00:05:00Z, it fails" })), []Update{
			{Of: "maint-run-p-x", Text: "run maint-run-p-x: Running"}, {Of: "maint-run-p-x/a", Text: "step a: Running, and waits: a right; unless it is there by Sat 2026-11-21 01:05 CET, it fails"},
		}},
		{"to be tried again", cmdtest.PendingRun(func(r *view.Run) { r.Journal.RetryAt, r.Journal.Message = cmdtest.After(time.Minute), "retry 1 of 3" }), []Update{{Of: "maint-run-p-x", Text: "run maint-run-p-x: Pending: retry 1 of 3"}}},
		{"asking", cmdtest.RunOf(cmdtest.Record("ask", plan.TypeApproval, run.StepRunning, cmdtest.Message("waits for approval"))), []Update{{Of: "maint-run-p-x", Text: "run maint-run-p-x: Running"}, {Of: "maint-run-p-x/ask", Text: "step ask: Running: waits for approval"}}},
		{"over its items", cmdtest.RunOf(cmdtest.Record("roll", plan.TypeForEach, run.StepRunning, cmdtest.Looping(run.Item{Name: "a", Phase: run.StepSucceeded}, run.Item{Name: "b", Phase: run.StepRunning}))), []Update{{Of: "maint-run-p-x", Text: "run maint-run-p-x: Running"}, {Of: "maint-run-p-x/roll", Text: "step roll: Running: 1 of 2 done"}}},
		{"failed, with something left", func() view.Run {
			r := cmdtest.RunOf(cmdtest.Record("a", "scale", run.StepFailed, cmdtest.Message("503"), func(rec *run.Record) { rec.Restored, rec.RestoreMessage = run.RestoreFailed, "forbidden" }))
			r.Journal.Phase, r.Journal.Message = run.Failed, "step a failed"
			return r
		}(), []Update{{Of: "maint-run-p-x/a", Text: "step a: Failed: 503, could not be put back: forbidden"}, {Of: "maint-run-p-x", Text: "run maint-run-p-x: Failed: step a failed"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, atNow().RunUpdates(c.run), cmpopts.IgnoreFields(Update{}, "At")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	p := standing("", nil, nil, cmdtest.RunOf())
	if diff := cmp.Diff([]Update{{Of: "shop/orders", Text: "plan orders: Idle"}, {Of: "maint-run-p-x", Text: "run maint-run-p-x: Running", At: p.Active[0].Journal.StartedAt}}, atNow().PlanUpdates(p)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Lines of what has ended have the time of its end, also where a step never began.
func TestTheLinesOfARunThatEndedHaveItsTimes(t *testing.T) {
	r := cmdtest.RunOf(cmdtest.Record("a", "webhook", run.StepSucceeded, func(rec *run.Record) { rec.FinishedAt = cmdtest.Before(2 * time.Hour) }), cmdtest.Record("b", "webhook", run.StepSkipped))
	r.Journal.Phase, r.Journal.FinishedAt = run.Aborted, cmdtest.Before(time.Hour)
	want := []*time.Time{cmdtest.Before(2 * time.Hour), cmdtest.Before(time.Hour), cmdtest.Before(time.Hour)}
	var got []*time.Time
	for _, u := range atNow().RunUpdates(r) {
		got = append(got, u.At)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestColoursAreForPeople(t *testing.T) {
	phases := []string{"Succeeded", "Failed", "Running", "Paused", "Unheard"}
	var bare, painted []string
	for _, p := range phases {
		bare, painted = append(bare, paint{}.Phase(p)), append(painted, paint{on: true}.Phase(p))
	}
	if diff := cmp.Diff([][]string{phases, {"\x1b[32mSucceeded\x1b[0m", "\x1b[31mFailed\x1b[0m", "\x1b[36mRunning\x1b[0m", "\x1b[33mPaused\x1b[0m", "Unheard"}}, [][]string{bare, painted}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := (paint{on: true}).Dim(""); got != "" {
		t.Errorf("%q", got)
	}
	var marks strings.Builder
	for _, p := range []run.StepPhase{run.StepSucceeded, run.StepFailed, run.StepRunning, run.StepSkipped, run.StepPending} {
		marks.WriteString(offlineView().mark(p))
	}
	if marks.String() != "✓✗▶-·" || offlineView().lineMark(stepLine{phase: run.StepSucceeded, left: true}) != "✗" {
		t.Error(marks.String())
	}
}

func TestLabelledLinesAreAligned(t *testing.T) {
	got := strings.Join(offlineView().Labelled("Name", "a", "Longer name", "", "Zone", "x\ny"), "\n")
	if got != "Name:  a\nZone:  x\n       y" {
		t.Errorf("%q", got)
	}
	if got := fmt.Sprint(Indent([]string{"a", "b"})); got != "[  a   b]" {
		t.Errorf("%q", got)
	}
}
