package policy_test

import (
	"strings"
	"testing"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
	"github.com/kubectl-maint/kubectl-maint/pkg/selector"
)

func TestARuleMeansObjectsByNameAndLabels(t *testing.T) {
	s := func(key, operator string, values ...string) *selector.LabelSelector {
		return &selector.LabelSelector{MatchExpressions: []selector.SelectorRequirement{{Key: key, Operator: operator, Values: values}}}
	}
	labels := map[string]string{"tier": "prod", "empty": ""}
	for _, c := range []struct {
		name string
		rule policy.GateRule
		want bool
	}{
		{"neither name nor selector", policy.GateRule{}, true},
		{"its name", policy.GateRule{Name: "a"}, true},
		{"another name", policy.GateRule{Name: "b"}, false},
		{"an empty selector", policy.GateRule{Selector: &selector.LabelSelector{}}, true},
		{"a label", policy.GateRule{Selector: &selector.LabelSelector{MatchLabels: map[string]string{"tier": "prod"}}}, true},
		{"another value", policy.GateRule{Selector: &selector.LabelSelector{MatchLabels: map[string]string{"tier": "dev"}}}, false},
		{"an empty value that is not there", policy.GateRule{Selector: &selector.LabelSelector{MatchLabels: map[string]string{"absent": ""}}}, false},
		{"In", policy.GateRule{Selector: s("tier", "In", "dev", "prod")}, true},
		{"In, absent", policy.GateRule{Selector: s("absent", "In", "")}, false},
		{"NotIn", policy.GateRule{Selector: s("tier", "NotIn", "prod")}, false},
		{"NotIn, absent", policy.GateRule{Selector: s("absent", "NotIn", "x")}, true},
		{"Exists", policy.GateRule{Selector: s("empty", "Exists")}, true},
		{"DoesNotExist", policy.GateRule{Selector: s("empty", "DoesNotExist")}, false},
		{"an operator that is none", policy.GateRule{Selector: s("tier", "Is", "prod")}, false},
	} {
		if got := c.rule.Matches("a", labels); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}

func TestAPolicyMeansObjectsByKindAndNamespace(t *testing.T) {
	spec := policy.PolicySpec{Gates: []policy.GateRule{
		{APIVersion: "apps/v1", Kind: "Deployment", Name: "a"},
		{APIVersion: "v1", Kind: "Service", Namespace: "other", Name: "a"},
	}}
	for _, c := range []struct {
		name, group, kind, namespace, object string
		want                                 bool
	}{
		{"where the policy is", "apps", "Deployment", "shop", "a", true},
		{"wherever it is", "apps", "Deployment", "", "a", true},
		{"elsewhere", "apps", "Deployment", "other", "a", false},
		{"of another name", "apps", "Deployment", "shop", "b", false},
		{"another kind", "apps", "StatefulSet", "shop", "a", false},
		{"the kind of another group", "", "Deployment", "shop", "a", false},
		{"of the core group, where the rule says", "", "Service", "other", "a", true},
		{"of the core group, where the policy is", "", "Service", "shop", "a", false},
		{"of a group that has the name of the version", "v1", "Service", "other", "a", false},
	} {
		if got := spec.Means("shop", c.group, c.kind, c.namespace, c.object, nil); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
	if (policy.PolicySpec{}).Means("shop", "apps", "Deployment", "", "a", nil) {
		t.Error("a policy without gates means an object")
	}
}

func TestTheRecordKeepsWhatAPolicyNoLongerNames(t *testing.T) {
	rule := func(name string) policy.GateEntry {
		return policy.GateEntry{GateRule: policy.GateRule{APIVersion: "v1", Kind: "X", Name: name, Knob: "crossplane"}, Account: "maint-runner"}
	}
	leaving := func(e policy.GateEntry) policy.GateEntry { e.Leaving = true; return e }
	has := func(r policy.GateRecord, want ...policy.GateEntry) {
		t.Helper()
		if !r.Same(policy.GateRecord{Entries: want}) {
			t.Errorf("%+v, want %+v", r.Entries, want)
		}
	}
	r := policy.GateRecord{Policy: "p"}.Next([]policy.GateEntry{rule("a"), rule("b")})
	has(r, rule("a"), rule("b"))
	r = r.Next([]policy.GateEntry{rule("b")})
	has(r, rule("b"), leaving(rule("a")))
	has(r.Next([]policy.GateEntry{rule("a"), rule("b")}), rule("a"), rule("b")) // named again
	has(policy.GateRecord{Entries: r.InForce()}, rule("b"))
	other := rule("b")
	other.Account = "gatekeeper"
	has(r.Next([]policy.GateEntry{other}), other, leaving(rule("b")), leaving(rule("a")))
	has(r.Next(nil), leaving(rule("b")), leaving(rule("a")))
}

func TestAGateAsksThePoliciesThatNameItWhereverTheyAre(t *testing.T) {
	b := policy.NewResolver("maint-system")
	for _, namespace := range []string{"a", "b"} {
		b.PutPolicy(policy.State{Namespace: namespace, Name: "p", Spec: policy.PolicySpec{Strategy: schedule.Permissive}})
	}
	start := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	q := policy.Query{Namespace: "b", Gates: []policy.PolicyRef{{Name: "p", Namespace: "a"}, {Name: "p", Namespace: "b"}}}
	if v := b.Gate(q).Verdict(start); !v.Permitted || b.Strategy(q, start) != schedule.ByPolicy || !b.Gated(q) {
		t.Errorf("%+v", v)
	}
	b.PutPolicy(policy.State{Namespace: "a", Name: "p", Spec: policy.PolicySpec{Strategy: schedule.Restrictive}})
	if v := b.Gate(q).Verdict(start); v.Permitted || !v.Ready {
		t.Errorf("%+v", v)
	}
	q.Own = policy.StanzaText{Strategy: schedule.Permissive}
	if v := b.Gate(q).Verdict(start); !v.Permitted {
		t.Errorf("its own stanza comes first: %+v", v)
	}
}

func TestARuleSaysWhatItMeansAndWhereItLooks(t *testing.T) {
	for _, c := range []struct {
		rule        policy.GateRule
		says, scope string
	}{
		{policy.GateRule{Kind: "Kustomization", Name: "apps"}, "Kustomization/apps", "shop"},
		{policy.GateRule{Kind: "Kustomization", Selector: &selector.LabelSelector{}}, "Kustomization of a selector", "shop"},
		{policy.GateRule{Kind: "Kustomization", Namespace: "flux"}, "every Kustomization", "flux"},
	} {
		if got := c.rule.String(); got != c.says {
			t.Errorf("%q, want %q", got, c.says)
		}
		if got := c.rule.GateScope("shop"); got != c.scope {
			t.Errorf("%s looks in %q, want %q", c.says, got, c.scope)
		}
	}
}

func TestTheKnobOfARecordThatSomebodyEdited(t *testing.T) {
	rule := policy.GateRule{APIVersion: "kustomize.toolkit.fluxcd.io/v1", Kind: "Kustomization", Name: "apps", Knob: "flux"}
	if _, err := rule.GateKnob(); err != nil {
		t.Error(err)
	}
	rule.Knob = map[string]any{"path": "spec.mode", "closed": "manual"}
	if _, err := rule.GateKnob(); err == nil || !strings.Contains(err.Error(), "knob of Kustomization/apps: open is missing") {
		t.Errorf("half a knob: %v", err)
	}
	rule.Knob = "deployment"
	if _, err := rule.GateKnob(); err == nil || !strings.HasPrefix(err.Error(), "knob of Kustomization/apps: ") {
		t.Errorf("one of another kind: %v", err)
	}
}

func TestWhoWorksTheGatesOfAPolicy(t *testing.T) {
	spec := policy.PolicySpec{Gates: []policy.GateRule{{Kind: "A"}, {Kind: "B"}}}
	for account, want := range map[string]string{"": policy.DefaultServiceAccount, "gatekeeper": "gatekeeper"} {
		spec.ServiceAccountName = account
		for i, e := range spec.GateEntries() {
			if e.Account != want || e.Kind != spec.Gates[i].Kind || e.Leaving {
				t.Errorf("%q: %+v", account, e)
			}
		}
	}
}

func TestWhetherTwoRecordsSayTheSame(t *testing.T) {
	entry := policy.GateEntry{GateRule: policy.GateRule{Kind: "A", Knob: "flux"}, Account: "a"}
	for name, c := range map[string]struct {
		edit func(*policy.GateEntry)
		want bool
	}{
		"nothing differs":     {func(*policy.GateEntry) {}, true},
		"one is leaving":      {func(e *policy.GateEntry) { e.Leaving = true }, false},
		"another account":     {func(e *policy.GateEntry) { e.Account = "b" }, false},
		"another kind":        {func(e *policy.GateEntry) { e.Kind = "B" }, false},
		"what cannot be read": {func(e *policy.GateEntry) { e.Knob = func() {} }, false},
	} {
		other := entry
		c.edit(&other)
		if got := (policy.GateRecord{Entries: []policy.GateEntry{entry}}).Same(policy.GateRecord{Entries: []policy.GateEntry{other}}); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	broken := policy.GateRecord{Entries: []policy.GateEntry{{GateRule: policy.GateRule{Knob: func() {}}}}}
	if broken.Same(broken) {
		t.Error("what cannot be written is like nothing, not even like itself")
	}
}
