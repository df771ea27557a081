package queue

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// recorder collects what a timer enqueues, and when.
type recorder struct {
	mu       sync.Mutex
	enqueued []string
}

func (b *recorder) enqueue(start time.Time) func(types.NamespacedName) {
	return func(k types.NamespacedName) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.enqueued = append(b.enqueued, k.Name+" after "+time.Since(start).String())
	}
}

func TestATimerEnqueuesEachKeyOnceAtItsInstant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		start := time.Now()
		var b recorder
		a := NewRequeueTimer(time.Now, b.enqueue(start))
		go a.Run(ctx)
		a.Set(types.NamespacedName{Namespace: "ns", Name: "late"}, start.Add(2*time.Hour))
		a.Set(types.NamespacedName{Namespace: "ns", Name: "moved"}, start.Add(time.Minute))
		a.Set(types.NamespacedName{Namespace: "ns", Name: "moved"}, start.Add(3*time.Hour))
		a.Set(types.NamespacedName{Namespace: "ns", Name: "gone"}, start.Add(time.Minute))
		a.Set(types.NamespacedName{Namespace: "ns", Name: "gone"}, time.Time{})
		a.Set(types.NamespacedName{Namespace: "ns", Name: "soon"}, start.Add(time.Second))
		a.Set(types.NamespacedName{Namespace: "ns", Name: "past"}, start.Add(-time.Hour))
		time.Sleep(4 * time.Hour)
		synctest.Wait()
		cancel()
		synctest.Wait()
		want := []string{"past after 0s", "soon after 1s", "late after 2h0m0s", "moved after 3h0m0s"}
		if !slices.Equal(b.enqueued, want) {
			t.Errorf("enqueued %q, want %q", b.enqueued, want)
		}
	})
}

func TestAnAlarmNoticesAClockThatWasSetWithinHalfAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		start := time.Now()
		var mu sync.Mutex
		step := time.Duration(0)
		now := func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			return time.Now().Add(step)
		}
		var b recorder
		a := NewRequeueTimer(now, b.enqueue(start))
		go a.Run(ctx)
		a.Set(types.NamespacedName{Namespace: "ns", Name: "slot"}, start.Add(24*time.Hour))
		time.Sleep(time.Minute)
		mu.Lock()
		step = 48 * time.Hour
		mu.Unlock()
		time.Sleep(ResyncPeriod)
		synctest.Wait()
		if len(b.enqueued) != 1 {
			t.Errorf("after the clock was set two days ahead enqueued %q", b.enqueued)
		}
	})
}
