package simulate

import (
	"container/heap"
	"slices"
	"time"
)

// bell stands for one plan or run: it rings when that is to be looked at.
type bell struct {
	look func() (time.Time, error) // looks, and says when to look again; zero: only when something changes
	run  bool                      // runs are looked at before plans: what ends at an instant makes way for what begins there
	at   time.Time
	rung bool
	dead bool
}

// alarm is one setting of a bell. Bells that were set anew leave old ones behind.
type alarm struct {
	at   time.Time
	bell *bell
	made int
}

// alarms is a heap: by instant, then in the order in which they were set.
type alarms struct {
	list []alarm
	made int
}

func (a *alarms) Len() int { return len(a.list) }

func (a *alarms) Less(i, j int) bool {
	x, y := a.list[i], a.list[j]
	if c := x.at.Compare(y.at); c != 0 {
		return c < 0
	}
	return x.made < y.made
}

func (a *alarms) Swap(i, j int) { a.list[i], a.list[j] = a.list[j], a.list[i] }

// Push is for container/heap.
func (a *alarms) Push(x any) { a.list = append(a.list, x.(alarm)) }

// Pop is for container/heap.
func (a *alarms) Pop() any {
	last := a.list[len(a.list)-1]
	a.list = a.list[:len(a.list)-1]
	return last
}

func (a *alarms) set(b *bell, at time.Time) {
	if b.at = at; at.IsZero() || b.dead {
		return
	}
	a.made++
	heap.Push(a, alarm{at, b, a.made})
}

// next is the first instant at which a bell rings; false when none does.
func (a *alarms) next() (time.Time, bool) {
	for len(a.list) > 0 {
		first := a.list[0]
		if !first.bell.dead && first.bell.at.Equal(first.at) {
			return first.at, true
		}
		heap.Pop(a)
	}
	return time.Time{}, false
}

// due takes the bells off that ring up to an instant.
func (a *alarms) due(now time.Time) []*bell {
	var out []*bell
	for {
		at, ok := a.next()
		if !ok || at.After(now) {
			return out
		}
		b := heap.Pop(a).(alarm).bell
		b.at = time.Time{}
		out = append(out, b)
	}
}

// merged are outages in order and apart: an agent that would live for no time at
// all between two of them does not look. What ends before the start is left out.
func merged(outages []Span, start time.Time) []Span {
	var out []Span
	outages = slices.SortedFunc(slices.Values(outages), func(a, b Span) int { return a.From.Compare(b.From) })
	for _, o := range outages {
		last := len(out) - 1
		switch {
		case !o.From.Before(o.To) || !o.To.After(start):
		case last >= 0 && !o.From.After(out[last].To):
			if o.To.After(out[last].To) {
				out[last].To = o.To
			}
		default:
			out = append(out, o)
		}
	}
	return out
}
