package civil

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// asksFor says the slow way whether a day and time of day are asked for, of what random clocks have.
func asksFor(d *Days, times Daytimes, local int64) bool {
	day, second := SplitLocal(local)
	_, month, dayOfMonth := DateOf(day)
	return (d.Months == 0 || d.Months>>month&1 != 0) && (d.Monthdays == 0 || d.Monthdays>>dayOfMonth&1 != 0) && (d.Weekdays == 0 || d.Weekdays>>WeekdayOf(day)&1 != 0) &&
		times.Hours>>(second/3600)&1 != 0 && times.Minutes>>(second/60%60)&1 != 0 && times.Seconds>>(second%60)&1 != 0
}

// drawBits draws up to so many of n bits from one on.
func drawBits(r *rand.Rand, times, from, n int) (set uint64) {
	for range times {
		set |= 1 << (from + r.IntN(n))
	}
	return set
}

func drawDays(r *rand.Rand) Days {
	d := Days{Unit: PerDay, Interval: 1, Wkst: 1}
	if r.IntN(3) == 0 {
		d.Months = uint16(drawBits(r, 2, 1, 12))
	}
	if r.IntN(3) == 0 {
		d.Monthdays = uint32(drawBits(r, 3, 1, 31))
	}
	if r.IntN(3) == 0 {
		d.Weekdays = uint8(drawBits(r, 2, 0, 7))
	}
	return d
}

func drawTimes(r *rand.Rand) Daytimes {
	times := Daytimes{Hours: EveryHour, Minutes: EveryMinute, Seconds: 1 << r.IntN(60)}
	if r.IntN(2) == 0 {
		times.Hours = uint32(drawBits(r, 2, 0, 24))
	}
	if r.IntN(2) == 0 {
		times.Minutes = drawBits(r, 2, 0, 60) | r.Uint64()&EveryMinute>>r.IntN(60)
	}
	return times
}

type clockOfTest interface {
	Next(local int64) (int64, bool)
	Previous(local int64) (int64, bool)
}

// compare asks a clock about instants in any order, and again, so that it is asked what it remembers.
func compare(t *testing.T, r *rand.Rand, words string, clock clockOfTest, times []int64, from, to int64) {
	t.Helper()
	for range 40 {
		local := from + r.Int64N(to-from)
		if n := len(times); n > 0 && r.IntN(3) == 0 {
			local = times[r.IntN(n)] + r.Int64N(3) - 1
		}
		for range 2 {
			i, _ := slices.BinarySearch(times, local)
			if got, ok := clock.Next(local); i < len(times) && (!ok || got != times[i]) || i == len(times) && ok && got < to {
				t.Fatalf("%s: %d %t is next from %d", words, got, ok, local)
			}
			i, _ = slices.BinarySearch(times, local+1)
			if got, ok := clock.Previous(local); i > 0 && (!ok || got != times[i-1]) || i == 0 && ok && got >= from {
				t.Fatalf("%s: %d %t is last up to %d", words, got, ok, local)
			}
			local += r.Int64N(5000) - 2500
		}
	}
}

func TestAStrideIsWalkedStepByStep(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 2026))
	steps := []int64{1, 7, 23, 24, 25, 90, 168, 169, 720, 1438, 1439, 1440, 1441, 10079, 10080, 10081, 43829}
	for range 250 {
		s := &Stride{Days: drawDays(r), Times: drawTimes(r), Unit: MinuteSeconds}
		if r.IntN(3) == 0 {
			s.Unit = HourSeconds
		}
		s.Step = s.Unit * steps[r.IntN(len(steps))]
		from := 1767225600 + r.Int64N(400*DaySeconds)
		s.Anchor = FloorDiv(from-r.Int64N(9999*DaySeconds), s.Unit) * s.Unit
		to := from + 900*DaySeconds
		if s.Step < 90*MinuteSeconds {
			to = from + 90*DaySeconds
		}
		var times []int64
		for at := s.Anchor + FloorDiv(from-s.Anchor, s.Step)*s.Step; at < to; at += s.Step {
			for second := at; second < at+s.Unit; second++ {
				if minute := second % 60; s.Times.Seconds>>minute&1 == 0 || second < from || second >= to {
					continue
				}
				if asksFor(&s.Days, s.Times, second) {
					times = append(times, second)
				}
			}
		}
		compare(t, r, "a stride", s, times, from, to)
	}
}

func TestPositionsAreCountedPeriodByPeriod(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 2026))
	for range 60 {
		days, times := drawDays(r), drawTimes(r)
		times.Hours, times.Minutes = uint32(drawBits(r, 2, 0, 24)), drawBits(r, 2, 0, 60)
		days.Unit, days.Wkst = Unit(r.IntN(4)), r.IntN(7)
		var positions []int
		for range 1 + r.IntN(3) {
			n := 1 + r.IntN(6)
			if r.IntN(4) == 0 {
				n = 1 + r.IntN(366)
			}
			if r.IntN(2) == 0 {
				n = -n
			}
			positions = append(positions, n)
		}
		s := NewSetpos(days, times, positions)
		begin, _ := SplitLocal(1767225600 + r.Int64N(400*DaySeconds))
		first := s.first(begin)
		day := first
		var picked []int64
		for day < begin+1200 {
			end := s.last(day)
			var all []int64
			for ; day <= end; day++ {
				for second := int64(times.Last() % 60); second < DaySeconds; second += 60 {
					if asksFor(&days, times, day*DaySeconds+second) {
						all = append(all, day*DaySeconds+second)
					}
				}
			}
			for _, n := range positions {
				if n > 0 && n <= len(all) {
					picked = append(picked, all[n-1])
				}
				if n < 0 && -n <= len(all) {
					picked = append(picked, all[len(all)+n])
				}
			}
		}
		slices.Sort(picked)
		compare(t, r, "positions", s, slices.Compact(picked), first*DaySeconds, day*DaySeconds)
	}
}
