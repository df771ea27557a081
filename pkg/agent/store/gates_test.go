package store

import (
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// A gate remembers what it found, and finding it may take seconds: plans that ask the same share one.
func TestPlansThatAskTheSameShareAGate(t *testing.T) {
	g := NewGates("maint-system")
	put := func(namespace, name string, strategy ...schedule.Strategy) {
		g.Change(func(r *policy.Resolver) {
			r.PutPolicy(policy.State{Namespace: namespace, Name: name, Spec: policy.PolicySpec{Strategy: append(strategy, schedule.Permissive)[0]}})
		})
	}
	put("shop", "a")
	put("shop", "b")
	asks := func(names ...string) policy.Query {
		q := policy.Query{Namespace: "shop"}
		for _, name := range names {
			q.Policies = append(q.Policies, policy.PolicyRef{Name: name})
		}
		return q
	}
	var one, two, other policy.KeptGate
	first := g.Of(&one, asks("a", "b"))
	if first == nil || g.Of(&two, asks("a", "b")) != first || g.Ask(asks("a", "b")) != first {
		t.Error("the same question has several gates")
	}
	if g.Of(&other, asks("a")) == first {
		t.Error("another question has the same gate")
	}
	if put("bank", "a"); g.Of(&one, asks("a", "b")) != first {
		t.Error("an edit in another namespace changes the gate")
	}
	if put("shop", "c", schedule.Restrictive); g.Of(&one, asks("a", "b")) != first {
		t.Error("an edit of another policy changes the gate")
	}
	put("shop", "b", schedule.Restrictive)
	if again := g.Of(&one, asks("a", "b")); again == first || g.Of(&two, asks("a", "b")) != again {
		t.Error("after an edit there is no new gate, or one for each plan")
	}
}
