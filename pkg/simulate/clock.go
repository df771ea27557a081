package simulate

import (
	"container/heap"
	"slices"
	"time"
)

// item is one plan or run that is looked at again and again.
type item struct {
	look   func() (time.Time, error) // looks, and says when to look again; zero: only when something changes
	run    bool                      // runs are looked at before plans
	at     time.Time
	queued bool
	dead   bool
}

// timer is one instant set for an item. Items that were set anew leave old ones behind.
type timer struct {
	at   time.Time
	item *item
	made int
}

// timers is a heap: by instant, then in the order in which they were set.
type timers struct {
	list []timer
	made int
}

func (a *timers) Len() int { return len(a.list) }

func (a *timers) Less(i, j int) bool {
	x, y := a.list[i], a.list[j]
	if c := x.at.Compare(y.at); c != 0 {
		return c < 0
	}
	return x.made < y.made
}

func (a *timers) Swap(i, j int) { a.list[i], a.list[j] = a.list[j], a.list[i] }

// Push is for container/heap.
func (a *timers) Push(x any) { a.list = append(a.list, x.(timer)) }

// Pop is for container/heap.
func (a *timers) Pop() any {
	last := a.list[len(a.list)-1]
	a.list = a.list[:len(a.list)-1]
	return last
}

func (a *timers) set(b *item, at time.Time) {
	if b.at = at; at.IsZero() || b.dead {
		return
	}
	a.made++
	heap.Push(a, timer{at, b, a.made})
}

// next is the first instant at which an item is due; false when none does.
func (a *timers) next() (time.Time, bool) {
	for len(a.list) > 0 {
		first := a.list[0]
		if !first.item.dead && first.item.at.Equal(first.at) {
			return first.at, true
		}
		heap.Pop(a)
	}
	return time.Time{}, false
}

// due takes off the items that are due by an instant.
func (a *timers) due(now time.Time) []*item {
	var out []*item
	for {
		at, ok := a.next()
		if !ok || at.After(now) {
			return out
		}
		b := heap.Pop(a).(timer).item
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
