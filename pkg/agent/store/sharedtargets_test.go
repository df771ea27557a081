package store

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// A plan hears of another one with its target, of the first by name alone, and only when that is
// another one than before.
func TestWhoSharesATarget(t *testing.T) {
	p := NewPlans()
	key := func(name string) types.NamespacedName { return types.NamespacedName{Namespace: "shop", Name: name} }
	for _, step := range []struct {
		plan, target string
		changed      []string
		first        map[string]string // by plan
	}{
		{"b", "shop/Deployment/web", []string{"b"}, map[string]string{"b": ""}},
		{"c", "shop/Deployment/web", []string{"b", "c"}, map[string]string{"b": "c", "c": "b"}},
		{"d", "shop/Deployment/web", nil, map[string]string{"b": "c", "c": "b", "d": "b"}},
		{"d", "shop/Deployment/web", nil, map[string]string{"d": "b"}},
		{"a", "shop/Deployment/web", []string{"a", "b", "c", "d"}, map[string]string{"a": "b", "b": "a", "d": "a"}},
		{"a", "shop/Deployment/db", []string{"b", "c", "d", "a"}, map[string]string{"a": "", "b": "c", "d": "b"}},
		{"c", "", []string{"b", "d"}, map[string]string{"b": "d", "c": "", "d": "b"}},
		{"d", "", []string{"b"}, map[string]string{"b": ""}},
		{"b", "", nil, map[string]string{"b": ""}},
	} {
		p.targets.put(key(step.plan), step.target)
		var changed []string
		for _, k := range p.SharingChanged() {
			changed = append(changed, k.Name)
		}
		if !slices.Equal(changed, step.changed) {
			t.Errorf("after %s has %q, these are looked at again: %q, want %q", step.plan, step.target, changed, step.changed)
		}
		for name, want := range step.first {
			if got := p.SharesTarget(key(name)); got != want {
				t.Errorf("after %s has %q, %s shares its target with %q, want %q", step.plan, step.target, name, got, want)
			}
		}
	}
	if len(p.targets.plans) != 1 || len(p.targets.of) != 1 { // plan a is left
		t.Errorf("what is kept of targets: %v, %v", p.targets.plans, p.targets.of)
	}
}
