package schedule

import "math"

// Wall-clock arithmetic is done on plain numbers: a local second counts the
// seconds that a clock on the wall would have shown since its 1970-01-01 00:00,
// a day counts days since then. No zone is involved until an instant is wanted.

const (
	minuteSeconds = int64(60)
	hourSeconds   = 60 * minuteSeconds
	daySeconds    = 24 * hourSeconds

	// cycleDays is the length of 400 Gregorian years, after which dates and
	// weekdays repeat exactly.
	cycleDays    = int64(146097)
	cycleSeconds = cycleDays * daySeconds
	cycleMonths  = 400 * 12

	// lastMonth is December 9999: RFC 3339 can write nothing later.
	lastMonth = int64(9999*12 + 11)

	// firstSecond and lastSecond are 0001-01-01T00:00:00Z and
	// 9999-12-31T23:59:59Z; there is no schedule beyond.
	firstSecond = int64(-62135596800)
	lastSecond  = int64(253402300799)

	beginning = math.MinInt64
	never     = math.MaxInt64
)

// civil is the date of a day. The algorithm is Howard Hinnant's
// civil_from_days (https://howardhinnant.github.io/date_algorithms.html).
func civil(day int64) (year int64, month, dayOfMonth int) {
	z := day + 719468
	era := floorDiv(z, cycleDays)
	doe := z - era*cycleDays
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

// dayOf is the inverse of civil. The day of the month may lie outside the
// month: 0 is the last day of the month before.
func dayOf(year int64, month, dayOfMonth int) int64 {
	mp := int64(month) - 3
	if month <= 2 {
		year--
		mp += 12
	}
	era := floorDiv(year, 400)
	yoe := year - era*400
	doy := (153*mp+2)/5 + int64(dayOfMonth) - 1
	doe := yoe*365 + yoe/4 - yoe/100 + doy
	return era*cycleDays + doe - 719468
}

// weekdayOf is 0 for Sunday; 1970-01-01 was a Thursday.
func weekdayOf(day int64) int { return int(floorMod(day+4, 7)) }

func isLeap(year int64) bool {
	return year%4 == 0 && (year%100 != 0 || year%400 == 0)
}

func monthLength(year int64, month int) int {
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

// weekStarting numbers the weeks that begin on weekday wkst, so that days of
// one week have one number.
func weekStarting(day int64, wkst int) int64 { return floorDiv(day-int64(wkst-4), 7) }

func splitLocal(local int64) (day int64, second int) {
	day = floorDiv(local, daySeconds)
	return day, int(local - day*daySeconds)
}

func splitMonth(index int64) (year int64, month int) {
	year = floorDiv(index, 12)
	return year, int(index-year*12) + 1
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

func floorMod(a, b int64) int64 {
	m := a % b
	if m < 0 {
		m += b
	}
	return m
}

func ceilDiv(a, b int64) int64 { return -floorDiv(-a, b) }
