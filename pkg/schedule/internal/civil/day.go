package civil

import "math/bits"

// Bits of a month: bit d stands for day d, 1 to 31; of a week: bit 0 is Sunday.
const (
	EveryMonthday = uint32(1<<32 - 2)
	EveryWeekday  = uint8(1<<7 - 1)
	EveryMonth    = uint16(1<<13 - 2)
)

// Unit is what an interval counts.
type Unit int

// What an interval counts.
const (
	PerDay Unit = iota
	PerWeek
	PerMonth
	PerYear
)

// Days says which days a rule asks for. The answer is worked out for a month at
// a time, as a set of bits, so the next day is found without trying days one by
// one. A zero set means no restriction, so the zero value is every day.
type Days struct {
	Unit     Unit
	Interval int64 // every how many units; 0 and 1 are every one
	Anchor   int64 // the day from whose unit they are counted
	Wkst     int   // weekday on which weeks start

	Months    uint16    // bits 1 to 12
	Monthdays uint32    // n-th days of the month
	FromEnd   uint32    // n-th days from its end, 1 is the last
	Weekdays  uint8     // weekdays, each time they come
	Numbered  [6]uint8  // weekdays, the n-th of the month, 1 to 5
	FromLast  [6]uint8  // weekdays, the n-th last of the month
	Either    bool      // cron: monthdays or weekdays, where both are restricted
	Yearly    *YearDays // rarer restrictions that only a year decides
}

// Next is the first day on or after day.
func (r *Days) Next(day int64) (int64, bool) {
	found, ok, _ := r.next(day)
	return found, ok
}

// next is Next, and how many months it looked at.
func (r *Days) next(day int64) (found int64, ok bool, steps int) {
	year, month, dayOfMonth := DateOf(day)
	index := year*12 + int64(month) - 1
	keep := EveryMonthday >> dayOfMonth << dayOfMonth
	last := lastMonth
	if r.Interval <= 1 { // all months that there are
		last = min(last, index+CycleMonths)
	}
	for tries := 0; tries <= CycleMonths; tries++ {
		steps++
		wanted := r.month(index)
		if wanted != index {
			steps += r.alignedOver(wanted - index)
			index, keep = wanted, EveryMonthday
		}
		if index > last {
			return 0, false, steps
		}
		year, month := splitMonth(index)
		first := DayOf(year, month, 1)
		if set := r.inMonth(year, month, first) & keep; set != 0 {
			return first + int64(bits.TrailingZeros32(set)) - 1, true, steps
		}
		index, keep = index+1, EveryMonthday
	}
	return 0, false, steps
}

// Nth is the n-th day on or after day, from 0, counted a month at a time.
func (r *Days) Nth(day int64, n int) (int64, bool) {
	for {
		found, ok := r.Next(day)
		if !ok {
			return 0, false
		}
		year, month, dayOfMonth := DateOf(found)
		first := found - int64(dayOfMonth) + 1
		left := r.inMonth(year, month, first) >> dayOfMonth << dayOfMonth
		count := bits.OnesCount32(left)
		if n < count {
			return first + int64(pickBit(uint64(left), n)) - 1, true
		}
		n -= count
		day = first + int64(MonthLength(year, month))
	}
}

// Previous is the last day on or before day.
func (r *Days) Previous(day int64) (int64, bool) {
	found, ok, _ := r.previous(day)
	return found, ok
}

// previous is Previous, and how many months it looked at.
func (r *Days) previous(day int64) (found int64, ok bool, steps int) {
	year, month, dayOfMonth := DateOf(day)
	index := year*12 + int64(month) - 1
	keep := uint32(1)<<(dayOfMonth+1) - 1
	if dayOfMonth == 31 {
		keep = EveryMonthday
	}
	last := int64(0)
	if r.Interval <= 1 {
		last = max(last, index-CycleMonths)
	}
	for tries := 0; tries <= CycleMonths; tries++ {
		steps++
		wanted := r.monthBefore(index)
		if wanted != index {
			steps += r.alignedOver(index - wanted)
			index, keep = wanted, EveryMonthday
		}
		if index < last {
			return 0, false, steps
		}
		year, month := splitMonth(index)
		first := DayOf(year, month, 1)
		if set := r.inMonth(year, month, first) & keep; set != 0 {
			return first + int64(31-bits.LeadingZeros32(set)) - 1, true, steps
		}
		index, keep = index-1, EveryMonthday
	}
	return 0, false, steps
}

// month is the first month from index on that months and interval allow.
func (r *Days) month(index int64) int64 {
	for {
		start := index
		if r.Interval > 1 && r.Unit >= PerMonth {
			index = r.alignMonth(index)
		}
		if r.Months != 0 {
			year, month := splitMonth(index)
			if later := r.Months >> month << month; later != 0 {
				index = year*12 + int64(bits.TrailingZeros16(later)) - 1
			} else {
				index = (year+1)*12 + int64(bits.TrailingZeros16(r.Months)) - 1
			}
		}
		if index == start || index > lastMonth {
			return index
		}
	}
}

func (r *Days) alignMonth(index int64) int64 {
	year, month, _ := DateOf(r.Anchor)
	if r.Unit == PerYear {
		own := FloorDiv(index, 12)
		if off := FloorMod(own-year, r.Interval); off != 0 {
			return (own + r.Interval - off) * 12
		}
		return index
	}
	if off := FloorMod(index-(year*12+int64(month)-1), r.Interval); off != 0 {
		return index + r.Interval - off
	}
	return index
}

// MostCycles is how often the calendar repeats up to the last month.
const MostCycles = 20

// alignedOver is about how many steps month took over so many months.
func (r *Days) alignedOver(months int64) int {
	if r.Unit == PerMonth && r.Interval > 1 && r.Months != 0 {
		return int(months / 12)
	}
	return 0
}

// monthBefore is the last month up to index that months and interval allow.
func (r *Days) monthBefore(index int64) int64 {
	for {
		start := index
		if r.Interval > 1 && r.Unit >= PerMonth {
			index = r.alignMonthBefore(index)
		}
		if r.Months != 0 {
			year, month := splitMonth(index)
			if earlier := r.Months & (1<<(month+1) - 1); earlier != 0 {
				index = year*12 + int64(15-bits.LeadingZeros16(earlier)) - 1
			} else {
				index = (year-1)*12 + int64(15-bits.LeadingZeros16(r.Months)) - 1
			}
		}
		if index == start || index < 0 {
			return index
		}
	}
}

func (r *Days) alignMonthBefore(index int64) int64 {
	year, month, _ := DateOf(r.Anchor)
	if r.Unit == PerYear {
		own := FloorDiv(index, 12)
		if off := FloorMod(own-year, r.Interval); off != 0 {
			return (own-off)*12 + 11
		}
		return index
	}
	return index - FloorMod(index-(year*12+int64(month)-1), r.Interval)
}

// inMonth is the set of days asked for in a month that month or monthBefore
// allow.
func (r *Days) inMonth(year int64, month int, first int64) uint32 {
	length := MonthLength(year, month)
	set := r.byDate(length)
	if r.Weekdays != 0 || r.Numbered != [6]uint8{} || r.FromLast != [6]uint8{} {
		if weekdays := r.byWeekday(WeekdayOf(first), length); r.Either && (r.Monthdays|r.FromEnd) != 0 {
			set |= weekdays
		} else {
			set &= weekdays
		}
	}
	set &= 1<<(length+1) - 2
	if r.Interval > 1 && r.Unit == PerDay {
		set &= everyNth(int(FloorMod(r.Anchor-first, r.Interval)), r.Interval)
	}
	if r.Interval > 1 && r.Unit == PerWeek {
		set &= r.everyNthWeek(first, length)
	}
	if r.Yearly != nil {
		set = r.Yearly.keep(set, year, first, length, r.Wkst)
	}
	return set
}

func (r *Days) byDate(length int) uint32 {
	if r.Monthdays|r.FromEnd == 0 {
		return EveryMonthday
	}
	set := r.Monthdays
	if r.FromEnd != 0 { // day n from the end is day length+1-n
		set |= uint32(bits.Reverse64(uint64(r.FromEnd))>>(62-length)) & EveryMonthday
	}
	return set
}

func (r *Days) byWeekday(firstWeekday, length int) uint32 {
	set := weekdaysOfMonth(r.Weekdays, firstWeekday)
	for n := 1; n <= 5; n++ {
		if r.Numbered[n] != 0 {
			set |= weekdaysOfMonth(r.Numbered[n], firstWeekday) & (0x7f << (7*n - 6))
		}
		if r.FromLast[n] != 0 {
			seven := uint64(0x7f) << (length + 21 - 7*n) >> 20 // days length+1-7n to length+7-7n
			set |= weekdaysOfMonth(r.FromLast[n], firstWeekday) & uint32(seven)
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

// onlyWeekdays says whether all days that are asked for are on the plain weekdays.
func (r *Days) onlyWeekdays() bool {
	return r.Weekdays != 0 && !r.Either && r.Numbered == [6]uint8{} && r.FromLast == [6]uint8{}
}

func (r *Days) everyNthWeek(first int64, length int) uint32 {
	var set uint32
	anchor := WeekStarting(r.Anchor, r.Wkst)
	for d := 1; d <= length; {
		week := WeekStarting(first+int64(d)-1, r.Wkst)
		end := int(week*7+int64(r.Wkst-4)+7-first) + 1 // first day of the next week
		if FloorMod(week-anchor, r.Interval) == 0 {
			set |= uint32(uint64(1)<<min(end, 32) - uint64(1)<<d)
		}
		d = end
	}
	return set & (1<<(length+1) - 2)
}

// steps bounds how many months are looked at in 400 years, where more than one restriction has to be met or
// one that only a year decides: a single one of a month is met in every other month.
func (r *Days) steps() int {
	if r.Yearly == nil && !r.seldom() {
		return 0
	}
	months := CycleMonths
	if r.Months != 0 {
		months = months / 12 * bits.OnesCount16(r.Months)
	}
	switch {
	case r.Interval <= 1:
	case r.Unit == PerMonth && r.Months != 0:
		months = 2 * CycleMonths
	case r.Unit >= PerMonth:
		months = min(MostCycles*months/int(min(r.Interval, CycleMonths)), CycleMonths)
	default:
		months = min(MostCycles*months, CycleMonths)
	}
	if r.Yearly != nil && r.Yearly.weeks != nil {
		months *= 6 // a month is several weeks
	}
	return months
}

// seldom says whether many months may pass without a day, or with it only far apart.
func (r *Days) seldom() bool {
	const inEveryMonth = uint32(1<<29 - 2)
	dates, kinds, interval := r.Monthdays|r.FromEnd, 0, r.Interval > 1
	numbered := r.Numbered != [6]uint8{} || r.FromLast != [6]uint8{}
	for _, restricts := range []bool{dates != 0, r.Weekdays != 0 && (dates == 0 || !r.Either), numbered} {
		if restricts {
			kinds++
		}
	}
	lacking := dates != 0 && dates&inEveryMonth == 0 || r.Numbered[5] != 0 || r.FromLast[5] != 0
	switch {
	case kinds > 1, lacking && (interval || r.Months != 0), interval && r.Unit < PerYear && r.Months != 0:
		return true
	case interval && r.Unit == PerDay:
		return kinds > 0 || r.Interval > 62
	}
	return r.Unit == PerWeek && r.Interval > 9
}
