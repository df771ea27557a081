package plan_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

func TestARuleMeansObjectsByNameAndLabels(t *testing.T) {
	selector := func(key, operator string, values ...string) *plan.LabelSelector {
		return &plan.LabelSelector{MatchExpressions: []plan.SelectorRequirement{{Key: key, Operator: operator, Values: values}}}
	}
	labels := map[string]string{"tier": "prod", "empty": ""}
	for _, c := range []struct {
		name string
		rule plan.GateRule
		want bool
	}{
		{"neither name nor selector", plan.GateRule{}, true},
		{"its name", plan.GateRule{Name: "a"}, true},
		{"another name", plan.GateRule{Name: "b"}, false},
		{"an empty selector", plan.GateRule{Selector: &plan.LabelSelector{}}, true},
		{"a label", plan.GateRule{Selector: &plan.LabelSelector{MatchLabels: map[string]string{"tier": "prod"}}}, true},
		{"another value", plan.GateRule{Selector: &plan.LabelSelector{MatchLabels: map[string]string{"tier": "dev"}}}, false},
		{"an empty value that is not there", plan.GateRule{Selector: &plan.LabelSelector{MatchLabels: map[string]string{"absent": ""}}}, false},
		{"In", plan.GateRule{Selector: selector("tier", "In", "dev", "prod")}, true},
		{"In, absent", plan.GateRule{Selector: selector("absent", "In", "")}, false},
		{"NotIn", plan.GateRule{Selector: selector("tier", "NotIn", "prod")}, false},
		{"NotIn, absent", plan.GateRule{Selector: selector("absent", "NotIn", "x")}, true},
		{"Exists", plan.GateRule{Selector: selector("empty", "Exists")}, true},
		{"DoesNotExist", plan.GateRule{Selector: selector("empty", "DoesNotExist")}, false},
		{"an operator that is none", plan.GateRule{Selector: selector("tier", "Is", "prod")}, false},
	} {
		if got := c.rule.Matches("a", labels); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}

func TestTheRecordKeepsWhatAPolicyNoLongerNames(t *testing.T) {
	rule := func(name string) plan.GateEntry {
		return plan.GateEntry{GateRule: plan.GateRule{APIVersion: "v1", Kind: "X", Name: name, Knob: "crossplane"}, Account: "maint-runner"}
	}
	leaving := func(e plan.GateEntry) plan.GateEntry { e.Leaving = true; return e }
	has := func(r plan.GateRecord, want ...plan.GateEntry) {
		t.Helper()
		if !r.Same(plan.GateRecord{Entries: want}) {
			t.Errorf("%+v, want %+v", r.Entries, want)
		}
	}
	r := plan.GateRecord{Policy: "p"}.After([]plan.GateEntry{rule("a"), rule("b")})
	has(r, rule("a"), rule("b"))
	r = r.After([]plan.GateEntry{rule("b")})
	has(r, rule("b"), leaving(rule("a")))
	has(r.After([]plan.GateEntry{rule("a"), rule("b")}), rule("a"), rule("b")) // named again
	has(plan.GateRecord{Entries: r.InForce()}, rule("b"))
	other := rule("b")
	other.Account = "gatekeeper"
	has(r.After([]plan.GateEntry{other}), other, leaving(rule("b")), leaving(rule("a")))
	has(r.After(nil), leaving(rule("b")), leaving(rule("a")))
}

func TestAGateAsksThePoliciesThatNameItWhereverTheyAre(t *testing.T) {
	b := plan.NewBook("maint-system")
	for _, namespace := range []string{"a", "b"} {
		b.PutPolicy(plan.PolicyState{Namespace: namespace, Name: "p", Spec: plan.PolicySpec{Strategy: schedule.Permissive}})
	}
	start := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	q := plan.Question{Namespace: "b", Gates: []plan.PolicyRef{{Name: "p", Namespace: "a"}, {Name: "p", Namespace: "b"}}}
	if v := b.Gate(q).Verdict(start); !v.Permitted || b.Strategy(q, start) != schedule.ByPolicy || !b.Gated(q) {
		t.Errorf("%+v", v)
	}
	b.PutPolicy(plan.PolicyState{Namespace: "a", Name: "p", Spec: plan.PolicySpec{Strategy: schedule.Restrictive}})
	if v := b.Gate(q).Verdict(start); v.Permitted || !v.Ready {
		t.Errorf("%+v", v)
	}
	q.Own = plan.StanzaText{Strategy: schedule.Permissive}
	if v := b.Gate(q).Verdict(start); !v.Permitted {
		t.Errorf("its own stanza comes first: %+v", v)
	}
}

// What Kubernetes picks by a selector, Matches picks: it is asked for every pod and
// budget, and does without what reading costs.
func TestASelectorPicksWhatKubernetesPicks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.SampledFrom([]string{"a", "b", "c", ""})
		key := rapid.SampledFrom([]string{"k", "l", "example.com/m"})
		s := plan.LabelSelector{MatchLabels: rapid.MapOfN(key, word, 0, 2).Draw(t, "matchLabels")}
		for range rapid.IntRange(0, 3).Draw(t, "expressions") {
			r := plan.SelectorRequirement{Key: key.Draw(t, "key"), Operator: rapid.SampledFrom([]string{"In", "NotIn", "Exists", "DoesNotExist"}).Draw(t, "operator")}
			if r.Operator == "In" || r.Operator == "NotIn" {
				r.Values = rapid.SliceOfN(word, 1, 3).Draw(t, "values")
			}
			s.MatchExpressions = append(s.MatchExpressions, r)
		}
		of := rapid.MapOfN(key, word, 0, 3).Draw(t, "labels")
		read, err := s.Read()
		if err != nil {
			t.Fatal(err)
		}
		if ours, theirs := s.Matches(of), read.Matches(of); ours != theirs {
			t.Fatalf("%s of %v: %t, Kubernetes says %t", read, of, ours, theirs)
		}
	})
}
