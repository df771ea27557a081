package nodes

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
)

// covers says whether a pass that is done was about all pods that o asks to
// leave: "no more than was drained". How long each may take and what happens then
// does not count, as the pods are gone; where some were left by onTimeout skip, it
// covers only those who would have left them too.
func (d Drained) covers(o drain.Options) bool {
	if d.Left && o.OnTimeout != drain.TimeoutSkip {
		return false
	}
	return wider(d.Options, o)
}

// wider says whether a is about every pod that b is about.
func wider(a, b drain.Options) bool {
	return (a.Force || !b.Force) && (a.DeleteEmptyDir || !b.DeleteEmptyDir) && (a.WaitForVolumes || !b.WaitForVolumes) &&
		(a.PodSelector == "" || a.PodSelector == b.PodSelector) && widerFilters(a.EvictionFilters, b.EvictionFilters)
}

func widerFilters(a, b []drain.EvictionFilter) bool {
	if len(a) == 0 {
		return true
	}
	return len(b) > 0 && !slices.ContainsFunc(b, func(f drain.EvictionFilter) bool { return !slices.Contains(a, f) })
}

// merge is one drain for two that are asked for, where one can serve both without
// doing to any pod what nobody asked: the wider of the two with the first one's
// rules for time, or both lists of filters where nothing else differs.
func merge(first, second drain.Options) (drain.Options, bool) {
	switch {
	case wider(first, second):
		return first, true
	case !sameRules(first, second):
		return first, false
	case wider(second, first):
		return second, true
	case first.PodSelector == second.PodSelector && first.Force == second.Force &&
		first.DeleteEmptyDir == second.DeleteEmptyDir && first.WaitForVolumes == second.WaitForVolumes:
		out := first
		out.EvictionFilters = sortedFilters(append(slices.Clone(first.EvictionFilters), second.EvictionFilters...))
		return out, true
	}
	return first, false
}

// sameRules says whether two drains agree on what happens in time.
func sameRules(a, b drain.Options) bool {
	return a.OnTimeout == b.OnTimeout && sameSpan(a.Timeout, b.Timeout) &&
		sameSpan(a.GracePeriod, b.GracePeriod) && sameSpan(a.PodTimeout, b.PodTimeout)
}

func sameSpan(a, b *document.Duration) bool {
	return (a == nil) == (b == nil) && (a == nil || a.Duration == b.Duration)
}

func sortedFilters(filters []drain.EvictionFilter) []drain.EvictionFilter {
	slices.SortFunc(filters, func(a, b drain.EvictionFilter) int { return compare(a.ByResourceNameRegex, b.ByResourceNameRegex) })
	return slices.Compact(filters)
}

// passOf is what a pass over such options was about, without its rules for time.
func passOf(o drain.Options, left bool) Drained {
	o.Timeout, o.GracePeriod, o.PodTimeout, o.OnTimeout = nil, nil, nil, ""
	return Drained{Options: o, Left: left}
}

// maxPasses bounds the record of what has left a node. Passes that another covers
// are not kept, so more than this need that many requests with different pods; one
// that is forgotten is drained again, which finds nothing.
const maxPasses = 10

// remember adds a pass to those that are done.
func remember(passes []Drained, d Drained) []Drained {
	if slices.ContainsFunc(passes, func(p Drained) bool { return wider(p.Options, d.Options) && (!p.Left || d.Left) }) {
		return passes
	}
	kept := slices.DeleteFunc(slices.Clone(passes), func(p Drained) bool { return wider(d.Options, p.Options) && (!d.Left || p.Left) })
	kept = append(kept, d)
	return kept[max(len(kept)-maxPasses, 0):]
}

// drainIdentity names the pods that a drain is about; empty: no drain.
func drainIdentity(o *drain.Options) string {
	if o == nil {
		return ""
	}
	d := passOf(*o, false)
	d.EvictionFilters = sortedFilters(slices.Clone(d.EvictionFilters))
	return shortHash([]byte(compact(d)))
}

func orderKey(uid string, o drain.Options, since time.Time) string {
	return fmt.Sprintf("%s-%d", shortHash([]byte(uid+compact(o))), since.Unix())
}

// member is one for whom pods leave, and since when.
type member struct {
	*Asked
	since time.Time
}

// pass is one drain for some requests, and those whom it cannot serve as well.
type pass struct {
	options drain.Options
	since   time.Time
	members []member
	others  []member
}

func (p pass) has(a *Asked) bool {
	return slices.ContainsFunc(p.members, func(m member) bool { return m.Asked == a })
}

// passing puts into one pass all whom the first of them, in time and then in
// order, can take along. For the members alone it says the same again, and one
// who comes later and is covered changes nothing: a drain that runs goes on.
func passing(members []member) (pass, bool) {
	if len(members) == 0 {
		return pass{}, false
	}
	slices.SortFunc(members, func(a, b member) int {
		return cmp.Or(a.since.Compare(b.since), cmp.Compare(b.Request.Priority, a.Request.Priority), compare(a.Request.Requestor, b.Request.Requestor))
	})
	p := pass{options: *members[0].Request.Drain, since: members[0].since}
	for _, m := range members {
		merged, ok := merge(p.options, *m.Request.Drain)
		if !ok {
			p.others = append(p.others, m)
			continue
		}
		p.options = merged
		p.members = append(p.members, m)
	}
	return p, true
}
