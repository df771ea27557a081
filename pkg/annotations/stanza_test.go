package annotations_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/coretest"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

func TestWhatAnObjectSaysOfItsOwnChange(t *testing.T) {
	end := until("2026-12-01T06:00:00Z")
	refs := func(names ...string) []policy.PolicyRef {
		var out []policy.PolicyRef
		for _, n := range names {
			out = append(out, policy.PolicyRef{Name: n})
		}
		return out
	}
	names := coretest.Repeat(func(i int) string { return fmt.Sprint("p", i) }, plan.MaxPolicies+1)
	for _, c := range []struct {
		name  string
		says  map[string]string
		want  policy.StanzaText
		fault string // begins so; empty: none
	}{
		{"nothing", nil, policy.StanzaText{}, ""},
		{"a strategy", map[string]string{annotations.ChangeStrategy: " Permissive "}, policy.StanzaText{Strategy: schedule.Permissive}, ""},
		{"one that is none is kept, and holds", map[string]string{annotations.ChangeStrategy: "Open"}, policy.StanzaText{Strategy: "Open"}, annotations.ChangeStrategy + `: "Open" is no strategy`},
		{"policies", map[string]string{annotations.ChangePolicy: "night, , weekend,"}, policy.StanzaText{Policies: refs("night", "weekend")}, ""},
		{"a policy of another namespace", map[string]string{annotations.ChangePolicy: "maint-system/night"}, policy.StanzaText{Policies: []policy.PolicyRef{{Namespace: "maint-system", Name: "night"}}}, ""},
		{"a policy twice", map[string]string{annotations.ChangePolicy: "night,night"}, policy.StanzaText{Policies: refs("night")}, ""},
		{"as many policies as are asked", map[string]string{annotations.ChangePolicy: strings.Join(names[1:], ",")}, policy.StanzaText{Policies: refs(names[1:]...)}, ""},
		{"one more holds", map[string]string{annotations.ChangePolicy: strings.Join(names, ",")}, policy.StanzaText{Strategy: "of too many policies"}, annotations.ChangePolicy + ": names "},
		{"open until an instant", map[string]string{annotations.ChangeStrategy: "PermissiveUntil", annotations.PermissiveUntil: "2026-12-01T06:00:00Z"}, policy.StanzaText{Strategy: schedule.PermissiveUntil, Until: end}, ""},
		{"closed until an instant", map[string]string{annotations.ChangeStrategy: "RestrictiveUntil", annotations.RestrictiveUntil: "2026-12-01T06:00:00Z"}, policy.StanzaText{Strategy: schedule.RestrictiveUntil, Until: end}, ""},
		{"the end of another strategy does not count", map[string]string{annotations.ChangeStrategy: "PermissiveUntil", annotations.RestrictiveUntil: "2026-12-01T06:00:00Z"}, policy.StanzaText{Strategy: schedule.PermissiveUntil}, annotations.PermissiveUntil + `: "" is no RFC 3339 instant`},
		{"an end that cannot be read", map[string]string{annotations.ChangeStrategy: "RestrictiveUntil", annotations.RestrictiveUntil: "tomorrow"}, policy.StanzaText{Strategy: schedule.RestrictiveUntil}, annotations.RestrictiveUntil + `: "tomorrow" is no RFC 3339 instant`},
		{"an end without its strategy", map[string]string{annotations.PermissiveUntil: "2026-12-01T06:00:00Z"}, policy.StanzaText{}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := annotations.Stanza(c.says)
			faults := got.Faults
			got.Faults = nil
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if c.fault == "" && len(faults) > 0 || c.fault != "" && (len(faults) != 1 || !strings.HasPrefix(faults[0].String(), c.fault)) {
				t.Errorf("faults %v, want %q", faults, c.fault)
			}
		})
	}
}

// What is not understood lets nothing pass.
func TestABypassIsForARunOrForATime(t *testing.T) {
	for _, c := range []struct {
		value string
		want  intent.Bypass
		fault bool
	}{
		{"", intent.Bypass{}, false},
		{"false", intent.Bypass{}, false},
		{"maint-run-orders-abc: urgent fix", intent.Bypass{Run: "maint-run-orders-abc", Reason: "urgent fix", By: ": urgent fix"}, false},
		{"2026-12-01T06:00:00Z: urgent: really", intent.Bypass{Until: until("2026-12-01T06:00:00Z"), Reason: "urgent: really", By: ": urgent: really"}, false},
		{" maint-run-x :  why ", intent.Bypass{Run: "maint-run-x", Reason: "why", By: ": why"}, false},
		{"maint-run-x", intent.Bypass{}, true},
		{"maint-run-x: ", intent.Bypass{}, true},
		{": why", intent.Bypass{}, true},
		{"true: why", intent.Bypass{}, true},
		{"maint-ledger-x: why", intent.Bypass{}, true},
		{"2026-12-01: why", intent.Bypass{}, true},
	} {
		in := annotations.Intent(map[string]string{annotations.Bypass: c.value})
		if diff := cmp.Diff(c.want, in.Bypass); diff != "" || (len(in.Faults) == 1) != c.fault {
			t.Errorf("%q: %s %v", c.value, diff, in.Faults)
		}
	}
}

func TestFaultsOfAllThatPeopleAskAreTold(t *testing.T) {
	in := annotations.Intent(map[string]string{annotations.Pause: "x", annotations.Skip: "x", annotations.TriggerOptions: "x", annotations.ChangeStrategy: "x", annotations.Bypass: "x"})
	var paths []string
	for _, f := range in.Faults {
		paths = append(paths, f.Path)
	}
	if diff := cmp.Diff([]string{annotations.Pause, annotations.Skip, annotations.TriggerOptions, annotations.ChangeStrategy, annotations.Bypass}, paths); diff != "" {
		t.Error(diff)
	}
	only := annotations.Intent(map[string]string{annotations.Reason(annotations.Pause): "sale", annotations.Actor(annotations.Skip): "jane"})
	want := map[string]intent.Actor{"pause": {Reason: "sale"}, "skip": {Name: "jane"}}
	if diff := cmp.Diff(want, only.Actors); diff != "" {
		t.Errorf("who has a name or a reason: %s", diff)
	}
}

func TestHowMuchATriggerMayCarry(t *testing.T) {
	for n, faults := range map[int]int{16 << 10: 0, 16<<10 + 1: 1} {
		in := annotations.Intent(map[string]string{annotations.Trigger: "a", annotations.TriggerOptions: `{"token":"a","parameters":{"k":"` + strings.Repeat("v", n-1) + `"}}`})
		if len(in.Faults) != faults || in.Unclear != (faults > 0) {
			t.Errorf("%d bytes: faults %v, unclear %t", n, in.Faults, in.Unclear)
		}
	}
	two := annotations.Intent(map[string]string{annotations.Trigger: "a", annotations.TriggerOptions: `{"token":"a","parameters":{"k":"` + strings.Repeat("v", 8<<10) + `","l":"` + strings.Repeat("v", 8<<10) + `"}}`})
	if len(two.Faults) != 1 {
		t.Errorf("all of them together count: %v", two.Faults)
	}
	for n, same := range map[int]bool{128: true, 129: false} {
		token := strings.Repeat("t", n)
		if got := annotations.Intent(map[string]string{annotations.Trigger: token}).Token == token; got != same {
			t.Errorf("a token of %d bytes is kept as it is: %t", n, got)
		}
	}
}

func TestAUserOfATargetSkipsAPlanThere(t *testing.T) {
	key := annotations.Mirror("mirror.example.org", "orders", "skip")
	for value, want := range map[string]bool{"": false, "false": false, "true": true, "yes": true} {
		if got := annotations.SkippedOn(map[string]string{key: value}, "mirror.example.org", "orders"); got != want {
			t.Errorf("%q: %t", value, got)
		}
	}
	for n, whole := range map[int]bool{63 - len("-skip"): true, 64 - len("-skip"): false} {
		name := strings.Repeat("p", n)
		key := annotations.Mirror("m.example.org", name, "skip")
		if got := strings.Contains(key, name); got != whole || len(strings.TrimPrefix(key, "m.example.org/")) > 63 {
			t.Errorf("a plan of %d letters is named in full: %t, %s", n, got, key)
		}
	}
}

func TestWhichKeysAreOurs(t *testing.T) {
	for key, want := range map[string]bool{"maint.dev/pause": true, "status.maint.dev/phase": true, "notmaint.dev/a": false, "maint.dev": false, "example.org/maint.dev": false, "maint.dev.example.org/a": false} {
		if got := annotations.IsProjectKey(key); got != want {
			t.Errorf("%s: %t", key, got)
		}
	}
}

func TestABypassSaysWhoseItIsAndWhy(t *testing.T) {
	by := map[string]string{annotations.Bypass: "2026-12-01T06:00:00Z: urgent fix", annotations.Actor(annotations.Bypass): "jane"}
	q := annotations.Intent(by).Query("shop", nil)
	if want := " by jane (unverified): urgent fix"; q.BypassBy != want {
		t.Errorf("%q, want %q", q.BypassBy, want)
	}
	verified := annotations.IntentBy(by, func(string, annotations.Stamp) bool { return true })
	if want := " by jane: urgent fix"; verified.Bypass.By != want {
		t.Errorf("%q, want %q", verified.Bypass.By, want)
	}
	if q.Key() == annotations.Intent(map[string]string{annotations.Bypass: by[annotations.Bypass]}).Query("shop", nil).Key() {
		t.Error("whose it is makes no difference to what is kept of the answer")
	}
}
