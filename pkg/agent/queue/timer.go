package queue

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// ResyncPeriod is how often the timer looks at the wall clock at least: a machine that
// slept, or whose clock was set, is noticed within that time.
const ResyncPeriod = 30 * time.Second

// RequeueTimer enqueues keys at instants of the wall clock. Each key has one instant, the
// last that was set.
type RequeueTimer struct {
	now     func() time.Time
	enqueue func(types.NamespacedName)

	mu      sync.Mutex
	pending timerHeap
	byKey   map[types.NamespacedName]*timerItem
	changed chan struct{}
}

type timerItem struct {
	key   types.NamespacedName
	at    time.Time
	index int
}

// NewRequeueTimer waits for nothing yet.
func NewRequeueTimer(now func() time.Time, enqueue func(types.NamespacedName)) *RequeueTimer {
	return &RequeueTimer{now: now, enqueue: enqueue, byKey: map[types.NamespacedName]*timerItem{}, changed: make(chan struct{}, 1)}
}

// Set replaces the instant at which a key is due; the zero instant takes it away.
func (t *RequeueTimer) Set(k types.NamespacedName, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	item, have := t.byKey[k]
	switch {
	case at.IsZero() && have:
		heap.Remove(&t.pending, item.index)
		delete(t.byKey, k)
	case at.IsZero():
		return
	case have:
		item.at = at.Round(0) // the wall clock alone: the other one stops with the machine
		heap.Fix(&t.pending, item.index)
	default:
		item = &timerItem{key: k, at: at.Round(0)}
		t.byKey[k] = item
		heap.Push(&t.pending, item)
	}
	select {
	case t.changed <- struct{}{}:
	default:
	}
}

// Run enqueues keys as their instants come, until ctx ends.
func (t *RequeueTimer) Run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-t.changed:
		}
		timer.Reset(t.enqueueDue())
	}
}

// enqueueDue enqueues what is due and says how long to wait before looking again.
func (t *RequeueTimer) enqueueDue() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	for len(t.pending) > 0 && !t.pending[0].at.After(now) {
		item := heap.Pop(&t.pending).(*timerItem)
		delete(t.byKey, item.key)
		t.enqueue(item.key)
	}
	if len(t.pending) == 0 {
		return ResyncPeriod
	}
	return min(max(t.pending[0].at.Sub(now), time.Millisecond), ResyncPeriod)
}

type timerHeap []*timerItem

func (h timerHeap) Len() int { return len(h) }

func (h timerHeap) Less(i, j int) bool { return h[i].at.Before(h[j].at) }

func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push is heap.Interface's.
func (h *timerHeap) Push(x any) {
	item := x.(*timerItem)
	item.index = len(*h)
	*h = append(*h, item)
}

// Pop is heap.Interface's.
func (h *timerHeap) Pop() any {
	old := *h
	item := old[len(old)-1]
	*h = old[:len(old)-1]
	return item
}
