package view_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// At the tests' now, midnight of the 21st, everynight sleeps for four hours and has six to go.
const everynight = "schedule: {offHours: [{start: '20:00', end: '06:00'}]}"

func evening(day int) time.Time { return time.Date(2026, 11, day, 20, 0, 0, 0, time.UTC) }

func utc(at time.Time) string { return at.Format(time.RFC3339) }

// told are the first stretches from an instant on, by the day on which they begin.
func told(s view.Sleeper, from time.Time, count int) map[int]string {
	out := map[int]string{}
	for one := range s.SleepWindows(cmdtest.Now(), from, utc) {
		if len(out) == count {
			break
		}
		out[one.Start.Day()] = one.Note
		if one.Awake {
			out[one.Start.Day()] = "awake: " + one.Note
		}
	}
	return out
}

func TestWhatIsToldOfStretchesOfSleep(t *testing.T) {
	hour := func(h int) string { return cmdtest.Now().Add(time.Duration(h) * time.Hour).Format(time.RFC3339) }
	for _, c := range []struct {
		name, spec string
		notes      []string
		from       int // hours from now
		want       map[int]string
	}{
		{name: "nothing is to say of what sleeps as scheduled", want: map[int]string{20: "", 21: "", 22: ""}},
		{name: "the next one is the one that it is in", notes: []string{annotations.Skip, "next"}, want: map[int]string{20: "awake: skipped", 21: "", 22: ""}},
		{name: "the next one is that from now, and not the first that is listed", notes: []string{annotations.Skip, "next"}, from: 24, want: map[int]string{21: "", 22: "", 23: ""}},
		{name: "one that is over was not the next one", notes: []string{annotations.Skip, "next"}, from: -24, want: map[int]string{19: "", 20: "awake: skipped", 21: ""}},
		{name: "all are skipped", notes: []string{annotations.Skip, "true"}, want: map[int]string{20: "awake: skipped", 21: "awake: skipped", 22: "awake: skipped"}},
		{name: "who skips, and why", notes: []string{annotations.Skip, "next", annotations.Actor(annotations.Skip), "ann", annotations.Reason(annotations.Skip), "stocktaking"}, want: map[int]string{20: "awake: skipped by ann (unverified): stocktaking", 21: "", 22: ""}},
		{name: "whether one that is over was skipped is told by the ledger", notes: []string{annotations.Skip, "true"}, from: -24, want: map[int]string{19: "", 20: "awake: skipped", 21: "awake: skipped"}},
		{name: "skipped until an instant, and what is over before", notes: []string{annotations.Skip, "until:" + hour(20)}, from: -24, want: map[int]string{19: "", 20: "awake: skipped", 21: ""}},
		{name: "skipped until an instant that the start is before", notes: []string{annotations.Skip, "until:" + hour(21)}, want: map[int]string{20: "awake: skipped", 21: "awake: skipped", 22: ""}},
		{name: "skipped until an instant that is the start", notes: []string{annotations.Skip, "until:" + hour(20)}, want: map[int]string{20: "awake: skipped", 21: "", 22: ""}},
		{name: "held awake for good", notes: []string{annotations.HoldState, "awake"}, want: map[int]string{20: "awake: held awake", 21: "awake: held awake", 22: "awake: held awake"}},
		{name: "held awake for a part of one: it sleeps for the rest", notes: []string{annotations.HoldState, "awake", annotations.HoldUntil, hour(2)}, want: map[int]string{20: "held awake until 2026-11-21T02:00:00Z", 21: "", 22: ""}},
		{name: "held awake up to its end", notes: []string{annotations.HoldState, "awake", annotations.HoldUntil, hour(6)}, want: map[int]string{20: "awake: held awake until 2026-11-21T06:00:00Z", 21: "", 22: ""}},
		{name: "held asleep nothing is awake", notes: []string{annotations.HoldState, "asleep", annotations.HoldUntil, hour(48)}, want: map[int]string{20: "held asleep until 2026-11-23T00:00:00Z", 21: "held asleep until 2026-11-23T00:00:00Z", 22: "held asleep until 2026-11-23T00:00:00Z"}},
		{name: "a hold goes before a skip", notes: []string{annotations.HoldState, "asleep", annotations.Skip, "true"}, want: map[int]string{20: "held asleep", 21: "held asleep", 22: "held asleep"}},
		{name: "paused until within the first: the first was to begin before", notes: []string{annotations.Pause, hour(2)}, want: map[int]string{20: "awake: paused", 21: "", 22: ""}},
		{name: "a pause lets what sleeps sleep, and keeps what comes", notes: []string{annotations.Pause, "true", annotations.StatusPhase, "Hibernating"}, want: map[int]string{20: "", 21: "awake: paused", 22: "awake: paused"}},
		{name: "it sleeps by what the agent noted, whatever its phase", notes: []string{annotations.Pause, "true", annotations.StatusPhase, "Error", annotations.StatusAsleep, hour(-3)}, want: map[int]string{20: "", 21: "awake: paused", 22: "awake: paused"}},
		{name: "what is awake does not sleep", notes: []string{annotations.Pause, "true", annotations.StatusPhase, "WakingUp"}, want: map[int]string{20: "awake: paused", 21: "awake: paused", 22: "awake: paused"}},
		{
			name: "what a suspend cuts short and its lead time covers to the end does not begin", spec: ", exceptions: [{type: suspend, validFrom: '2026-11-22T02:00:00Z', validUntil: '2026-11-22T04:00:00Z', leadTime: 8h, reason: tests}]",
			want: map[int]string{20: "", 21: "awake: ends: suspended by an exception: tests, does not begin: soon suspended by an exception: tests, from Sun 2026-11-22 02:00 UTC on", 22: ""},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := view.NewSleeper(cmdtest.Sleeper("office", everynight+c.spec, cmdtest.Noting(c.notes...)), nil, nil)
			if len(s.Faults)+len(s.Notes()) > 0 {
				t.Fatal(s.Faults, s.Notes())
			}
			if diff := cmp.Diff(c.want, told(s, cmdtest.Now().Add(time.Duration(c.from)*time.Hour), len(c.want))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Policies gate that a sleep begins: what opens within a stretch delays it, what opens at its
// end or later keeps all of it awake.
func TestWhatAPolicyDoesToAStretch(t *testing.T) {
	window := func(start, end string) policy.PolicySpec {
		return policy.PolicySpec{Strategy: schedule.MaintenanceScheduled, MaintenanceSchedule: &schedule.MaintenanceSchedule{Windows: []schedule.Window{{Start: start, End: end}}}}
	}
	for _, c := range []struct {
		name string
		spec policy.PolicySpec
		want map[int]string
	}{
		{"open when it begins", window("19:00", "21:00"), map[int]string{21: ""}},
		{"open from its start on", window("20:00", "21:00"), map[int]string{21: ""}},
		{"it opens within", window("23:00", "01:00"), map[int]string{21: "does not begin before 2026-11-21T23:00:00Z: window closed (policy night: outside of the windows)"}},
		{"it opens when the stretch is over", window("06:00", "08:00"), map[int]string{21: "awake: does not begin before 2026-11-22T06:00:00Z: window closed (policy night: outside of the windows)"}},
		{"it never opens", policy.PolicySpec{Strategy: schedule.Restrictive}, map[int]string{21: "awake: does not begin: window closed (policy night: Restrictive)"}},
		{"nobody knows", policy.PolicySpec{Strategy: "Sometimes"}, map[int]string{21: "awake: does not begin: policy night: not ready: strategy: \"Sometimes\": write Permissive, Restrictive or MaintenanceSchedule"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			book := policy.NewResolver("maint-system")
			book.PutPolicy(policy.State{Namespace: "shop", Name: "night", Spec: c.spec})
			s := view.NewSleeper(cmdtest.Sleeper("office", everynight), nil, book.Gate(policy.Query{Namespace: "shop", Policies: []policy.PolicyRef{{Name: "night"}}}))
			if diff := cmp.Diff(c.want, told(s, evening(21), 1)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Where the policy may not be read, a sleep to come is not told as one that does not begin; one that
// was to begin before, and of which nothing sleeps, is.
func TestASleepOfWhichNobodyKnows(t *testing.T) {
	book := policy.NewResolver("maint-system")
	book.PutUnread("shop")
	s := view.NewSleeper(cmdtest.Sleeper("office", everynight), nil, book.Gate(policy.Query{Namespace: "shop", Policies: []policy.PolicyRef{{Name: "night"}}}))
	const unknown = "not known whether it begins: you may not read what decides it"
	if diff := cmp.Diff(map[int]string{20: "awake: " + unknown, 21: unknown}, told(s, cmdtest.Now(), 2)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhetherPoliciesAreAskedOfASleep(t *testing.T) {
	shut := policy.NewResolver("maint-system")
	shut.PutPolicy(policy.State{Namespace: "shop", Name: "shut", Spec: policy.PolicySpec{Strategy: schedule.Restrictive}})
	gate := shut.Gate(policy.Query{Namespace: "shop", Policies: []policy.PolicyRef{{Name: "shut"}}})
	noon := cmdtest.Now().Add(12 * time.Hour)
	for _, c := range []struct {
		name  string
		gate  *schedule.Gate
		at    time.Time
		spec  string
		notes []string
		asked bool
	}{
		{name: "in its off-hours, while it is awake", gate: gate, at: cmdtest.Now(), spec: everynight, asked: true},
		{name: "outside of them nobody wants it asleep", gate: gate, at: noon, spec: everynight},
		{name: "somebody wants it asleep outside of them", gate: gate, at: noon, spec: everynight, notes: []string{annotations.HoldState, "asleep"}, asked: true},
		{name: "what sleeps is not asked again", gate: gate, at: cmdtest.Now(), spec: everynight, notes: []string{annotations.StatusPhase, "Hibernated"}},
		{name: "this one is skipped", gate: gate, at: cmdtest.Now(), spec: everynight, notes: []string{annotations.Skip, "next"}},
		{name: "nothing stands before it", at: cmdtest.Now(), spec: everynight},
		{name: "a plan that cannot be read", gate: gate, at: cmdtest.Now(), spec: "schedule: {offHours: []}"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := view.NewSleeper(cmdtest.Sleeper("office", c.spec, cmdtest.Noting(c.notes...)), nil, c.gate)
			v, asked := s.Verdict(c.at)
			if asked != c.asked || v.Permitted || asked != v.Ready {
				t.Errorf("asked %t: %+v", asked, v)
			}
		})
	}
}

func TestWhichPauseHoldsASleeperLongest(t *testing.T) {
	until := func(d time.Duration) schedule.Pause { return schedule.Pause{On: true, Until: cmdtest.After(d)} }
	above := until(3 * time.Hour)
	above.Of = "namespace shop"
	for _, c := range []struct {
		name, own string
		above     []schedule.Pause
		want      schedule.Pause
	}{
		{name: "none", above: []schedule.Pause{{}}},
		{name: "its own", own: "2026-11-21T02:00:00Z", want: until(2 * time.Hour)},
		{name: "the one above it", own: "2026-11-21T02:00:00Z", above: []schedule.Pause{above}, want: above},
		{name: "its own is longer", own: "2026-11-21T04:00:00Z", above: []schedule.Pause{above}, want: until(4 * time.Hour)},
		{name: "one that is over holds nothing", own: "2026-11-20T23:00:00Z", above: []schedule.Pause{until(-time.Minute)}},
		{name: "one that ends now holds nothing", above: []schedule.Pause{until(0)}},
		{name: "one without an end is the longest", own: "true", above: []schedule.Pause{above}, want: schedule.Pause{On: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := view.NewSleeper(cmdtest.Sleeper("office", everynight, cmdtest.Noting(annotations.Pause, c.own)), c.above, nil)
			if diff := cmp.Diff(c.want, s.Pause(cmdtest.Now())); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// What the agent published is older than a pause, or its end, that came while none was at work.
func TestThePhaseOfASleeperThatWasPausedWhileNoAgentIsAtWork(t *testing.T) {
	const paused = `[{"type":"ChangesPaused","status":"True","reason":"Paused","message":"paused"}]`
	for _, c := range []struct {
		name, off, pause, published, conditions string
		lives                                   bool
		phase, said                             string
	}{
		{name: "paused", off: "04:00", pause: "true", published: "Active", phase: "Suspended", said: "paused"},
		{name: "paused, and an agent will say so", off: "04:00", pause: "true", published: "Active", lives: true, phase: "Active", said: "as it was"},
		{name: "paused while it sleeps", off: "04:00", pause: "true", published: "Hibernated", phase: "Hibernated", said: "as it was"},
		{name: "paused, and seen", off: "04:00", pause: "true", published: "Suspended", conditions: paused, phase: "Suspended", said: "as it was"},
		{name: "resumed", off: "04:00", published: "Suspended", conditions: paused, phase: "Active", said: "awake: outside of the off-hours"},
		{name: "resumed in its off-hours", off: "00:00", published: "Suspended", conditions: paused, phase: "Active", said: "awake, though it is to sleep: no agent is at work"},
		{name: "suspended by its schedule", off: "04:00", published: "Suspended", phase: "Suspended", said: "as it was"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := view.NewSleeper(cmdtest.Sleeper("office", "schedule: {timezone: UTC, offHours: [{start: '"+c.off+"', end: '05:00'}]}", cmdtest.Noting(
				annotations.Pause, c.pause, annotations.StatusPhase, c.published, annotations.StatusMessage, "as it was", annotations.StatusConditions, c.conditions)), nil, nil)
			if !c.lives {
				s.Unattended = cmdtest.Now()
			}
			if phase, said := s.Phase(); phase != c.phase || said != c.said {
				t.Errorf("%s: %q, want %s: %q", phase, said, c.phase, c.said)
			}
		})
	}
}

func TestThePhaseOfASleeperIsTheAgentsWhereItHasLooked(t *testing.T) {
	const empty, later = "schedule: {offHours: []}", "status.maint.dev/observed"
	agents := cmdtest.Noting(annotations.StatusPhase, "Hibernated", annotations.StatusMessage, "2 of 2 targets sleep")
	unseen := func(cm *corev1.ConfigMap) { cm.Annotations[later] = "" }
	for _, c := range []struct {
		name, spec, phase, message string
		edits                      []func(*corev1.ConfigMap)
	}{
		{name: "the agent has looked", spec: everynight, edits: []func(*corev1.ConfigMap){agents}, phase: "Hibernated", message: "2 of 2 targets sleep"},
		{name: "not at this version", spec: everynight, edits: []func(*corev1.ConfigMap){agents, unseen}, phase: "Unseen", message: "the agent has not looked at this version of the plan yet"},
		{name: "not at one with a fault", spec: empty, edits: []func(*corev1.ConfigMap){agents, unseen}, phase: "Invalid", message: `line 1: spec.schedule.offHours: is empty; write for instance [{start: "20:00", end: "06:00"}]`},
		{name: "not at one with two", spec: "schedule: {offHours: []}, execution: {strategy: {type: Random}}", edits: []func(*corev1.ConfigMap){unseen}, phase: "Invalid", message: `line 1: spec.schedule.offHours: is empty; write for instance [{start: "20:00", end: "06:00"}] (and 1 more)`},
		{name: "at one with a fault: what sleeps by the last one that could be read sleeps on", spec: empty, edits: []func(*corev1.ConfigMap){agents}, phase: "Hibernated", message: "2 of 2 targets sleep"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := view.NewSleeper(cmdtest.Sleeper("office", c.spec, c.edits...), nil, nil)
			if phase, message := s.Phase(); phase != c.phase || message != c.message {
				t.Errorf("%s, %q", phase, message)
			}
			if (s.Table == nil) != (c.spec != everynight) {
				t.Errorf("of %s it has a timetable: %t", c.spec, s.Table != nil)
			}
		})
	}
}

func TestWhatASleeperPublishes(t *testing.T) {
	cm := cmdtest.Sleeper("office", everynight, cmdtest.Noting(annotations.StatusWakes, "2026-11-21T06:00:00Z", annotations.StatusAsleep, "this morning", annotations.Skip, "perhaps", annotations.HoldState, "drowsy"))
	s := view.NewSleeper(cm, nil, nil)
	if at := s.Instant(annotations.StatusWakes); at == nil || !at.Equal(cmdtest.Now().Add(6*time.Hour)) {
		t.Error(at)
	}
	for _, key := range []string{annotations.StatusAsleep, "status.maint.dev/none"} {
		if at := s.Instant(key); at != nil {
			t.Errorf("%s is an instant: %s", key, at)
		}
	}
	if notes := s.Notes(); len(notes) != 2 { // each from another reader
		t.Errorf("%q", notes)
	}
	if got := s.Zone(); got != "UTC" {
		t.Error(got)
	}
	jakarta := view.NewSleeper(cmdtest.Sleeper("office", "schedule: {timezone: Asia/Jakarta, offHours: [{start: '20:00', end: '06:00'}]}"), nil, nil)
	if got := jakarta.Zone(); got != "Asia/Jakarta" {
		t.Error(got)
	}
}

// A plan in a file has no object: nobody said that it sleeps.
func TestASleeperInAFile(t *testing.T) {
	book := policy.NewResolver("")
	book.PutPolicy(policy.State{Namespace: "shop", Name: "shut", Spec: policy.PolicySpec{Strategy: schedule.Restrictive}})
	spec, faults := hibernate.Parse([]byte("{apiVersion: maint.dev/v1alpha1, kind: HibernatePlan, spec: {policies: [{name: shut}], targets: [{name: apps, type: noop}], " + everynight + "}}"))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	held := hibernate.Hold{On: true, Asleep: true}
	s := view.SleeperOf("shop", "office", spec, intent.Intent{Pause: schedule.Pause{On: true}}, held, book)
	if s.Asleep() || !s.Pause(cmdtest.Now()).On || s.Overrides().Hold != held {
		t.Errorf("%+v", s)
	}
	if v, asked := s.Verdict(cmdtest.Now()); !asked || v.Permitted || !v.Ready {
		t.Errorf("its policies are asked, without a cluster: %t %+v", asked, v)
	}
	for one := range view.SleeperOf("shop", "office", spec, intent.Intent{Skip: intent.Skip{All: true}}, hibernate.Hold{}, nil).SleepWindows(cmdtest.Now(), evening(18), utc) {
		if !one.Awake || one.Note != "skipped" {
			t.Errorf("no ledger tells of one that is over: %+v", one)
		}
		break
	}
	if free := view.SleeperOf("shop", "office", spec, intent.Intent{}, hibernate.Hold{}, nil); free.Gate != nil {
		t.Error("without a book there is no gate")
	}
}

// What the agent said of an earlier hold is not put down to whoever holds it now.
func TestWhoHoldsItIsSaidOfTheHoldThatTheMessageSpeaksOf(t *testing.T) {
	const by, late, later = " by bob (unverified): save money", "2026-11-21T02:00:00Z", "2026-11-21T04:00:00Z"
	for _, c := range []struct{ name, says, state, until, want string }{
		{"the same hold", "awake: it is held awake until " + late, "awake", late, by},
		{"the same one, written otherwise", "awake: it is held awake until " + late, "awake", "2026-11-21T03:00:00+01:00", by},
		{"the same one, as agents of earlier versions say it", "awake: somebody holds it awake until " + late, "awake", late, by},
		{"another end, as they say it", "awake: somebody holds it awake until " + late, "awake", later, ""},
		{"another end", "awake: it is held awake until " + late, "awake", later, ""},
		{"the other way", "awake: it is held awake until " + late, "asleep", late, ""},
		{"without an end", "awake: it is held awake", "awake", "", by},
		{"it had an end", "awake: it is held awake until " + late, "awake", "", ""},
		{"it had none", "awake: it is held awake", "awake", late, ""},
		{"it is released", "awake: it is held awake", "", "", ""},
		{"it speaks of none", "awake", "awake", late, ""},
	} {
		cm := cmdtest.Sleeper("office", everynight, cmdtest.Noting(annotations.StatusPhase, "Active", annotations.StatusMessage, c.says, annotations.HoldState, c.state, annotations.HoldUntil, c.until, annotations.Actor(annotations.HoldState), "bob", annotations.Reason(annotations.HoldState), "save money"))
		cm.Annotations[annotations.StatusObserved] = annotations.Observed(cm)
		if _, message := view.NewSleeper(cm, nil, nil).Phase(); message != c.says+c.want {
			t.Errorf("%s: %q", c.name, message)
		}
	}
	unread := cmdtest.Sleeper("office", "schedule: {}", cmdtest.Noting(annotations.StatusMessage, "the plan cannot be read; it is held awake", annotations.HoldState, "awake", annotations.HoldUntil, late, annotations.Actor(annotations.HoldState), "bob", annotations.Reason(annotations.HoldState), "save money"))
	unread.Annotations[annotations.StatusObserved] = annotations.Observed(unread)
	if _, message := view.NewSleeper(unread, nil, nil).Phase(); message != "the plan cannot be read; it is held awake"+by {
		t.Errorf("of a plan that cannot be read: %q", message)
	}
}
