package plans

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/notify"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
	"github.com/kubectl-maint/kubectl-maint/pkg/trigger"
)

func TestASlotIsToldInItsZoneAndInUTCOnceWhereTheseAreTheSame(t *testing.T) {
	for _, c := range []struct{ name, wall, zone, utc, want string }{
		{"UTC", "2026-11-28T19:31:00Z", "UTC", "2026-11-28T19:31:00Z", "2026-11-28T19:31:00Z UTC"},
		{"another zone", "2026-11-28T20:31:00+01:00", "Europe/Berlin", "2026-11-28T19:31:00Z", "2026-11-28T20:31:00+01:00 Europe/Berlin (2026-11-28T19:31:00Z)"},
	} {
		if got := slotWords(c.wall, c.zone, c.utc); got != c.want {
			t.Errorf("%s: %s", c.name, got)
		}
	}
}

func TestASlotThatCannotBeginIsNotToldAsARun(t *testing.T) {
	at := time.Date(2026, 11, 28, 19, 31, 0, 0, time.UTC)
	gate := func(own schedule.Stanza) *schedule.Gate { return schedule.NewGate(schedule.GateSpec{Own: own}) }
	gone := schedule.Stanza{Policies: []*schedule.Policy{schedule.PolicyNotReady("ghost", "there is no such policy")}}
	lacks := trigger.Readiness{Reason: "target", Message: "its target Deployment/ghost does not exist"}
	slot := &schedule.Slot{At: at, Wall: "2026-11-28T19:31:00Z", Zone: "UTC"}
	for _, c := range []struct {
		name  string
		edit  func(*trigger.Facts, *trigger.Decision)
		title string
		words string
	}{
		{"a slot at which a run begins", func(*trigger.Facts, *trigger.Decision) {}, "runs", "Its slot is at 2026-11-28T19:31:00Z UTC"},
		{"outside of the window", func(f *trigger.Facts, _ *trigger.Decision) {
			f.Gate = gate(schedule.Stanza{Strategy: schedule.Restrictive})
		}, "runs", "Its slot is at 2026-11-28T19:31:00Z UTC; change is not permitted then (Restrictive): it waits for that, and its slot is missed after its start deadline"},
		{"without a target", func(_ *trigger.Facts, d *trigger.Decision) { d.Status.Ready = lacks }, "has its slot", "Its slot is at 2026-11-28T19:31:00Z UTC; as things are it cannot begin: its target Deployment/ghost does not exist"},
		{"without a target and outside of the window", func(f *trigger.Facts, d *trigger.Decision) {
			f.Gate, d.Status.Ready = gate(schedule.Stanza{Strategy: schedule.Restrictive}), lacks
		}, "has its slot", "Its slot is at 2026-11-28T19:31:00Z UTC; change is not permitted then (Restrictive): it waits for that, and its slot is missed after its start deadline; as things are it cannot begin: its target Deployment/ghost does not exist"},
		{"without its policy, which is said once", func(f *trigger.Facts, d *trigger.Decision) {
			f.Gate, d.Status.Ready = gate(gone), trigger.Readiness{Reason: "not-ready", Message: "policy ghost: not ready: there is no such policy", ByPolicy: true}
		}, "has its slot", "Its slot is at 2026-11-28T19:31:00Z UTC; as things are it cannot begin: policy ghost: not ready: there is no such policy"},
		{"of a plan that only runs dry", func(f *trigger.Facts, _ *trigger.Decision) { f.Plan.Spec.DryRun = true }, "runs", ""},
		{"of a plan that is paused", func(_ *trigger.Facts, d *trigger.Decision) { d.Status.Phase = trigger.PhasePaused }, "runs", ""},
		{"that is none", func(_ *trigger.Facts, d *trigger.Decision) { d.Status.Next = nil }, "runs", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := trigger.Facts{Plan: trigger.Plan{Namespace: shop, Name: "orders", Spec: plan.Spec{Triggers: plan.Triggers{Schedules: []plan.Schedule{{Cron: "31 19 * * *"}}}}}}
			d := trigger.Decision{Status: trigger.Status{Phase: trigger.PhaseIdle, Next: slot, Ready: trigger.Readiness{OK: true}}}
			c.edit(&f, &d)
			coming := notify.Upcoming{What: "runs"}
			sayComing(&coming, f, d)
			if diff := cmp.Diff([]string{c.title, c.words}, []string{coming.What, coming.Words}); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if told := !coming.At.IsZero(); told != (c.words != "") {
				t.Errorf("it is told: %t", told)
			}
		})
	}
}
