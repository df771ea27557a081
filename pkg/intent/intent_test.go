package intent_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

func TestASkipCoversWhatItNames(t *testing.T) {
	two := time.Date(2026, 5, 1, 2, 0, 0, 0, time.UTC)
	three := two.Add(time.Hour)
	for _, c := range []struct {
		name               string
		skip               intent.Skip
		two, three, labels bool
	}{
		{"nothing", intent.Skip{}, false, false, false},
		{"all", intent.Skip{All: true}, true, true, true},
		{"the next", intent.Skip{Next: true}, true, true, false},
		{"until three, which is not in it", intent.Skip{Until: &three}, true, false, true},
		{"a slot", intent.Skip{Slots: []time.Time{three.In(time.FixedZone("x", 3600))}}, false, true, false},
	} {
		if got := c.skip.Covers(two); got != c.two {
			t.Errorf("%s: covers two o'clock: %t", c.name, got)
		}
		if got := c.skip.Covers(three); got != c.three {
			t.Errorf("%s: covers three o'clock: %t", c.name, got)
		}
		if got := c.skip.HoldsLabels(two); got != c.labels {
			t.Errorf("%s: holds labels at two: %t", c.name, got)
		}
	}
	if (intent.Skip{Until: &three}).HoldsLabels(three) {
		t.Error("a skip holds labels at its own end")
	}
}

func TestAReferenceIsToOneRun(t *testing.T) {
	for _, c := range []struct {
		ref  intent.RunRef
		run  string
		want bool
	}{
		{intent.RunRef{Run: "r"}, "r", true},
		{intent.RunRef{Run: "r", Step: "ask"}, "r", true},
		{intent.RunRef{Run: "r"}, "q", false},
		{intent.RunRef{}, "", false},
	} {
		if got := c.ref.For(c.run); got != c.want {
			t.Errorf("%+v for %q: %t", c.ref, c.run, got)
		}
	}
}

func TestAQueryIsWhatTheAnnotationsSay(t *testing.T) {
	until := time.Date(2026, 5, 1, 2, 0, 0, 0, time.UTC)
	in := intent.Intent{Stanza: policy.StanzaText{Strategy: schedule.Restrictive}, Bypass: intent.Bypass{Run: "r", Until: &until}}
	refs := []policy.PolicyRef{{Name: "night"}}
	want := policy.Query{Namespace: "shop", Own: in.Stanza, Policies: refs, Bypass: &until}
	if diff := cmp.Diff(want, in.Query("shop", refs)); diff != "" {
		t.Error(diff)
	}
}

func TestWhatSomebodyDidIsSaidWithTheirNameAndReason(t *testing.T) {
	for _, c := range []struct {
		name  string
		actor intent.Actor
		want  string
	}{
		{"nobody is known", intent.Actor{}, "aborted"},
		{"a name that the API server vouches for", intent.Actor{Name: "jane", Verified: true}, "aborted by jane"},
		{"a name that anybody could have written", intent.Actor{Name: "jane"}, "aborted by jane (unverified)"},
		{"a reason without a name", intent.Actor{Reason: "sale", Verified: true}, "aborted: sale"},
		{"both", intent.Actor{Name: "jane", Reason: "sale"}, "aborted by jane (unverified): sale"},
	} {
		if got := c.actor.Said("aborted"); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
