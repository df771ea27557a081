package schedule

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestAGateThatWasToldSaysTheSameAsTheOneThatSpoke holds a gate made of another's verdict
// beside that other, at every quarter of an hour that the verdict speaks of.
func TestAGateThatWasToldSaysTheSameAsTheOneThatSpoke(t *testing.T) {
	p, err := ParsePolicy("nights", PolicySpec{Strategy: "MaintenanceSchedule", MaintenanceSchedule: &MaintenanceSchedule{Windows: []Window{{Cron: "0 22 * * *", Duration: "4h"}}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	real := NewGate(GateSpec{Policies: []*Policy{p}})
	for _, hour := range []int{12, 23} {
		now := time.Date(2026, 3, 3, hour, 0, 0, 0, time.UTC)
		v := real.Verdict(now)
		copied := Published(v, ", says the agent")
		for at := *v.Since; at.Before(*v.Next.End); at = at.Add(15 * time.Minute) {
			want, got := real.At(at), copied.At(at)
			want.Reason, got.Reason = "", ""
			if diff := cmp.Diff(want, got); diff != "" && at.Before(v.Next.Start) {
				t.Errorf("at %v of a verdict at %v: %s", at, now, diff)
			}
			if want.Open != got.Open || !want.Since.Equal(got.Since) {
				t.Errorf("at %v: %+v, want %+v", at, got, want)
			}
		}
		if got := copied.Verdict(now); got.Reason != v.Reason+", says the agent" || !got.Ready || got.Permitted != v.Permitted || got.PermissiveRemaining != v.PermissiveRemaining || got.NextChangeETA != v.NextChangeETA {
			t.Errorf("%+v, want %+v", got, v)
		}
		if got := copied.Verdict(v.Next.End.Add(time.Minute)); got.Ready || got.Permitted {
			t.Errorf("beyond what was said: %+v", got)
		}
	}
}

func TestAGateThatWasToldForEverStaysSo(t *testing.T) {
	for _, permitted := range []bool{false, true} {
		g := Published(Verdict{Permitted: permitted, Ready: true, Reason: "namespace: Restrictive by jane"}, "")
		v := g.Verdict(time.Date(2026, 3, 3, 0, 0, 0, 0, time.UTC))
		if v.Permitted != permitted || !v.Ready || v.Until != nil || v.Since != nil || v.Next != nil {
			t.Errorf("%+v", v)
		}
	}
}

// TestWhatWasNotKnownYetIsNotToldAsNever is about verdicts of an agent that has not found yet when it changes.
func TestWhatWasNotKnownYetIsNotToldAsNever(t *testing.T) {
	now := time.Date(2026, 3, 3, 0, 0, 0, 0, time.UTC)
	until := now.Add(time.Hour)
	left := func(v Verdict) int64 { return v.NextChangeETA + v.PermissiveRemaining } // one of them is 0
	for _, permitted := range []bool{false, true} {
		for later, number := range map[string]int64{"": ForEver, NotKnownYet: NotReady} {
			unknown := later != ""
			is := func(what string, v Verdict, s State) {
				t.Helper()
				if v.Until != nil || left(v) != number || (v.Later == lookedForLater) != unknown || strings.HasSuffix(s.Reason, NotKnownYet) != unknown || strings.Contains(v.Reason, NotKnownYet) || s.HasUntil {
					t.Errorf("permitted %t, later %q, %s: %+v, %+v", permitted, later, what, v, s)
				}
			}
			present := Published(Verdict{Permitted: permitted, Ready: true, Reason: "a", Later: later}, ", says the agent")
			is("now", present.Verdict(now), present.At(now))
			next := Published(Verdict{Permitted: !permitted, Ready: true, Reason: "a", Until: &until, Next: &Following{Permitted: permitted, Start: until, Later: unknown}}, ", says the agent")
			if v := next.Verdict(now); !v.Until.Equal(until) || left(v) != 3600 || v.Later != "" || v.Next.Later != unknown || v.Next.End != nil {
				t.Errorf("%+v, next %+v", v, v.Next)
			}
			is("next", next.Verdict(until), next.At(until))
		}
	}
}

// TestAPauseBeforeWhatIsNotKnownYet is about a pause with an end, at which it is closed still, or opens for a
// time that is not known.
func TestAPauseBeforeWhatIsNotKnownYet(t *testing.T) {
	now := time.Date(2026, 3, 3, 0, 0, 0, 0, time.UTC)
	end, later := now.Add(time.Hour), now.Add(2*time.Hour)
	for name, c := range map[string]struct {
		then []Verdict // from the end of the pause on, and where it opens
		want Verdict
	}{
		"closed, it is not known until when": {
			[]Verdict{{Ready: true, Later: lookedForLater, Unfinished: true}},
			Verdict{Later: lookedForLater, Unfinished: true, NextChangeETA: NotReady},
		},
		"closed for ever": {[]Verdict{{Ready: true}}, Verdict{NextChangeETA: ForEver}},
		"closed for a while, and then open until it is not known when": {
			[]Verdict{{Ready: true, Until: &later}, {Permitted: true, Ready: true, Later: lookedForLater, Unfinished: true}},
			Verdict{Unfinished: true, Until: &later, Next: &Following{Permitted: true, Start: later, Later: true}, NextChangeETA: 7200},
		},
		"closed since it is not known when, and then open for ever": {
			[]Verdict{{Ready: true, Until: &later, Unfinished: true}, {Permitted: true, Ready: true}},
			Verdict{Unfinished: true, Until: &later, Next: &Following{Permitted: true, Start: later}, NextChangeETA: 7200},
		},
		"open, it is not known until when": {
			[]Verdict{{Permitted: true, Ready: true, Later: lookedForLater, Unfinished: true}},
			Verdict{Unfinished: true, Until: &end, Next: &Following{Permitted: true, Start: end, Later: true}, NextChangeETA: 3600},
		},
	} {
		ask := func(at time.Time) Verdict {
			switch {
			case at.Before(end):
				return Verdict{Permitted: true, Ready: true}
			case at.Before(later) || len(c.then) == 1:
				return c.then[0]
			}
			return c.then[1]
		}
		pause := Pause{On: true, Until: &end}
		c.want.Ready, c.want.Reason, c.want.Cause = true, pause.Said(), Cause{Kind: CausePause}
		if diff := cmp.Diff(c.want, pause.Verdict(now, ask, ask)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestAPermissiveStretchWithoutASuccessorEnds: what nobody spoke of permits nothing.
func TestAPermissiveStretchWithoutASuccessorEnds(t *testing.T) {
	until := time.Date(2026, 3, 3, 4, 0, 0, 0, time.UTC)
	g := Published(Verdict{Permitted: true, Ready: true, Until: &until}, "")
	if v := g.Verdict(until.Add(-time.Hour)); !v.Permitted || v.Until == nil || !v.Until.Equal(until) {
		t.Errorf("before: %+v", v)
	}
	if v := g.Verdict(until); v.Permitted || v.Ready {
		t.Errorf("after: %+v", v)
	}
	if s := g.At(until); !s.HasSince || !s.Since.Equal(until) {
		t.Errorf("after: %+v", s)
	}
}

// What is closed up to an instant opens then, though no more was said of it.
func TestAClosedStretchThatWasToldEndsWhereItWasSaidTo(t *testing.T) {
	closes, opens := time.Date(2026, 3, 3, 4, 0, 0, 0, time.UTC), time.Date(2026, 3, 3, 22, 0, 0, 0, time.UTC)
	g := Published(Verdict{Permitted: true, Ready: true, Reason: "PermissiveUntil 2026-03-03T04:00:00Z", Until: &closes, Next: &Following{Start: closes, End: &opens}}, ", says the agent")
	v := g.Verdict(closes.Add(time.Hour))
	if v.Permitted || !v.Ready || v.Until == nil || !v.Until.Equal(opens) || v.Next == nil || !v.Next.Permitted || v.Reason != "not permitted then, says the agent" || v.Cause.Kind != CausePublished {
		t.Errorf("%+v", v)
	}
	if v := g.Verdict(opens); v.Ready || !v.Unknown() {
		t.Errorf("beyond what was said: %+v", v)
	}
	var open []Interval
	for i := range g.Intervals(closes.Add(-time.Hour)) {
		open = append(open, i)
	}
	if len(open) != 1 || !open[0].End.Equal(closes) {
		t.Errorf("%+v", open)
	}
	for range g.Intervals(closes.Add(time.Hour)) {
		t.Error("a window is made of what nobody said")
	}
	for ever := range g.Intervals(opens) {
		t.Errorf("%+v", ever)
	}
}

func TestAPauseIsReadFromWhatItSays(t *testing.T) {
	until := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	for _, want := range []Pause{
		{On: true, Of: "namespace shop"},
		{On: true, Of: "the whole cluster", By: " by root (unverified): upgrade; see CHG-1"},
		{On: true, Of: "namespace shop", Until: &until},
		{On: true, Of: "namespace shop", Until: &until, By: " by jane: until it is over"},
	} {
		for _, text := range []string{want.Said(), "not put back by run a-1; " + want.Said()} {
			got, ok := PauseSaid(text)
			if diff := cmp.Diff(want, got); !ok || diff != "" {
				t.Errorf("%q: %v %s", text, ok, diff)
			}
		}
	}
	for _, text := range []string{"paused until resumed", "next run Sun 02:00 UTC", "", "namespace shop is paused until somewhen"} {
		if got, ok := PauseSaid(text); ok {
			t.Errorf("%q: %+v", text, got)
		}
	}
}

// A freeze within a stretch that is closed for longer is not why nothing is permitted after its end.
func TestAFreezeThatIsOverIsNoReasonThatWasTold(t *testing.T) {
	day := func(n int) time.Time { return time.Date(2026, 3, n, 0, 0, 0, 0, time.UTC) }
	now, frozen, opens := day(2), day(3), day(5)
	for _, c := range []struct{ reason, first, then string }{
		{"RestrictiveUntil 2026-03-03T00:00:00Z by jane (unverified): launch", "RestrictiveUntil 2026-03-03T00:00:00Z by jane (unverified): launch, says the agent", "not permitted then, says the agent"},
		{"namespace: RestrictiveUntil 2026-03-03T00:00:00Z", "namespace: RestrictiveUntil 2026-03-03T00:00:00Z, says the agent", "not permitted then, says the agent"},
		{"policy night: outside of the windows", "policy night: outside of the windows, says the agent", "policy night: outside of the windows, says the agent"},
		{"RestrictiveUntil 2026-03-03T00:00:00Z: launch", "RestrictiveUntil 2026-03-03T00:00:00Z: launch, says the agent", "not permitted then, says the agent"},
		{"RestrictiveUntil soon", "RestrictiveUntil soon, says the agent", "RestrictiveUntil soon, says the agent"},
	} {
		g := Published(Verdict{Ready: true, Reason: c.reason, Until: &opens, Next: &Following{Permitted: true, Start: opens}}, ", says the agent")
		if got := g.Verdict(now); got.Permitted || got.Reason != c.first {
			t.Errorf("%q, want %q", got.Reason, c.first)
		}
		if got := g.Verdict(frozen); got.Permitted || got.Reason != c.then || got.Until == nil || !got.Until.Equal(opens) {
			t.Errorf("after its end %q until %v, want %q", got.Reason, got.Until, c.then)
		}
	}
}

func TestOfSeveralPausesTheLongestCounts(t *testing.T) {
	at := func(h int) *time.Time { return new(time.Date(2026, 3, 3, h, 0, 0, 0, time.UTC)) }
	short, long, ever := Pause{On: true, Until: at(1), Of: "a"}, Pause{On: true, Until: at(2), Of: "b"}, Pause{On: true, Of: "c"}
	for name, c := range map[string]struct {
		list []Pause
		want string
	}{
		"none": {nil, ""}, "one that is off": {[]Pause{{Of: "d"}}, ""}, "one": {[]Pause{short}, "a"}, "the later": {[]Pause{short, long}, "b"}, "the later first": {[]Pause{long, short}, "b"},
		"without an end": {[]Pause{short, ever, long}, "c"}, "two without": {[]Pause{ever, {On: true, Of: "d"}}, "d"},
	} {
		if got := LongestPause(c.list...).Of; got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestAFreezeOfANamespaceIsReadFromWhatItSays(t *testing.T) {
	until := time.Date(2026, 3, 3, 0, 0, 0, 0, time.UTC)
	for reason, want := range map[string]*Stanza{
		"namespace: RestrictiveUntil 2026-03-03T00:00:00Z by jane (unverified): a, b": {Strategy: RestrictiveUntil, Until: &until, By: " by jane (unverified): a, b"},
		"namespace: RestrictiveUntil 2026-03-03T00:00:00Z: launch":                    {Strategy: RestrictiveUntil, Until: &until, By: ": launch"},
		"namespace: RestrictiveUntil 2026-03-03T00:00:00Z":                            {Strategy: RestrictiveUntil, Until: &until},
		"namespace: Restrictive by jane":                                              {Strategy: Restrictive, By: " by jane"},
		"namespace: RestrictiveUntil soon":                                            nil,
		"namespace: Permissive":                                                       nil,
		"namespace: not ready: ByPolicy names no policy":                              nil,
		"Restrictive": nil,
		"policy night: RestrictiveUntil 2026-03-03T00:00:00Z": nil,
	} {
		got, frozen := FrozenNamespaceSaid(reason)
		if frozen != (want != nil) {
			t.Errorf("%s: %v", reason, frozen)
			continue
		}
		if want != nil {
			if diff := cmp.Diff(*want, got); diff != "" {
				t.Errorf("%s: %s", reason, diff)
			}
		}
	}
}
