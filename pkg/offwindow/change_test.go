package offwindow_test

import (
	"strings"
	"testing"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/offwindow"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// At noon of Friday the 20th, a plan that sleeps in the nights of Monday to Thursday changes next.
func TestWhenAPlanFallsAsleepNextIsAskedOfItsPoliciesToo(t *testing.T) {
	const nights = "schedule: {offHours: [{start: '20:00', end: '06:00', daysOfWeek: [MON, TUE, WED, THU]}]}"
	const daily = "schedule: {offHours: [{start: '20:00', end: '06:00'}]}"
	friday := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	hold := func(asleep bool, until time.Time) hibernate.Overrides {
		return hibernate.Overrides{Hold: hibernate.Hold{On: true, Asleep: asleep, Until: &until}}
	}
	for _, c := range []struct {
		name, spec string
		wishes     hibernate.Overrides
		policy     string
		want       string
	}{
		{name: "no policy", spec: nights, want: "sleeps 2026-11-23T20:00:00Z"},
		{name: "a window that is never open in its nights", spec: nights, policy: "windows: [{start: '22:00', end: '23:00', days: [SAT]}]", want: "none: no sleep may begin"},
		{name: "a window that opens in a later night", spec: nights, policy: "windows: [{start: '22:00', end: '23:00', days: [WED]}]", want: "sleeps 2026-11-25T22:00:00Z"},
		{name: "a window that opens within the night", spec: nights, policy: "windows: [{start: '22:00', end: '23:00'}]", want: "sleeps 2026-11-23T22:00:00Z"},
		{name: "after a hold, in a night", spec: daily, wishes: hold(false, friday.Add(9*time.Hour)), policy: "windows: [{start: '23:00', end: '24:00'}]", want: "sleeps 2026-11-20T23:00:00Z"},
		{name: "held asleep it wakes, whatever is closed", spec: daily, wishes: hold(true, friday.Add(time.Hour)), policy: "windows: [{start: '23:00', end: '24:00'}]", want: "wakes 2026-11-20T13:00:00Z"},
		{name: "the next is skipped, and no other", spec: daily, wishes: hibernate.Overrides{Skip: intent.Skip{Next: true}}, want: "sleeps 2026-11-21T20:00:00Z"},
		{
			name: "a suspend that comes soon", want: "sleeps 2026-11-22T20:00:00Z",
			spec: daily + "\nexceptions: [{type: suspend, validFrom: '2026-11-20T21:00:00Z', validUntil: '2026-11-22T00:00:00Z', leadTime: 2h, reason: tests}, {type: suspend, validFrom: '2026-11-22T00:00:00Z', validUntil: '2026-11-22T12:00:00Z', reason: tests}]",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec := specOf(t, c.spec)
			table, err := hibernate.NewTimetable(spec)
			if err != nil {
				t.Fatal(err)
			}
			course := offwindow.NewTimeline(table, c.wishes, gateOf(t, c.policy), friday)
			got := course.After(course.At(friday))
			said := got.Why
			if got.At != nil {
				said = got.Verb() + " " + got.At.Format(time.RFC3339)
			}
			if said != c.want {
				t.Errorf("%s, want %s", said, c.want)
			}
		})
	}
}

// What follows a pause, at noon of a day with off-hours from 20:00 to 06:00.
func TestWhatChangesAfterAPause(t *testing.T) {
	noon := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	until := func(hours int) schedule.Pause {
		return schedule.Pause{On: true, Until: new(noon.Add(time.Duration(hours) * time.Hour))}
	}
	for _, c := range []struct {
		name   string
		pause  schedule.Pause
		asleep bool
		policy string
		want   string
	}{
		{name: "one without an end", pause: schedule.Pause{On: true}, want: "none, since it is paused"},
		{name: "one that ends before the night", pause: until(1), want: "sleeps 2026-11-20T20:00:00Z"},
		{name: "one that ends in the night", pause: until(10), want: "sleeps 2026-11-20T22:00:00Z"},
		{name: "one that ends in the night, before the window opens", pause: until(10), policy: "windows: [{start: '23:00', end: '24:00'}]", want: "sleeps 2026-11-20T23:00:00Z"},
		{name: "of what sleeps, one that ends by day", pause: until(1), asleep: true, want: "wakes 2026-11-20T13:00:00Z"},
		{name: "of what sleeps, one that ends in the night", pause: until(10), asleep: true, want: "wakes 2026-11-21T06:00:00Z"},
	} {
		t.Run(c.name, func(t *testing.T) {
			table, err := hibernate.NewTimetable(specOf(t, "schedule: {offHours: [{start: '20:00', end: '06:00'}]}"))
			if err != nil {
				t.Fatal(err)
			}
			got := offwindow.NewTimeline(table, hibernate.Overrides{}, gateOf(t, c.policy), noon).Paused(c.pause, c.asleep)
			said := got.Why
			if got.At != nil {
				said = got.Verb() + " " + got.At.Format(time.RFC3339)
			}
			if said != c.want {
				t.Errorf("%s, want %s", said, c.want)
			}
		})
	}
}

// What is told of a sleep that nothing but policies keep from beginning, by what is known of these.
func TestWhetherASleepComesMayNotBeKnown(t *testing.T) {
	noon := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	table, err := hibernate.NewTimetable(specOf(t, "schedule: {offHours: [{start: '20:00', end: '06:00'}]}"))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		said schedule.Verdict
		want offwindow.Change
	}{
		"closed for good":                       {schedule.Verdict{Ready: true, Reason: "Restrictive"}, offwindow.Change{Why: "none: no sleep may begin"}},
		"closed until it is looked for later":   {schedule.Verdict{Ready: true, Reason: "outside", Later: schedule.NotKnownYet}, offwindow.Change{Why: "not known yet: when policies permit a sleep is looked for later", Unknown: true}},
		"closed until what may not be read":     {schedule.Verdict{Ready: true, Reason: "outside", Until: new(noon.Add(time.Hour))}, offwindow.Change{Why: "not known: what policies say then cannot be read", Unknown: true}},
		"open until long after the night comes": {schedule.Verdict{Ready: true, Permitted: true, Reason: "within", Until: new(noon.Add(24 * time.Hour))}, offwindow.Change{At: new(noon.Add(8 * time.Hour))}},
	} {
		course := offwindow.NewTimeline(table, hibernate.Overrides{}, schedule.Published(c.said, ", says the agent"), noon)
		if got := course.After(course.At(noon)); diff(c.want, got) != "" {
			t.Errorf("%s: %s", name, diff(c.want, got))
		}
	}
}

func specOf(t *testing.T, spec string) hibernate.Spec {
	t.Helper()
	out, faults := hibernate.Parse([]byte("apiVersion: maint.dev/v1alpha1\nkind: HibernatePlan\nspec:\n  " + strings.ReplaceAll(spec, "\n", "\n  ") + "\n  targets: [{name: apps, type: noop}]\n"))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	return out
}

// gateOf is the gate of a policy with a maintenance schedule; nil: there is none.
func gateOf(t *testing.T, schedules string) *schedule.Gate {
	t.Helper()
	if schedules == "" {
		return nil
	}
	spec, faults := policy.Parse([]byte("apiVersion: maint.dev/v1alpha1\nkind: Policy\nspec: {strategy: MaintenanceSchedule, maintenanceSchedule: {timezone: UTC, " + schedules + "}}\n"))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	resolver := policy.NewResolver("maint-system")
	resolver.PutPolicy(policy.State{Namespace: "shop", Name: "windows", Spec: spec})
	return resolver.Gate(policy.Query{Namespace: "shop", Policies: []policy.PolicyRef{{Name: "windows"}}})
}
