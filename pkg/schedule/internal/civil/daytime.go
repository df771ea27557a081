package civil

import "math/bits"

// Bits of a day: bit h stands for hour h, bit m for minute m of an hour.
const (
	EveryHour   = uint32(1<<24 - 1)
	EveryMinute = uint64(1<<60 - 1)
)

// Daytimes is a set of times of day: each hour with each minute with each
// second. None of the three is empty.
type Daytimes struct {
	Hours            uint32
	Minutes, Seconds uint64
}

func (t Daytimes) at(hour, minute, second int) int {
	return (hour*60+minute)*60 + second
}

// First is the first time of the day.
func (t Daytimes) First() int {
	return t.at(bits.TrailingZeros32(t.Hours), bits.TrailingZeros64(t.Minutes), bits.TrailingZeros64(t.Seconds))
}

// Last is the last time of the day.
func (t Daytimes) Last() int {
	return t.at(31-bits.LeadingZeros32(t.Hours), 63-bits.LeadingZeros64(t.Minutes), 63-bits.LeadingZeros64(t.Seconds))
}

// Next is the first time at or after a second of the day.
func (t Daytimes) Next(second int) (int, bool) {
	hour, minute, rest := second/3600, second/60%60, second%60
	if t.Hours>>hour&1 != 0 {
		if t.Minutes>>minute&1 != 0 {
			if left := t.Seconds >> rest; left != 0 {
				return second + bits.TrailingZeros64(left), true
			}
		}
		if left := t.Minutes >> (minute + 1); left != 0 {
			return t.at(hour, minute+1+bits.TrailingZeros64(left), bits.TrailingZeros64(t.Seconds)), true
		}
	}
	left := t.Hours >> (hour + 1)
	if left == 0 {
		return 0, false
	}
	return t.at(hour+1+bits.TrailingZeros32(left), bits.TrailingZeros64(t.Minutes), bits.TrailingZeros64(t.Seconds)), true
}

// Previous is the last time at or before a second of the day.
func (t Daytimes) Previous(second int) (int, bool) {
	hour, minute, rest := second/3600, second/60%60, second%60
	if t.Hours>>hour&1 != 0 {
		if t.Minutes>>minute&1 != 0 {
			if left := t.Seconds << (63 - rest); left != 0 {
				return second - bits.LeadingZeros64(left), true
			}
		}
		if left := t.Minutes & (1<<minute - 1); left != 0 {
			return t.at(hour, 63-bits.LeadingZeros64(left), 63-bits.LeadingZeros64(t.Seconds)), true
		}
	}
	left := t.Hours & (1<<hour - 1)
	if left == 0 {
		return 0, false
	}
	return t.at(31-bits.LeadingZeros32(left), 63-bits.LeadingZeros64(t.Minutes), 63-bits.LeadingZeros64(t.Seconds)), true
}

// Count is how many times there are in a day.
func (t Daytimes) Count() int {
	return bits.OnesCount32(t.Hours) * bits.OnesCount64(t.Minutes) * bits.OnesCount64(t.Seconds)
}

// Before counts the times before a second of the day.
func (t Daytimes) Before(second int) int {
	hour, minute, rest := second/3600, second/60%60, second%60
	minutes, seconds := bits.OnesCount64(t.Minutes), bits.OnesCount64(t.Seconds)
	n := bits.OnesCount32(t.Hours&(1<<hour-1)) * minutes * seconds
	if t.Hours>>hour&1 == 0 {
		return n
	}
	n += bits.OnesCount64(t.Minutes&(1<<minute-1)) * seconds
	if t.Minutes>>minute&1 == 0 {
		return n
	}
	return n + bits.OnesCount64(t.Seconds&(1<<rest-1))
}

// Pick is the n-th time of the day, from 0.
func (t Daytimes) Pick(n int) int {
	seconds, minutes := bits.OnesCount64(t.Seconds), bits.OnesCount64(t.Minutes)
	return t.at(pickBit(uint64(t.Hours), n/seconds/minutes), pickBit(t.Minutes, n/seconds%minutes), pickBit(t.Seconds, n%seconds))
}

// pickBit is the place of the n-th bit that is set, from 0.
func pickBit(set uint64, n int) int {
	for ; n > 0; n-- {
		set &= set - 1
	}
	return bits.TrailingZeros64(set)
}

// Run is one of openings in one day, from the first to the last, in seconds of the day.
type Run struct{ First, Last int }

// Dense joins openings that come before the window of the last one has ended,
// where there are many of them in a day, so that a window a minute is not
// followed minute by minute.
func (t Daytimes) Dense(length int64) []Run {
	if t.Count() <= 24 {
		return nil
	}
	var runs []Run
	for at, ok := t.Next(0); ok; at, ok = t.Next(at + 1) {
		if last := len(runs) - 1; last >= 0 && int64(at-runs[last].Last) <= length {
			runs[last].Last = at
		} else {
			runs = append(runs, Run{at, at})
		}
		if at == 86399 {
			break
		}
	}
	return runs
}
