package policy_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

func policyText(spec string) []byte {
	return []byte("apiVersion: maint.dev/v1alpha1\nkind: Policy\nspec:\n  " + strings.ReplaceAll(spec, "\n", "\n  ") + "\n")
}

func TestParsePolicyTellsEachFaultWithItsPathAndWhatToWrite(t *testing.T) {
	for _, c := range []struct{ spec, want string }{
		{"strategy: Permissive", ""},
		{"strategy: Restrictive\nserviceAccountName: gatekeeper", ""},
		{"strategy: MaintenanceSchedule\nmaintenanceSchedule: {timezone: Europe/Berlin, windows: [{days: [Sat, Sun], start: '22:00', end: '06:00'}], exclude: [{fromDate: 2026-12-18, untilDate: 2027-01-04, reason: freeze}, {calendar: {name: holidays}}]}", ""},
		{"strategy: MaintenanceSchedule\nmaintenanceSchedule: {permit: {recurrence: {frequency: Yearly, yearly: {by: Date, date: {datesOfMonth: [1], month: 3}}}, duration: 8h}}", ""},
		{"strategy: MaintenanceSchedule\nmaintenanceSchedule: {permit: {}}", ""},
		{"maintenanceSchedule: {permit: {}}", "spec.strategy: is missing; write Permissive, Restrictive or MaintenanceSchedule"},
		{"strategy: ByPolicy", `spec.strategy: "ByPolicy" is no strategy of a policy; write Permissive, Restrictive or MaintenanceSchedule; ByPolicy is for annotations alone`},
		{"strategy: Sometimes", `spec.strategy: "Sometimes" is no strategy`},
		{"strategy: Permissive\nmaintenanceSchedul: {}", `spec.maintenanceSchedul: unknown field; did you mean "maintenanceSchedule"?`},
		{"strategy: MaintenanceSchedule\nmaintenanceSchedule: {timezone: Europe/Berln, permit: {}}", `spec.maintenanceSchedule.timezone: "Europe/Berln": `},
		{"strategy: MaintenanceSchedule\nmaintenanceSchedule: {windows: []}", "spec.maintenanceSchedule.windows: is an empty list"},
		{"strategy: MaintenanceSchedule\nmaintenanceSchedule: {windows: [{days: [Caturday], start: '22:00', end: '06:00'}]}", "spec.maintenanceSchedule.windows[0].days[0]: "},
		{"strategy: MaintenanceSchedule\nmaintenanceSchedule: {permit: {recurrence: {frequency: Daily, daily: {interval: 731}}}}", "spec.maintenanceSchedule.permit.recurrence.daily.interval: "},
		{"strategy: MaintenanceSchedule\nmaintenanceSchedule: {permit: {recurrence: {frequency: Yearly, yearly: {by: Date, date: {datesOfMonth: [30], month: Feb}}}}}", "spec.maintenanceSchedule.permit.recurrence: can never fire: no month it names has such a day"},
		{"strategy: MaintenanceSchedule\nmaintenanceSchedule: {permit: {}, exclude: [{fromDate: 2026-12-18, untilDate: 2026-12-18}]}", "spec.maintenanceSchedule.exclude[0].untilDate: "},
		{"strategy: Permissive\nserviceAccountName: Über", "spec.serviceAccountName: "},
		{"strategy: Restrictive\ngates: [{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, selector: {matchLabels: {tier: prod}}, knob: flux}]", ""},
		{"strategy: Restrictive\ngates: [{apiVersion: apps/v1, kind: Deployment, name: web, namespace: shop, knob: deployment}, {apiVersion: v1, kind: X, knob: {path: spec.mode, closed: manual, open: null}}]", ""},
		{"strategy: Restrictive\ngates: [{apiVersion: v1, kind: X, knob: crossplane, selector: {matchExpressions: [{key: a.b/c, operator: In, values: [x]}, {key: d, operator: Exists}]}}]", ""},
		{"strategy: Restrictive\ngates: [{apiVersion: v1, kind: Secret, knob: {path: data.mode, closed: a, open: b}}]", "spec.gates[0].kind: a Secret cannot be gated"},
		{"strategy: Restrictive\ngates: [{apiVersion: v1, kind: Secret, knob: {path: /metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration, closed: a, open: b}}]", "spec.gates[0].kind: a Secret cannot be gated"},
		{"strategy: Restrictive\ngates: [{apiVersion: v1, kind: secret, knob: {path: data.mode, closed: a, open: b}}]", "spec.gates[0].kind: a Secret cannot be gated"},
		{"strategy: Restrictive\ngates: [{apiVersion: /v1, kind: Secret, knob: {path: data.mode, closed: a, open: b}}]", `spec.gates[0].apiVersion: "/v1" is no apiVersion`},
		{"strategy: Restrictive\ngates: [{apiVersion: /, kind: Secret, knob: {path: data.mode, closed: a, open: b}}]", `spec.gates[0].apiVersion: "/" is no apiVersion`},
		{"strategy: Restrictive\ngates: [{apiVersion: __internal, kind: Secret, knob: {path: data.mode, closed: a, open: b}}]", `spec.gates[0].apiVersion: "__internal" is no apiVersion`},
		{"strategy: Restrictive\ngates: [{apiVersion: v1, kind: Secret, knob: {path: /metadata/labels/hold, closed: a, open: null}}]", "spec.gates[0].kind: a Secret cannot be gated"},
		{"strategy: Restrictive\ngates: [{apiVersion: v1, kind: Secret, knob: {path: /metadata/annotations/kapp.k14s.io~1original, closed: a, open: null}}]", "spec.gates[0].kind: a Secret cannot be gated"},
		{"strategy: Restrictive\ngates: [{apiVersion: v1, kind: Secret, knob: {path: /metadata/annotations/objectset.rio.cattle.io~1applied, closed: a, open: null}}]", "spec.gates[0].kind: a Secret cannot be gated"},
		{"strategy: Restrictive\ngates: [{apiVersion: v1, kind: Secret, knob: {path: /metadata/annotations/reflector.v1.k8s.emberstack.com~1reflection-allowed, closed: 'true', open: null}}]", "spec.gates[0].kind: a Secret cannot be gated"},
		{"strategy: Restrictive\ngates: [{apiVersion: v1, kind: Secret, knob: {path: /metadata/annotations/management.cattle.io~1project-scoped-secret-copy, closed: 'true', open: null}}]", "spec.gates[0].kind: a Secret cannot be gated"},
		{"strategy: Restrictive\ngates: [{apiVersion: v1, kind: Secret, name: db, knob: crossplane}]", "spec.gates[0].kind: a Secret cannot be gated"},
		{"strategy: Restrictive\ngates: [{apiVersion: v1, kind: ConfigMap, knob: {path: data.mode, closed: a, open: b}}]", ""},
		{"strategy: Restrictive\ngates: [{apiVersion: example.org/v1, kind: Secret, knob: {path: data.mode, closed: a, open: b}}]", ""},
		{"strategy: Restrictive\ngates: [{kind: X, knob: flux}]", "spec.gates[0].apiVersion: is missing"},
		{"strategy: Restrictive\ngates: [{apiVersion: v1, knob: flux}]", "spec.gates[0].kind: is missing"},
		{"strategy: Restrictive\ngates: [{apiVersion: v1, kind: X}]", "spec.gates[0].knob: is missing"},
		{"strategy: Restrictive\ngates: [{apiVersion: v1, kind: Event, knob: {path: /metadata/labels/x, closed: a, open: b}}]", "spec.gates[0].kind: an Event has no controller"},
		{"strategy: Restrictive\ngates: [{apiVersion: events.k8s.io/v1, kind: Event, knob: {path: /metadata/labels/x, closed: a, open: b}}]", "spec.gates[0].kind: an Event has no controller"},
		{"strategy: Restrictive\ngates: [{apiVersion: Apps/v1, kind: Deployment, knob: {path: spec.mode, closed: a, open: b}}]", `spec.gates[0].apiVersion: "Apps/v1" is no apiVersion`},
		{"strategy: Restrictive\ngates: [{apiVersion: v1, kind: configmap, knob: {path: data.mode, closed: a, open: b}}]", `spec.gates[0].kind: "configmap" is no kind of v1; did you mean "ConfigMap"?`},
		{"strategy: Restrictive\ngates: [{apiVersion: v1, kind: X, knob: flx}]", `spec.gates[0].knob: unknown knob "flx"; did you mean "flux"?`},
		{"strategy: Restrictive\ngates: [{apiVersion: apps/v1, kind: Deployment, knob: flux}]", "spec.gates[0].knob: flux is for kinds of the groups *.toolkit.fluxcd.io, not for Deployment of apps/v1"},
		{"strategy: Restrictive\ngates: [{apiVersion: v1, kind: X, knob: {path: spec.mode, closed: manual}}]", "spec.gates[0].knob.open: is missing"},
		{"strategy: Restrictive\ngates: [{apiVersion: v1, kind: X, name: a, selector: {}, knob: crossplane}]", "spec.gates[0].selector: stands beside name"},
		{"strategy: Restrictive\ngates: [{apiVersion: v1, kind: X, name: ../a, knob: crossplane}]", `spec.gates[0].name: "../a" cannot name an object: no name is . or .., or has / or % in it`},
		{"strategy: Restrictive\ngates: [{apiVersion: a/b/c, kind: X, knob: crossplane}]", `spec.gates[0].apiVersion: "a/b/c" is no apiVersion; write it like apps/v1`},
		{"strategy: Restrictive\ngates: [{apiVersion: v1, kind: X, namespace: Shop, knob: crossplane}]", `spec.gates[0].namespace: "Shop" cannot name a namespace`},
		{"strategy: Restrictive\ngates: [{apiVersion: v1, kind: X, knob: nothing-like-it}]", "spec.gates[0].knob: "},
		{"strategy: Restrictive\ngates: [" + strings.Repeat("{apiVersion: v1, kind: X, knob: crossplane},", policy.MaxGates) + "]", ""},
		{"strategy: Restrictive\ngates: [" + strings.Repeat("{apiVersion: v1, kind: X},", policy.MaxGates+1) + "]", "spec.gates: a policy may name 50 gates, this one has 51"},
		{"strategy: [Permissive]", "spec.strategy: must be a string, is a list"},
		{"strategy: Restrictive\ngates: [{apiVersion: v1, kind: X, namespace: '*', knob: crossplane}]", "spec.gates[0].namespace: must be one namespace"},
		{"strategy: Restrictive\ngates: [{apiVersion: v1, kind: X, knob: crossplane, selector: {matchExpressions: [{key: d, operator: Is}]}}]", "spec.gates[0].selector.matchExpressions[0].operator: must be one of In"},
		{"strategy: Restrictive\ngates: [{apiVersion: v1, kind: X, knob: crossplane, selector: {matchLabels: {'-a': b}}}]", "spec.gates[0].selector.matchLabels: \"-a\" is no label's key"},
	} {
		t.Run(c.spec, func(t *testing.T) {
			_, faults := policy.Parse(policyText(c.spec))
			if c.want == "" && len(faults) > 0 {
				t.Fatalf("refused: %s", faults.Error())
			}
			if c.want != "" && (len(faults) != 1 || !strings.Contains(faults[0].String(), c.want) || faults[0].Line == 0) {
				t.Errorf("faults:\n%s\nwant one with a line and\n%s", faults.Error(), c.want)
			}
		})
	}
}

func TestParseCalendarYAMLKeepsWhatCanBeRead(t *testing.T) {
	for _, c := range []struct {
		name, text, want string
		good             bool
	}{
		{"a list", "- {from: 2026-12-24, until: 2026-12-27, reason: Christmas}\n- {from: 2027-01-01}\n", "", true},
		{"a document", "apiVersion: maint.dev/v1alpha1\nkind: Calendar\nspec:\n- {from: 2026-12-24}\n", "", true},
		{"a faulty entry", "- {from: 2026-12-24}\n- {from: never}\n", "line 2: [1].from", true},
		{"an unknown field", "- {form: 2026-12-24}\n- {from: 2026-12-25}\n", "line 1: [0].form", true},
		{"no dates", "apiVersion: maint.dev/v1alpha1\nkind: Calendar\n", "spec: is missing", false},
		{"no YAML", "- {from: [\n", "this is no YAML", false},
		{"something else", "true\n", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			calendar, faults := policy.ParseCalendarYAML([]byte(c.text))
			if (calendar != nil) != c.good {
				t.Errorf("calendar %v, faults %v", calendar, faults)
			}
			if !strings.Contains(faults.Error(), c.want) || c.want == "" && c.good && len(faults) > 0 {
				t.Errorf("faults %q, want %q", faults.Error(), c.want)
			}
		})
	}
}

// day is an instant on the Friday before a weekend of windows.
func day(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func put(t *testing.T, b *policy.Resolver, namespace, name, spec string, stanza policy.StanzaText) {
	t.Helper()
	s, faults := policy.Parse(policyText(spec))
	b.PutPolicy(policy.State{Namespace: namespace, Name: name, Spec: s, Faults: faults, Stanza: stanza})
}

const weekend = "strategy: MaintenanceSchedule\nmaintenanceSchedule: {windows: [{days: [Sat], start: '02:00', end: '06:00'}], exclude: [{calendar: {name: days, namespace: maint-system}}]}"

func TestABookResolvesPoliciesByNamespaceAndWhatIsMissingIsNotReady(t *testing.T) {
	b := policy.NewResolver("maint-system")
	calendar, faults := policy.ParseCalendarYAML([]byte("- {from: 2026-11-28, reason: sale}\n"))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	put(t, b, "shop", "weekend", weekend, policy.StanzaText{})
	put(t, b, "maint-system", "open", "strategy: Permissive", policy.StanzaText{})
	put(t, b, "other", "open", "strategy: Permissive", policy.StanzaText{})
	put(t, b, "shop", "broken", "strategy: Maybe", policy.StanzaText{})
	put(t, b, "shop", "loop", "strategy: Permissive", policy.StanzaText{Strategy: schedule.ByPolicy, Policies: []policy.PolicyRef{{Name: "loop"}}})
	put(t, b, "shop", "borrows", "strategy: Permissive", policy.StanzaText{Strategy: schedule.ByPolicy, Policies: []policy.PolicyRef{{Name: "open", Namespace: "other"}}})
	inside := day(t, "2026-11-21T03:00:00Z")
	for _, c := range []struct {
		name      string
		refs      []policy.PolicyRef
		eta, left int64
		reason    string
	}{
		{"its calendar is not there yet", []policy.PolicyRef{{Name: "weekend"}}, -2, -2, "there is no such Calendar"},
		{"the agent's", []policy.PolicyRef{{Name: "open", Namespace: "maint-system"}}, 0, -1, "policy open: Permissive"},
		{"another tenant's", []policy.PolicyRef{{Name: "open", Namespace: "other"}}, -2, -2, "policy open is in namespace other"},
		{"missing", []policy.PolicyRef{{Name: "absent"}}, -2, -2, "there is no such policy in namespace shop"},
		{"broken", []policy.PolicyRef{{Name: "broken"}}, -2, -2, "spec.strategy"},
		{"a stanza that names its own policy asks its document", []policy.PolicyRef{{Name: "loop"}}, 0, -1, "policy loop: Permissive"},
		{"a stanza that names another tenant's", []policy.PolicyRef{{Name: "borrows"}}, -2, -2, "policy open is in namespace other"},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := b.Gate(policy.Query{Namespace: "shop", Policies: c.refs}).Verdict(inside)
			if v.NextChangeETA != c.eta || v.PermissiveRemaining != c.left || !strings.Contains(v.Reason, c.reason) {
				t.Errorf("verdict %+v, want %d, %d and %q", v, c.eta, c.left, c.reason)
			}
		})
	}
	q := policy.Query{Namespace: "shop", Policies: []policy.PolicyRef{{Name: "weekend"}}}
	before := b.Generation(q)
	b.PutCalendar("maint-system", "days", calendar)
	if b.Generation(q) == before {
		t.Error("a calendar changed nothing")
	}
	if v := b.Gate(q).Verdict(inside); !v.Permitted || v.PermissiveRemaining != 3*3600 {
		t.Errorf("in the window: %+v", v)
	}
	if v := b.Gate(q).Verdict(day(t, "2026-11-28T03:00:00Z")); v.Permitted || !strings.Contains(v.Reason, "sale") {
		t.Errorf("on a day that is taken out: %+v", v)
	}
	b.PutCalendar("maint-system", "days", nil)
	if v := b.Gate(q).Verdict(inside); v.Ready || !strings.Contains(v.Reason, "calendar days cannot be read") {
		t.Errorf("with a broken calendar: %+v", v)
	}
}

func TestANamespaceBindsWhatIsBelowItAndOnlyABypassPasses(t *testing.T) {
	at := day(t, "2026-11-21T03:00:00Z")
	until := at.Add(2 * time.Hour)
	b := policy.NewResolver("maint-system")
	put(t, b, "shop", "open", "strategy: Permissive", policy.StanzaText{})
	if !b.PutNamespace("shop", policy.StanzaText{Strategy: schedule.RestrictiveUntil, Until: &until}) || b.PutNamespace("shop", policy.StanzaText{Strategy: schedule.RestrictiveUntil, Until: &until}) {
		t.Error("news is told where there is none, or not where there is")
	}
	own := policy.Query{Namespace: "shop", Own: policy.StanzaText{Strategy: schedule.Permissive}, Policies: []policy.PolicyRef{{Name: "open"}}}
	v := b.Gate(own).Verdict(at)
	if v.Permitted || v.NextChangeETA != 7200 || b.Strategy(own, at) != schedule.Restrictive {
		t.Errorf("under a closed namespace: %+v, %s", v, b.Strategy(own, at))
	}
	if got := b.Strategy(own, until); got != schedule.Permissive {
		t.Errorf("afterwards its strategy is %s", got)
	}
	if v := b.Gate(own.For(true)).Verdict(at); v.Permitted {
		t.Errorf("outside the window it passes a closed namespace: %+v", v)
	}
	free := policy.Query{Namespace: "elsewhere", Policies: []policy.PolicyRef{{Name: "absent"}}}
	if v := b.Gate(free.For(true)).Verdict(at); !v.Permitted {
		t.Errorf("outside the window its own policy holds it: %+v", v)
	}
	earlier := at.Add(time.Hour)
	own.Bypass = &earlier
	if v := b.Gate(own).Verdict(at); !v.Permitted || v.PermissiveRemaining != 3600 {
		t.Errorf("with a bypass: %+v", v)
	}
	if got := b.Uses(own); !cmp.Equal(got, []policy.PolicyRef{{Name: "open", Namespace: "shop"}}) {
		t.Errorf("it uses %v", got)
	}
}

func TestABehaviorKeepsFivePastStretches(t *testing.T) {
	var b *policy.Behavior
	now := day(t, "2026-11-21T00:00:00Z")
	for i := range 9 {
		since, until := now.Add(time.Duration(i)*time.Hour), now.Add(time.Duration(i+1)*time.Hour)
		v := schedule.Verdict{Permitted: i%2 == 0, Ready: true, Reason: fmt.Sprint(i), Since: &since, Until: &until, Next: &schedule.Following{Permitted: i%2 == 1, Start: until}}
		next := b.Advance(v, schedule.MaintenanceScheduled, since)
		if again := next.Advance(v, schedule.MaintenanceScheduled, since.Add(time.Minute)); !cmp.Equal(again, next) {
			t.Fatalf("the same verdict is news: %+v", again)
		}
		b = &next
	}
	if len(b.History) != policy.MaxHistory || b.History[0].Reason != "7" || b.History[0].State != policy.ChangesPaused || b.Current.State != policy.ChangesUnpaused || b.Next.State != policy.ChangesPaused {
		t.Errorf("%+v", b)
	}
}

// That a search was not finished, or is now, is no other stretch.
func TestABehaviorOfAnUnfinishedSearch(t *testing.T) {
	at := day(t, "2026-11-21T00:00:00Z")
	whole := schedule.Verdict{Ready: true, Reason: "closed"}
	unfinished := whole
	unfinished.Later, unfinished.Unfinished = "; later", true
	first := (*policy.Behavior)(nil).Advance(unfinished, schedule.MaintenanceScheduled, at)
	if first.Current.Reason != "closed; when that changes is not known yet" {
		t.Errorf("%+v", first)
	}
	if next := first.Advance(whole, schedule.MaintenanceScheduled, at.Add(time.Minute)); len(next.History) != 0 || next.Current.Reason != "closed" {
		t.Errorf("it is another stretch: %+v", next)
	}
	whole.Permitted, whole.Reason = true, "open"
	if next := first.Advance(whole, schedule.MaintenanceScheduled, at.Add(time.Minute)); len(next.History) != 1 || next.History[0].Reason != "closed" {
		t.Errorf("%+v", next)
	}
}

// A start that was not known before is of the stretch that was published, and not of another one.
func TestABehaviorWhoseStartIsFoundLater(t *testing.T) {
	at := day(t, "2026-11-21T06:00:00Z")
	since, until, past := at.Add(-time.Hour), at.Add(time.Hour), at.Add(-2*time.Hour)
	whole := schedule.Verdict{Ready: true, Reason: "closed", Since: &since, Until: &until}
	for name, c := range map[string]struct {
		first schedule.Verdict
		start *time.Time // of what is published once all is known
		past  int        // stretches
	}{
		"neither start nor end was known": {schedule.Verdict{Ready: true, Reason: "closed", Later: "; later", Unfinished: true}, &since, 0},
		"the end was":                     {schedule.Verdict{Ready: true, Reason: "closed", Until: &until, Unfinished: true}, &since, 0},
		"the start was":                   {schedule.Verdict{Ready: true, Reason: "closed", Since: &since, Later: "; later", Unfinished: true}, &since, 0},
		"it had ended before":             {schedule.Verdict{Ready: true, Reason: "closed", Until: &past}, &since, 1},
		"it ended as this one began":      {schedule.Verdict{Ready: true, Reason: "closed", Until: &since}, &since, 1},
		"it was open":                     {schedule.Verdict{Permitted: true, Ready: true, Reason: "closed", Unfinished: true}, &since, 1},
	} {
		first := (*policy.Behavior)(nil).Advance(c.first, schedule.MaintenanceScheduled, at)
		next := first.Advance(whole, schedule.MaintenanceScheduled, at.Add(time.Minute))
		if len(next.History) != c.past || !schedule.SameInstant(next.Current.StartTime, c.start) {
			t.Errorf("%s: %+v", name, next)
		}
		lost := whole
		lost.Since, lost.Unfinished = nil, true
		if again := next.Advance(lost, schedule.MaintenanceScheduled, at.Add(2*time.Minute)); !cmp.Equal(again, next) {
			t.Errorf("%s, and is not known again: %+v", name, again)
		}
	}
	open := schedule.Verdict{Permitted: true, Ready: true, Reason: "open"}
	unknown := schedule.Verdict{Ready: true, Reason: "closed", Later: "; later", Unfinished: true}
	b := (*policy.Behavior)(nil).Advance(open, schedule.MaintenanceScheduled, at)
	if b = b.Advance(unknown, schedule.MaintenanceScheduled, at); b.Current.StartTime != nil {
		t.Errorf("it began at %v", b.Current.StartTime)
	}
	if b = b.Advance(whole, schedule.MaintenanceScheduled, at.Add(time.Minute)); len(b.History) != 1 || b.History[0].State != policy.ChangesUnpaused {
		t.Errorf("%+v", b)
	}
	closed := schedule.Verdict{Ready: true, Reason: "closed"} // somebody said so just now
	if b = (*policy.Behavior)(nil).Advance(open, schedule.Permissive, at); !b.Advance(closed, schedule.Restrictive, at).Current.StartTime.Equal(at) {
		t.Errorf("%+v", b.Advance(closed, schedule.Restrictive, at))
	}
}

func TestWhatIsLookedForLaterIsAskedForAgainSoon(t *testing.T) {
	now := day(t, "2026-11-21T06:00:00Z")
	soon, sooner, late := now.Add(schedule.SearchAgain), now.Add(schedule.SearchAgain-time.Second), now.Add(time.Hour)
	for name, c := range map[string]struct {
		verdict schedule.Verdict
		want    *time.Time
	}{
		"it never changes":                       {schedule.Verdict{}, nil},
		"it changes":                             {schedule.Verdict{Until: &late}, &late},
		"when it changes is not known":           {schedule.Verdict{Unfinished: true}, &soon},
		"when it changes is, and not all else":   {schedule.Verdict{Unfinished: true, Until: &late}, &soon},
		"it changes before it is searched again": {schedule.Verdict{Unfinished: true, Until: &sooner}, &sooner},
	} {
		if got := policy.AskAgain(c.verdict, now); !schedule.SameInstant(got, c.want) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// What was published is read back as the verdict that it was made of.
func TestABehaviorIsTheVerdictThatWasPublished(t *testing.T) {
	since, until, later := day(t, "2026-11-21T00:00:00Z"), day(t, "2026-11-22T00:00:00Z"), day(t, "2026-11-23T00:00:00Z")
	for name, v := range map[string]schedule.Verdict{
		"open, and then closed":      {Permitted: true, Ready: true, Reason: "open", Since: &since, Until: &until, Next: &schedule.Following{Start: until, End: &later}},
		"closed, and then open":      {Ready: true, Reason: "closed", Since: &since, Until: &until, Next: &schedule.Following{Permitted: true, Start: until}},
		"open for ever":              {Permitted: true, Ready: true, Reason: "open", Since: &since},
		"closed as long as is known": {Ready: true, Reason: "closed"},
		"closed, and not known yet":  {Ready: true, Reason: "closed", Later: "; when that changes is not known yet"},
		"and then, not known yet":    {Ready: true, Reason: "closed", Until: &until, Next: &schedule.Following{Permitted: true, Start: until, Later: true}},
	} {
		if diff := cmp.Diff(v, (*policy.Behavior)(nil).Advance(v, schedule.MaintenanceScheduled, since).Verdict()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	open := policy.Period{State: policy.ChangesUnpaused}
	if got := (policy.Behavior{Current: open, Next: &open}).Verdict(); got.Next != nil {
		t.Errorf("what follows at no known time: %+v", got.Next)
	}
}

// Each policy is worked out once, however often others name it: the work grows with the policies,
// and not with the ways from one to another, of which twenty have a million.
func TestManyStanzasAreNotMadeExpensiveByEachOther(t *testing.T) {
	work := func(n int) (allocations float64) {
		return testing.AllocsPerRun(1, func() {
			b := policy.NewResolver("maint-system")
			for i := range n {
				next := policy.PolicyRef{Name: "p" + strings.Repeat("x", i+1)}
				put(t, b, "shop", "p"+strings.Repeat("x", i), "strategy: Permissive", policy.StanzaText{Strategy: schedule.ByPolicy, Policies: []policy.PolicyRef{next, next}})
			}
			b.Gate(policy.Query{Namespace: "shop", Policies: []policy.PolicyRef{{Name: "p"}}}).Verdict(day(t, "2026-11-21T00:00:00Z"))
		})
	}
	if ten, twenty := work(10), work(20); twenty > 3*ten {
		t.Errorf("ten policies that name each other twice take %.0f allocations, twenty %.0f", ten, twenty)
	}
}

func TestACalendarThatCannotBeReadAsAWhole(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"its dates are no list", "apiVersion: maint.dev/v1alpha1\nkind: Calendar\nspec: {from: 2026-12-24}\n", "spec: must be a list"},
		{"another kind", "apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec:\n- {from: 2026-12-24}\n", "kind: must be Calendar"},
	} {
		_, faults := policy.ParseCalendarYAML([]byte(c.text))
		if len(faults) != 1 || !strings.Contains(faults[0].String(), c.want) {
			t.Errorf("%s: %v", c.name, faults)
		}
	}
}

func TestParseCalendarICSKeepsWhatCanBeRead(t *testing.T) {
	event := func(start string) string {
		return "BEGIN:VEVENT\r\nUID:" + start + "\r\nSUMMARY:sale\r\nDTSTART;VALUE=DATE:" + start + "\r\nEND:VEVENT\r\n"
	}
	calendar := func(events ...string) string {
		return "BEGIN:VCALENDAR\r\nVERSION:2.0\r\n" + strings.Join(events, "") + "END:VCALENDAR\r\n"
	}
	padded := func(n int) string {
		text := calendar(event("20261224"))
		return text + strings.Repeat("\n", n-len(text))
	}
	for _, c := range []struct {
		name, text string
		good       bool
		want       []string
	}{
		{"one date", calendar(event("20261224")), true, nil},
		{"as long as allowed", padded(document.MaxDocumentBytes), true, nil},
		{"longer than allowed", padded(document.MaxDocumentBytes + 1), false, []string{"the document has 262145 bytes; at most 262144 are allowed"}},
		{"a date that is none", calendar(event("2026"), event("20261224")), true, []string{"line 6: "}},
		{"two that are none", calendar(event("2026"), event("20261224"), event("x")), true, []string{"line 6: ", "line 16: "}},
	} {
		t.Run(c.name, func(t *testing.T) {
			calendar, faults := policy.ParseCalendarICS([]byte(c.text))
			if (calendar != nil) != c.good {
				t.Errorf("a calendar: %t", calendar != nil)
			}
			if len(faults) != len(c.want) {
				t.Fatalf("faults %v, want %q", faults, c.want)
			}
			for i, f := range faults {
				if !strings.HasPrefix(f.String(), c.want[i]) || strings.HasPrefix(f.Message, "line ") {
					t.Errorf("%s, want %q", f, c.want[i])
				}
			}
		})
	}
}

// What cannot be read is not said to be missing.
func TestWhatCannotBeReadIsNotReady(t *testing.T) {
	b := policy.NewResolver("maint-system")
	put(t, b, "maint-system", "open", "strategy: Permissive", policy.StanzaText{})
	put(t, b, "shop", "nights", "{strategy: MaintenanceSchedule, maintenanceSchedule: {windows: [{cron: '0 22 * * *', duration: 4h}], exclude: [{calendar: {name: holidays, namespace: maint-system}}]}}", policy.StanzaText{})
	b.PutUnread("maint-system")
	b.PutNamespace("hidden", policy.StanzaText{Unread: "whether it is frozen cannot be read"})
	for name, c := range map[string]struct {
		q      policy.Query
		reason string
	}{
		"a policy":                      {policy.Query{Namespace: "shop", Policies: []policy.PolicyRef{{Name: "shut", Namespace: "maint-system"}}}, "policy shut: the policies of namespace maint-system cannot be read"},
		"the calendar of a policy":      {policy.Query{Namespace: "shop", Policies: []policy.PolicyRef{{Name: "nights"}}}, "policy nights: the calendars of namespace maint-system cannot be read"},
		"a namespace, which binds":      {policy.Query{Namespace: "hidden", Policies: []policy.PolicyRef{{Name: "open", Namespace: "maint-system"}}}, "namespace: whether it is frozen cannot be read"},
		"nothing, where all is known":   {policy.Query{Namespace: "shop", Policies: []policy.PolicyRef{{Name: "open", Namespace: "maint-system"}}}, "policy open: Permissive"},
		"nothing, of what is not there": {policy.Query{Namespace: "shop", Policies: []policy.PolicyRef{{Name: "ghost"}}}, "policy ghost: not ready: there is no such policy in namespace shop"},
	} {
		if v := b.Gate(c.q).Verdict(day(t, "2026-11-21T03:00:00Z")); v.Reason != c.reason || v.Ready != strings.HasSuffix(c.reason, "Permissive") || v.Permitted != v.Ready || v.Hidden() != strings.HasSuffix(c.reason, "cannot be read") {
			t.Errorf("%s: %+v", name, v)
		}
	}
}
