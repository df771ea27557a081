package civil_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/schedule/internal/civil"
)

// positioned lists the times of a rule with BYSETPOS in whole periods from a day on.
func positioned(s *civil.Setpos, positions []int, start, end int64) (all []int64) {
	times := timesOf(s.Times)
	var period []int64
	take := func() {
		for i, local := range period {
			if slices.Contains(positions, i+1) || slices.Contains(positions, i-len(period)) {
				all = append(all, local)
			}
		}
		period = nil
	}
	plain := rule{Days: s.Days}
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
		days, times := drawDays(r).Days, drawTimes(r, 2)
		days.Yearly = nil
		if r.IntN(4) > 0 {
			days.Monthdays, days.FromEnd = 0, 0
		}
		var positions []int
		for range 1 + r.IntN(3) {
			positions = append(positions, oneOf(r, 1, 2, 3, 5, -1, -2, -3, -5, 100, -100, 366, -366, 1+r.IntN(40)))
		}
		s := civil.NewSetpos(days, times, positions)
		// The first period is whole: it starts with a year, and with a week on any weekday.
		start := dayOf(2019+r.IntN(6), 1, 1)
		for s.Days.Unit == civil.PerWeek && civil.WeekdayOf(start) != s.Days.Wkst {
			start++
		}
		all := positioned(s, positions, start, start+1500)
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
					t.Fatalf("%+v, positions %v: from %d on comes %d, %t, not %d", days, positions, local, got, ok, want)
				}
				if i == 0 {
					continue
				}
				if got, ok := s.Previous(local - 1); !ok || got != all[i-1] {
					t.Fatalf("%+v, positions %v: before %d comes %d, %t, not %d", days, positions, local, got, ok, all[i-1])
				}
			}
		}
	}
}

func TestAPositionThatNoPeriodHasIsNeverFound(t *testing.T) {
	noon := civil.Daytimes{Hours: 1 << 12, Minutes: 1, Seconds: 1}
	for name, s := range map[string]*civil.Setpos{
		"the second of one":       civil.NewSetpos(civil.Days{Unit: civil.PerDay}, noon, []int{2}),
		"the eighth of a week":    civil.NewSetpos(civil.Days{Unit: civil.PerWeek}, noon, []int{8, -8}),
		"the 32nd of a month":     civil.NewSetpos(civil.Days{Unit: civil.PerMonth}, noon, []int{32, -32}),
		"the 32nd of a January":   civil.NewSetpos(civil.Days{Unit: civil.PerYear, Months: 1 << 1}, noon, []int{32}),
		"days that never come":    civil.NewSetpos(civil.Days{Unit: civil.PerYear, Months: 1 << 2, Monthdays: 1 << 30}, noon, []int{1}),
		"a position without days": civil.NewSetpos(civil.Days{Unit: civil.PerYear}, noon, []int{0}),
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
	leap := civil.NewSetpos(civil.Days{Unit: civil.PerYear}, noon, []int{366})
	if got, ok := leap.Next(dayOf(1897, 1, 1) * civil.DaySeconds); !ok || got != dayOf(1904, 12, 31)*civil.DaySeconds+43200 {
		t.Errorf("the 366th day after 1896: %d, %t", got, ok)
	}
}
