package civil_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/schedule/internal/civil"
)

// bits sets some of the bits from low to high.
func bits(r *rand.Rand, low, high, most int) (set uint64) {
	for range 1 + r.IntN(most) {
		set |= 1 << (low + r.IntN(high-low+1))
	}
	return set
}

func drawTimes(r *rand.Rand, most int) civil.Daytimes {
	return civil.Daytimes{Hours: uint32(bits(r, 0, 23, most)), Minutes: bits(r, 0, 59, most), Seconds: bits(r, 0, 59, most)}
}

// timesOf lists the times of a day, second by second.
func timesOf(t civil.Daytimes) (all []int) {
	for second := range int(civil.DaySeconds) {
		if t.Hours>>(second/3600)&1 != 0 && t.Minutes>>(second/60%60)&1 != 0 && t.Seconds>>(second%60)&1 != 0 {
			all = append(all, second)
		}
	}
	return all
}

func TestTimesOfADayAreThoseOfItsSeconds(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	all := []civil.Daytimes{
		{Hours: civil.EveryHour, Minutes: civil.EveryMinute, Seconds: civil.EveryMinute},
		{Hours: 1, Minutes: 1, Seconds: 1},
		{Hours: 1 << 23, Minutes: 1 << 59, Seconds: 1 << 59},
		{Hours: 1<<23 | 1, Minutes: 1<<59 | 1, Seconds: 1<<59 | 1},
	}
	for range 8 {
		all = append(all, drawTimes(r, 6))
	}
	for _, times := range all {
		want := timesOf(times)
		if times.Count() != len(want) || times.First() != want[0] || times.Last() != want[len(want)-1] {
			t.Fatalf("%+v: %d from %d to %d, not %d from %d to %d", times, times.Count(), times.First(), times.Last(), len(want), want[0], want[len(want)-1])
		}
		for i := range want {
			if got := times.Pick(i); got != want[i] {
				t.Fatalf("%+v: time %d is %d, not %d", times, i, got, want[i])
			}
		}
		for second, i := 0, 0; second < int(civil.DaySeconds); second++ {
			if before := times.Before(second); before != i {
				t.Fatalf("%+v: %d before %d, not %d", times, before, second, i)
			}
			if got, ok := times.Next(second); ok != (i < len(want)) || ok && got != want[i] {
				t.Fatalf("%+v: %d, %t after %d, not %d of %v", times, got, ok, second, i, want)
			}
			if i < len(want) && want[i] == second {
				i++
			}
			if got, ok := times.Previous(second); ok != (i > 0) || ok && got != want[i-1] {
				t.Fatalf("%+v: %d, %t up to %d, not the one before %d of %v", times, got, ok, second, i, want)
			}
		}
	}
}

func TestDenseOpeningsAreJoined(t *testing.T) {
	hourly, minute := civil.Daytimes{Hours: civil.EveryHour, Minutes: 1, Seconds: 1}, int64(60)
	for name, c := range map[string]struct {
		times  civil.Daytimes
		length int64
		want   []civil.Run
	}{
		"one an hour is followed one by one":     {hourly, 60 * minute, nil},
		"25 a day that touch are one":            {civil.Daytimes{Hours: 1 << 5, Minutes: 1<<25 - 1, Seconds: 1}, minute, []civil.Run{{First: 5 * 3600, Last: 5*3600 + 24*60}}},
		"a minute between them parts them":       {civil.Daytimes{Hours: 1 << 5, Minutes: (1<<13 - 1) | (1<<13-1)<<14, Seconds: 1}, minute, []civil.Run{{First: 18000, Last: 18000 + 12*60}, {First: 18000 + 14*60, Last: 18000 + 26*60}}},
		"windows that reach over it do not":      {civil.Daytimes{Hours: 1 << 5, Minutes: (1<<13 - 1) | (1<<13-1)<<14, Seconds: 1}, 2 * minute, []civil.Run{{First: 18000, Last: 18000 + 26*60}}},
		"to the last second of a day":            {civil.Daytimes{Hours: 1 << 23, Minutes: 1 << 59, Seconds: civil.EveryMinute}, 1, []civil.Run{{First: 86340, Last: 86399}}},
		"every second of a day is one from noon": {civil.Daytimes{Hours: civil.EveryHour &^ (1<<12 - 1), Minutes: civil.EveryMinute, Seconds: civil.EveryMinute}, 1, []civil.Run{{First: 43200, Last: 86399}}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, c.times.Dense(c.length)); diff != "" {
				t.Error(diff)
			}
		})
	}
	var apart []civil.Run
	every := civil.Daytimes{Hours: civil.EveryHour, Minutes: 1 | 1<<30, Seconds: 1}
	for _, second := range timesOf(every) {
		apart = append(apart, civil.Run{First: second, Last: second})
	}
	if got := every.Dense(30*minute - 1); !slices.Equal(got, apart) {
		t.Errorf("windows that do not touch: %v", got)
	}
}
