package schedule

import (
	"slices"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/schedule/internal/civil"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule/internal/overlap"
)

// course is permissive or restrictive at every second. Timelines are courses,
// and what is made of several.
type course interface {
	open(t int64) bool
	change(t int64, e *effort) int64 // the first second after t at which it is not as at t, or never
	since(t int64, e *effort) int64  // the second from which on it is as at t, or the beginning
	explain(t int64) explanation
	ready(t int64) bool
}

func stateOf(c course, t time.Time) State {
	second, ahead := t.Unix(), newEffort(courseEffort)
	since, until := sinceOf(c, second), c.change(second, ahead)
	why := c.explain(second)
	if ahead.later(until) {
		why.text += NotKnownYet
	}
	state := State{Open: c.open(second), Reason: why.text, Cause: why.cause, HasSince: since != civil.Beginning, HasUntil: until != civil.Never}
	if state.HasSince {
		state.Since = time.Unix(since, 0).UTC()
	}
	if state.HasUntil {
		state.Until = time.Unix(until, 0).UTC()
	}
	return state
}

// constant never changes.
type constant struct {
	permits bool
	why     explanation
}

func (c *constant) open(int64) bool             { return c.permits }
func (c *constant) change(int64, *effort) int64 { return civil.Never }
func (c *constant) since(int64, *effort) int64  { return civil.Beginning }
func (c *constant) explain(int64) explanation   { return c.why }
func (c *constant) ready(int64) bool            { return true }

// unready is restrictive since nobody knows.
type unready struct{ why explanation }

func (u *unready) open(int64) bool             { return false }
func (u *unready) change(int64, *effort) int64 { return civil.Never }
func (u *unready) since(int64, *effort) int64  { return civil.Beginning }
func (u *unready) explain(int64) explanation   { return u.why }
func (u *unready) ready(int64) bool            { return false }

// prefix is one thing up to an instant, and another course from there on.
// Where the two agree at the seam, there is no change.
type prefix struct {
	permits bool
	until   int64
	then    course
	why     explanation
}

// newPrefix rounds a fraction of a second up: before it, the first part holds.
func newPrefix(permits bool, until time.Time, then course, why explanation) *prefix {
	second := until.Unix()
	if until.Nanosecond() > 0 {
		second++
	}
	return &prefix{permits: permits, until: second, then: then, why: why}
}

func (p *prefix) open(t int64) bool {
	if t < p.until {
		return p.permits
	}
	return p.then.open(t)
}

func (p *prefix) change(t int64, e *effort) int64 {
	switch {
	case t >= p.until:
		return p.then.change(t, e)
	case p.until == civil.Never || p.then.open(p.until) != p.permits:
		return p.until
	}
	return p.then.change(p.until, e)
}

func (p *prefix) since(t int64, e *effort) int64 {
	if t < p.until {
		return civil.Beginning
	}
	since := p.then.since(t, e)
	switch {
	case since > p.until:
		return since
	case p.then.open(t) == p.permits:
		return civil.Beginning
	}
	return p.until
}

func (p *prefix) explain(t int64) explanation {
	if t < p.until {
		return p.why
	}
	return p.then.explain(t)
}

func (p *prefix) ready(t int64) bool { return t < p.until || p.then.ready(t) }

// every is open while all of several courses are.
type every []course

func (all every) open(t int64) bool {
	for _, c := range all {
		if !c.open(t) {
			return false
		}
	}
	return true
}

func (all every) ready(t int64) bool {
	for _, c := range all {
		if !c.ready(t) {
			return false
		}
	}
	return true
}

// explain is that of the first which is not ready, else of the first which is
// closed, else of the first.
func (all every) explain(t int64) explanation {
	for _, c := range all {
		if !c.ready(t) {
			return c.explain(t)
		}
	}
	for _, c := range all {
		if !c.open(t) {
			return c.explain(t)
		}
	}
	return all[0].explain(t)
}

func (all every) change(t int64, e *effort) int64 {
	if all.open(t) {
		first := int64(civil.Never)
		for _, c := range all {
			first = min(first, c.change(t, e))
		}
		return first
	}
	finder, horizon := overlapOf(all, t, e), t+civil.CycleSeconds
	for i := 0; t <= horizon && e.spend(len(all)); i++ {
		if i%betweenMeetings == 0 {
			t = finder.Next(t, horizon)
		} else {
			t = all.nextOpening(t, e)
		}
		if t == civil.Never || all.open(t) {
			return t
		}
	}
	e.endAhead(t)
	return civil.Never
}

// nextOpening is when the last of those that are closed at t has opened.
func (all every) nextOpening(t int64, e *effort) int64 {
	last := t
	for _, c := range all {
		if !c.open(t) {
			last = max(last, c.change(t, e))
		}
	}
	return last
}

func (all every) since(t int64, e *effort) int64 {
	if all.open(t) {
		last := int64(civil.Beginning)
		for _, c := range all {
			last = max(last, c.since(t, e))
		}
		return last
	}
	finder, horizon := overlapOf(all, civil.Beginning, e), longAgo(t)
	for i := 0; t >= horizon && e.spend(len(all)); i++ {
		if i%betweenMeetings == 0 {
			t = finder.Last(t, horizon)
		} else if t = all.lastClosing(t, e); t != civil.Beginning {
			t--
		}
		if t == civil.Beginning {
			return t
		} else if all.open(t) {
			return t + 1
		}
	}
	e.endBack(t)
	return civil.Beginning
}

// lastClosing is when the first of those that are closed at t closed.
func (all every) lastClosing(t int64, e *effort) int64 {
	first := t
	for _, c := range all {
		if !c.open(t) {
			first = min(first, c.since(t, e))
		}
	}
	return first
}

// sameCourse says whether two courses are made of the same timelines in the same way.
func sameCourse(a, b course) bool {
	switch a := a.(type) {
	case *constant:
		o, ok := b.(*constant)
		return ok && *a == *o
	case *prefix:
		o, ok := b.(*prefix)
		return ok && a.permits == o.permits && a.until == o.until && a.why == o.why && sameCourse(a.then, o.then)
	case every:
		o, ok := b.(every)
		return ok && slices.EqualFunc(a, o, sameCourse)
	}
	tl, ok := a.(*Timeline)
	return ok && course(tl) == b
}

// betweenMeetings is how many openings are followed one by one before it is asked again whether
// the windows meet at all (a guess).
const betweenMeetings = 64

// overlapOf finds when the windows of courses may meet from an instant on. What is no timeline, and
// what exclusions take out, is left aside: where it finds nothing, nothing is open.
func overlapOf(all every, from int64, e *effort) *overlap.Finder {
	return overlap.Of(permitsOf(nil, all, from), e.spend)
}

func permitsOf(list []overlap.Source, c course, from int64) []overlap.Source {
	switch c := c.(type) {
	case *prefix:
		if from >= c.until {
			return permitsOf(list, c.then, from)
		}
	case every:
		for _, one := range c {
			list = permitsOf(list, one, from)
		}
	case *Timeline:
		if p, ok := c.permit.everyWeek(); ok && !c.always {
			return append(list, p)
		}
	}
	return list
}

// permits are windows that repeat every week.
type permits struct{ union }

// everyWeek is a union of windows that is open whenever this one is, and repeats every week: those
// of other rules open every day. False: there is none.
func (u *union) everyWeek() (permits, bool) {
	p := permits{union{weekly: u.weekly}}
	for _, s := range u.others {
		w, ok := s.(*windows)
		if ok {
			w, ok = w.everyDay()
		}
		if !ok {
			return permits{}, false
		}
		p.weekly = append(p.weekly[:len(p.weekly):len(p.weekly)], w)
	}
	return p, true
}

// everyDay has the windows open on every day, at their times.
func (w *windows) everyDay() (*windows, bool) {
	c := w.opening.clock
	if within, ok := c.(*bounded); ok {
		c = within.clock
	}
	daily := &civil.Wall{}
	switch c := c.(type) {
	case *civil.Wall:
		daily.Times = c.Times
	case *civil.Stride:
		daily.Times = c.Times
	case *civil.Setpos:
		daily.Times = c.Times
	default:
		return nil, false
	}
	opening := *w.opening
	opening.clock, opening.until, opening.skip = daily, civil.Never, exceptions{}
	return newWindows(&opening, w.length, w.onWall), true
}

func (p permits) Contains(t int64) bool { return p.contains(t) }
func (p permits) Opens(t int64) int64   { return p.opens(t) }
func (p permits) Closed(t int64) int64  { return p.closed(t) }

func (p permits) Repeats(t int64) (start, end int64) {
	calm := p.repeating(t)
	return calm.start, calm.end
}

func (p permits) Offsets(to []int64, at int64) []int64 {
	for i, w := range p.weekly {
		if i == 0 || w.opening.zone != p.weekly[i-1].opening.zone {
			to = append(to, w.opening.zone.at(at).offset)
		}
	}
	return to
}
