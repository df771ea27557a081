package civil_test

import (
	"math/rand/v2"
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/schedule/internal/civil"
)

// stridden lists the times of a rule that counts hours or minutes, from a day on.
func stridden(s *civil.Stride, start, end int64) (all []int64) {
	times := timesOf(s.Times)
	for day := start; day < end; day++ {
		if !wanted(&rule{Days: s.Days}, day) {
			continue
		}
		for _, second := range times {
			if local := day*civil.DaySeconds + int64(second); civil.FloorMod(local-s.Anchor, s.Step) < s.Unit {
				all = append(all, local)
			}
		}
	}
	return all
}

func drawStride(r *rand.Rand) *civil.Stride {
	unit := oneOf(r, civil.HourSeconds, civil.MinuteSeconds)
	s := &civil.Stride{
		Days: civil.Days{Weekdays: oneOf(r, 0, 0, uint8(1+r.UintN(127))), Monthdays: oneOf(r, 0, 0, r.Uint32()&civil.EveryMonthday)},
		Unit: unit, Step: unit * (1 + r.Int64N(oneOf[int64](r, 3, 50, 500))), Anchor: dayOf(oneOf(r, 1960, 2026), 1, 1)*civil.DaySeconds + unit*r.Int64N(20000),
		Times: civil.Daytimes{Hours: civil.EveryHour, Minutes: civil.EveryMinute, Seconds: oneOf(r, 1, bits(r, 0, 59, 2))},
	}
	if r.IntN(2) == 0 {
		s.Times.Hours = uint32(bits(r, 0, 23, 12))
	}
	if unit == civil.HourSeconds || r.IntN(2) == 0 {
		s.Times.Minutes = bits(r, 0, 59, 4) | oneOf[uint64](r, 0, 1)
	}
	return s
}

// TestStridesAreCountedFromTheirAnchor compares with a list of all times of each day.
func TestStridesAreCountedFromTheirAnchor(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 250 {
		s := drawStride(r)
		start := dayOf(2026, 1, 1) + r.Int64N(600)
		all := stridden(s, start, start+40)
		for i := 0; i < len(all); i += 1 + len(all)/300 {
			want, since := all[i], start*civil.DaySeconds
			if i > 0 {
				since = all[i-1] + 1
			}
			for _, local := range []int64{since, since + r.Int64N(want-since+1), want} {
				if got, ok := s.Next(local); !ok || got != want {
					t.Fatalf("%+v, every %d s from %d: from %d on comes %d, %t, not %d", s.Days, s.Step, s.Anchor, local, got, ok, want)
				}
				if i == 0 {
					continue
				}
				if got, ok := s.Previous(local - 1); !ok || got != all[i-1] {
					t.Fatalf("%+v, every %d s from %d: before %d comes %d, %t, not %d", s.Days, s.Step, s.Anchor, local, got, ok, all[i-1])
				}
			}
		}
	}
}

func TestAStrideThatCannotComeToItsTimesHasNone(t *testing.T) {
	every := civil.Daytimes{Hours: civil.EveryHour, Minutes: civil.EveryMinute, Seconds: 1}
	at := func(hours uint32, minutes uint64) civil.Daytimes {
		return civil.Daytimes{Hours: hours, Minutes: minutes, Seconds: 1 << 59}
	}
	for name, c := range map[string]struct {
		stride *civil.Stride
		want   bool
	}{
		"every time": {&civil.Stride{Times: every, Unit: 60, Step: 60}, true},
		"odd minutes, two by two from an even one": {&civil.Stride{Times: at(civil.EveryHour, 0xaaaaaaaaaaaaaaa), Unit: 60, Step: 120}, false},
		"odd minutes, two by two from an odd one":  {&civil.Stride{Times: at(civil.EveryHour, 0xaaaaaaaaaaaaaaa), Unit: 60, Step: 120, Anchor: 60}, true},
		"odd minutes, seven by seven":              {&civil.Stride{Times: at(civil.EveryHour, 0xaaaaaaaaaaaaaaa), Unit: 60, Step: 420}, true},
		"the end of an hour in a step of hours":    {&civil.Stride{Times: at(1<<6, 1<<59), Unit: 3600, Step: 2 * 3600}, true},
		"an odd hour, two by two":                  {&civil.Stride{Times: at(1<<7, 1), Unit: 3600, Step: 2 * 3600}, false},
		"the first hour alone":                     {&civil.Stride{Times: at(1, 1), Unit: 3600, Step: 24 * 3600}, true},
		"the last hour alone":                      {&civil.Stride{Times: at(1<<23, 1<<59), Unit: 3600, Step: 24 * 3600, Anchor: 23 * 3600}, true},
		"the minute after the one of the stride":   {&civil.Stride{Times: civil.Daytimes{Hours: civil.EveryHour, Minutes: 1 << 1, Seconds: 1}, Unit: 60, Step: 3600}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if at, got := c.stride.Next(0); got != c.want {
				t.Errorf("next %d, %t", at, got)
			}
			if at, got := c.stride.Previous(0); got != c.want {
				t.Errorf("previous %d, %t", at, got)
			}
		})
	}
}

// TestAStrideIsLookedForOver400Years is about the last start that is looked at: the day of the
// anchor is none of the rule's, and the same date 400 years away is one.
func TestAStrideIsLookedForOver400Years(t *testing.T) {
	day := dayOf(2026, 1, 1)
	stride := func(days civil.Days, hours uint32) *civil.Stride {
		return &civil.Stride{
			Days: days, Times: civil.Daytimes{Hours: hours, Minutes: 1, Seconds: 1},
			Unit: civil.HourSeconds, Step: civil.CycleSeconds, Anchor: day * civil.DaySeconds,
		}
	}
	every := civil.Days{Interval: 2, Anchor: day + 1}
	s := stride(every, 1)
	if got, ok := s.Next(s.Anchor); !ok || got != s.Anchor+civil.CycleSeconds {
		t.Errorf("next %d, %t", got, ok)
	}
	if got, ok := s.Previous(s.Anchor); !ok || got != s.Anchor-civil.CycleSeconds {
		t.Errorf("previous %d, %t", got, ok)
	}
	s = stride(every, 1<<5) // no hour of the stride
	if got, ok := s.Next(s.Anchor); ok {
		t.Errorf("next %d", got)
	}
	if got, ok := s.Previous(s.Anchor); ok {
		t.Errorf("previous %d", got)
	}
	s = stride(civil.Days{Months: 1 << 2, Monthdays: 1 << 30}, 1<<5)
	if got, ok := s.Next(s.Anchor); ok {
		t.Errorf("next %d", got)
	}
	if got, ok := s.Previous(s.Anchor); ok {
		t.Errorf("previous %d", got)
	}
}
