package civil

// Stride is the clock of every n-th hour or minute, counted on the wall from
// its anchor, of which days and times let some pass.
type Stride struct {
	Days   Days
	Times  Daytimes
	Unit   int64 // an hour or a minute
	Step   int64 // every so many seconds, a multiple of Unit
	Anchor int64 // the start of a unit
}

// Next looks at unit by unit, and leaps over days and hours that cannot match.
func (s *Stride) Next(local int64) (int64, bool) {
	horizon := local + CycleSeconds
	k := CeilDiv(local-s.Unit+1-s.Anchor, s.Step)
	for {
		start := s.Anchor + k*s.Step
		if start > horizon {
			return 0, false
		}
		from := max(start, local)
		day, second := SplitLocal(from)
		found, ok := s.Days.Next(day)
		if !ok {
			return 0, false
		}
		target := found * DaySeconds
		if found == day {
			time, ok := s.Times.Next(second)
			target = day*DaySeconds + int64(time)
			if ok && target < start+s.Unit {
				return target, true
			}
			if !ok {
				target = (day + 1) * DaySeconds
			}
		}
		k = max(k+1, CeilDiv(target-s.Unit+1-s.Anchor, s.Step))
	}
}

// Previous is Next, backwards.
func (s *Stride) Previous(local int64) (int64, bool) {
	horizon := local - CycleSeconds
	k := FloorDiv(local-s.Anchor, s.Step)
	for {
		start := s.Anchor + k*s.Step
		if start < horizon {
			return 0, false
		}
		day, second := SplitLocal(min(local, start+s.Unit-1))
		found, ok := s.Days.Previous(day)
		if !ok {
			return 0, false
		}
		target := found*DaySeconds + DaySeconds - 1
		if found == day {
			time, ok := s.Times.Previous(second)
			target = day*DaySeconds + int64(time)
			if ok && target >= start {
				return target, true
			}
			if !ok {
				target = day*DaySeconds - 1
			}
		}
		k = min(k-1, FloorDiv(target-s.Anchor, s.Step))
	}
}

// Reachable tells whether any time of day that is asked for is ever a multiple
// of the step away from the anchor. It spares Next a search that cannot end
// well: every second minute from an even one never comes to an odd one.
func (s *Stride) Reachable() bool {
	shared := gcd(s.Step, DaySeconds)
	for start := int64(0); start < DaySeconds; start += s.Unit {
		time, ok := s.Times.Next(int(start))
		if ok && int64(time) < start+s.Unit && FloorMod(start-s.Anchor, shared) == 0 {
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
