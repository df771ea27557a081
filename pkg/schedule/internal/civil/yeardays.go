package civil

import "math/bits"

// YearDays restricts days by their place in the year.
type YearDays struct {
	days      *[2][6]uint64 // n-th days of a year of 365 and of 366 days, n from 1; nil: any
	weeks     *[2]uint64    // n-th weeks of a year of 52 and of 53 weeks; nil: any
	nth, last [7]uint64     // n-th and n-th last of each weekday
	numbered  bool          // only those
}

// NthWeekday is the n-th of a weekday, negative from the end; 0 is Sunday.
type NthWeekday struct{ N, Weekday int }

// NewYearDays restricts to the n-th days of a year, the n-th weeks and the n-th weekdays, each
// negative from the end of the year, and plain weekdays beside the numbered ones. An empty list
// restricts nothing.
func NewYearDays(days, weeks []int, nth []NthWeekday, plain uint8) *YearDays {
	y := &YearDays{numbered: len(nth) > 0}
	if len(days) > 0 {
		y.days = &[2][6]uint64{}
		for i := range y.days {
			for _, n := range fromStart(days, 365+i) {
				y.days[i][n/64] |= 1 << (n % 64)
			}
		}
	}
	if len(weeks) > 0 {
		y.weeks = &[2]uint64{}
		for i := range y.weeks {
			for _, n := range fromStart(weeks, 52+i) {
				y.weeks[i] |= 1 << n
			}
		}
	}
	for _, one := range nth {
		if one.N > 0 {
			y.nth[one.Weekday] |= 1 << one.N
		} else {
			y.last[one.Weekday] |= 1 << -one.N
		}
	}
	for weekday := range 7 {
		if plain>>weekday&1 != 0 {
			y.nth[weekday] = 1<<64 - 1
		}
	}
	return y
}

// fromStart are the numbers of a list that there are of length, counted from the start.
func fromStart(list []int, length int) []int {
	var found []int
	for _, n := range list {
		if n < 0 {
			n += length + 1
		}
		if n >= 1 && n <= length {
			found = append(found, n)
		}
	}
	return found
}

// keep takes out of a set of days of a month those that the place in the year rules out.
func (y *YearDays) keep(set uint32, year, first int64, length, wkst int) uint32 {
	before, days := int(first-DayOf(year, 1, 1)), yearLength(year)
	if y.days != nil {
		set &= y.ordinals(before, days-365)
	}
	if y.weeks != nil && set != 0 {
		set &= y.inWeeks(first, length, wkst)
	}
	if !y.numbered {
		return set
	}
	for left := set; left != 0; left &= left - 1 {
		d := bits.TrailingZeros32(left)
		weekday, ordinal := WeekdayOf(first+int64(d)-1), before+d
		n, last := (ordinal+6)/7, (days-ordinal)/7+1
		if y.nth[weekday]>>n&1|y.last[weekday]>>last&1 == 0 {
			set &^= 1 << d
		}
	}
	return set
}

// ordinals are the days of a month that so many days of the year are before.
func (y *YearDays) ordinals(before, leap int) uint32 {
	word, shift := before/64, before%64
	set := y.days[leap][word] >> shift
	if shift > 0 && word < 5 {
		set |= y.days[leap][word+1] << (64 - shift)
	}
	return uint32(set) // bit d is day before+d
}

// inWeeks numbers weeks as RFC 5545 does: the first week of a year is the one with at least four
// days in it, so a week may begin in the year before.
func (y *YearDays) inWeeks(first int64, length, wkst int) uint32 {
	var set uint32
	for d := 1; d <= length; {
		week := WeekStarting(first+int64(d)-1, wkst)
		start := week*7 + int64(wkst-4)
		end := int(start+7-first) + 1 // first day of the next week
		year, _, _ := DateOf(start + 3)
		begin := WeekStarting(DayOf(year, 1, 4), wkst)
		count := WeekStarting(DayOf(year+1, 1, 4), wkst) - begin
		if y.weeks[count-52]>>(week-begin+1)&1 != 0 {
			set |= uint32(uint64(1)<<min(end, 32) - uint64(1)<<d)
		}
		d = end
	}
	return set
}
