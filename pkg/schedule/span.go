package schedule

import (
	"slices"
	"sort"
)

// span is the time from start up to, but without, end.
type span struct{ start, end int64 }

// source is a set of spans, given or made by a rule, that answers where time
// goes in and out of them. Spans may overlap.
type source interface {
	until(t int64) (int64, bool)  // the latest end of a span that contains t, or an earlier instant up to which all is contained
	since(t int64) (int64, bool)  // the earliest start of a span that contains t
	opens(t int64) (int64, bool)  // the first start after t
	closed(t int64) (int64, bool) // the last end at or before t
}

// spans is a source of given times, merged and in order.
type spans []span

func newSpans(list []span) spans {
	list = slices.DeleteFunc(list, func(s span) bool { return s.end <= s.start })
	sort.Slice(list, func(i, j int) bool { return list[i].start < list[j].start })
	var merged spans
	for _, s := range list {
		if last := len(merged) - 1; last >= 0 && s.start <= merged[last].end {
			merged[last].end = max(merged[last].end, s.end)
		} else {
			merged = append(merged, s)
		}
	}
	return merged
}

// after is the number of spans that start at or before t.
func (s spans) after(t int64) int {
	low, high := 0, len(s)
	for low < high {
		middle := int(uint(low+high) >> 1)
		if s[middle].start <= t {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low
}

func (s spans) until(t int64) (int64, bool) {
	i := s.after(t) - 1
	if i < 0 || s[i].end <= t {
		return 0, false
	}
	return s[i].end, true
}

func (s spans) since(t int64) (int64, bool) {
	i := s.after(t) - 1
	if i < 0 || s[i].end <= t {
		return 0, false
	}
	return s[i].start, true
}

func (s spans) opens(t int64) (int64, bool) {
	i := s.after(t)
	if i == len(s) {
		return 0, false
	}
	return s[i].start, true
}

func (s spans) closed(t int64) (int64, bool) {
	i := s.after(t) - 1
	if i >= 0 && s[i].end > t {
		i--
	}
	if i < 0 {
		return 0, false
	}
	return s[i].end, true
}
