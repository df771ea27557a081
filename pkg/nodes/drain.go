package nodes

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
)

// fulfills says whether what a request asks to leave has left: nothing, the pods of a drain
// that its status names as done, or those of passes on record.
func (c *Cordon) fulfills(o *drain.Options, drained string) bool {
	return o == nil || drained == drainIdentity(o) || c.covers(*o)
}

// drainIdentity names the pods that a drain is about; empty: no drain.
func drainIdentity(o *drain.Options) string {
	if o == nil {
		return ""
	}
	d := drain.PassOf(*o, false)
	d.EvictionFilters = drain.SortedFilters(d.EvictionFilters)
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
		return cmp.Or(a.since.Compare(b.since), cmp.Compare(b.Request.Priority, a.Request.Priority), cmp.Compare(a.Request.Requestor, b.Request.Requestor))
	})
	p := pass{options: *members[0].Request.Drain, since: members[0].since}
	for _, m := range members {
		merged, ok := drain.Merge(p.options, *m.Request.Drain)
		if !ok {
			p.others = append(p.others, m)
			continue
		}
		p.options = merged
		p.members = append(p.members, m)
	}
	return p, true
}
