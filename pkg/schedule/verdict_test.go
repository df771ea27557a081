package schedule_test

import (
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

func at(text string) *time.Time {
	t, err := time.Parse("2006-01-02T15:04Z07:00", text)
	if err != nil {
		panic(err)
	}
	return &t
}

func mustPolicy(tb testing.TB, name string, spec schedule.PolicySpec) *schedule.Policy {
	tb.Helper()
	policy, err := schedule.ParsePolicy(name, spec, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return policy
}

// nightly is open from 20:00 to 04:00 UTC.
func nightly(tb testing.TB) *schedule.Policy {
	return mustPolicy(tb, "nightly", schedule.PolicySpec{Strategy: schedule.MaintenanceScheduled, MaintenanceSchedule: &schedule.MaintenanceSchedule{
		Windows: []schedule.Window{{Start: "20:00", End: "04:00"}},
	}})
}

func weekends(tb testing.TB) *schedule.Policy {
	return mustPolicy(tb, "weekends", schedule.PolicySpec{Strategy: schedule.MaintenanceScheduled, MaintenanceSchedule: &schedule.MaintenanceSchedule{
		Windows: []schedule.Window{{Days: []string{"Sat", "Sun"}, Start: "00:00", End: "24:00"}},
	}})
}

// withoutCause compares what verdicts say; TestAReasonSaysItsCause is about their causes.
func withoutCause() cmp.Option {
	return cmpopts.IgnoreFields(schedule.Verdict{}, "Cause", "AfterFreeze")
}

// Monday, 2026-08-03, 18:00Z: the night's window is two hours away.
func TestStanzas(t *testing.T) {
	now := *at("2026-08-03T18:00Z")
	permitted := func(reason string) schedule.Verdict {
		return schedule.Verdict{Permitted: true, Ready: true, Reason: reason, PermissiveRemaining: schedule.ForEver}
	}
	restricted := func(reason string) schedule.Verdict {
		return schedule.Verdict{Ready: true, Reason: reason, NextChangeETA: schedule.ForEver}
	}
	unready := func(reason string) schedule.Verdict {
		return schedule.Verdict{Reason: reason, NextChangeETA: schedule.NotReady, PermissiveRemaining: schedule.NotReady}
	}
	byNight := schedule.Verdict{
		Ready: true, Reason: "policy nightly: outside of the windows", Since: at("2026-08-03T04:00Z"), Until: at("2026-08-03T20:00Z"),
		Next: &schedule.Following{Permitted: true, Start: *at("2026-08-03T20:00Z"), End: at("2026-08-04T04:00Z")}, NextChangeETA: 7200,
	}
	night := []*schedule.Policy{nightly(t)}
	until := func(strategy schedule.Strategy, instant string, policies ...*schedule.Policy) schedule.Stanza {
		return schedule.Stanza{Strategy: strategy, Until: at(instant), Policies: policies}
	}
	for _, c := range []struct {
		name string
		spec schedule.GateSpec
		want schedule.Verdict
	}{
		{"none set is permissive", schedule.GateSpec{}, permitted("no strategy is set")},
		{"ByPolicy asks the policy", schedule.GateSpec{Own: schedule.Stanza{Strategy: schedule.ByPolicy, Policies: night}}, byNight},
		{"ByPolicy of a plan asks its policies", schedule.GateSpec{Own: schedule.Stanza{Strategy: schedule.ByPolicy}, Policies: night}, byNight},
		{"a plan's policies are asked without a stanza", schedule.GateSpec{Policies: night}, byNight},
		{"the stanza's own policy comes before the plan's", schedule.GateSpec{Own: schedule.Stanza{Strategy: schedule.ByPolicy, Policies: night}, Policies: []*schedule.Policy{weekends(t)}}, byNight},
		{"ByPolicy without any asks what the namespace says", schedule.GateSpec{Own: schedule.Stanza{Strategy: schedule.ByPolicy}, Namespace: schedule.Stanza{Strategy: schedule.ByPolicy, Policies: night}}, byNight},
		{"ByPolicy of nobody is not ready", schedule.GateSpec{Own: schedule.Stanza{Strategy: schedule.ByPolicy}}, unready("not ready: ByPolicy names no policy")},
		{
			"a policy that is missing is not ready",
			schedule.GateSpec{Policies: []*schedule.Policy{nightly(t), schedule.PolicyNotReady("gone", "there is no such policy")}},
			unready("policy gone: not ready: there is no such policy"),
		},
		{"Permissive", schedule.GateSpec{Own: schedule.Stanza{Strategy: schedule.Permissive, Policies: night}}, permitted("Permissive")},
		{"Restrictive", schedule.GateSpec{Own: schedule.Stanza{Strategy: schedule.Restrictive, Policies: night}}, restricted("Restrictive")},
		{"a strategy that nobody knows is not ready", schedule.GateSpec{Own: schedule.Stanza{Strategy: "Sometimes"}}, unready(`not ready: strategy "Sometimes" is not known`)},

		{
			"PermissiveUntil, then the policy",
			schedule.GateSpec{Own: until(schedule.PermissiveUntil, "2026-08-03T19:00Z", night...)},
			schedule.Verdict{
				Permitted: true, Ready: true, Reason: "PermissiveUntil 2026-08-03T19:00:00Z", Until: at("2026-08-03T19:00Z"),
				Next: &schedule.Following{Start: *at("2026-08-03T19:00Z"), End: at("2026-08-03T20:00Z")}, PermissiveRemaining: 3600,
			},
		},
		{
			"PermissiveUntil over a window that stays open has no transition at its end",
			schedule.GateSpec{Own: until(schedule.PermissiveUntil, "2026-08-03T21:00Z", night...)},
			schedule.Verdict{
				Permitted: true, Ready: true, Reason: "PermissiveUntil 2026-08-03T21:00:00Z", Until: at("2026-08-04T04:00Z"),
				Next: &schedule.Following{Start: *at("2026-08-04T04:00Z"), End: at("2026-08-04T20:00Z")}, PermissiveRemaining: 36000,
			},
		},
		{
			"PermissiveUntil that is over asks the policy",
			schedule.GateSpec{Own: until(schedule.PermissiveUntil, "2026-08-03T17:00Z", night...)},
			schedule.Verdict{Ready: true, Reason: byNight.Reason, Since: at("2026-08-03T17:00Z"), Until: byNight.Until, Next: byNight.Next, NextChangeETA: 7200},
		},
		{
			"PermissiveUntil that is over is restrictive without a policy",
			schedule.GateSpec{Own: until(schedule.PermissiveUntil, "2026-08-03T17:00Z")},
			schedule.Verdict{Ready: true, Reason: "PermissiveUntil 2026-08-03T17:00:00Z is over", Since: at("2026-08-03T17:00Z"), NextChangeETA: schedule.ForEver},
		},
		{
			"RestrictiveUntil, then the policy",
			schedule.GateSpec{Own: until(schedule.RestrictiveUntil, "2026-08-03T21:00Z", night...)},
			schedule.Verdict{
				Ready: true, Reason: "RestrictiveUntil 2026-08-03T21:00:00Z", Until: at("2026-08-03T21:00Z"),
				Next: &schedule.Following{Permitted: true, Start: *at("2026-08-03T21:00Z"), End: at("2026-08-04T04:00Z")}, NextChangeETA: 10800,
			},
		},
		{
			"RestrictiveUntil before a closed policy has no transition at its end",
			schedule.GateSpec{Own: until(schedule.RestrictiveUntil, "2026-08-03T19:00Z", night...)},
			schedule.Verdict{Ready: true, Reason: "RestrictiveUntil 2026-08-03T19:00:00Z", Until: at("2026-08-03T20:00Z"), Next: byNight.Next, NextChangeETA: 7200},
		},
		{
			"RestrictiveUntil that is over is permissive without a policy",
			schedule.GateSpec{Own: until(schedule.RestrictiveUntil, "2026-08-03T17:00Z")},
			schedule.Verdict{Permitted: true, Ready: true, Reason: "RestrictiveUntil 2026-08-03T17:00:00Z is over", Since: at("2026-08-03T17:00Z"), PermissiveRemaining: schedule.ForEver},
		},
		{
			"an Until without its instant is not ready",
			schedule.GateSpec{Own: schedule.Stanza{Strategy: schedule.RestrictiveUntil, Policies: night}},
			unready("not ready: RestrictiveUntil without its instant"),
		},

		{
			"several policies must all permit",
			schedule.GateSpec{Policies: []*schedule.Policy{nightly(t), weekends(t)}},
			schedule.Verdict{
				Ready: true, Reason: "policy nightly: outside of the windows", Since: at("2026-08-03T00:00Z"), Until: at("2026-08-08T00:00Z"),
				Next: &schedule.Following{Permitted: true, Start: *at("2026-08-08T00:00Z"), End: at("2026-08-08T04:00Z")}, NextChangeETA: 367200,
			},
		},

		{"a namespace speaks for what says nothing", schedule.GateSpec{Namespace: schedule.Stanza{Strategy: schedule.ByPolicy, Policies: night}}, byNight},
		{"an object's own comes before its namespace's", schedule.GateSpec{Own: schedule.Stanza{Strategy: schedule.Restrictive}, Namespace: schedule.Stanza{Strategy: schedule.Permissive}}, restricted("Restrictive")},
		{"a plan's policies come before its namespace", schedule.GateSpec{Policies: night, Namespace: schedule.Stanza{Strategy: schedule.Permissive}}, byNight},
		{"a restrictive namespace binds", schedule.GateSpec{Own: schedule.Stanza{Strategy: schedule.Permissive}, Namespace: schedule.Stanza{Strategy: schedule.Restrictive}}, restricted("namespace: Restrictive")},
		{
			"a namespace that is restrictive for a while binds as long",
			schedule.GateSpec{Own: schedule.Stanza{Strategy: schedule.Permissive}, Namespace: until(schedule.RestrictiveUntil, "2026-08-03T19:00Z")},
			schedule.Verdict{
				Ready: true, Reason: "namespace: RestrictiveUntil 2026-08-03T19:00:00Z", Until: at("2026-08-03T19:00Z"),
				Next: &schedule.Following{Permitted: true, Start: *at("2026-08-03T19:00Z")}, NextChangeETA: 3600,
			},
		},
		{
			"only a bypass passes a restrictive namespace",
			schedule.GateSpec{Namespace: schedule.Stanza{Strategy: schedule.Restrictive}, Bypass: at("2026-08-03T19:00Z")},
			schedule.Verdict{
				Permitted: true, Ready: true, Reason: "bypass until 2026-08-03T19:00:00Z", Until: at("2026-08-03T19:00Z"),
				Next: &schedule.Following{Start: *at("2026-08-03T19:00Z")}, PermissiveRemaining: 3600,
			},
		},

		{"a paused policy is restrictive", schedule.GateSpec{Policies: []*schedule.Policy{nightly(t).Paused(schedule.Pause{On: true})}}, restricted("policy nightly: paused")},
		{
			"a policy paused for a while resumes by itself",
			schedule.GateSpec{Policies: []*schedule.Policy{nightly(t).Paused(schedule.Pause{On: true, Until: at("2026-08-03T21:00Z")})}},
			schedule.Verdict{
				Ready: true, Reason: "policy nightly: paused until 2026-08-03T21:00:00Z", Until: at("2026-08-03T21:00Z"),
				Next: &schedule.Following{Permitted: true, Start: *at("2026-08-03T21:00Z"), End: at("2026-08-04T04:00Z")}, NextChangeETA: 10800,
			},
		},
		{
			"a stanza on a policy overrides it",
			schedule.GateSpec{Policies: []*schedule.Policy{nightly(t).Overridden(until(schedule.PermissiveUntil, "2026-08-03T20:00Z"))}},
			schedule.Verdict{
				Permitted: true, Ready: true, Reason: "policy nightly: PermissiveUntil 2026-08-03T20:00:00Z", Until: at("2026-08-04T04:00Z"),
				Next: &schedule.Following{Start: *at("2026-08-04T04:00Z"), End: at("2026-08-04T20:00Z")}, PermissiveRemaining: 36000,
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, schedule.NewGate(c.spec).Verdict(now), withoutCause()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPolicies(t *testing.T) {
	now := at("2026-08-03T21:00Z").Add(time.Nanosecond)
	windows := &schedule.MaintenanceSchedule{Windows: []schedule.Window{{Start: "20:00", End: "22:00"}}}
	excluded := &schedule.MaintenanceSchedule{Windows: windows.Windows, Exclude: []schedule.Exclusion{{FromDate: "2026-08-03", Reason: "launch"}}}
	always := &schedule.MaintenanceSchedule{Exclude: excluded.Exclude}
	for _, c := range []struct {
		name string
		spec schedule.PolicySpec
		want schedule.Verdict
	}{
		{
			"neither windows nor exclusions is restrictive for ever",
			schedule.PolicySpec{Strategy: schedule.MaintenanceScheduled, MaintenanceSchedule: &schedule.MaintenanceSchedule{}},
			schedule.Verdict{Ready: true, Reason: "policy p: no windows", NextChangeETA: -1},
		},
		{
			"no stanza is restrictive for ever",
			schedule.PolicySpec{Strategy: schedule.MaintenanceScheduled},
			schedule.Verdict{Ready: true, Reason: "policy p: no maintenance schedule", NextChangeETA: -1},
		},
		{
			"windows alone: permissive in them, seconds rounded up",
			schedule.PolicySpec{Strategy: schedule.MaintenanceScheduled, MaintenanceSchedule: windows},
			schedule.Verdict{
				Permitted: true, Ready: true, Reason: "policy p: in a window", Since: at("2026-08-03T20:00Z"), Until: at("2026-08-03T22:00Z"),
				Next: &schedule.Following{Start: *at("2026-08-03T22:00Z"), End: at("2026-08-04T20:00Z")}, PermissiveRemaining: 3600,
			},
		},
		{
			"windows and exclusions: permissive in the rest",
			schedule.PolicySpec{Strategy: schedule.MaintenanceScheduled, MaintenanceSchedule: excluded},
			schedule.Verdict{
				Ready: true, Reason: "policy p: excluded: launch", Since: at("2026-08-02T22:00Z"), Until: at("2026-08-04T20:00Z"),
				Next: &schedule.Following{Permitted: true, Start: *at("2026-08-04T20:00Z"), End: at("2026-08-04T22:00Z")}, NextChangeETA: 82800,
			},
		},
		{
			"exclusions alone: permissive except in them",
			schedule.PolicySpec{Strategy: schedule.MaintenanceScheduled, MaintenanceSchedule: always},
			schedule.Verdict{
				Ready: true, Reason: "policy p: excluded: launch", Since: at("2026-08-03T00:00Z"), Until: at("2026-08-04T00:00Z"),
				Next: &schedule.Following{Permitted: true, Start: *at("2026-08-04T00:00Z")}, NextChangeETA: 10800,
			},
		},
		{
			"Permissive ignores the stanza",
			schedule.PolicySpec{Strategy: schedule.Permissive, MaintenanceSchedule: excluded},
			schedule.Verdict{Permitted: true, Ready: true, Reason: "policy p: Permissive", PermissiveRemaining: -1},
		},
		{
			"Restrictive ignores the stanza",
			schedule.PolicySpec{Strategy: schedule.Restrictive, MaintenanceSchedule: windows},
			schedule.Verdict{Ready: true, Reason: "policy p: Restrictive", NextChangeETA: -1},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			policy := mustPolicy(t, "p", c.spec)
			if diff := cmp.Diff(c.want, policy.Verdict(now), withoutCause()); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.want, policy.Verdict(now), withoutCause()); diff != "" {
				t.Errorf("asked again: %s", diff)
			}
		})
	}
	if _, err := schedule.ParsePolicy("p", schedule.PolicySpec{Strategy: "Sometimes"}, nil); err == nil {
		t.Error("a strategy that nobody knows is taken")
	}
}

func TestAVerdictFollowsTheClock(t *testing.T) {
	gate := schedule.NewGate(schedule.GateSpec{Policies: []*schedule.Policy{nightly(t), weekends(t)}})
	for when := *at("2026-08-01T00:30Z"); when.Before(*at("2026-09-01T00:00Z")); when = when.Add(time.Hour) {
		weekend := when.Weekday() == time.Saturday || when.Weekday() == time.Sunday
		night := when.Hour() < 4 || when.Hour() >= 20
		verdict := gate.Verdict(when)
		if verdict.Permitted != (weekend && night) {
			t.Fatalf("%s: got %+v", when, verdict)
		}
		if !gate.Verdict(verdict.Until.Add(-time.Second)).Permitted != !verdict.Permitted || gate.Verdict(*verdict.Until).Permitted == verdict.Permitted {
			t.Fatalf("%s: %s is not the first change", when, verdict.Until)
		}
	}
}

// Run with -race: one policy serves many plans at once.
func TestAPolicyIsSharedByManyWhoAskAtOnce(t *testing.T) {
	policy := nightly(t)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			gate := schedule.NewGate(schedule.GateSpec{Policies: []*schedule.Policy{policy, weekends(t)}})
			for hour := range 200 {
				now := at("2026-08-01T00:30Z").Add(time.Duration(hour*(i+1)) * time.Hour)
				night := now.Hour() < 4 || now.Hour() >= 20
				if policy.Verdict(now).Permitted != night || gate.Verdict(now).Permitted && !night {
					t.Errorf("%s: wrong", now)
				}
			}
		})
	}
	all.Wait()
}
