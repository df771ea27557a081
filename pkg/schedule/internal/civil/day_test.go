package civil_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/schedule/internal/civil"
)

// rule is a rule with what it restricts of a year as it is written.
type rule struct {
	civil.Days
	yearDays, yearWeeks []int
	nth                 []civil.NthWeekday
	plain               uint8
}

// wanted tells whether a rule asks for a day, by package time and one day alone.
func wanted(r *rule, day int64) bool {
	t := at(day)
	length := lengthOf(t)
	if r.Months != 0 && r.Months>>t.Month()&1 == 0 {
		return false
	}
	byDate := r.Monthdays>>t.Day()&1 != 0 || r.FromEnd>>(length-t.Day()+1)&1 != 0
	dates := r.Monthdays|r.FromEnd != 0
	byWeekday := (r.Weekdays|r.Numbered[(t.Day()+6)/7]|r.FromLast[(length-t.Day())/7+1])>>t.Weekday()&1 != 0
	weekdays := r.Weekdays != 0 || r.Numbered != [6]uint8{} || r.FromLast != [6]uint8{}
	switch {
	case dates && weekdays && r.Either:
		if !byDate && !byWeekday {
			return false
		}
	case dates && !byDate, weekdays && !byWeekday:
		return false
	}
	return (r.Interval < 2 || civil.FloorMod(unitOf(r, day)-unitOf(r, r.Anchor), r.Interval) == 0) && wantedByYear(r, t)
}

// unitOf numbers what the interval of a rule counts.
func unitOf(r *rule, day int64) int64 {
	switch t := at(day); r.Unit {
	case civil.PerWeek:
		return weekOf(t, r.Wkst).Unix() / civil.WeekSeconds // all weeks of a rule start on one weekday
	case civil.PerMonth:
		return int64(t.Year()*12 + int(t.Month()))
	case civil.PerYear:
		return int64(t.Year())
	}
	return day
}

// weekOf is the first day of a week.
func weekOf(t time.Time, wkst int) time.Time {
	for int(t.Weekday()) != wkst {
		t = t.AddDate(0, 0, -1)
	}
	return t
}

func wantedByYear(r *rule, t time.Time) bool {
	length := time.Date(t.Year(), 12, 31, 0, 0, 0, 0, time.UTC).YearDay()
	if len(r.yearDays) > 0 && !slices.Contains(r.yearDays, t.YearDay()) && !slices.Contains(r.yearDays, t.YearDay()-length-1) {
		return false
	}
	if len(r.yearWeeks) > 0 {
		start := weekOf(t, r.Wkst)
		week := (start.AddDate(0, 0, 3).YearDay() + 6) / 7 // of the year that has four of its days
		weeks := week + int(time.Date(start.AddDate(0, 0, 3).Year(), 12, 31, 0, 0, 0, 0, time.UTC).Sub(start.AddDate(0, 0, 3))/(7*24*time.Hour))
		if !slices.Contains(r.yearWeeks, week) && !slices.Contains(r.yearWeeks, week-weeks-1) {
			return false
		}
	}
	return len(r.nth) == 0 || r.plain>>t.Weekday()&1 != 0 || slices.ContainsFunc(r.nth, func(nth civil.NthWeekday) bool {
		return nth.Weekday == int(t.Weekday()) && (nth.N == (t.YearDay()+6)/7 || nth.N == -(length-t.YearDay())/7-1)
	})
}

func oneOf[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

// drawDays draws a rule; of each restriction there is often none.
func drawDays(r *rand.Rand) rule {
	weekdays := func() uint8 { return uint8(r.UintN(128) & r.UintN(128)) }
	days := rule{Days: civil.Days{
		Unit: oneOf(r, civil.PerDay, civil.PerWeek, civil.PerMonth, civil.PerYear), Interval: oneOf[int64](r, 0, 1, 2, 2, 3, 5),
		Anchor: dayOf(2023, 1, 1) + r.Int64N(1500), Wkst: r.IntN(7),
		Months: oneOf(r, 0, uint16(r.UintN(1<<13))&civil.EveryMonth), Monthdays: oneOf(r, 0, 0, r.Uint32()&r.Uint32()&civil.EveryMonthday),
		FromEnd: oneOf(r, 0, 0, 0, r.Uint32()&r.Uint32()&civil.EveryMonthday), Weekdays: oneOf(r, 0, weekdays()), Either: r.IntN(2) == 0,
	}}
	if r.IntN(4) == 0 {
		days.Numbered[1+r.IntN(5)], days.FromLast[1+r.IntN(5)] = weekdays(), oneOf(r, 0, weekdays())
	}
	if r.IntN(4) > 0 {
		return days
	}
	switch r.IntN(3) {
	case 0:
		for range 60 {
			days.yearDays = append(days.yearDays, r.IntN(733)-366)
		}
	case 1:
		for range 12 {
			days.yearWeeks = append(days.yearWeeks, oneOf(r, 1, 52, 53, -1, -52, -53, r.IntN(53), -r.IntN(53)))
		}
	case 2:
		days.plain = oneOf(r, 0, weekdays())
		for range 12 {
			days.nth = append(days.nth, civil.NthWeekday{N: oneOf(r, 1, 53, -1, -53, r.IntN(107)-53), Weekday: r.IntN(7)})
		}
	}
	days.Yearly = civil.NewYearDays(days.yearDays, days.yearWeeks, days.nth, days.plain)
	return days
}

// TestDaysAreThoseThatARuleAsksFor compares a month at a time with a day at a time.
func TestDaysAreThoseThatARuleAsksFor(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		days := drawDays(r)
		start := dayOf(2019, 1, 1) + r.Int64N(3000)
		end := start + 1200
		var all []int64
		for day := start; day < end; day++ {
			if wanted(&days, day) {
				all = append(all, day)
			}
		}
		day := start
		for i, want := range all {
			for ; day <= want; day++ {
				checkDays(t, &days, day, all[i:], all[:i])
			}
		}
		// A search that finds nothing walks 400 years: one is enough.
		if got, ok := days.Next(day); ok && got < end {
			t.Fatalf("%+v: from %s on comes %s", days, at(day), at(got))
		}
		if got, ok := days.Previous(end - 1); len(all) > 0 && got != all[len(all)-1] || ok && len(all) == 0 && got >= start {
			t.Fatalf("%+v: up to %s the last is %s, %t", days, at(end-1), at(got), ok)
		}
	}
}

// checkDays looks ahead from a day and back from the day before it.
func checkDays(t *testing.T, days *rule, day int64, ahead, behind []int64) {
	t.Helper()
	if got, ok := days.Next(day); !ok || got != ahead[0] {
		t.Fatalf("%+v: from %s on comes %s, %t, not %s", days, at(day), at(got), ok, at(ahead[0]))
	}
	for _, n := range []int{0, 1, 9} {
		if n >= len(ahead) {
			break
		}
		if got, ok := days.Nth(day, n); !ok || got != ahead[n] {
			t.Fatalf("%+v: %d on from %s comes %s, %t, not %s", days, n, at(day), at(got), ok, at(ahead[n]))
		}
	}
	if len(behind) == 0 {
		return
	}
	if got, ok := days.Previous(day - 1); !ok || got != behind[len(behind)-1] {
		t.Fatalf("%+v: before %s comes %s, %t, not %s", days, at(day), at(got), ok, at(behind[len(behind)-1]))
	}
}

func TestDaysHaveEnds(t *testing.T) {
	const next, previous = true, false
	december := dayOf(9999, 12, 31)
	for name, c := range map[string]struct {
		days civil.Days
		next bool
		from int64
		want int64
		none bool
	}{
		"the last day there is":           {next: next, from: december, want: december},
		"none after it":                   {next: next, from: december + 1, none: true},
		"the first day of the year 0":     {next: previous, from: dayOf(0, 1, 1), want: dayOf(0, 1, 1)},
		"none before it":                  {next: previous, from: dayOf(0, 1, 1) - 1, none: true},
		"a date that never comes":         {civil.Days{Months: 1 << 2, Monthdays: 1 << 30}, next, dayOf(2026, 1, 1), 0, true},
		"a date that never came":          {civil.Days{Months: 1 << 2, Monthdays: 1 << 30}, previous, dayOf(2026, 1, 1), 0, true},
		"the same day 400 years later":    {civil.Days{Interval: civil.CycleDays, Anchor: 20000}, next, 20001, 20000 + civil.CycleDays, false},
		"the same day 400 years earlier":  {civil.Days{Interval: civil.CycleDays, Anchor: 20000}, previous, 19999, 20000 - civil.CycleDays, false},
		"the last month is between two":   {civil.Days{Unit: civil.PerMonth, Interval: 2, Anchor: dayOf(2026, 1, 1), Months: 1 << 12}, next, dayOf(9999, 11, 1), 0, true},
		"the first month is between two":  {civil.Days{Unit: civil.PerMonth, Interval: 2, Anchor: dayOf(2026, 2, 1), Months: 1 << 1}, previous, dayOf(0, 2, 9), 0, true},
		"the last month is asked for":     {civil.Days{Unit: civil.PerMonth, Interval: 2, Anchor: dayOf(2026, 2, 1), Months: 1 << 12}, next, dayOf(9999, 11, 1), dayOf(9999, 12, 1), false},
		"the first month is asked for":    {civil.Days{Unit: civil.PerMonth, Interval: 2, Anchor: dayOf(2026, 1, 1), Months: 1 << 1}, previous, dayOf(0, 2, 9), dayOf(0, 1, 31), false},
		"the last year is between two":    {civil.Days{Unit: civil.PerYear, Interval: 2, Anchor: dayOf(2026, 1, 1)}, next, dayOf(9998, 12, 31), dayOf(9998, 12, 31), false},
		"no year is left of every second": {civil.Days{Unit: civil.PerYear, Interval: 2, Anchor: dayOf(2026, 1, 1)}, next, dayOf(9999, 1, 1), 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			look := c.days.Previous
			if c.next {
				look = c.days.Next
			}
			if got, ok := look(c.from); ok == c.none || got != c.want {
				t.Errorf("%s, %t; want %s", at(got), ok, at(c.want))
			}
			if got, ok := c.days.Nth(c.from, 0); c.next && (ok == c.none || got != c.want) {
				t.Errorf("counted, %s, %t; want %s", at(got), ok, at(c.want))
			}
		})
	}
}
