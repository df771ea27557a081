package agent

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// look is how often the alarm looks at the wall clock at least: a machine that
// slept, or whose clock was set, is noticed within that time.
const look = 30 * time.Second

// alarm wakes keys at instants of the wall clock. Each key has one instant, the
// last that was set.
type alarm struct {
	now  func() time.Time
	ring func(types.NamespacedName)

	mu      sync.Mutex
	pending alarmHeap
	byKey   map[types.NamespacedName]*alarmItem
	changed chan struct{}
}

type alarmItem struct {
	key   types.NamespacedName
	at    time.Time
	index int
}

func newAlarm(now func() time.Time, ring func(types.NamespacedName)) *alarm {
	return &alarm{now: now, ring: ring, byKey: map[types.NamespacedName]*alarmItem{}, changed: make(chan struct{}, 1)}
}

// Set replaces the instant at which a key rings; the zero instant takes it away.
func (a *alarm) Set(k types.NamespacedName, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	item, have := a.byKey[k]
	switch {
	case at.IsZero() && have:
		heap.Remove(&a.pending, item.index)
		delete(a.byKey, k)
	case at.IsZero():
		return
	case have:
		item.at = at.Round(0) // the wall clock alone: the other one stops with the machine
		heap.Fix(&a.pending, item.index)
	default:
		item = &alarmItem{key: k, at: at.Round(0)}
		a.byKey[k] = item
		heap.Push(&a.pending, item)
	}
	select {
	case a.changed <- struct{}{}:
	default:
	}
}

// Run rings keys as their instants come, until ctx ends.
func (a *alarm) Run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-a.changed:
		}
		timer.Reset(a.ringDue())
	}
}

// ringDue rings what is due and says how long to wait before looking again.
func (a *alarm) ringDue() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	for len(a.pending) > 0 && !a.pending[0].at.After(now) {
		item := heap.Pop(&a.pending).(*alarmItem)
		delete(a.byKey, item.key)
		a.ring(item.key)
	}
	if len(a.pending) == 0 {
		return look
	}
	return min(max(a.pending[0].at.Sub(now), time.Millisecond), look)
}

type alarmHeap []*alarmItem

func (h alarmHeap) Len() int           { return len(h) }
func (h alarmHeap) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h alarmHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push is heap.Interface's.
func (h *alarmHeap) Push(x any) {
	item := x.(*alarmItem)
	item.index = len(*h)
	*h = append(*h, item)
}

// Pop is heap.Interface's.
func (h *alarmHeap) Pop() any {
	old := *h
	item := old[len(old)-1]
	*h = old[:len(old)-1]
	return item
}
