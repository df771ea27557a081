package drain

import (
	"cmp"
	"slices"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
)

// Includes says whether a drain is about every pod that another one is about.
func (o Options) Includes(other Options) bool {
	return (o.Force || !other.Force) && (o.DeleteEmptyDir || !other.DeleteEmptyDir) && (o.WaitForVolumes || !other.WaitForVolumes) &&
		(o.PodSelector == "" || o.PodSelector == other.PodSelector) && includesFilters(o.EvictionFilters, other.EvictionFilters)
}

func includesFilters(a, b []EvictionFilter) bool {
	if len(a) == 0 {
		return true
	}
	return len(b) > 0 && !slices.ContainsFunc(b, func(f EvictionFilter) bool { return !slices.Contains(a, f) })
}

// Merge is one drain for two that are asked for, where one can serve both without
// doing to any pod what nobody asked: the one that includes the other, with the first
// one's rules for time, or both lists of filters where nothing else differs.
func Merge(first, second Options) (Options, bool) {
	switch {
	case first.Includes(second):
		return first, true
	case !sameRules(first, second):
		return first, false
	case second.Includes(first):
		return second, true
	case first.PodSelector == second.PodSelector && first.Force == second.Force &&
		first.DeleteEmptyDir == second.DeleteEmptyDir && first.WaitForVolumes == second.WaitForVolumes:
		out := first
		out.EvictionFilters = SortedFilters(slices.Concat(first.EvictionFilters, second.EvictionFilters))
		return out, true
	}
	return first, false
}

// sameRules says whether two drains agree on what happens in time.
func sameRules(a, b Options) bool {
	return a.OnTimeout == b.OnTimeout && sameSpan(a.Timeout, b.Timeout) &&
		sameSpan(a.GracePeriod, b.GracePeriod) && sameSpan(a.PodTimeout, b.PodTimeout)
}

func sameSpan(a, b *document.Duration) bool {
	return (a == nil) == (b == nil) && (a == nil || a.Duration == b.Duration)
}

// SortedFilters are filters in their order, each once.
func SortedFilters(filters []EvictionFilter) []EvictionFilter {
	return slices.Compact(slices.SortedFunc(slices.Values(filters), func(a, b EvictionFilter) int {
		return cmp.Compare(a.ByResourceNameRegex, b.ByResourceNameRegex)
	}))
}
