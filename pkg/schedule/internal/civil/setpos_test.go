package civil_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/schedule/internal/civil"
)

// positioned lists the times of a rule with BYSETPOS in whole periods from a day on.
func positioned(s *civil.Setpos, start, end int64) (all []int64) {
	times := timesOf(s.Times)
	var period []int64
	take := func() {
		for i, local := range period {
			if slices.Contains(s.Positions, i+1) || slices.Contains(s.Positions, i-len(period)) {
				all = append(all, local)
			}
		}
		period = nil
	}
	plain := s.Days
	for day := start; day < end; day++ {
		if day == start || unitOf(&plain, day) != unitOf(&plain, day-1) {
			take()
		}
		if wanted(&plain, day) {
			for _, second := range times {
				period = append(period, day*civil.DaySeconds+int64(second))
			}
		}
	}
	return all // without the last period, which may be cut
}

// TestPositionsAreCountedWithinAPeriod compares with a list of all times of each period.
func TestPositionsAreCountedWithinAPeriod(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 160 {
		s := civil.Setpos{Days: drawDays(r), Times: drawTimes(r, 2)}
		s.Days.Yearly = nil
		if r.IntN(4) > 0 {
			s.Days.Monthdays, s.Days.FromEnd = 0, 0
		}
		for range 1 + r.IntN(3) {
			s.Positions = append(s.Positions, oneOf(r, 1, 2, 3, 5, -1, -2, -3, -5, 100, -100, 366, -366, 1+r.IntN(40)))
		}
		// The first period is whole: it starts with a year, and with a week on any weekday.
		start := dayOf(2019+r.IntN(6), 1, 1)
		for s.Days.Unit == civil.PerWeek && civil.WeekdayOf(start) != s.Days.Wkst {
			start++
		}
		all := positioned(&s, start, start+1500)
		if len(all) == 0 {
			continue
		}
		for i, want := range all {
			since := start * civil.DaySeconds
			if i > 0 {
				since = all[i-1] + 1
			}
			for _, local := range []int64{since, since + 1, since + r.Int64N(want-since+1), want - 1, want} {
				if local < since || local > want {
					continue
				}
				if got, ok := s.Next(local); !ok || got != want {
					t.Fatalf("%+v: from %d on comes %d, %t, not %d", s, local, got, ok, want)
				}
				if i == 0 {
					continue
				}
				if got, ok := s.Previous(local - 1); !ok || got != all[i-1] {
					t.Fatalf("%+v: before %d comes %d, %t, not %d", s, local, got, ok, all[i-1])
				}
			}
		}
	}
}

func TestAPositionThatNoPeriodHasIsNeverFound(t *testing.T) {
	noon := civil.Daytimes{Hours: 1 << 12, Minutes: 1, Seconds: 1}
	for name, s := range map[string]civil.Setpos{
		"the second of one":       {Days: civil.Days{Unit: civil.PerDay}, Times: noon, Positions: []int{2}},
		"the eighth of a week":    {Days: civil.Days{Unit: civil.PerWeek}, Times: noon, Positions: []int{8, -8}},
		"the 32nd of a month":     {Days: civil.Days{Unit: civil.PerMonth}, Times: noon, Positions: []int{32, -32}},
		"the 32nd of a January":   {Days: civil.Days{Unit: civil.PerYear, Months: 1 << 1}, Times: noon, Positions: []int{32}},
		"days that never come":    {Days: civil.Days{Unit: civil.PerYear, Months: 1 << 2, Monthdays: 1 << 30}, Times: noon, Positions: []int{1}},
		"a position without days": {Days: civil.Days{Unit: civil.PerYear}, Times: noon, Positions: []int{0}},
	} {
		t.Run(name, func(t *testing.T) {
			if got, ok := s.Next(0); ok {
				t.Errorf("next %d", got)
			}
			if got, ok := s.Previous(0); ok {
				t.Errorf("previous %d", got)
			}
		})
	}
	leap := civil.Setpos{Days: civil.Days{Unit: civil.PerYear}, Times: noon, Positions: []int{366}}
	if got, ok := leap.Next(dayOf(1897, 1, 1) * civil.DaySeconds); !ok || got != dayOf(1904, 12, 31)*civil.DaySeconds+43200 {
		t.Errorf("the 366th day after 1896: %d, %t", got, ok)
	}
}
