package civil

// Wall is the clock of times of day on some days.
type Wall struct {
	Days  Days
	Times Daytimes

	gaps gaps
}

// Next is the first time at or after local.
func (c *Wall) Next(local int64) (int64, bool) {
	return c.gaps.next(local, c.searchNext, c.searchPrevious)
}

func (c *Wall) searchNext(local int64) (int64, bool, int) {
	day, second := SplitLocal(local)
	found, ok, steps := c.Days.next(day)
	if !ok {
		return 0, false, steps
	}
	if found == day {
		if second, ok := c.Times.Next(second); ok {
			return day*DaySeconds + int64(second), true, steps
		}
		if found, ok, steps = c.Days.next(day + 1); !ok {
			return 0, false, steps
		}
	}
	return found*DaySeconds + int64(c.Times.First()), true, steps
}

// Previous is the last time at or before local.
func (c *Wall) Previous(local int64) (int64, bool) {
	return c.gaps.previous(local, c.searchNext, c.searchPrevious)
}

func (c *Wall) searchPrevious(local int64) (int64, bool, int) {
	day, second := SplitLocal(local)
	found, ok, steps := c.Days.previous(day)
	if !ok {
		return 0, false, steps
	}
	if found == day {
		if second, ok := c.Times.Previous(second); ok {
			return day*DaySeconds + int64(second), true, steps
		}
		if found, ok, steps = c.Days.previous(day - 1); !ok {
			return 0, false, steps
		}
	}
	return found*DaySeconds + int64(c.Times.Last()), true, steps
}

// Nth is the n-th time at or after local, from 0.
func (c *Wall) Nth(local int64, n int) (int64, bool) {
	local, ok := c.Next(local)
	if !ok {
		return 0, false
	}
	day, second := SplitLocal(local)
	n += c.Times.Before(second)
	day, ok = c.Days.Nth(day, n/c.Times.Count())
	return day*DaySeconds + int64(c.Times.Pick(n%c.Times.Count())), ok
}

// Steps bounds how many steps it takes to follow the clock for 400 years, beside one for each time.
func (c *Wall) Steps() int { return c.Days.steps() }
