package civil

import (
	"math/bits"
	"sync"
)

// Stride is the clock of every n-th hour or minute, counted on the wall from
// its anchor, of which days and times let some pass.
type Stride struct {
	Days   Days
	Times  Daytimes
	Unit   int64 // an hour or a minute
	Step   int64 // every so many seconds, a multiple of Unit
	Anchor int64 // the start of a unit

	once sync.Once
	lap  int64    // after how many steps it comes to the same time of the same day again, or of the same weekday
	hits []uint64 // the steps of a lap that come to a time that is asked for; nil: all
	gaps gaps
}

// around is after what time of the clock the same is asked for again, but for dates.
func (s *Stride) around() int64 {
	everyTime := s.Times.Hours == EveryHour && (s.Unit == HourSeconds || s.Times.Minutes == EveryMinute)
	switch {
	case s.Days.Weekdays != 0 && !s.Days.Either:
		return WeekSeconds
	case everyTime:
		return s.Unit
	}
	return DaySeconds
}

// find notes the hits.
func (s *Stride) find() {
	around := s.around()
	if around == s.Unit {
		return
	}
	s.lap = around / gcd(s.Step, around)
	s.hits = make([]uint64, (s.lap+63)/64)
	at, ahead := FloorMod(s.Anchor, around), FloorMod(s.Step, around)
	for k := range s.lap {
		if s.asks(at) {
			s.hits[k/64] |= 1 << (k % 64)
		}
		if at += ahead; at >= around {
			at -= around
		}
	}
}

// asks says whether a unit has a time that is asked for, by the time of the day and the weekday alone.
func (s *Stride) asks(start int64) bool {
	day, second := start/DaySeconds, start%DaySeconds
	return s.Times.Hours>>(second/HourSeconds)&1 != 0 &&
		(s.Unit == HourSeconds || s.Times.Minutes>>(second/MinuteSeconds%60)&1 != 0) &&
		(s.Days.Weekdays == 0 || s.Days.Either || s.Days.Weekdays>>WeekdayOf(day)&1 != 0)
}

// hit is the first step from k on that comes to a time that is asked for.
func (s *Stride) hit(k int64) (int64, bool) {
	if s.once.Do(s.find); s.hits == nil {
		return k, true
	}
	at := FloorMod(k, s.lap)
	begin := k - at
	word := at / 64
	left := s.hits[word] >> (at % 64) << (at % 64)
	for range len(s.hits) + 1 {
		if left != 0 {
			return begin + word*64 + int64(bits.TrailingZeros64(left)), true
		}
		if word++; word == int64(len(s.hits)) {
			word, begin = 0, begin+s.lap
		}
		left = s.hits[word]
	}
	return 0, false
}

// hitBefore is the last step up to k that comes to a time that is asked for.
func (s *Stride) hitBefore(k int64) (int64, bool) {
	if s.once.Do(s.find); s.hits == nil {
		return k, true
	}
	at := FloorMod(k, s.lap)
	begin := k - at
	word := at / 64
	left := s.hits[word] << (63 - at%64) >> (63 - at%64)
	for range len(s.hits) + 1 {
		if left != 0 {
			return begin + word*64 + 63 - int64(bits.LeadingZeros64(left)), true
		}
		if word--; word < 0 {
			word, begin = int64(len(s.hits))-1, begin-s.lap
		}
		left = s.hits[word]
	}
	return 0, false
}

// Next leaps over times of the day and days that are not asked for.
func (s *Stride) Next(local int64) (int64, bool) {
	return s.gaps.next(local, s.searchNext, s.searchPrevious)
}

func (s *Stride) searchNext(local int64) (int64, bool, int) {
	horizon, steps := local+CycleSeconds, 0
	from := CeilDiv(local-s.Unit+1-s.Anchor, s.Step)
	for {
		k, ok := s.hit(from)
		start := s.Anchor + k*s.Step
		if !ok || start > horizon {
			return 0, false, steps
		}
		day, second := SplitLocal(max(start, local))
		found, ok, months := s.Days.next(day)
		if steps += 1 + months; !ok {
			return 0, false, steps
		}
		target := found * DaySeconds
		if found == day {
			time, ok := s.Times.Next(second)
			target = day*DaySeconds + int64(time)
			if ok && target < start+s.Unit {
				return target, true, steps
			}
		}
		from = max(k+1, CeilDiv(target-s.Unit+1-s.Anchor, s.Step))
	}
}

// Previous is Next, backwards.
func (s *Stride) Previous(local int64) (int64, bool) {
	return s.gaps.previous(local, s.searchNext, s.searchPrevious)
}

func (s *Stride) searchPrevious(local int64) (int64, bool, int) {
	horizon, steps := local-CycleSeconds, 0
	from := FloorDiv(local-s.Anchor, s.Step)
	for {
		k, ok := s.hitBefore(from)
		start := s.Anchor + k*s.Step
		if !ok || start < horizon {
			return 0, false, steps
		}
		day, second := SplitLocal(min(local, start+s.Unit-1))
		found, ok, months := s.Days.previous(day)
		if steps += 1 + months; !ok {
			return 0, false, steps
		}
		target := found*DaySeconds + DaySeconds - 1
		if found == day {
			time, ok := s.Times.Previous(second)
			target = day*DaySeconds + int64(time)
			if ok && target >= start {
				return target, true, steps
			}
		}
		from = min(k-1, FloorDiv(target-s.Anchor, s.Step))
	}
}

// Steps bounds how many steps it takes to follow the clock for 400 years, beside one for each time.
func (s *Stride) Steps() int {
	d, lap := &s.Days, int(s.around()/gcd(s.Step, s.around())/stepsAtOnce)
	if d.Months|uint16(d.Monthdays)|uint16(d.Monthdays>>16)|uint16(d.FromEnd)|uint16(d.FromEnd>>16) == 0 && d.Yearly == nil &&
		d.Numbered == [6]uint8{} && d.FromLast == [6]uint8{} {
		return lap // hits say it all
	}
	months := CycleMonths
	if d.Months != 0 {
		months = months / 12 * bits.OnesCount16(d.Months)
	}
	return lap + d.steps() + 2*int(min(CycleSeconds/s.Step, int64(months)*stepsInMonth)) // one and the month of its day
}

// stepsAtOnce is how many steps of a lap take the time of one that is searched.
const stepsAtOnce = 10

// stepsInMonth bounds the steps in one month that come to a day without coming to a time there, month
// after month (a guess): the months are too unlike for more.
const stepsInMonth = 10

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
