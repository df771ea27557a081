package view_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
	"github.com/kubectl-maint/kubectl-maint/pkg/trigger"
)

// A plan's view is the agent's own decision on the same facts: pauses, its gate and its live
// runs are among them.
func TestAPlanIsDecidedAsTheAgentDoes(t *testing.T) {
	atWork := cmdtest.RunOf(cmdtest.Record("hold", "suspend", run.StepRunning))
	atWork.Run.Name, atWork.Run.Plan, atWork.Run.PlanUID = "maint-run-orders-a", "orders", "u-orders"
	claimed := ledger.Ledger{PlanUID: "u-orders", Watermark: cmdtest.Now(), Open: []ledger.Entry{{Run: "maint-run-orders-a", Result: run.Open, At: *cmdtest.Before(time.Hour), Kind: run.ByToken, Request: &run.Request{Kind: run.ByToken, Token: "x"}}}}
	for _, c := range []struct {
		name   string
		live   []view.Run
		ledger *ledger.Ledger
		pauses []schedule.Pause
		phase  trigger.Phase
	}{
		{name: "nothing is at work", phase: trigger.PhaseIdle},
		{name: "a run is", live: []view.Run{atWork}, ledger: &claimed, phase: trigger.PhaseRunning},
		{name: "something above it is paused", pauses: []schedule.Pause{{On: true}}, phase: trigger.PhasePaused},
		{name: "that pause is over", pauses: []schedule.Pause{{On: true, Until: cmdtest.Before(time.Second)}}, phase: trigger.PhaseIdle},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := view.NewPlan(cmdtest.Plan("orders", "triggers: {schedules: [{cron: '0 3 * * *'}]}"), view.Ledger{Head: c.ledger}, c.live, view.Around{Pauses: c.pauses}, cmdtest.Now())
			if p.Decision.Status.Phase != c.phase {
				t.Errorf("%s: %s", p.Decision.Status.Phase, p.Decision.Status.Message)
			}
			if c.phase == trigger.PhasePaused { // for good: no slot is next
				if p.Decision.Status.Next != nil {
					t.Errorf("next slot %v", p.Decision.Status.Next)
				}
				return
			}
			if p.Decision.Status.Next == nil || !p.Decision.Status.Next.At.Equal(cmdtest.Now().Add(3*time.Hour)) {
				t.Errorf("next slot %v", p.Decision.Status.Next)
			}
		})
	}
}

func TestTheFaultsOfAPlansAnnotations(t *testing.T) {
	p := view.NewPlan(cmdtest.Plan("orders", "", cmdtest.Noting(annotations.Skip, "perhaps", annotations.Pause, "soon")), view.Ledger{}, nil, view.Around{}, cmdtest.Now())
	if got := view.IntentFaults(p); len(got) != 2 {
		t.Errorf("%q", got)
	}
	if got := view.IntentFaults(view.Plan{}); got != nil {
		t.Errorf("%q", got)
	}
	two := view.NewPlan(cmdtest.Plan("orders", "concurrencyPolicy: Maybe, startDeadline: soon"), view.Ledger{}, nil, view.Around{}, cmdtest.Now())
	phase, message := two.Phase()
	if want := two.Faults[0].String() + " (and 1 more)"; phase != "Invalid" || len(two.Faults) != 2 || message != want {
		t.Errorf("%s, %q, want %q", phase, message, want)
	}
}

// What the agent published is older than a pause, or its end, that came while none was at work.
func TestThePhaseOfAPlanThatWasPausedWhileNoAgentIsAtWork(t *testing.T) {
	for _, c := range []struct {
		name, pause, published, message string
		lives                           bool
		phase, said                     string
	}{
		{name: "paused", pause: "true", published: "Idle", message: "next run 2026-11-21T02:00:00Z", phase: "Paused", said: "paused; 'kubectl maint -n shop resume orders' ends it"},
		{name: "paused, and an agent will say so", pause: "true", published: "Idle", message: "next run 2026-11-21T02:00:00Z", lives: true, phase: "Idle", said: "next run 2026-11-21T02:00:00Z"},
		{name: "resumed", published: "Paused", message: "paused until resumed", phase: "Idle", said: "next run 2026-11-21T02:00:00Z UTC"},
		{name: "paused, and seen", pause: "true", published: "Paused", message: "as it is", phase: "Paused", said: "as it is"},
		{name: "paused while it runs", pause: "true", published: "Running", message: "at work", phase: "Running", said: "at work"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cm := cmdtest.Plan("orders", "triggers: {schedules: [{cron: '0 2 * * *'}]}", cmdtest.Noting(annotations.StatusPhase, c.published, annotations.StatusMessage, c.message))
			if c.pause != "" {
				cm.Annotations[annotations.Pause] = c.pause
			}
			cm.CreationTimestamp.Time = *cmdtest.Before(time.Hour)
			cm.Annotations[annotations.StatusObserved] = annotations.Observed(cm)
			phase, said := view.NewPlan(cm, view.Ledger{}, nil, view.Around{Silent: !c.lives}, cmdtest.Now()).Phase()
			if phase != c.phase || said != c.said {
				t.Errorf("%s: %q, want %s: %q", phase, said, c.phase, c.said)
			}
		})
	}
}

func TestConditionsAreReadAsFarAsTheyCan(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       int
	}{
		{"none", "", 0},
		{"two", `[{"type":"Ready","status":"True"},{"type":"TriggerAccepted","status":"False"}]`, 2},
		{"what is no list", `{"type":"Ready"}`, 0},
		{"cut off", `[{"type":"Ready"`, 0},
	} {
		cm := cmdtest.Plan("orders", "", cmdtest.Noting(annotations.StatusConditions, c.text))
		if got := view.Conditions(cm); len(got) != c.want {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}

func TestWhetherATokenIsHandled(t *testing.T) {
	known := &ledger.Ledger{Tokens: []string{"old", "new"}}
	for _, c := range []struct {
		name, token, status string
		ledger              *ledger.Ledger
		want                bool
	}{
		{"the agent says so", "new", "new", nil, true},
		{"the ledger does, and the agent died before it said so", "new", "old", known, true},
		{"neither", "newer", "new", known, false},
		{"nobody knows", "new", "", nil, false},
	} {
		cm := cmdtest.Plan("orders", "", cmdtest.Noting(annotations.Trigger, c.token, annotations.StatusTrigger, c.status))
		if got := view.TokenHandled(cm, c.ledger); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}

func TestTheInstantThatAnEntryIsAbout(t *testing.T) {
	slot, started, at := *cmdtest.Before(3 * time.Hour), *cmdtest.Before(2 * time.Hour), *cmdtest.Before(time.Hour)
	for _, c := range []struct {
		name  string
		entry ledger.Entry
		want  time.Time
	}{
		{"its slot, whenever it ran", ledger.Entry{Slot: &slot, StartedAt: &started, At: at}, slot},
		{"its start, of one without a slot", ledger.Entry{StartedAt: &started, At: at}, started},
		{"when it was written, of one that never started", ledger.Entry{At: at}, at},
	} {
		if got := view.EntryAt(c.entry); !got.Equal(c.want) {
			t.Errorf("%s: %s", c.name, got)
		}
	}
}

// In Berlin, clocks went back on 2026-10-25 at 03:00, and go forward on 2027-03-28 at 02:00.
func TestNextSlotsOnLocalClocks(t *testing.T) {
	set, err := plan.ParseSchedules([]plan.Schedule{{Cron: "30 2 * * *", Timezone: "Europe/Berlin"}, {Cron: "0 12 * * *"}})
	if err != nil {
		t.Fatal(err)
	}
	at := func(text string) time.Time {
		instant, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return instant
	}
	for _, c := range []struct {
		name, from string
		want       []view.Slot
	}{
		{"in winter, from a slot on", "2026-11-21T01:30:00Z", []view.Slot{{UTC: "2026-11-21T01:30:00Z", Local: "2026-11-21T02:30:00+01:00"}, {UTC: "2026-11-21T12:00:00Z", Local: "2026-11-21T12:00:00Z", Schedule: 1}}},
		{"one second later it is past", "2026-11-21T01:30:01Z", []view.Slot{{UTC: "2026-11-21T12:00:00Z", Local: "2026-11-21T12:00:00Z", Schedule: 1}, {UTC: "2026-11-22T01:30:00Z", Local: "2026-11-22T02:30:00+01:00"}}},
		{"in the hour that comes twice it runs once", "2026-10-25T00:00:00Z", []view.Slot{{UTC: "2026-10-25T00:30:00Z", Local: "2026-10-25T02:30:00+02:00", Note: "overlap"}, {UTC: "2026-10-25T12:00:00Z", Local: "2026-10-25T12:00:00Z", Schedule: 1}}},
		{"in the hour that is skipped it runs at its end", "2027-03-28T00:00:00Z", []view.Slot{{UTC: "2027-03-28T01:00:00Z", Local: "2027-03-28T03:00:00+02:00", Note: "gap"}, {UTC: "2027-03-28T12:00:00Z", Local: "2027-03-28T12:00:00Z", Schedule: 1}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, view.NextSlots(set, at(c.from), 2)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	once, err := plan.ParseSchedules([]plan.Schedule{{At: "2026-11-20T00:00:00Z"}})
	if err != nil {
		t.Fatal(err)
	}
	if got := view.NextSlots(once, cmdtest.Now(), 3); got == nil || len(got) != 0 {
		t.Errorf("an empty list for machines, and not null: %v", got)
	}
}

func TestTheZoneInWhichAPlanIsThoughtOf(t *testing.T) {
	in := func(zones ...string) plan.Spec {
		var spec plan.Spec
		for _, zone := range zones {
			spec.Triggers.Schedules = append(spec.Triggers.Schedules, plan.Schedule{Timezone: zone})
		}
		return spec
	}
	for _, c := range []struct {
		name string
		spec plan.Spec
		want string
	}{
		{"no schedule", in(), "Europe/Berlin"},
		{"its own", in("Asia/Jakarta"), "Asia/Jakarta"},
		{"a schedule without a zone is in UTC", in(""), "UTC"},
		{"two that agree", in("", "UTC"), "UTC"},
		{"two that do not", in("Asia/Jakarta", "UTC"), "Europe/Berlin"},
		{"the third does not", in("UTC", "UTC", "Asia/Jakarta"), "Europe/Berlin"},
	} {
		if got := view.PlanZone(c.spec, "Europe/Berlin"); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	for zone, want := range map[string]string{"": "UTC", "Asia/Jakarta": "Asia/Jakarta"} {
		spec := policy.PolicySpec{MaintenanceSchedule: &schedule.MaintenanceSchedule{Timezone: zone}}
		if got := view.PolicyZone(spec, "Europe/Berlin"); got != want {
			t.Errorf("of a policy in %q: %s, want %s", zone, got, want)
		}
	}
	if got := view.PolicyZone(policy.PolicySpec{}, "Europe/Berlin"); got != "Europe/Berlin" {
		t.Errorf("of a policy without windows: %s", got)
	}
}

func TestAPauseBeforeWindows(t *testing.T) {
	book := policy.NewResolver("maint-system")
	windows := policy.PolicySpec{Strategy: schedule.MaintenanceScheduled, MaintenanceSchedule: &schedule.MaintenanceSchedule{Windows: []schedule.Window{{Start: "00:00", End: "02:00"}, {Start: "03:00", End: "04:00"}}}}
	book.PutPolicy(policy.State{Namespace: "shop", Name: "night", Spec: windows})
	book.PutPolicy(policy.State{Namespace: "shop", Name: "shut", Spec: policy.PolicySpec{Strategy: schedule.Restrictive}})
	for _, c := range []struct {
		name, policy string
		pause        time.Duration
		until, close time.Duration // from now; 0: none is known
	}{
		{"it ends within a window", "night", time.Hour, time.Hour, 2 * time.Hour},
		{"it ends when a window opens", "night", 3 * time.Hour, 3 * time.Hour, 4 * time.Hour},
		{"it ends between two windows", "night", 150 * time.Minute, 3 * time.Hour, 4 * time.Hour},
		{"it ends when a window closes", "night", 2 * time.Hour, 3 * time.Hour, 4 * time.Hour},
		{"what is below never opens", "shut", time.Hour, 0, 0},
		{"what is below is not there", "ghost", time.Hour, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := view.NewSubject("plan", "shop", "orders", "UTC", book.Gate(policy.Query{Namespace: "shop", Policies: []policy.PolicyRef{{Name: c.policy}}}))
			s.Pauses = []schedule.Pause{{On: true, Until: cmdtest.After(c.pause)}}
			got := s.Verdict(cmdtest.Now())
			if !got.Ready { // what nobody knows goes before a pause
				if c.policy != "ghost" || got.Permitted {
					t.Errorf("%+v", got)
				}
				return
			}
			want := schedule.Verdict{Ready: true, Reason: "paused until " + cmdtest.After(c.pause).Format(time.RFC3339), Cause: schedule.Cause{Kind: schedule.CausePause}, NextChangeETA: schedule.ForEver}
			if c.until > 0 {
				want.Until, want.NextChangeETA = cmdtest.After(c.until), int64(c.until.Seconds())
				want.Next = &schedule.Following{Permitted: true, Start: *cmdtest.After(c.until), End: cmdtest.After(c.close)}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if pause := s.PauseAt(cmdtest.Now()); !pause.On || s.PauseAt(*cmdtest.After(c.pause)).On {
				t.Errorf("a pause holds from now until before its end: %+v", pause)
			}
		})
	}
}

// A policy is asked by itself: its windows bind all who name it, and a pause of it closes it.
func TestAPolicyAsASubject(t *testing.T) {
	book := policy.NewResolver("maint-system")
	windows := policy.PolicySpec{Strategy: schedule.MaintenanceScheduled, MaintenanceSchedule: &schedule.MaintenanceSchedule{Windows: []schedule.Window{{Start: "01:00", End: "02:00"}}}}
	book.PutPolicy(policy.State{Namespace: "shop", Name: "night", Spec: windows})
	s := view.PolicySubject("shop", "night", "UTC", book)
	if v := s.Verdict(cmdtest.Now()); s.String() != "policy/night" || v.Permitted || v.Until == nil || !v.Until.Equal(*cmdtest.After(time.Hour)) {
		t.Errorf("%s: %+v", s, v)
	}
	if v := s.Verdict(*cmdtest.After(time.Hour)); !v.Permitted {
		t.Errorf("%+v", v)
	}
	var first schedule.Interval
	s.Intervals(cmdtest.Now(), func(i schedule.Interval) bool { first = i; return false })
	if first.Start == nil || !first.Start.Equal(*cmdtest.After(time.Hour)) || first.End == nil || !first.End.Equal(*cmdtest.After(2 * time.Hour)) {
		t.Errorf("%+v", first)
	}
}

func TestWhichRestoreDataCounts(t *testing.T) {
	record := cmdtest.Slept("office", "apps", hibernate.Resource{ID: "apps/v1/Deployment/web", Before: []byte(`{}`)}, hibernate.Resource{ID: "apps/v1/Deployment/api", Before: []byte(`{}`), Left: "it is gone"})
	for _, c := range []struct {
		name     string
		signed   bool
		more     bool   // beside the record
		data     string // instead of it
		fault    string
		readable bool
	}{
		{name: "signed", signed: true, readable: true},
		{name: "without a signature", fault: "it carries no signature of the agent's", readable: true},
		{name: "changed since", signed: true, more: true, fault: "it was changed after the agent had signed it", readable: true},
		{name: "not to be read", signed: true, data: "{", fault: "it is not ours: restore.json of ConfigMap maint-restore-office-s4tzgy6zwu: unexpected end of JSON input"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cm, err := annotations.RestoreObject("shop", record)
			if err != nil {
				t.Fatal(err)
			}
			if c.signed {
				cm = cmdtest.Signed(cm)
			}
			if c.more {
				cm.Data["more"] = "x"
			}
			if c.data != "" {
				for key := range cm.Data {
					cm.Data[key] = c.data
				}
			}
			got := view.NewRestore(cm)
			if got.Of() != "office" || (got.Record.Target == "apps") != c.readable {
				t.Errorf("%+v", got)
			}
			if got.Fault != c.fault {
				t.Errorf("%q, want %q", got.Fault, c.fault)
			}
			if sleeping, left := got.Count(); c.readable && (left != 1 || sleeping != record.Sleeping()) {
				t.Errorf("%d sleep, %d are left", sleeping, left)
			}
		})
	}
}

// Machines find an empty list where there is nothing, and not null.
func TestAForecastHasNoNullLists(t *testing.T) {
	got := view.NewForecast("a", drain.Forecast{Total: 2})
	if got.Groups == nil || got.Skipped == nil || got.Refused == nil || got.Blocks == nil || got.Node != "a" || got.Total != 2 || got.Possible != (drain.Forecast{Total: 2}).Possible() {
		t.Errorf("%+v", got)
	}
	blocked := drain.Forecast{Blocks: []drain.Block{{Why: "its budget"}}}
	if got := view.NewForecast("a", blocked); len(got.Blocks) != 1 || got.Possible != blocked.Possible() {
		t.Errorf("%+v", got)
	}
}

func TestCountedWords(t *testing.T) {
	var eleven []string
	for _, r := range "abcdefghijk" {
		eleven = append(eleven, string(r))
	}
	for _, c := range []struct{ got, want string }{
		{view.Counted(2, "policy"), "2 policies"},
		{view.Counted(1, "policy"), "1 policy"},
		{view.Counted(2, "day"), "2 days"},
		{view.Counted(0, "dependency"), "0 dependencies"},
		{view.NodeWords(eleven[:10]), "10 nodes (a, b, c, d, e, f, g, h, i, j)"},
		{view.NodeWords(eleven), "11 nodes (a, b, c, d, e, f, g, h, i, j and 1 more)"},
		{view.In(""), " in the cluster"},
		{view.In("shop"), " in namespace shop"},
		{view.AndMore(-1), ""},
		{view.AndMore(1), " (and 1 more)"},
		{view.JoinNote("", "gap"), "gap"},
		{view.JoinNote("gap", "skipped"), "gap, skipped"},
		{view.PodsLeft(nil), ""},
		{(view.Window{Start: "x"}).Began(), "x"},
		{(view.Slot{UTC: "x"}).Began(), "x"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}
