package schedule

import (
	"fmt"
	"sort"
	"strings"

	"github.com/kubectl-maint/kubectl-maint/pkg/schedule/internal/civil"
)

// A policy may exclude so much: one calendar as large as a document may be, or several that
// are not. More would make every look at it slow, and few policies could fill the memory of
// the agent.
const (
	mostCalendars = 20     // of a policy, each counted once
	mostRecurring = 4000   // events of its calendars that recur; their EXDATEs, and what their rules take to follow, are some more
	mostDates     = 40_000 // dates of its calendars

	exceptionsAtOnce = 20  // EXDATEs that cost as much as an event
	stepsAtOnce      = 500 // steps of a rule that do, see civil.Wall
)

// exclusions are all times taken out of a timeline, and why.
type exclusions struct {
	union union
	parts []part
	about string // before every reason
}

// part is what the dates of a policy, or one calendar, exclude.
type part struct {
	*dated
	otherwise string // the reason of an event without one
}

// dated are times on the clock of a zone.
type dated struct {
	given  []reasoned // by start
	reach  []int64    // the latest end among given up to here
	merged spans      // given, without reasons
	made   []reasonedSource
}

type reasoned struct {
	span
	words string
}

type reasonedSource struct {
	source
	words string
}

func (d *dated) add(e *event, policy *zone) {
	words := strings.TrimSpace(e.reason)
	given, made := e.sources(policy)
	for _, s := range given {
		d.given = append(d.given, reasoned{s, words})
	}
	if made != nil {
		d.made = append(d.made, reasonedSource{made, words})
	}
}

// seal prepares what was added for asking.
func (d *dated) seal() {
	sort.SliceStable(d.given, func(i, j int) bool { return d.given[i].start < d.given[j].start })
	list := make([]span, len(d.given))
	reach := int64(civil.Beginning)
	for i, s := range d.given {
		list[i] = s.span
		reach = max(reach, s.end)
		d.reach = append(d.reach, reach)
	}
	d.merged = newSpans(list)
}

// givenAt is what is given for an instant, of all the one that begins last; nil if nothing is.
func (d *dated) givenAt(t int64) *reasoned {
	for i := sort.Search(len(d.given), func(i int) bool { return d.given[i].start > t }) - 1; i >= 0 && d.reach[i] > t; i-- {
		if d.given[i].end > t {
			return &d.given[i]
		}
	}
	return nil
}

// seal prepares the parts for asking.
func (x *exclusions) seal() {
	var sources []source
	for _, p := range x.parts {
		if len(p.merged) > 0 {
			sources = append(sources, p.merged)
		}
		for _, s := range p.made {
			sources = append(sources, s.source)
		}
	}
	x.union = newUnion(sources...)
}

// load is what the calendars of a policy hold.
type load struct{ calendars, recurring, dates int }

// add says whether a calendar more is not too much.
func (l *load) add(c *Calendar) bool {
	l.calendars++
	for i := range c.events {
		e := &c.events[i]
		l.dates += 1 + len(e.more)
		if e.rule != nil {
			l.recurring += 1 + len(e.skip)/exceptionsAtOnce + e.rule.load(e.start.second)
		}
	}
	return l.calendars <= mostCalendars && l.recurring <= mostRecurring && l.dates <= mostDates
}

// load is how many events more a rule costs as much as: to follow it for 400 years, and to count off COUNT.
func (r *rrule) load(start int64) int {
	counted, steps := 1000, r.clockFrom(start).Steps()
	switch {
	case len(r.setpos) > 0:
		counted = 20
	case r.subDaily():
		counted = 200
	}
	return r.count/counted + steps*min(max(r.count, 1), civil.MostCycles)/stepsAtOnce
}

func (l *load) refusal() string {
	return fmt.Sprintf("takes at least %d calendars with %d recurring events and %d dates in all; at most %d, %d and %d are allowed: use fewer, or leave out what is over", l.calendars, l.recurring, l.dates, mostCalendars, mostRecurring, mostDates)
}

// reason says why an instant is excluded, or nothing where it is not.
func (x *exclusions) reason(t int64) string {
	var last *reasoned
	var otherwise string
	for _, p := range x.parts {
		if given := p.givenAt(t); given != nil && (last == nil || given.start >= last.start) {
			last, otherwise = given, p.otherwise
		}
	}
	if last != nil {
		return x.words(last.words, otherwise)
	}
	for _, p := range x.parts {
		for _, s := range p.made {
			if _, ok := s.until(t); ok {
				return x.words(s.words, p.otherwise)
			}
		}
	}
	return ""
}

func (x *exclusions) words(words, otherwise string) string {
	if words == "" {
		words = otherwise
	}
	if words == "" {
		return x.about + "excluded"
	}
	return x.about + "excluded: " + words
}
