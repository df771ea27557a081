package schedule

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A reason belongs to the end beside it: what follows a freeze is said with it.
func TestWhatFollowsAFreeze(t *testing.T) {
	now := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	in := func(hours int) *time.Time { at := now.Add(time.Duration(hours) * time.Hour); return &at }
	freeze := func(hours int) Stanza { return Stanza{Strategy: RestrictiveUntil, Until: in(hours)} }
	pol := func(strategy Strategy) *Policy {
		p, err := ParsePolicy("pol", PolicySpec{Strategy: strategy}, nil)
		if err != nil {
			t.Fatal(err)
		}
		p.Namespace = "shop"
		return p
	}
	window, err := ParsePolicy("pol", PolicySpec{Strategy: MaintenanceScheduled, MaintenanceSchedule: &MaintenanceSchedule{Windows: []Window{{Start: "06:00", End: "07:00"}}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	ofNamespace, own, ofPolicy := Cause{Kind: CauseFreeze, Namespace: true}, Cause{Kind: CauseFreeze}, Cause{Kind: CauseFreeze, Policy: "pol", PolicyNamespace: "shop"}
	for _, c := range []struct {
		name  string
		gate  GateSpec
		after string
		lifts []Cause
	}{
		{name: "a freeze alone", gate: GateSpec{Namespace: freeze(1)}, lifts: []Cause{ofNamespace}},
		{name: "the policy is frozen for longer", gate: GateSpec{Namespace: freeze(1), Policies: []*Policy{pol(Permissive).Overridden(freeze(2))}}, after: "; after the freeze: policy pol: RestrictiveUntil 2026-11-21T02:00:00Z", lifts: []Cause{ofNamespace, ofPolicy}},
		{name: "the policy is frozen for less long", gate: GateSpec{Namespace: freeze(2), Policies: []*Policy{pol(Permissive).Overridden(freeze(1))}}, lifts: []Cause{ofNamespace, ofPolicy}},
		{name: "the plan is frozen for less long", gate: GateSpec{Own: freeze(1), Namespace: freeze(2)}, lifts: []Cause{ofNamespace, own}},
		{name: "two freezes, then a window that is closed", gate: GateSpec{Namespace: freeze(1), Policies: []*Policy{window.Overridden(freeze(2))}}, after: "; after the freeze: policy pol: RestrictiveUntil 2026-11-21T02:00:00Z; after that: policy pol: outside of the windows"},
		{name: "a policy that never permits", gate: GateSpec{Namespace: freeze(1), Policies: []*Policy{pol(Restrictive)}}, after: "; after the freeze: policy pol: Restrictive"},
		{name: "a policy that is paused without end", gate: GateSpec{Policies: []*Policy{pol(Permissive).Paused(Pause{On: true})}}, lifts: []Cause{{Kind: CausePause, Policy: "pol", PolicyNamespace: "shop"}}},
		{name: "it is open", gate: GateSpec{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := NewGate(c.gate)
			if got := g.Verdict(now).AfterFreeze; got != c.after {
				t.Errorf("got %q, want %q", got, c.after)
			}
			if diff := cmp.Diff(c.lifts, g.Lifts(now)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
