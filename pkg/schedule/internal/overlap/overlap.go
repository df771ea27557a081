// Package overlap finds when several sources of spans have one at the same instant, or that they
// never do: of sources that repeat every week while clocks do not change, one week says it.
package overlap

import (
	"slices"

	"github.com/kubectl-maint/kubectl-maint/pkg/schedule/internal/civil"
)

// Source has spans that repeat every week while its clocks do not change.
type Source interface {
	Contains(t int64) bool
	Opens(t int64) int64                  // the first start of a span after t, or never
	Closed(t int64) int64                 // the last end of a span at or before t, or the beginning
	Repeats(t int64) (start, end int64)   // a stretch around t, or beginning after it, in which they repeat; its end is after t
	Offsets(to []int64, at int64) []int64 // of its clocks at an instant, appended
}

// Finder finds the instants at which all sources have a span.
type Finder struct {
	sources []Source
	spend   func(n int) bool // whether n sources more may be asked
	apart   [][]int64        // the offsets with which a week has no such instant
}

// mostApart bounds what a finder remembers: zones have two offsets each, but for their history.
const mostApart = 16

// Of is a finder of some sources.
func Of(sources []Source, spend func(n int) bool) *Finder {
	return &Finder{sources: sources, spend: spend}
}

// Next is the first such instant from t on, or never where there is none up to a horizon. Where
// no more may be asked it is the instant that was reached: there is none before it.
func (f *Finder) Next(t, horizon int64) int64 {
	for t <= horizon {
		start, end := f.repeats(t)
		repeats := start <= t && (end == civil.Never || end-t >= civil.WeekSeconds)
		offsets := f.offsets(t)
		if repeats && f.isApart(offsets) {
			t = end
			continue
		}
		to := end
		switch {
		case repeats:
			to = t + civil.WeekSeconds
		case start > t:
			to = min(start, end)
		}
		found := f.ahead(t, to)
		if found < to {
			return found
		}
		if repeats {
			f.noteApart(offsets)
			to = end
		}
		t = to
	}
	return civil.Never
}

// Last is the last such instant up to t, or the beginning where there is none down to a horizon.
// Where no more may be asked it is the instant that was reached: there is none after it.
func (f *Finder) Last(t, horizon int64) int64 {
	for t >= horizon {
		start, _ := f.repeats(t)
		repeats := start <= t && (start == civil.Beginning || t-start >= civil.WeekSeconds)
		offsets := f.offsets(t)
		if repeats && f.isApart(offsets) {
			if start == civil.Beginning {
				return start
			}
			t = start - 1
			continue
		}
		down := t - civil.HourSeconds // after a change of clocks, until the stretch before it is reached
		switch {
		case repeats:
			down = t - civil.WeekSeconds
		case start <= t:
			down = start - 1
		}
		found := f.back(t, down)
		if found > down {
			return found
		}
		if repeats {
			f.noteApart(offsets)
		}
		t = down
	}
	return civil.Beginning
}

// ahead is the first such instant from t on and before another, where it was reached, or that other.
func (f *Finder) ahead(t, to int64) int64 {
	for t < to && f.spend(len(f.sources)) {
		last := t
		for _, s := range f.sources {
			if !s.Contains(t) {
				last = max(last, s.Opens(t))
			}
		}
		if last == t {
			return t
		}
		t = last
	}
	return min(t, to)
}

// back is the last such instant up to t and after another, where it was reached, or that other.
func (f *Finder) back(t, down int64) int64 {
	for t > down && f.spend(len(f.sources)) {
		first := t
		for _, s := range f.sources {
			if s.Contains(t) {
				continue
			}
			closed := s.Closed(t)
			if closed == civil.Beginning {
				return down
			}
			first = min(first, closed-1)
		}
		if first == t {
			return t
		}
		t = first
	}
	return max(t, down)
}

// repeats is what the calm stretches of all sources share.
func (f *Finder) repeats(t int64) (start, end int64) {
	start, end = civil.Beginning, civil.Never
	for _, s := range f.sources {
		from, to := s.Repeats(t)
		start, end = max(start, from), min(end, to)
	}
	return start, end
}

func (f *Finder) offsets(t int64) []int64 {
	var out []int64
	for _, s := range f.sources {
		out = s.Offsets(out, t)
	}
	return out
}

func (f *Finder) isApart(offsets []int64) bool {
	return slices.ContainsFunc(f.apart, func(known []int64) bool { return slices.Equal(known, offsets) })
}

func (f *Finder) noteApart(offsets []int64) {
	if len(f.apart) < mostApart {
		f.apart = append(f.apart, offsets)
	}
}
