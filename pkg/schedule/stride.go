package schedule

import (
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule/internal/civil"
)

// stride is the clock of every n-th hour or minute, counted on the wall from
// its anchor, of which days and times let some pass.
type stride struct {
	days   civil.Days
	times  civil.Daytimes
	unit   int64 // an hour or a minute
	step   int64 // every so many seconds, a multiple of unit
	anchor int64 // the start of a unit
}

// next looks at unit by unit, and leaps over days and hours that cannot match.
func (s *stride) next(local int64) (int64, bool) {
	horizon := local + civil.CycleSeconds
	k := civil.CeilDiv(local-s.unit+1-s.anchor, s.step)
	for {
		start := s.anchor + k*s.step
		if start > horizon {
			return 0, false
		}
		from := max(start, local)
		day, second := civil.SplitLocal(from)
		found, ok := s.days.Next(day)
		if !ok {
			return 0, false
		}
		target := found * civil.DaySeconds
		if found == day {
			time, ok := s.times.Next(second)
			target = day*civil.DaySeconds + int64(time)
			if ok && target < start+s.unit {
				return target, true
			}
			if !ok {
				target = (day + 1) * civil.DaySeconds
			}
		}
		k = max(k+1, civil.CeilDiv(target-s.unit+1-s.anchor, s.step))
	}
}

// previous is next, backwards.
func (s *stride) previous(local int64) (int64, bool) {
	horizon := local - civil.CycleSeconds
	k := civil.FloorDiv(local-s.anchor, s.step)
	for {
		start := s.anchor + k*s.step
		if start < horizon {
			return 0, false
		}
		day, second := civil.SplitLocal(min(local, start+s.unit-1))
		found, ok := s.days.Previous(day)
		if !ok {
			return 0, false
		}
		target := found*civil.DaySeconds + civil.DaySeconds - 1
		if found == day {
			time, ok := s.times.Previous(second)
			target = day*civil.DaySeconds + int64(time)
			if ok && target >= start {
				return target, true
			}
			if !ok {
				target = day*civil.DaySeconds - 1
			}
		}
		k = min(k-1, civil.FloorDiv(target-s.anchor, s.step))
	}
}

// reachable tells whether any time of day that is asked for is ever a multiple
// of the step away from the anchor. It spares next a search that cannot end
// well: every second minute from an even one never comes to an odd one.
func (s *stride) reachable() bool {
	shared := gcd(s.step, civil.DaySeconds)
	for start := int64(0); start < civil.DaySeconds; start += s.unit {
		time, ok := s.times.Next(int(start))
		if ok && int64(time) < start+s.unit && civil.FloorMod(start-s.anchor, shared) == 0 {
			return true
		}
	}
	return false
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
