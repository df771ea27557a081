package civil

import "sync/atomic"

// longSearch is after how many steps it is remembered what a search has found (a guess): less is
// sooner done again than looked up.
const longSearch = 4

// gaps remember a long stretch without any time, the last one for each way in which the clock is
// asked: a rule that fires seldom is asked about one stretch again and again. Nothing but speed
// depends on it.
type gaps struct{ ahead, back atomic.Pointer[gap] }

// gap is a stretch between two times.
type gap struct {
	start, end           int64
	hasBefore, hasBehind bool // start and end are times, and not only where nothing is known any more
}

// search looks for a time from local on, or back from it, and says how many steps that took.
type search func(local int64) (found int64, ok bool, steps int)

// next is what a search ahead finds at or after local.
func (g *gaps) next(local int64, ahead, back search) (int64, bool) {
	if known := g.ahead.Load(); known != nil && known.start < local && local <= known.end {
		return known.end, known.hasBehind
	}
	found, ok, steps := ahead(local)
	if steps > longSearch {
		before, has, _ := back(local - 1)
		g.ahead.Store(newGap(local, before, found, has, ok))
	}
	return found, ok
}

// previous is what a search back finds at or before local.
func (g *gaps) previous(local int64, ahead, back search) (int64, bool) {
	if known := g.back.Load(); known != nil && known.start <= local && local < known.end {
		return known.start, known.hasBefore
	}
	found, ok, steps := back(local)
	if steps > longSearch {
		behind, has, _ := ahead(local + 1)
		g.back.Store(newGap(local, found, behind, ok, has))
	}
	return found, ok
}

// newGap is the one around local. Where a search found nothing, it looked over 400 years: that is
// enough for whoever asks a century from there.
func newGap(local, before, behind int64, hasBefore, hasBehind bool) *gap {
	if !hasBefore {
		before = local - CycleSeconds/4
	}
	if !hasBehind {
		behind = local + CycleSeconds/4
	}
	return &gap{start: before, end: behind, hasBefore: hasBefore, hasBehind: hasBehind}
}
