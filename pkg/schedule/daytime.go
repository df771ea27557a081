package schedule

import "math/bits"

const (
	everyHour   = uint32(1<<24 - 1)
	everyMinute = uint64(1<<60 - 1)
)

// daytimes is a set of times of day: each hour with each minute with each
// second. None of the three is empty.
type daytimes struct {
	hours            uint32
	minutes, seconds uint64
}

func (t daytimes) at(hour, minute, second int) int {
	return (hour*60+minute)*60 + second
}

func (t daytimes) first() int {
	return t.at(bits.TrailingZeros32(t.hours), bits.TrailingZeros64(t.minutes), bits.TrailingZeros64(t.seconds))
}

func (t daytimes) last() int {
	return t.at(31-bits.LeadingZeros32(t.hours), 63-bits.LeadingZeros64(t.minutes), 63-bits.LeadingZeros64(t.seconds))
}

// next is the first time at or after a second of the day.
func (t daytimes) next(second int) (int, bool) {
	hour, minute, rest := second/3600, second/60%60, second%60
	if t.hours>>hour&1 != 0 {
		if t.minutes>>minute&1 != 0 {
			if left := t.seconds >> rest; left != 0 {
				return second + bits.TrailingZeros64(left), true
			}
		}
		if left := t.minutes >> (minute + 1); left != 0 {
			return t.at(hour, minute+1+bits.TrailingZeros64(left), bits.TrailingZeros64(t.seconds)), true
		}
	}
	left := t.hours >> (hour + 1)
	if left == 0 {
		return 0, false
	}
	return t.at(hour+1+bits.TrailingZeros32(left), bits.TrailingZeros64(t.minutes), bits.TrailingZeros64(t.seconds)), true
}

// previous is the last time at or before a second of the day.
func (t daytimes) previous(second int) (int, bool) {
	hour, minute, rest := second/3600, second/60%60, second%60
	if t.hours>>hour&1 != 0 {
		if t.minutes>>minute&1 != 0 {
			if left := t.seconds << (63 - rest); left != 0 {
				return second - bits.LeadingZeros64(left), true
			}
		}
		if left := t.minutes & (1<<minute - 1); left != 0 {
			return t.at(hour, 63-bits.LeadingZeros64(left), 63-bits.LeadingZeros64(t.seconds)), true
		}
	}
	left := t.hours & (1<<hour - 1)
	if left == 0 {
		return 0, false
	}
	return t.at(31-bits.LeadingZeros32(left), 63-bits.LeadingZeros64(t.minutes), 63-bits.LeadingZeros64(t.seconds)), true
}

func (t daytimes) count() int {
	return bits.OnesCount32(t.hours) * bits.OnesCount64(t.minutes) * bits.OnesCount64(t.seconds)
}

// before counts the times before a second of the day.
func (t daytimes) before(second int) int {
	hour, minute, rest := second/3600, second/60%60, second%60
	minutes, seconds := bits.OnesCount64(t.minutes), bits.OnesCount64(t.seconds)
	n := bits.OnesCount32(t.hours&(1<<hour-1)) * minutes * seconds
	if t.hours>>hour&1 == 0 {
		return n
	}
	n += bits.OnesCount64(t.minutes&(1<<minute-1)) * seconds
	if t.minutes>>minute&1 == 0 {
		return n
	}
	return n + bits.OnesCount64(t.seconds&(1<<rest-1))
}

// pick is the n-th time of the day, from 0.
func (t daytimes) pick(n int) int {
	seconds, minutes := bits.OnesCount64(t.seconds), bits.OnesCount64(t.minutes)
	return t.at(pickBit(uint64(t.hours), n/seconds/minutes), pickBit(t.minutes, n/seconds%minutes), pickBit(t.seconds, n%seconds))
}

// pickBit is the place of the n-th bit that is set, from 0.
func pickBit(set uint64, n int) int {
	for ; n > 0; n-- {
		set &= set - 1
	}
	return bits.TrailingZeros64(set)
}
