// Package civil counts on calendars and clocks without a zone: dates as numbers, sets of days
// that a rule asks for, and sets of times of day.
package civil

import "math"

// Lengths and ends.
const (
	MinuteSeconds = int64(60)
	HourSeconds   = 60 * MinuteSeconds
	DaySeconds    = 24 * HourSeconds
	WeekSeconds   = 7 * DaySeconds

	// CycleDays is the length of 400 Gregorian years, after which dates and
	// weekdays repeat exactly.
	CycleDays    = int64(146097)
	CycleSeconds = CycleDays * DaySeconds
	CycleMonths  = 400 * 12

	// lastMonth is December 9999: RFC 3339 can write nothing later.
	lastMonth = int64(9999*12 + 11)

	// FirstSecond and LastSecond are 0001-01-01T00:00:00Z and
	// 9999-12-31T23:59:59Z; there is no schedule beyond.
	FirstSecond = int64(-62135596800)
	LastSecond  = int64(253402300799)

	Beginning = math.MinInt64
	Never     = math.MaxInt64
)

// DateOf is the date of a day. The algorithm is Howard Hinnant's
// civil_from_days (https://howardhinnant.github.io/date_algorithms.html).
func DateOf(day int64) (year int64, month, dayOfMonth int) {
	z := day + 719468
	era := FloorDiv(z, CycleDays)
	doe := z - era*CycleDays
	yoe := (doe - doe/1460 + doe/36524 - doe/146096) / 365
	doy := doe - (365*yoe + yoe/4 - yoe/100)
	mp := (5*doy + 2) / 153
	dayOfMonth = int(doy - (153*mp+2)/5 + 1)
	month = int(mp) + 3
	year = yoe + era*400
	if month > 12 {
		month -= 12
		year++
	}
	return year, month, dayOfMonth
}

// DayOf is the inverse of civil. The day of the month may lie outside the
// month: 0 is the last day of the month before.
func DayOf(year int64, month, dayOfMonth int) int64 {
	mp := int64(month) - 3
	if month <= 2 {
		year--
		mp += 12
	}
	era := FloorDiv(year, 400)
	yoe := year - era*400
	doy := (153*mp+2)/5 + int64(dayOfMonth) - 1
	doe := yoe*365 + yoe/4 - yoe/100 + doy
	return era*CycleDays + doe - 719468
}

// WeekdayOf is 0 for Sunday; 1970-01-01 was a Thursday.
func WeekdayOf(day int64) int { return int(FloorMod(day+4, 7)) }

func isLeap(year int64) bool {
	return year%4 == 0 && (year%100 != 0 || year%400 == 0)
}

// MonthLength is how many days a month has.
func MonthLength(year int64, month int) int {
	switch month {
	case 2:
		if isLeap(year) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	}
	return 31
}

func yearLength(year int64) int {
	if isLeap(year) {
		return 366
	}
	return 365
}

// WeekStarting numbers the weeks that begin on weekday wkst, so that days of
// one week have one number.
func WeekStarting(day int64, wkst int) int64 { return FloorDiv(day-int64(wkst-4), 7) }

// SplitLocal is the day of a local second, and the second of that day.
func SplitLocal(local int64) (day int64, second int) {
	day = FloorDiv(local, DaySeconds)
	return day, int(local - day*DaySeconds)
}

func splitMonth(index int64) (year int64, month int) {
	year = FloorDiv(index, 12)
	return year, int(index-year*12) + 1
}

// FloorDiv divides, rounded down.
func FloorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// FloorMod is what FloorDiv leaves, from 0 on.
func FloorMod(a, b int64) int64 {
	m := a % b
	if m < 0 {
		m += b
	}
	return m
}

// CeilDiv divides, rounded up.
func CeilDiv(a, b int64) int64 { return -FloorDiv(-a, b) }
