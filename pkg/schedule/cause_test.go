package schedule

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestTheCauseOfAPublishedReason(t *testing.T) {
	for reason, want := range map[string]Cause{
		"bypass until 2026-08-03T19:00:00Z by jane: urgent":               {Kind: CauseBypass},
		"PermissiveUntil 2026-08-03T19:00:00Z":                            {Kind: CauseAllow},
		"policy night: PermissiveUntil 2026-08-03T19:00:00Z by jane: x":   {Kind: CauseAllow, Policy: "night"},
		"namespace: PermissiveUntil 2026-08-03T19:00:00Z":                 {Kind: CauseAllow, Namespace: true},
		"namespace: RestrictiveUntil 2026-08-03T19:00:00Z":                {Kind: CauseFreeze, Namespace: true},
		"RestrictiveUntil 2026-08-03T19:00:00Z by jane: PermissiveUntil ": {Kind: CauseFreeze},
		"policy night: paused by jane":                                    {Kind: CausePause, Policy: "night"},
		"Permissive by jane: was PermissiveUntil Friday":                  {},
		"Permissive by jane: bypass until 2026-08-03T19:00:00Z was over":  {},
		"PermissiveUntil 2026-08-03T19:00:00Z is over":                    {},
		"policy night: in a window":                                       {Policy: "night"},
		"not known beyond what was said, says the agent":                  {Kind: CauseUnpublished},
	} {
		if diff := cmp.Diff(want, causeIn(reason)); diff != "" {
			t.Errorf("%s: %s", reason, diff)
		}
	}
}

func TestWhatSomebodyPermitsForAWhile(t *testing.T) {
	for kind, want := range map[CauseKind]bool{CauseBypass: true, CauseAllow: true, CauseFreeze: false, CausePause: false, CauseUnpublished: false, "": false} {
		cause := Cause{Kind: kind, Policy: "night"}
		if got := (Verdict{Permitted: true, Cause: cause}).Granted(); got != want {
			t.Errorf("%q: %t", kind, got)
		}
		if (Verdict{Cause: cause}).Granted() || (State{Cause: cause}).Granted() {
			t.Errorf("%q: closed, and granted", kind)
		}
	}
}

// Who may not read what decides does not know what follows from it; what is broken is known to be
// closed.
func TestWhatIsNotKnown(t *testing.T) {
	now := time.Date(2026, 3, 3, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		gate *Gate
		want bool
	}{
		"nobody said it":          {Published(Verdict{Permitted: true, Until: &now}, ", says the agent"), true},
		"a policy is hidden":      {NewGate(GateSpec{Policies: []*Policy{PolicyHidden("night", "it cannot be read")}}), true},
		"a namespace is hidden":   {NewGate(GateSpec{Namespace: Stanza{Unread: "whether it is frozen cannot be read"}}), true},
		"a policy is broken":      {NewGate(GateSpec{Policies: []*Policy{PolicyNotReady("night", "it is broken")}}), false},
		"it is closed":            {NewGate(GateSpec{Own: Stanza{Strategy: Restrictive}}), false},
		"somebody said otherwise": {Published(Verdict{Reason: "policy night: Restrictive"}, ", says the agent"), false},
	} {
		if v, s := c.gate.Verdict(now), c.gate.At(now); v.Unknown() != c.want || s.Unknown() != c.want {
			t.Errorf("%s: %+v, %+v", name, v, s)
		}
	}
}

// drawStanza is what an object or its namespace may say.
func drawStanza(t *rapid.T, label string, policies ...*Policy) Stanza {
	s := Stanza{
		Strategy: Strategy(rapid.SampledFrom([]string{"", "ByPolicy", "Permissive", "Restrictive", "PermissiveUntil", "RestrictiveUntil"}).Draw(t, label)),
		By:       rapid.SampledFrom([]string{"", " by jane: PermissiveUntil Friday", " by joe (unverified)"}).Draw(t, label+" by"),
	}
	if until := drawHour(t, label+" until"); rapid.IntRange(0, 9).Draw(t, label+" no until") > 0 {
		s.Until = &until
	}
	if rapid.Bool().Draw(t, label+" names policies") {
		s.Policies = policies
	}
	if rapid.IntRange(0, 9).Draw(t, label+" unread") == 0 {
		s.Unread = "whether it is frozen cannot be read"
	}
	return s
}

func drawHour(t *rapid.T, label string) time.Time {
	return time.Date(2026, 3, 3, rapid.IntRange(0, 47).Draw(t, label), 0, 0, 0, time.UTC)
}

// What is read from a reason is the cause that the gate itself gives, whatever decides.
func TestAReasonSaysItsCause(t *testing.T) {
	windows, err := ParsePolicy("night", PolicySpec{Strategy: MaintenanceScheduled, MaintenanceSchedule: &MaintenanceSchedule{
		Windows: []Window{{Cron: "0 22 * * *", Duration: "4h"}}, Exclude: []Exclusion{{FromDate: "2026-03-04", Reason: "paused by the shop"}},
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 3, 3, 12, 0, 0, 0, time.UTC)
	after := now.Add(time.Hour)
	for want, spec := range map[CauseKind]GateSpec{
		"":          {},
		CauseAllow:  {Own: Stanza{Strategy: PermissiveUntil, Until: &after}},
		CauseFreeze: {Own: Stanza{Strategy: RestrictiveUntil, Until: &after}},
		CauseBypass: {Own: Stanza{Strategy: Restrictive}, Bypass: &after},
		CausePause:  {Policies: []*Policy{windows.Paused(Pause{On: true})}},
	} {
		if got := causeOfReason(t, spec, now).Kind; got != want {
			t.Errorf("%+v has the cause %q, and not %q", spec, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		until := drawHour(t, "paused until")
		policies := rapid.SliceOfNDistinct(rapid.SampledFrom([]*Policy{
			windows, PolicyNotReady("gone", "there is no such policy"), windows.Paused(Pause{On: true, By: " by jane"}), windows.Paused(Pause{On: true, Until: &until}),
			windows.Overridden(drawStanza(t, "policy")),
		}), 0, 2, rapid.ID).Draw(t, "policies")
		spec := GateSpec{Own: drawStanza(t, "own", policies...), Namespace: drawStanza(t, "namespace", policies...), Policies: policies}
		if at := drawHour(t, "bypass"); rapid.Bool().Draw(t, "bypassed") {
			spec.Bypass, spec.BypassBy = &at, " by jane: urgent"
		}
		causeOfReason(t, spec, drawHour(t, "now"))
	})
}

// causeOfReason is why a gate decides as it does; it fails where its reason says something else.
func causeOfReason(t rapid.TB, spec GateSpec, now time.Time) Cause {
	t.Helper()
	gate := NewGate(spec)
	v, s := gate.Verdict(now), gate.At(now)
	want := v.Cause
	if want.Kind == CauseHidden { // of those who ask; who publishes may read all
		want.Kind = ""
	}
	if diff := cmp.Diff(want, causeIn(v.Reason)); diff != "" {
		t.Fatalf("%q: %s", v.Reason, diff)
	}
	if s.Cause != v.Cause || s.Reason != v.Reason {
		t.Fatalf("%+v is not %+v", s, v)
	}
	return v.Cause
}
