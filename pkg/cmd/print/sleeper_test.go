package print

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// At the tests' now, midnight of the 21st, it is in the off-hours of office.
const office = "schedule: {offHours: [{start: '20:00', end: '06:00'}]}"

func target(name string, state hibernate.State, attempts int, message string) hibernate.TargetStatus {
	return hibernate.TargetStatus{Target: name, Executor: "workload", State: state, Attempts: attempts, Message: message}
}

// atNow is a printer for people in Berlin, without colours.
func atNow() Printer {
	return Printer{Name: "kubectl maint", Now: cmdtest.Now(), Zone: "Europe/Berlin"}
}

func shut() *schedule.Gate {
	book := policy.NewResolver("maint-system")
	book.PutPolicy(policy.State{Namespace: "shop", Name: "shut", Spec: policy.PolicySpec{Strategy: schedule.Restrictive}})
	return book.Gate(policy.Query{Namespace: "shop", Policies: []policy.PolicyRef{{Name: "shut"}}})
}

func TestThePictureOfASleeper(t *testing.T) {
	by := func(of string) []string {
		return []string{annotations.Actor(of), "joe", annotations.Reason(of), "CHG-1"}
	}
	above := schedule.Pause{On: true, Until: cmdtest.After(48 * time.Hour), Of: "namespace shop", By: " by ann"}
	for _, c := range []struct {
		name  string
		spec  string
		notes []string
		above []schedule.Pause
		gate  *schedule.Gate
		all   bool
		want  []string // after the first line
	}{
		{
			name: "asleep as scheduled", spec: office, notes: []string{annotations.StatusPhase, "Hibernated", annotations.StatusMessage, "1 of 1 targets sleep", annotations.StatusAsleep, "2026-11-20T20:05:00Z"},
			want: []string{"Phase:   Hibernated: 1 of 1 targets sleep", "Asleep:  since Fri 2026-11-20 21:05 CET (2026-11-20T20:05:00Z), 3h55m ago", "Next:    wakes Sat 2026-11-21 07:00 CET (2026-11-21T06:00:00Z), in 6h0m", "Why:     to be asleep: off-hours"},
		},
		{
			name: "awake outside of its off-hours", spec: "schedule: {offHours: [{start: '03:00', end: '04:00'}]}", notes: []string{annotations.StatusPhase, "Active"},
			want: []string{"Phase:  Active", "Next:   sleeps Sat 2026-11-21 04:00 CET (2026-11-21T03:00:00Z), in 3h0m", "Why:    to be awake: outside of the off-hours"},
		},
		{
			name: "held by somebody, for a reason", spec: office, notes: append(by(annotations.HoldState), annotations.StatusPhase, "Active", annotations.HoldState, "awake", annotations.HoldUntil, "2026-11-21T02:00:00Z"),
			want: []string{"Phase:  Active", "Next:   sleeps Sat 2026-11-21 03:00 CET (2026-11-21T02:00:00Z), in 2h0m", "Why:    to be awake: it is held awake until Sat 2026-11-21 03:00 CET by joe (unverified): CHG-1", "Hold:   held awake until Sat 2026-11-21 03:00 CET (2026-11-21T02:00:00Z), by joe (unverified): CHG-1"},
		},
		{
			name: "a hold that is over", spec: office, notes: []string{annotations.StatusPhase, "Active", annotations.HoldState, "awake", annotations.HoldUntil, "2026-11-21T00:00:00Z"},
			want: []string{"Phase:  Active", "Next:   wakes Sat 2026-11-21 07:00 CET (2026-11-21T06:00:00Z), in 6h0m", "Why:    to be asleep: off-hours"},
		},
		{
			name: "no sleep may begin", spec: office, gate: shut(), notes: []string{annotations.StatusPhase, "Active"},
			want: []string{"Phase:  Active", "Next:   none: no sleep may begin", "Why:    to be asleep: off-hours", "Gate:   no sleep may begin: policy shut: Restrictive"},
		},
		{
			name: "a pause of its own names who asked for it", spec: office, notes: append(by(annotations.Pause), annotations.StatusPhase, "Suspended", annotations.Pause, "2026-11-21T02:00:00Z"),
			want: []string{"Phase:  Suspended", "Next:   sleeps Sat 2026-11-21 03:00 CET (2026-11-21T02:00:00Z), in 2h0m", "Why:    to be asleep: off-hours", "Pause:  until Sat 2026-11-21 03:00 CET (2026-11-21T02:00:00Z), in 2h0m, by joe (unverified): CHG-1"},
		},
		{
			name: "a longer one above it names who asked for that", spec: office, above: []schedule.Pause{above}, notes: append(by(annotations.Pause), annotations.StatusPhase, "Suspended", annotations.Pause, "2026-11-21T02:00:00Z"),
			want: []string{"Phase:  Suspended", "Next:   sleeps Mon 2026-11-23 01:00 CET (2026-11-23T00:00:00Z), in 2d0h", "Why:    to be asleep: off-hours", "Pause:  namespace shop is paused until Mon 2026-11-23 01:00 CET (2026-11-23T00:00:00Z), in 2d0h, by ann"},
		},
		{
			name: "skipped", spec: office, notes: []string{annotations.StatusPhase, "Active", annotations.Skip, "next"},
			want: []string{"Phase:  Active", "Next:   sleeps Sat 2026-11-21 21:00 CET (2026-11-21T20:00:00Z), in 20h0m", "Why:    to be awake: these off-hours are skipped", "Skip:   the next slot"},
		},
		{name: "one that cannot be read", spec: "schedule: {offHours: []}", notes: []string{annotations.StatusPhase, "Invalid", annotations.StatusMessage, "no off-hours"}, want: []string{"Phase:  Invalid: no off-hours"}},
		{
			name: "conditions that say more than that all is well", spec: office, notes: []string{annotations.StatusPhase, "Active", annotations.StatusConditions, `[{"type":"Valid","status":"True"},{"type":"Ready","status":"False","reason":"NoAccount","message":"it is not there"}]`},
			want: []string{"Phase:       Active", "Next:        wakes Sat 2026-11-21 07:00 CET (2026-11-21T06:00:00Z), in 6h0m", "Why:         to be asleep: off-hours", "Conditions:  Ready=False (NoAccount) it is not there"},
		},
		{
			name: "and all of them", all: true, spec: office, notes: []string{annotations.StatusPhase, "Active", annotations.StatusConditions, `[{"type":"Valid","status":"True"}]`},
			want: []string{"Phase:       Active", "Next:        wakes Sat 2026-11-21 07:00 CET (2026-11-21T06:00:00Z), in 6h0m", "Why:         to be asleep: off-hours", "Conditions:  Valid=True"},
		},
		{
			name: "with its targets", spec: office, notes: []string{annotations.StatusPhase, "Active", annotations.StatusTargets, annotations.Targets([]hibernate.TargetStatus{target("apps", hibernate.Running, 1, "no answer")})},
			want: []string{"Phase:  Active", "Next:   wakes Sat 2026-11-21 07:00 CET (2026-11-21T06:00:00Z), in 6h0m", "Why:    to be asleep: off-hours", "", "Targets", "  apps   workload   Running   -     1 attempt failed: no answer"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := view.NewSleeper(cmdtest.Sleeper("office", c.spec, cmdtest.Noting(c.notes...)), c.above, c.gate)
			lines := atNow().SleeperLines(s, c.all)
			if !strings.HasSuffix(lines[0], "office in namespace shop, a HibernatePlan") {
				t.Errorf("%q", lines[0])
			}
			if diff := cmp.Diff(c.want, lines[1:]); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestASleeperInTheCellsOfATable(t *testing.T) {
	for _, c := range []struct {
		name, spec  string
		notes       []string
		next, since string
	}{
		{"asleep", office, []string{annotations.StatusAsleep, "2026-11-20T20:05:00Z"}, "wakes Sat 2026-11-21 07:00 CET (6h0m)", "3h55m ago"},
		{"awake", "schedule: {offHours: [{start: '03:00', end: '04:00'}]}", nil, "sleeps Sat 2026-11-21 04:00 CET (3h0m)", ""},
		{"held for good", office, []string{annotations.HoldState, "asleep"}, "", ""},
		{"not to be read", "schedule: {offHours: []}", []string{annotations.StatusAsleep, "soon"}, "", ""},
	} {
		s := view.NewSleeper(cmdtest.Sleeper("office", c.spec, cmdtest.Noting(c.notes...)), nil, nil)
		if next, since := atNow().ShortSleep(s), atNow().ShortSince(s); next != c.next || since != c.since {
			t.Errorf("%s: %q, %q", c.name, next, since)
		}
	}
}

func TestWhatFollowsAHold(t *testing.T) {
	for _, c := range []struct {
		name  string
		notes []string
		want  string
	}{
		{"no hold, in its off-hours", nil, "it sleeps by its schedule until Sat 2026-11-21 07:00 CET (2026-11-21T06:00:00Z)"},
		{"awake until within them", []string{annotations.HoldState, "awake", annotations.HoldUntil, "2026-11-21T02:00:00Z"}, "then it falls asleep by its schedule until Sat 2026-11-21 07:00 CET (2026-11-21T06:00:00Z)"},
		{"awake until after them", []string{annotations.HoldState, "awake", annotations.HoldUntil, "2026-11-21T07:00:00Z"}, "then it stays awake by its schedule; it sleeps next from Sat 2026-11-21 21:00 CET (2026-11-21T20:00:00Z) on"},
		{"asleep until within them", []string{annotations.HoldState, "asleep", annotations.HoldUntil, "2026-11-21T02:00:00Z"}, "then it sleeps on by its schedule until Sat 2026-11-21 07:00 CET (2026-11-21T06:00:00Z)"},
		{"asleep until after them", []string{annotations.HoldState, "asleep", annotations.HoldUntil, "2026-11-21T07:00:00Z"}, "then it wakes; it sleeps next from Sat 2026-11-21 21:00 CET (2026-11-21T20:00:00Z) on"},
		{"until somebody takes it away", []string{annotations.HoldState, "awake"}, "its schedule is ignored until then"},
		{"a hold that is over is none", []string{annotations.HoldState, "awake", annotations.HoldUntil, "2026-11-20T23:00:00Z"}, "it sleeps by its schedule until Sat 2026-11-21 07:00 CET (2026-11-21T06:00:00Z)"},
		{"what is skipped is said so", []string{annotations.Skip, "next"}, "it is awake by its schedule (these off-hours are skipped); it sleeps next from Sat 2026-11-21 21:00 CET (2026-11-21T20:00:00Z) on"},
	} {
		s := view.NewSleeper(cmdtest.Sleeper("office", office, cmdtest.Noting(c.notes...)), nil, nil)
		if got := atNow().Then(s); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	forGood := hibernate.Hold{On: true, Asleep: true}
	if got, want := atNow().HoldWords("office", forGood), "held asleep until released with 'kubectl maint wake office --release'"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestTargetsOfASleeper(t *testing.T) {
	ended, atWork := target("db", hibernate.Asleep, 0, "a\nb"), target("apps", hibernate.Running, 2, "")
	ended.StartedAt, ended.FinishedAt = cmdtest.Before(time.Hour), cmdtest.Before(30*time.Minute)
	atWork.StartedAt = cmdtest.Before(5 * time.Minute)
	list := []hibernate.TargetStatus{ended, atWork, target("late", hibernate.Pending, 0, "")}
	want := []string{
		"db     workload   Asleep    30m0s ago   a b",
		"apps   workload   Running   for 5m0s    2 attempts failed",
		"late   workload   Pending   -           -",
	}
	if diff := cmp.Diff(want, atNow().TargetLines(list)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := atNow().TargetLines(nil); got != nil {
		t.Errorf("%q", got)
	}
	with := func(list ...hibernate.TargetStatus) view.Sleeper {
		return view.NewSleeper(cmdtest.Sleeper("office", office, cmdtest.Noting(annotations.StatusPhase, "Hibernating", annotations.StatusMessage, "1 of 2", annotations.StatusTargets, annotations.Targets(list))), nil, nil)
	}
	updates := atNow().SleepUpdates(with(target("apps", hibernate.Running, 1, "no answer; tried again at 2026-11-21T00:05:00Z"), target("db", hibernate.Asleep, 1, "web: it is gone")))
	if diff := cmp.Diff([]Update{
		{Of: "shop/office/apps", Text: "office: target apps: Running: 1 attempt failed: no answer; tried again at Sat 2026-11-21 01:05 CET"},
		{Of: "shop/office/db", Text: "office: target db: Asleep: web: it is gone"},
		{Of: "shop/office", Text: "plan office: Hibernating: 1 of 2"},
	}, updates); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for state, shown := range map[hibernate.State]bool{hibernate.Running: true, hibernate.Failed: true, hibernate.Aborted: true, hibernate.Asleep: false, hibernate.Awake: false, hibernate.Pending: false, hibernate.Skipped: false} {
		lines := atNow().SleepBusy(with(target("apps", state, 0, "")))
		if (len(lines) > 0) != shown {
			t.Errorf("%s: %q", state, lines)
		}
	}
	if diff := cmp.Diff([]string{"office  Hibernating: 1 of 2", "  apps   workload   Asleep   -     -"}, atNow().SleepPicture(with(target("apps", hibernate.Asleep, 0, "")))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestASleeperForScripts(t *testing.T) {
	cm := cmdtest.Sleeper("office", office, cmdtest.Noting(
		annotations.StatusPhase, "Hibernated", annotations.StatusMessage, "1 of 1 targets sleep", annotations.StatusAsleep, "2026-11-20T20:05:00Z", annotations.StatusWakes, "2026-11-21T06:00:00Z",
		annotations.HoldState, "asleep", annotations.HoldUntil, "2026-11-22T00:00:00Z", annotations.Pause, "2026-11-21T02:00:00Z", annotations.StatusTargets, annotations.Targets([]hibernate.TargetStatus{target("apps", hibernate.Asleep, 0, "")}),
	))
	got := atNow().SleeperValue(view.NewSleeper(cm, nil, nil))
	want := HibernatePlanStatus{
		Metadata: Identity{Namespace: "shop", Name: "office", UID: "u-office"}, Phase: "Hibernated", Message: "1 of 1 targets sleep", Overall: hibernate.Asleep, Observed: true, Asleep: true,
		Since: cmdtest.Before(3*time.Hour + 55*time.Minute), WakesAt: cmdtest.After(30 * time.Hour), Hold: &HoldValue{State: "asleep", Until: cmdtest.After(24 * time.Hour)},
		Paused: &schedule.Pause{On: true, Until: cmdtest.After(2 * time.Hour)}, Targets: []hibernate.TargetStatus{target("apps", hibernate.Asleep, 0, "")},
		Needs: []NeedValue{{What: "is paused until Sat 2026-11-21 03:00 CET (2026-11-21T02:00:00Z), in 2h0m", Remedy: "'kubectl maint resume office'"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	over := view.NewSleeper(cmdtest.Sleeper("office", "schedule: {offHours: []}", cmdtest.Noting(annotations.HoldState, "awake", annotations.HoldUntil, "2026-11-21T00:00:00Z", annotations.Pause, "2026-11-21T00:00:00Z")), nil, nil)
	if got := atNow().SleeperValue(over); got.Hold != nil || got.Paused != nil || got.Asleep || got.Targets == nil || got.Needs == nil || len(got.Faults) != 1 {
		t.Errorf("what is over is not said, lists are never null: %+v", got)
	}
}

func TestAPlanForScripts(t *testing.T) {
	slot := cmdtest.Now().Add(time.Hour)
	l := &ledger.Ledger{Last: &ledger.LastRun{Name: "maint-run-orders-a", Phase: run.Failed}, Totals: map[run.Result]int64{run.Ran: 3}}
	for _, c := range []struct {
		name       string
		plan       view.Plan
		skip       string
		paused     bool
		next       *time.Time
		last       bool
		active     int
		faults     int
		permission bool
	}{
		{name: "nothing is said of it", plan: standing("", nil, nil)},
		{name: "with a slot to come", plan: standing(daily, nil, l), next: &slot, last: true},
		{name: "all are skipped", plan: standing(daily, []string{annotations.Skip, "true"}, nil), skip: "true"},
		{name: "one is skipped by its instant", plan: standing("", []string{annotations.Skip, "2026-11-22T01:00:00Z"}, nil), skip: "2026-11-22T01:00:00Z"},
		{name: "skipped until an instant", plan: standing("", []string{annotations.Skip, "until:2026-11-22T01:00:00Z"}, nil), skip: "until:2026-11-22T01:00:00Z"},
		{name: "the next one is skipped", plan: standing("", []string{annotations.Skip, "next"}, nil), skip: "next"},
		{name: "paused", plan: standing(daily, []string{annotations.Pause, "true"}, nil), paused: true},
		{name: "a pause that is over", plan: standing("", []string{annotations.Pause, "2026-11-21T00:00:00Z"}, nil)},
		{name: "at work", plan: standing("", nil, nil, cmdtest.RunOf()), active: 1},
		{name: "invalid", plan: standing("startDeadline: soon", nil, nil), faults: 1},
		{name: "behind a policy", plan: standing("policies: [{name: night}]", nil, nil), permission: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := atNow().PlanValue(c.plan)
			if got.Skip != c.skip || (got.Paused != nil) != c.paused || (got.Last != nil) != c.last || len(got.Active) != c.active || len(got.Faults) != c.faults || (got.Permission != nil) != c.permission {
				t.Errorf("%+v", got)
			}
			if diff := cmp.Diff(c.next, got.Next); diff != "" {
				t.Errorf("next (-want +got):\n%s", diff)
			}
			if got.Active == nil || got.Needs == nil {
				t.Error("lists are never null")
			}
		})
	}
}

func TestARunForScripts(t *testing.T) {
	r := cmdtest.AskingOf(cmdtest.Asking("ask"), cmdtest.Record("dump", "job", run.StepSucceeded, cmdtest.Outputs(map[string]any{"log": "x"}), func(rec *run.Record) {
		rec.Changed = []run.Change{{APIVersion: "v1", Kind: "Pod", Name: "p", What: "created"}}
		rec.Restored, rec.RestoreMessage = run.RestoreFailed, "forbidden"
	}))
	r.Run.Request = run.Request{Kind: run.ByToken, Actor: "joe", Reason: "CHG-1", DryRun: true, At: *cmdtest.Before(time.Hour), Parameters: map[string]string{"a": "b"}}
	short, full := RunValue(r), RunInFull(r)
	if short.Plan != "p" || short.Reason != "CHG-1" || !short.DryRun || short.Steps[1].Outputs != nil || short.Parameters != nil || short.Spec != nil || short.Changed != nil {
		t.Errorf("%+v", short)
	}
	if diff := cmp.Diff([]string{"maint-run-p-x/ask"}, short.Questions); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"step dump could not be put back: forbidden"}, short.NotPutBack); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if full.Steps[1].Outputs["log"] != "x" || full.Parameters["a"] != "b" || len(full.Changed) != 1 || full.Spec == nil {
		t.Errorf("%+v", full)
	}
	if got := RunValue(cmdtest.RunOf()); got.Steps == nil {
		t.Error("steps are never null")
	}
}

func TestANodeForScripts(t *testing.T) {
	node := cmdtest.Node("a", func(n *corev1.Node) { n.Spec.Unschedulable = true })
	claims := []view.NodeClaim{{Node: "a", By: "gpu", Phase: "Draining", Left: "1/2", Reason: "blocked", Blocked: true, Since: *cmdtest.Before(time.Hour)}, {Node: "a", By: "plan shop/roll", Phase: "Running"}}
	got := atNow().NodeValue(node, claims, atNow().ClaimNeeds(claims))
	want := []ClaimValue{{For: "gpu", Phase: "Draining", Since: cmdtest.Before(time.Hour), Left: "1/2", Reason: "blocked", Blocked: true}, {For: "plan shop/roll", Phase: "Running"}}
	if diff := cmp.Diff(want, got.Claims); diff != "" || !got.Unschedulable || len(got.Needs) != 1 {
		t.Errorf("%+v (-want +got):\n%s", got, diff)
	}
	if got := atNow().NodeValue(cmdtest.Node("a"), nil, nil); got.Claims == nil || got.Needs == nil || got.Unschedulable {
		t.Errorf("%+v", got)
	}
}

func TestWhenAnEntryWas(t *testing.T) {
	at := cmdtest.Now()
	for _, c := range []struct {
		name  string
		entry ledger.Entry
		want  string
	}{
		{"one slot", ledger.Entry{Slot: &at, Count: 1}, "Sat 2026-11-21 01:00 CET"},
		{"folded ones", ledger.Entry{Slot: &at, First: cmdtest.Before(24 * time.Hour), Last: &at, Count: 2}, "Fri 2026-11-20 01:00 CET to Sat 2026-11-21 01:00 CET, 2 slots"},
		{"without a slot", ledger.Entry{At: at}, "Sat 2026-11-21 01:00 CET"},
	} {
		if got := EntryWhen(c.entry, "Europe/Berlin"); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestTotalsOfALedger(t *testing.T) {
	for _, c := range []struct {
		name   string
		ledger *ledger.Ledger
		want   string
	}{
		{"no ledger", nil, ""},
		{"nothing has ended", &ledger.Ledger{}, ""},
		{"of an older agent, which did not count the ends", &ledger.Ledger{Totals: map[run.Result]int64{run.Ran: 2}}, "2 Ran, 0 Skipped, 0 Missed"},
		{"with how they ended, in their order", &ledger.Ledger{Totals: map[run.Result]int64{run.Ran: 4, run.Skipped: 1, run.Missed: 2}, Outcomes: map[run.Phase]int64{run.Replaced: 1, run.Aborted: 1, run.Succeeded: 1, run.Failed: 1}}, "4 Ran (1 Succeeded, 1 Failed, 1 Aborted, 1 Replaced), 1 Skipped, 2 Missed"},
	} {
		if got := Totals(c.ledger); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	if got := DryMark(ledger.Entry{DryRun: true}) + DryMark(ledger.Entry{}); got != " (dry run)" {
		t.Errorf("%q", got)
	}
}

// formatted are Values with a format, as -o gives it.
func formatted(format string, own ...string) *Values {
	o := NewValues(own...)
	o.flags.output = format
	return o
}

func TestWhichFormatsThereAre(t *testing.T) {
	for _, c := range []struct{ format, fault string }{
		{"", ""},
		{"json", ""},
		{"yaml", ""},
		{"name", ""},
		{"jsonpath={.a}", ""},
		{"custom-columns=A:.a", ""},
		{"md", ""},
		{"wide", "-o must be md, json, yaml, name, jsonpath=…, custom-columns=… or go-template=…, is \"wide\""},
		{"xml", "-o must be md, json, yaml, name, jsonpath=…, custom-columns=… or go-template=…, is \"xml\""},
		{"jsonpath={.a", "-o jsonpath={.a: error parsing jsonpath {.a, unclosed action"},
	} {
		var faults exit.Faults
		formatted(c.format, "md").Check(&faults)
		if got := cmdtest.ErrText(faults.Err()); got != c.fault {
			t.Errorf("%q: %q, want %q", c.format, got, c.fault)
		}
	}
	if o := formatted(""); !o.Lines() || formatted("json").Lines() || formatted("md").Own() || !formatted("md", "md").Own() {
		t.Error("which formats are lines, and which a command's own")
	}
}

func TestValuesForScripts(t *testing.T) {
	type body struct {
		N int `json:"n"`
	}
	one := Value{Kind: "Thing", Name: "thing/a", Body: body{1}}
	for _, c := range []struct {
		name, format, want string
		print              func(o *Values, out *bytes.Buffer) error
	}{
		{"one, by name", "name", "thing/a\n", func(o *Values, out *bytes.Buffer) error { return o.Print(out, one) }},
		{"one, with what it is", "jsonpath={.apiVersion} {.kind} {.n}", "maint.dev/v1alpha1 Thing 1", func(o *Values, out *bytes.Buffer) error { return o.Print(out, one) }},
		{"a list by names: what has none is left out", "name", "thing/a\n", func(o *Values, out *bytes.Buffer) error {
			return o.PrintList(out, "ThingList", []Value{one, {Kind: "Thing", Body: body{2}}})
		}},
		{"a list, and an empty one", "jsonpath={.kind} {.items[*].n}", "ThingList 1", func(o *Values, out *bytes.Buffer) error {
			return o.PrintList(out, "ThingList", []Value{one})
		}},
		{"an empty list is a list", "json", "{\n    \"apiVersion\": \"maint.dev/v1alpha1\",\n    \"items\": [],\n    \"kind\": \"ThingList\"\n}\n", func(o *Values, out *bytes.Buffer) error {
			return o.PrintList(out, "ThingList", nil)
		}},
		{"a list of what is no object", "json", "{\n    \"apiVersion\": \"maint.dev/v1alpha1\",\n    \"items\": [\n        {\n            \"n\": 1\n        }\n    ],\n    \"kind\": \"ThingList\"\n}\n", func(o *Values, out *bytes.Buffer) error {
			return Items(o, out, "ThingList", []body{{1}}, func(body) string { return "" })
		}},
		{"an empty one is no null", "json", "{\n    \"apiVersion\": \"maint.dev/v1alpha1\",\n    \"items\": [],\n    \"kind\": \"ThingList\"\n}\n", func(o *Values, out *bytes.Buffer) error {
			return Items(o, out, "ThingList", []body(nil), func(body) string { return "" })
		}},
		{"its items have neither kind nor apiVersion", "jsonpath={.apiVersion} {.kind} {.items[0].kind} {.items[0].apiVersion}{.items[0].n}", "maint.dev/v1alpha1 ThingList  1", func(o *Values, out *bytes.Buffer) error {
			return Items(o, out, "ThingList", []body{{1}}, func(body) string { return "" })
		}},
		{"what is emitted in columns has one line of headers", "custom-columns=N:.n", "N\n1\n1\n", func(o *Values, out *bytes.Buffer) error {
			if err := o.Emit(out, one); err != nil {
				return err
			}
			return o.Emit(out, one)
		}},
		{"what is emitted is a line, be it the same again", "json", strings.Repeat(`{"apiVersion":"maint.dev/v1alpha1","kind":"Thing","n":1}`+"\n", 2), func(o *Values, out *bytes.Buffer) error {
			if err := o.Emit(out, one); err != nil {
				return err
			}
			return o.Emit(out, one)
		}},
		{"objects of the API by name", "name", "configmap/a\nconfigmap/b\n", func(o *Values, out *bytes.Buffer) error { return o.PrintObjects(out, configMaps("a", "b")) }},
		{"objects of the API as a list", "jsonpath={.kind} {.items[*].metadata.name}", "List a b", func(o *Values, out *bytes.Buffer) error { return o.PrintObjects(out, configMaps("a", "b")) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			if err := c.print(formatted(c.format), &out); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, out.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func configMaps(names ...string) []unstructured.Unstructured {
	var out []unstructured.Unstructured
	for _, name := range names {
		out = append(out, unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}}})
	}
	return out
}
