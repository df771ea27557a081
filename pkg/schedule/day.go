package schedule

import "math/bits"

// Bits of a month: bit d stands for day d, 1 to 31; of a week: bit 0 is Sunday.
const (
	everyMonthday = uint32(1<<32 - 2)
	everyWeekday  = uint8(1<<7 - 1)
	everyMonth    = uint16(1<<13 - 2)
)

// unit is what an interval counts.
type unit int

const (
	perDay unit = iota
	perWeek
	perMonth
	perYear
)

// days says which days a rule asks for. The answer is worked out for a month at
// a time, as a set of bits, so the next day is found without trying days one by
// one. A zero set means no restriction, so the zero value is every day.
type days struct {
	unit     unit
	interval int64 // every how many units; 0 and 1 are every one
	anchor   int64 // the day from whose unit they are counted
	wkst     int   // weekday on which weeks start

	months    uint16    // bits 1 to 12
	monthdays uint32    // n-th days of the month
	fromEnd   uint32    // n-th days from its end, 1 is the last
	weekdays  uint8     // weekdays, each time they come
	numbered  [6]uint8  // weekdays, the n-th of the month, 1 to 5
	fromLast  [6]uint8  // weekdays, the n-th last of the month
	either    bool      // cron: monthdays or weekdays, where both are restricted
	yearly    *yearDays // rarer restrictions that only a year decides
}

// yearDays restricts days by their place in the year. Empty lists restrict
// nothing.
type yearDays struct {
	days  []int        // n-th days of the year, negative from its end
	weeks []int        // n-th weeks of the year, negative from its end
	nth   []nthWeekday // n-th weekdays of the year, negative from its end
	plain uint8        // weekdays that satisfy nth without a number
}

type nthWeekday struct{ n, weekday int }

// next is the first day on or after day.
func (r *days) next(day int64) (int64, bool) {
	year, month, dayOfMonth := civil(day)
	index := year*12 + int64(month) - 1
	keep := everyMonthday >> dayOfMonth << dayOfMonth
	for tries := 0; tries <= cycleMonths; tries++ {
		wanted := r.month(index)
		if wanted != index {
			index, keep = wanted, everyMonthday
		}
		if index > lastMonth {
			return 0, false
		}
		year, month := splitMonth(index)
		first := dayOf(year, month, 1)
		if set := r.inMonth(year, month, first) & keep; set != 0 {
			return first + int64(bits.TrailingZeros32(set)) - 1, true
		}
		index, keep = index+1, everyMonthday
	}
	return 0, false
}

// nth is the n-th day on or after day, from 0, counted a month at a time.
func (r *days) nth(day int64, n int) (int64, bool) {
	for {
		found, ok := r.next(day)
		if !ok {
			return 0, false
		}
		year, month, dayOfMonth := civil(found)
		first := found - int64(dayOfMonth) + 1
		left := r.inMonth(year, month, first) >> dayOfMonth << dayOfMonth
		count := bits.OnesCount32(left)
		if n < count {
			return first + int64(pickBit(uint64(left), n)) - 1, true
		}
		n -= count
		day = first + int64(monthLength(year, month))
	}
}

// previous is the last day on or before day.
func (r *days) previous(day int64) (int64, bool) {
	year, month, dayOfMonth := civil(day)
	index := year*12 + int64(month) - 1
	keep := uint32(1)<<(dayOfMonth+1) - 1
	if dayOfMonth == 31 {
		keep = everyMonthday
	}
	for tries := 0; tries <= cycleMonths; tries++ {
		wanted := r.monthBefore(index)
		if wanted != index {
			index, keep = wanted, everyMonthday
		}
		if index < 0 {
			return 0, false
		}
		year, month := splitMonth(index)
		first := dayOf(year, month, 1)
		if set := r.inMonth(year, month, first) & keep; set != 0 {
			return first + int64(31-bits.LeadingZeros32(set)) - 1, true
		}
		index, keep = index-1, everyMonthday
	}
	return 0, false
}

// month is the first month from index on that months and interval allow.
func (r *days) month(index int64) int64 {
	for {
		start := index
		if r.interval > 1 && r.unit >= perMonth {
			index = r.alignMonth(index)
		}
		if r.months != 0 {
			year, month := splitMonth(index)
			if later := r.months >> month << month; later != 0 {
				index = year*12 + int64(bits.TrailingZeros16(later)) - 1
			} else {
				index = (year+1)*12 + int64(bits.TrailingZeros16(r.months)) - 1
			}
		}
		if index == start || index > lastMonth {
			return index
		}
	}
}

func (r *days) alignMonth(index int64) int64 {
	year, month, _ := civil(r.anchor)
	if r.unit == perYear {
		own := floorDiv(index, 12)
		if off := floorMod(own-year, r.interval); off != 0 {
			return (own + r.interval - off) * 12
		}
		return index
	}
	if off := floorMod(index-(year*12+int64(month)-1), r.interval); off != 0 {
		return index + r.interval - off
	}
	return index
}

// monthBefore is the last month up to index that months and interval allow.
func (r *days) monthBefore(index int64) int64 {
	for {
		start := index
		if r.interval > 1 && r.unit >= perMonth {
			index = r.alignMonthBefore(index)
		}
		if r.months != 0 {
			year, month := splitMonth(index)
			if earlier := r.months & (1<<(month+1) - 1); earlier != 0 {
				index = year*12 + int64(15-bits.LeadingZeros16(earlier)) - 1
			} else {
				index = (year-1)*12 + int64(15-bits.LeadingZeros16(r.months)) - 1
			}
		}
		if index == start || index < 0 {
			return index
		}
	}
}

func (r *days) alignMonthBefore(index int64) int64 {
	year, month, _ := civil(r.anchor)
	if r.unit == perYear {
		own := floorDiv(index, 12)
		if off := floorMod(own-year, r.interval); off != 0 {
			return (own-off)*12 + 11
		}
		return index
	}
	return index - floorMod(index-(year*12+int64(month)-1), r.interval)
}

// inMonth is the set of days asked for in a month that month or monthBefore
// allow.
func (r *days) inMonth(year int64, month int, first int64) uint32 {
	length := monthLength(year, month)
	set := r.byDate(length)
	if r.weekdays != 0 || r.numbered != [6]uint8{} || r.fromLast != [6]uint8{} {
		if weekdays := r.byWeekday(weekdayOf(first), length); r.either && (r.monthdays|r.fromEnd) != 0 {
			set |= weekdays
		} else {
			set &= weekdays
		}
	}
	set &= 1<<(length+1) - 2
	if r.interval > 1 && r.unit == perDay {
		set &= everyNth(int(floorMod(r.anchor-first, r.interval)), r.interval)
	}
	if r.interval > 1 && r.unit == perWeek {
		set &= r.everyNthWeek(first, length)
	}
	if r.yearly != nil {
		set = r.byYear(set, year, first)
	}
	return set
}

func (r *days) byDate(length int) uint32 {
	if r.monthdays|r.fromEnd == 0 {
		return everyMonthday
	}
	set := r.monthdays
	if r.fromEnd != 0 { // day n from the end is day length+1-n
		set |= uint32(bits.Reverse64(uint64(r.fromEnd))>>(62-length)) & everyMonthday
	}
	return set
}

func (r *days) byWeekday(firstWeekday, length int) uint32 {
	set := weekdaysOfMonth(r.weekdays, firstWeekday)
	for n := 1; n <= 5; n++ {
		if r.numbered[n] != 0 {
			set |= weekdaysOfMonth(r.numbered[n], firstWeekday) & (0x7f << (7*n - 6))
		}
		if r.fromLast[n] != 0 {
			seven := uint64(0x7f) << (length + 21 - 7*n) >> 20 // days length+1-7n to length+7-7n
			set |= weekdaysOfMonth(r.fromLast[n], firstWeekday) & uint32(seven)
		}
	}
	return set
}

// weekdaysOfMonth is the set of days of a month that begins on a weekday.
func weekdaysOfMonth(weekdays uint8, first int) uint32 {
	turned := (uint64(weekdays)>>first | uint64(weekdays)<<(7-first)) & 0x7f
	return uint32(turned * 0x10204081 << 1)
}

func everyNth(offset int, n int64) uint32 {
	var set uint32
	for d := int64(offset) + 1; d <= 31; d += n {
		set |= 1 << d
	}
	return set
}

func (r *days) everyNthWeek(first int64, length int) uint32 {
	var set uint32
	anchor := weekStarting(r.anchor, r.wkst)
	for d := 1; d <= length; {
		week := weekStarting(first+int64(d)-1, r.wkst)
		end := int(week*7+int64(r.wkst-4)+7-first) + 1 // first day of the next week
		if floorMod(week-anchor, r.interval) == 0 {
			set |= uint32(uint64(1)<<min(end, 32) - uint64(1)<<d)
		}
		d = end
	}
	return set & (1<<(length+1) - 2)
}

func (r *days) byYear(set uint32, year, first int64) uint32 {
	for left := set; left != 0; left &= left - 1 {
		d := bits.TrailingZeros32(left)
		if !r.yearly.include(first+int64(d)-1, year, r.wkst) {
			set &^= 1 << d
		}
	}
	return set
}

func (y *yearDays) include(day, year int64, wkst int) bool {
	ordinal := int(day-dayOf(year, 1, 1)) + 1
	length := yearLength(year)
	return (len(y.days) == 0 || listed(y.days, ordinal, length)) &&
		(len(y.weeks) == 0 || y.includeWeek(day, wkst)) &&
		(len(y.nth) == 0 || y.includeNth(weekdayOf(day), ordinal, length))
}

// listed tells whether the list has the n-th of length, counted from either end.
func listed(list []int, n, length int) bool {
	for _, want := range list {
		if want == n || want == n-length-1 {
			return true
		}
	}
	return false
}

// includeWeek numbers weeks as RFC 5545 does: the first week of a year is the
// one with at least four days in it, so a week may begin in the year before.
func (y *yearDays) includeWeek(day int64, wkst int) bool {
	week := weekStarting(day, wkst)
	start := week*7 + int64(wkst-4)
	year, _, _ := civil(start + 3)
	first := weekStarting(dayOf(year, 1, 4), wkst)
	count := int(weekStarting(dayOf(year+1, 1, 4), wkst) - first)
	return listed(y.weeks, int(week-first)+1, count)
}

func (y *yearDays) includeNth(weekday, ordinal, length int) bool {
	if y.plain>>weekday&1 != 0 {
		return true
	}
	n, last := (ordinal+6)/7, -(length-ordinal)/7-1
	for _, want := range y.nth {
		if want.weekday == weekday && (want.n == n || want.n == last) {
			return true
		}
	}
	return false
}
