package schedule

import (
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule/internal/civil"
)

// setpos is the clock of a rule with BYSETPOS: of all times in a day, week,
// month or year, it takes those at the positions, negative from the end.
type setpos struct {
	wall      wallClock
	positions []int
}

// next goes from one period that has any day to the next.
func (s *setpos) next(local int64) (int64, bool) {
	day, _ := civil.SplitLocal(local)
	for tries := s.periods(); tries >= 0; tries-- {
		found, ok := s.wall.days.Next(s.first(day))
		if !ok {
			return 0, false
		}
		if best := s.pick(found, func(at, best int64) bool { return at >= local && (best == civil.Never || at < best) }); best != civil.Never {
			return best, true
		}
		day = max(s.last(found)+1, day)
	}
	return 0, false
}

// previous is next, backwards.
func (s *setpos) previous(local int64) (int64, bool) {
	day, _ := civil.SplitLocal(local)
	for tries := s.periods(); tries >= 0; tries-- {
		found, ok := s.wall.days.Previous(s.last(day))
		if !ok {
			return 0, false
		}
		if best := s.pick(found, func(at, best int64) bool { return at <= local && (best == civil.Never || at > best) }); best != civil.Never {
			return best, true
		}
		day = s.first(found) - 1
	}
	return 0, false
}

// pick is the time at one of the positions in the period of a day that is
// better than all others, or never.
func (s *setpos) pick(day int64, better func(at, best int64) bool) int64 {
	var list [366]int64
	n, last := 0, s.last(day)
	for next, ok := s.wall.days.Next(s.first(day)); ok && next <= last; next, ok = s.wall.days.Next(next + 1) {
		list[n] = next
		n++
	}
	best, times := int64(civil.Never), s.wall.times.Count()
	for _, position := range s.positions {
		i := position - 1
		if position < 0 {
			i = n*times + position
		}
		if i < 0 || i >= n*times {
			continue
		}
		if at := list[i/times]*civil.DaySeconds + int64(s.wall.times.Pick(i%times)); better(at, best) {
			best = at
		}
	}
	return best
}

// periods is how many there are before the calendar repeats.
func (s *setpos) periods() int64 {
	switch s.wall.days.Unit {
	case civil.PerYear:
		return 400
	case civil.PerMonth:
		return civil.CycleMonths
	case civil.PerWeek:
		return civil.CycleDays / 7
	}
	return civil.CycleDays
}

// first and last are the ends of the period that a day is in.
func (s *setpos) first(day int64) int64 {
	year, month, _ := civil.DateOf(day)
	switch s.wall.days.Unit {
	case civil.PerYear:
		return civil.DayOf(year, 1, 1)
	case civil.PerMonth:
		return civil.DayOf(year, month, 1)
	case civil.PerWeek:
		return civil.WeekStarting(day, s.wall.days.Wkst)*7 + int64(s.wall.days.Wkst-4)
	}
	return day
}

func (s *setpos) last(day int64) int64 {
	year, month, _ := civil.DateOf(day)
	switch s.wall.days.Unit {
	case civil.PerYear:
		return civil.DayOf(year, 12, 31)
	case civil.PerMonth:
		return civil.DayOf(year, month, civil.MonthLength(year, month))
	case civil.PerWeek:
		return s.first(day) + 6
	}
	return day
}
