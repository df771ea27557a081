package civil

import (
	"math/bits"
	"slices"
)

// Setpos is the clock of a rule with BYSETPOS: of all times in a day, week,
// month or year, it takes those at the positions, negative from the end.
type Setpos struct {
	Days  Days
	Times Daytimes

	ahead, behind []int // positions from the start, from 0, and from the end; in order
	gaps          gaps
}

// NewSetpos takes the times at the positions, at most 366 either way.
func NewSetpos(days Days, times Daytimes, positions []int) *Setpos {
	s := &Setpos{Days: days, Times: times}
	most := s.mostDays() * times.Count()
	for _, position := range positions {
		switch {
		case position > most || -position > most: // no period has it
		case position > 0:
			s.ahead = append(s.ahead, position-1)
		default:
			s.behind = append(s.behind, position)
		}
	}
	slices.Sort(s.ahead)
	slices.Sort(s.behind)
	return s
}

// mostDays bounds how many days of a period are asked for.
func (s *Setpos) mostDays() int {
	switch {
	case s.Days.Unit == PerYear:
		return 366
	case s.Days.Unit == PerMonth:
		return 31
	case s.Days.Unit == PerWeek && s.Days.onlyWeekdays():
		return bits.OnesCount8(s.Days.Weekdays)
	case s.Days.Unit == PerWeek:
		return 7
	}
	return 1
}

// Next goes from one period that has any day to the next.
func (s *Setpos) Next(local int64) (int64, bool) {
	return s.gaps.next(local, s.searchNext, s.searchPrevious)
}

func (s *Setpos) searchNext(local int64) (int64, bool, int) {
	if len(s.ahead)+len(s.behind) == 0 {
		return 0, false, 0
	}
	day, _ := SplitLocal(local)
	steps := 0
	for tries := s.periods(); tries >= 0; tries-- {
		found, ok, months := s.Days.next(s.first(day))
		if steps += months; !ok {
			return 0, false, steps
		}
		p := s.period(found)
		steps += p.months
		if at, ok := s.firstOf(&p, s.rank(&p, local)); ok {
			return at, true, steps
		}
		day = max(s.last(found)+1, day)
	}
	return 0, false, steps
}

// Previous is Next, backwards.
func (s *Setpos) Previous(local int64) (int64, bool) {
	return s.gaps.previous(local, s.searchNext, s.searchPrevious)
}

func (s *Setpos) searchPrevious(local int64) (int64, bool, int) {
	if len(s.ahead)+len(s.behind) == 0 {
		return 0, false, 0
	}
	day, _ := SplitLocal(local)
	steps := 0
	for tries := s.periods(); tries >= 0; tries-- {
		found, ok, months := s.Days.previous(s.last(day))
		if steps += months; !ok {
			return 0, false, steps
		}
		p := s.period(found)
		steps += p.months
		if at, ok := s.lastOf(&p, s.rank(&p, local+1)-1); ok {
			return at, true, steps
		}
		day = s.first(found) - 1
	}
	return 0, false, steps
}

// period are the days of a day, week, month or year that a rule asks for, month by month.
type period struct {
	set    [12]uint32
	first  [12]int64 // day 1 of the month
	months int
	days   int
}

func (s *Setpos) period(day int64) period {
	var p period
	from, to := s.first(day), s.last(day)
	for at := from; at <= to; {
		year, month, dayOfMonth := DateOf(at)
		first := at - int64(dayOfMonth) + 1
		length := MonthLength(year, month)
		set := uint32(0)
		if index := year*12 + int64(month) - 1; s.Days.month(index) == index {
			set = s.Days.inMonth(year, month, first) >> dayOfMonth << dayOfMonth
		}
		if end := to - first + 1; end < int64(length) {
			set &= 1<<(end+1) - 1
		}
		p.set[p.months], p.first[p.months] = set, first
		p.months++
		p.days += bits.OnesCount32(set)
		at = first + int64(length)
	}
	return p
}

// rank is how many times of a period are before local.
func (s *Setpos) rank(p *period, local int64) int {
	day, second := SplitLocal(local)
	n := 0
	for i := range p.months {
		d := day - p.first[i] + 1
		switch {
		case d > 31:
			n += bits.OnesCount32(p.set[i]) * s.Times.Count()
		case d > 0:
			n += bits.OnesCount32(p.set[i]&(1<<d-1)) * s.Times.Count()
			if p.set[i]>>d&1 != 0 {
				n += s.Times.Before(second)
			}
		}
	}
	return n
}

// firstOf is the time at the first of the positions from the n-th time on.
func (s *Setpos) firstOf(p *period, n int) (int64, bool) {
	count := p.days * s.Times.Count()
	best := count
	if i, _ := slices.BinarySearch(s.ahead, n); i < len(s.ahead) {
		best = min(best, s.ahead[i])
	}
	if i, _ := slices.BinarySearch(s.behind, max(n, 0)-count); i < len(s.behind) {
		best = min(best, count+s.behind[i])
	}
	return s.at(p, best), best < count
}

// lastOf is the time at the last of the positions up to the n-th time.
func (s *Setpos) lastOf(p *period, n int) (int64, bool) {
	count := p.days * s.Times.Count()
	best := -1
	if i, _ := slices.BinarySearch(s.ahead, min(n, count-1)+1); i > 0 {
		best = max(best, s.ahead[i-1])
	}
	if i, _ := slices.BinarySearch(s.behind, n-count+1); i > 0 {
		best = max(best, count+s.behind[i-1])
	}
	return s.at(p, best), best >= 0
}

// at is the n-th time of a period, from 0; 0 where there is none.
func (s *Setpos) at(p *period, n int) int64 {
	times := s.Times.Count()
	day := n / times
	for i := range p.months {
		count := bits.OnesCount32(p.set[i])
		if n >= 0 && day < count {
			return (p.first[i]+int64(pickBit(uint64(p.set[i]), day))-1)*DaySeconds + int64(s.Times.Pick(n%times))
		}
		day -= count
	}
	return 0
}

// Steps bounds how many steps it takes to follow the clock for 400 years, beside one for each time.
func (s *Setpos) Steps() int {
	if s.sure() {
		return s.Days.steps()
	}
	return s.Days.steps() + stepsOfPeriod*CycleMonths
}

// stepsOfPeriod is how many steps it takes to see that a month does not have a position.
const stepsOfPeriod = 4

// sure says whether every period that has any of the days has one of the positions, too.
func (s *Setpos) sure() bool {
	least := 1 // of the days
	if d := &s.Days; d.Unit == PerMonth && d.Monthdays|d.FromEnd == 0 && d.Yearly == nil && d.Numbered == [6]uint8{} && d.FromLast == [6]uint8{} {
		if least = 28; d.Weekdays != 0 {
			least = 4 * bits.OnesCount8(d.Weekdays)
		}
	}
	least *= s.Times.Count()
	n := len(s.behind)
	return len(s.ahead)+n == 0 || len(s.ahead) > 0 && s.ahead[0] < least || n > 0 && -s.behind[n-1] <= least
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
