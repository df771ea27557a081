package run_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/coretest"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// gateUntil is closed before an instant and open from there on.
func gateUntil(t time.Time) *schedule.Gate {
	return schedule.NewGate(schedule.GateSpec{Own: schedule.Stanza{Strategy: schedule.RestrictiveUntil, Until: &t}})
}

func TestAClosedGateHoldsARunUnlessItWasLetThrough(t *testing.T) {
	now, opens := coretest.Clock("02:00"), coretest.Clock("03:00")
	gate := gateUntil(opens)
	h := run.ClosedFor(gate, "r", intent.Bypass{}, now)
	if h == nil || h.NotReady || !h.Until.Equal(opens) || !strings.Contains(h.Message(), "opens at "+opens.UTC().Format(time.RFC3339)) {
		t.Fatalf("hold: %+v", h)
	}
	for name, passes := range map[string]*run.ClosedGate{
		"no gate":        run.ClosedFor(nil, "r", intent.Bypass{}, now),
		"it is open":     run.ClosedFor(gate, "r", intent.Bypass{}, opens),
		"a bypass of it": run.ClosedFor(gate, "r", intent.Bypass{Run: "r"}, now),
	} {
		if passes != nil {
			t.Errorf("%s: it is held: %+v", name, passes)
		}
	}
	if run.ClosedFor(gate, "r", intent.Bypass{Run: "another"}, now) == nil {
		t.Error("a bypass of another run lets it through")
	}
	if by := run.BypassedBy(gate, run.Request{OutsideWindow: true, Actor: "ann", Reason: "fire"}, intent.Intent{}, now); by == nil || by.Name != "ann" || by.Reason != "fire" {
		t.Errorf("let through by %+v", by)
	}
	if by := run.BypassedBy(gate, run.Request{OutsideWindow: true}, intent.Intent{}, opens); by != nil {
		t.Errorf("an open gate was passed by %+v", by)
	}
}

func TestAWaitIsToldWithItsEndAsFarAsItIsKnown(t *testing.T) {
	for name, c := range map[string]struct {
		gate run.ClosedGate
		want string
	}{
		"it opens":                 {run.ClosedGate{Reason: "night", Opens: coretest.On("03:00")}, "waits for its window, which opens at 2026-12-05T03:00:00Z (night)"},
		"in time for its slot":     {run.ClosedGate{Reason: "night", Opens: coretest.On("03:00"), Deadline: coretest.Clock("03:00")}, "waits for its window, which opens at 2026-12-05T03:00:00Z (night)"},
		"too late for its slot":    {run.ClosedGate{Reason: "night", Opens: coretest.On("03:00"), Deadline: coretest.Clock("02:30")}, "waits for its window, which opens at 2026-12-05T03:00:00Z, too late: its slot is Missed at 2026-12-05T02:30:00Z (night)"},
		"it is looked for later":   {run.ClosedGate{Reason: "night; looked for later", Later: true}, "waits for its window (night; looked for later)"},
		"it does not":              {run.ClosedGate{Reason: "Restrictive"}, "waits for its window, which does not open by itself (Restrictive)"},
		"nobody knows: say why":    {run.ClosedGate{Reason: "there is no such policy", NotReady: true}, "there is no such policy"},
		"not ready, though a time": {run.ClosedGate{Reason: "no zone", NotReady: true, Opens: coretest.On("03:00")}, "no zone"},
	} {
		if got := c.gate.Message(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// spent is a budget of which nothing is left.
type spent struct{}

func (spent) Left() int { return 0 }
func (spent) Spend(int) {}

// Windows that take turns by the minute, and swap them by the month, are searched for long.
func TestARunAsksAGateAgainWhoseWindowIsLookedForLater(t *testing.T) {
	var both []*schedule.Policy
	for _, cron := range [][2]string{{"*/2 * 1-15 * *", "1-59/2 * 16-31 * *"}, {"1-59/2 * 1-15 * *", "*/2 * 16-31 * *"}} {
		p, err := schedule.ParsePolicy("p", schedule.PolicySpec{Strategy: schedule.MaintenanceScheduled, MaintenanceSchedule: &schedule.MaintenanceSchedule{
			Windows: []schedule.Window{{Cron: cron[0], Duration: "1m"}, {Cron: cron[1], Duration: "1m"}},
		}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		both = append(both, p)
	}
	now := coretest.Clock("02:00")
	h := run.ClosedFor(schedule.NewGate(schedule.GateSpec{Policies: both}).Within(spent{}), "r", intent.Bypass{}, now)
	if h == nil || !h.Later || h.Opens != nil || !h.Until.Equal(now.Add(schedule.SearchAgain)) || strings.Contains(h.Message(), run.StaysClosed) {
		t.Fatalf("hold: %+v", h)
	}
}

func TestWhetherAWindowOpensTooLate(t *testing.T) {
	late := run.ClosedGate{Opens: coretest.On("03:00"), Deadline: coretest.Clock("02:30")}
	for _, c := range []struct {
		name string
		edit func(*run.ClosedGate)
		want bool
	}{
		{"after the deadline", func(*run.ClosedGate) {}, true},
		{"at the deadline", func(h *run.ClosedGate) { h.Deadline = coretest.Clock("03:00") }, false},
		{"there is no deadline", func(h *run.ClosedGate) { h.Deadline = time.Time{} }, false},
		{"nobody knows when it opens", func(h *run.ClosedGate) { h.Opens = nil }, false},
		{"nobody knows whether change is permitted", func(h *run.ClosedGate) { h.NotReady = true }, false},
		{"nobody knows either", func(h *run.ClosedGate) { h.NotReady, h.Opens = true, nil }, false},
	} {
		h := late
		c.edit(&h)
		if got := h.TooLate(); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}

func TestAClosedGateKnowsWhenToBeAskedAgain(t *testing.T) {
	now := coretest.Clock("02:00")
	shut := schedule.NewGate(schedule.GateSpec{Own: schedule.Stanza{Strategy: schedule.Restrictive}})
	if h := run.ClosedFor(shut, "r", intent.Bypass{}, now); h == nil || !h.Until.IsZero() || h.Opens != nil {
		t.Errorf("one that nothing but a document opens: %+v", h)
	}
	missing := schedule.NewGate(schedule.GateSpec{Own: schedule.Stanza{Strategy: schedule.ByPolicy, Policies: []*schedule.Policy{schedule.PolicyNotReady("p", "is missing")}}})
	if h := run.ClosedFor(missing, "r", intent.Bypass{}, now); h == nil || !h.NotReady {
		t.Errorf("one whose policy is missing: %+v", h)
	}
	if h := run.ClosedFor(gateUntil(coretest.Clock("03:00")), "", intent.Bypass{}, now); h == nil {
		t.Error("a bypass of nobody lets a run without a name through")
	}
}

func TestWhoLetARunThrough(t *testing.T) {
	now, later := coretest.Clock("02:00"), coretest.On("04:00")
	gate := gateUntil(coretest.Clock("03:00"))
	who := map[string]intent.Actor{"bypass": {Name: "bob"}}
	for name, c := range map[string]struct {
		gate    *schedule.Gate
		request run.Request
		intent  intent.Intent
		want    *intent.Actor
	}{
		"nobody had to":                      {nil, run.Request{OutsideWindow: true, Actor: "ann"}, intent.Intent{}, nil},
		"who asked for it out of the window": {gate, run.Request{OutsideWindow: true, Actor: "ann", Reason: "fire"}, intent.Intent{Bypass: intent.Bypass{Run: "r"}, Actors: who}, &intent.Actor{Name: "ann", Reason: "fire", At: now}},
		"a bypass for the run":               {gate, run.Request{}, intent.Intent{Bypass: intent.Bypass{Run: "r", Reason: "hurry"}, Actors: who}, &intent.Actor{Name: "bob", Reason: "hurry", At: now}},
		"a bypass for a time":                {gate, run.Request{}, intent.Intent{Bypass: intent.Bypass{Until: later}, Actors: who}, &intent.Actor{Name: "bob", At: now}},
		"a closed gate and no bypass":        {gate, run.Request{Actor: "ann"}, intent.Intent{Actors: who}, nil},
	} {
		if diff := cmp.Diff(c.want, run.BypassedBy(c.gate, c.request, c.intent, now)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// Who permits change for a time decides about each run that could not begin without that.
func TestWhoOpenedAGateForARun(t *testing.T) {
	now, later := coretest.Clock("02:00"), coretest.On("04:00")
	allow := func(by string) schedule.Stanza {
		return schedule.Stanza{Strategy: schedule.PermissiveUntil, Until: later, By: by}
	}
	policy := func(strategy schedule.Strategy, over schedule.Stanza) []*schedule.Policy {
		p, err := schedule.ParsePolicy("p", schedule.PolicySpec{Strategy: strategy}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return []*schedule.Policy{p.Overridden(over)}
	}
	jane := allow(" by jane (unverified): CHG-1: at night")
	freeze := schedule.Stanza{Strategy: schedule.RestrictiveUntil, Until: coretest.On("01:00")}
	for name, c := range map[string]struct {
		gate    schedule.GateSpec
		request run.Request
		want    *intent.Actor
	}{
		"a policy that is closed otherwise":     {schedule.GateSpec{Policies: policy(schedule.Restrictive, jane)}, run.Request{}, &intent.Actor{Name: "jane", Reason: "CHG-1: at night", At: now}},
		"one of two policies":                   {schedule.GateSpec{Policies: append(policy(schedule.Permissive, schedule.Stanza{}), policy(schedule.Restrictive, jane)...)}, run.Request{}, &intent.Actor{Name: "jane", Reason: "CHG-1: at night", At: now}},
		"by whom the API server vouches for":    {schedule.GateSpec{Policies: policy(schedule.Restrictive, allow(" by ann"))}, run.Request{}, &intent.Actor{Name: "ann", At: now, Verified: true}},
		"by nobody known":                       {schedule.GateSpec{Policies: policy(schedule.Restrictive, allow(": CHG-2"))}, run.Request{}, &intent.Actor{Reason: "CHG-2", At: now}},
		"by nobody known, for no reason":        {schedule.GateSpec{Policies: policy(schedule.Restrictive, allow(""))}, run.Request{}, &intent.Actor{At: now}},
		"the plan, below a freeze that is over": {schedule.GateSpec{Own: allow(" by ann"), Policies: policy(schedule.Restrictive, schedule.Stanza{}), Namespace: freeze}, run.Request{}, &intent.Actor{Name: "ann", At: now, Verified: true}},
		"a policy that is open without it":      {schedule.GateSpec{Policies: policy(schedule.Permissive, jane)}, run.Request{}, nil},
		"a policy that is closed":               {schedule.GateSpec{Policies: policy(schedule.Restrictive, schedule.Stanza{})}, run.Request{}, nil},
		"its own request lets it through":       {schedule.GateSpec{Policies: policy(schedule.Restrictive, jane)}, run.Request{OutsideWindow: true}, nil},
	} {
		if diff := cmp.Diff(c.want, run.AllowedBy(schedule.NewGate(c.gate), c.request, now)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if by := run.AllowedBy(nil, run.Request{}, now); by != nil {
		t.Errorf("without a gate: %+v", by)
	}
}
