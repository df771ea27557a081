package civil_test

import (
	"testing"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/schedule/internal/civil"
)

// at is midnight of a day, as package time has it.
func at(day int64) time.Time { return time.Unix(day*civil.DaySeconds, 0).UTC() }

// dayOf is the day of a date, by package time.
func dayOf(year int, month time.Month, day int) int64 {
	return civil.FloorDiv(time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Unix(), civil.DaySeconds)
}

func lengthOf(t time.Time) int {
	return time.Date(t.Year(), t.Month()+1, 0, 0, 0, 0, 0, time.UTC).Day()
}

func TestDatesAreThoseOfPackageTime(t *testing.T) {
	for day := dayOf(-1, 1, 1); day <= dayOf(10000, 12, 31); day += 5 {
		want := at(day)
		year, month, dayOfMonth := civil.DateOf(day)
		if int(year) != want.Year() || month != int(want.Month()) || dayOfMonth != want.Day() {
			t.Fatalf("day %d is %d-%d-%d, not %s", day, year, month, dayOfMonth, want)
		}
		if back := civil.DayOf(year, month, dayOfMonth); back != day {
			t.Fatalf("%s is day %d, not %d", want, back, day)
		}
		if weekday := civil.WeekdayOf(day); weekday != int(want.Weekday()) {
			t.Fatalf("%s is weekday %d", want, weekday)
		}
		if length := civil.MonthLength(year, month); length != lengthOf(want) {
			t.Fatalf("the month of %s has %d days", want, length)
		}
	}
}

func TestWeeksAreNumberedFromTheirFirstDay(t *testing.T) {
	monday := dayOf(2026, 11, 30)
	for day := monday; day < monday+7; day++ {
		if got := civil.WeekStarting(day, 1); got != civil.WeekStarting(monday, 1) || civil.WeekStarting(day-7, 1) != got-1 {
			t.Errorf("day %d from Monday on is in week %d", day-monday, got)
		}
	}
	for wkst := range 7 {
		if first := civil.WeekStarting(monday, wkst)*7 + int64(wkst-4); civil.WeekdayOf(first) != wkst || first > monday || first+6 < monday {
			t.Errorf("the week of %s that starts on weekday %d starts on %s", at(monday), wkst, at(first))
		}
	}
}

func TestDivisionsRoundDownOrUp(t *testing.T) {
	for _, c := range []struct{ a, b, floor, left, ceil int64 }{
		{6, 3, 2, 0, 2},
		{7, 3, 2, 1, 3},
		{8, 3, 2, 2, 3},
		{0, 3, 0, 0, 0},
		{-1, 3, -1, 2, 0},
		{-3, 3, -1, 0, -1},
		{-4, 3, -2, 2, -1},
		{2, 3, 0, 2, 1},
	} {
		if floor, left, ceil := civil.FloorDiv(c.a, c.b), civil.FloorMod(c.a, c.b), civil.CeilDiv(c.a, c.b); floor != c.floor || left != c.left || ceil != c.ceil {
			t.Errorf("%d by %d is %d, leaves %d, and is %d rounded up", c.a, c.b, floor, left, ceil)
		}
	}
	for _, c := range []struct {
		local, day int64
		second     int
	}{{0, 0, 0}, {86399, 0, 86399}, {86400, 1, 0}, {-1, -1, 86399}, {-86400, -1, 0}} {
		if day, second := civil.SplitLocal(c.local); day != c.day || second != c.second {
			t.Errorf("%d is second %d of day %d", c.local, second, day)
		}
	}
}
