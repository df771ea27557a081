package schedule

import "github.com/kubectl-maint/kubectl-maint/pkg/schedule/internal/civil"

// union is several sources as one. Those that repeat every week while clocks do
// not change are kept apart: a union that stays open for a week because of them
// stays open until clocks change, and need not be followed day by day.
type union struct {
	weekly []*windows
	others []source
	cost   int // of asking all of them once, see effort
}

func newUnion(sources ...source) union {
	var u union
	for _, s := range sources {
		u.cost += costOf(s)
		if w, ok := s.(*windows); ok && w.weekly {
			u.weekly = append(u.weekly, w)
		} else {
			u.others = append(u.others, s)
		}
	}
	return u
}

// costOf is what asking a source costs: what a rule makes may have to be followed over
// what is taken out of it.
func costOf(s source) int {
	if w, ok := s.(*windows); ok {
		skip := w.opening.skip
		return 1 + (len(skip.days)+len(skip.walls)+len(skip.instants))/exceptionsAtOnce
	}
	return 1
}

func (u *union) contains(t int64) bool {
	for _, w := range u.weekly {
		if _, ok := w.until(t); ok {
			return true
		}
	}
	for _, s := range u.others {
		if _, ok := s.until(t); ok {
			return true
		}
	}
	return false
}

// opens is the first start of a span after t, or never.
func (u *union) opens(t int64) int64 {
	first := int64(civil.Never)
	for _, w := range u.weekly {
		if at, ok := w.opens(t); ok {
			first = min(first, at)
		}
	}
	for _, s := range u.others {
		if at, ok := s.opens(t); ok {
			first = min(first, at)
		}
	}
	return first
}

// closed is the last end of a span at or before t, or the beginning.
func (u *union) closed(t int64) int64 {
	last := int64(civil.Beginning)
	for _, w := range u.weekly {
		if at, ok := w.closed(t); ok {
			last = max(last, at)
		}
	}
	for _, s := range u.others {
		if at, ok := s.closed(t); ok {
			last = max(last, at)
		}
	}
	return last
}

// until is the end of the merged span that contains t, or limit if that comes first, or never; t itself when
// no span contains it. Spans that overlap or touch are followed one by one, but for whole calm stretches at once.
func (u *union) until(t, limit int64, e *effort) int64 {
	var known crossings
	horizon, calm := min(t+civil.CycleSeconds, limit-1), u.repeating(t)
	for quiet := max(t, calm.start); t <= horizon && e.spend(u.cost); {
		if end := u.weeklyUntil(t); end > t {
			t = end
		} else if end := u.othersUntil(t); end > t {
			t, quiet = end, max(end, calm.start)
		} else {
			return min(t, limit)
		}
		switch {
		case t >= calm.end:
			calm = u.repeating(t)
			quiet = max(t, calm.start)
		case t-civil.WeekSeconds >= quiet:
			known.confirm()
			t = u.leap(calm.end, &known, horizon)
			calm.end, quiet = t, civil.Never
		}
	}
	e.endAhead(t)
	return limit
}

// crossing is a change of clocks as far as weekly windows can tell: when in the
// week, from what to what.
type crossing struct{ second, before, after int64 }

// crossings are those which a union has been found to stay open over, from one
// calm week to another. It stays open over any that is alike, so the rule of a
// zone is followed once, and not for 400 years.
type crossings struct {
	seen    [8]crossing
	n       int
	pending crossing
}

// confirm notes that the week after the pending crossing was open too.
func (c *crossings) confirm() {
	if c.pending != (crossing{}) && c.n < len(c.seen) {
		c.seen[c.n] = c.pending
		c.n++
	}
	c.pending = crossing{}
}

func (c *crossings) has(one crossing) bool {
	for _, seen := range c.seen[:c.n] {
		if seen == one {
			return true
		}
	}
	return false
}

// leap goes from a change of clocks, up to which the union is open, over all
// that are known to the next that is not, or beyond the horizon.
func (u *union) leap(at int64, known *crossings, horizon int64) int64 {
	for at <= horizon && u.oneZone() {
		p := u.weekly[0].opening.zone.at(at)
		one := crossing{second: civil.FloorMod(at, civil.WeekSeconds), before: p.before, after: p.offset}
		calm := u.repeating(at)
		if !known.has(one) || calm.end != civil.Never && calm.end-calm.start < civil.WeekSeconds {
			known.pending = one
			return at
		}
		at = calm.end
	}
	return at
}

func (u *union) oneZone() bool {
	for _, w := range u.weekly {
		if w.opening.zone != u.weekly[0].opening.zone {
			return false
		}
	}
	return true
}

func (u *union) weeklyUntil(t int64) int64 {
	end := t
	for _, w := range u.weekly {
		if at, ok := w.until(t); ok {
			end = max(end, at)
		}
	}
	return end
}

func (u *union) othersUntil(t int64) int64 {
	end := t
	for _, s := range u.others {
		if at, ok := s.until(t); ok {
			end = max(end, at)
		}
	}
	return end
}

// since is the start of the merged span that contains t, or the beginning; one
// second after t when none does.
func (u *union) since(t int64, e *effort) int64 {
	horizon, calm := longAgo(t), u.repeating(t)
	for quiet := t; t >= horizon && e.spend(u.cost); {
		if start := u.weeklySince(t); start <= t {
			t = start - 1
		} else if start := u.othersSince(t); start <= t {
			t = start - 1
			quiet = t
		} else {
			return t + 1
		}
		switch {
		case t < calm.start:
			calm = u.repeating(t)
			quiet = t
		case t <= quiet-civil.WeekSeconds && quiet < calm.end:
			if calm.start <= horizon {
				return civil.Beginning
			}
			t, quiet = calm.start, calm.end
		}
	}
	e.endBack(t)
	return civil.Beginning
}

// longAgo is as far as the past is looked at: what has been so since before
// 1970, from where everything is counted, always was so.
func longAgo(t int64) int64 {
	if t > 0 {
		return max(0, t-civil.CycleSeconds)
	}
	return t - civil.CycleSeconds
}

func (u *union) weeklySince(t int64) int64 {
	start := t + 1
	for _, w := range u.weekly {
		if at, ok := w.since(t); ok {
			start = min(start, at)
		}
	}
	return start
}

func (u *union) othersSince(t int64) int64 {
	start := t + 1
	for _, s := range u.others {
		if at, ok := s.since(t); ok {
			start = min(start, at)
		}
	}
	return start
}

// repeating is a stretch around t, or beginning after it, in which the weekly
// sources repeat: no clock changes, no clock shows again what it has shown
// before a change, and no window is open from before that.
func (u *union) repeating(t int64) span {
	if len(u.weekly) == 0 {
		return span{civil.Never, civil.Never}
	}
	calm := span{civil.Beginning, civil.Never}
	for _, w := range u.weekly {
		p := w.opening.zone.at(t)
		if p.start != civil.Beginning {
			calm.start = max(calm.start, p.unambiguousFrom()+w.length)
		}
		calm.end = min(calm.end, p.end)
	}
	return calm
}
