package civil

// Setpos is the clock of a rule with BYSETPOS: of all times in a day, week,
// month or year, it takes those at the positions, negative from the end.
type Setpos struct {
	Days      Days
	Times     Daytimes
	Positions []int // at most 366 either way
}

// Next goes from one period that has any day to the next.
func (s *Setpos) Next(local int64) (int64, bool) {
	day, _ := SplitLocal(local)
	for tries := s.periods(); tries >= 0; tries-- {
		found, ok := s.Days.Next(s.first(day))
		if !ok {
			return 0, false
		}
		if best := s.pick(found, func(at, best int64) bool { return at >= local && (best == Never || at < best) }); best != Never {
			return best, true
		}
		day = max(s.last(found)+1, day)
	}
	return 0, false
}

// Previous is Next, backwards.
func (s *Setpos) Previous(local int64) (int64, bool) {
	day, _ := SplitLocal(local)
	for tries := s.periods(); tries >= 0; tries-- {
		found, ok := s.Days.Previous(s.last(day))
		if !ok {
			return 0, false
		}
		if best := s.pick(found, func(at, best int64) bool { return at <= local && (best == Never || at > best) }); best != Never {
			return best, true
		}
		day = s.first(found) - 1
	}
	return 0, false
}

// pick is the time at one of the positions in the period of a day that is
// better than all others, or never.
func (s *Setpos) pick(day int64, better func(at, best int64) bool) int64 {
	var list [366]int64
	n, last := 0, s.last(day)
	for next, ok := s.Days.Next(s.first(day)); ok && next <= last; next, ok = s.Days.Next(next + 1) {
		list[n] = next
		n++
	}
	best, times := int64(Never), s.Times.Count()
	for _, position := range s.Positions {
		i := position - 1
		if position < 0 {
			i = n*times + position
		}
		if i < 0 || i >= n*times {
			continue
		}
		if at := list[i/times]*DaySeconds + int64(s.Times.Pick(i%times)); better(at, best) {
			best = at
		}
	}
	return best
}

// periods is how many there are before the calendar repeats.
func (s *Setpos) periods() int64 {
	switch s.Days.Unit {
	case PerYear:
		return 400
	case PerMonth:
		return CycleMonths
	case PerWeek:
		return CycleDays / 7
	}
	return CycleDays
}

// first and last are the ends of the period that a day is in.
func (s *Setpos) first(day int64) int64 {
	year, month, _ := DateOf(day)
	switch s.Days.Unit {
	case PerYear:
		return DayOf(year, 1, 1)
	case PerMonth:
		return DayOf(year, month, 1)
	case PerWeek:
		return WeekStarting(day, s.Days.Wkst)*7 + int64(s.Days.Wkst-4)
	}
	return day
}

func (s *Setpos) last(day int64) int64 {
	year, month, _ := DateOf(day)
	switch s.Days.Unit {
	case PerYear:
		return DayOf(year, 12, 31)
	case PerMonth:
		return DayOf(year, month, MonthLength(year, month))
	case PerWeek:
		return s.first(day) + 6
	}
	return day
}
