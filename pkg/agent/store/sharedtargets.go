package store

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// sharedTargets are the plans of each target that a plan names.
type sharedTargets struct {
	plans   map[string][]types.NamespacedName // by target, in the order of their names
	of      map[types.NamespacedName]string   // the target of a plan
	changed []types.NamespacedName            // plans of which another one is the first beside them now
}

func newSharedTargets() sharedTargets {
	return sharedTargets{plans: map[string][]types.NamespacedName{}, of: map[types.NamespacedName]string{}}
}

// put notes the target of a plan; empty: it has none, or is gone.
func (s *sharedTargets) put(k types.NamespacedName, target string) {
	was := s.of[k]
	if was == target {
		return
	}
	if was != "" {
		s.edit(was, func(list []types.NamespacedName) []types.NamespacedName {
			return slices.DeleteFunc(list, func(other types.NamespacedName) bool { return other == k })
		})
	}
	delete(s.of, k)
	if target == "" {
		return
	}
	s.of[k] = target
	s.edit(target, func(list []types.NamespacedName) []types.NamespacedName {
		at, _ := slices.BinarySearchFunc(list, k, byName)
		return slices.Insert(list, at, k)
	})
}

// edit changes the plans of a target. The first two of them say who stands first beside each.
func (s *sharedTargets) edit(target string, change func([]types.NamespacedName) []types.NamespacedName) {
	before := firstTwo(s.plans[target])
	list := change(s.plans[target])
	if s.plans[target] = list; len(list) == 0 {
		delete(s.plans, target)
	}
	if !slices.Equal(before, firstTwo(list)) {
		s.changed = append(s.changed, list...)
	}
}

// firstTwo are a copy of the first two of a list.
func firstTwo(list []types.NamespacedName) []types.NamespacedName {
	return slices.Clone(list[:min(len(list), 2)])
}

func byName(a, b types.NamespacedName) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// SharesTarget is the first of the other plans of its namespace with a plan's target; empty: none.
func (p *Plans) SharesTarget(k types.NamespacedName) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, other := range p.targets.plans[p.targets.of[k]] {
		if other != k {
			return other.Name
		}
	}
	return ""
}

// SharingChanged are the plans of which something else is to be said of their shared targets since it
// was asked last.
func (p *Plans) SharingChanged() []types.NamespacedName {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := p.targets.changed
	p.targets.changed = nil
	return out
}
