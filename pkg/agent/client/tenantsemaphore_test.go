package client

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestWhoHasTheFewestPlacesGetsTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTenantSemaphore(2, 2)
		var mu sync.Mutex
		took := map[string]time.Duration{}
		began := time.Now()
		enter := func(tenant, name string) {
			go func() {
				leave, err := p.acquire(t.Context(), tenant)
				if err != nil {
					t.Error(err)
					return
				}
				defer leave()
				mu.Lock()
				took[name] = time.Since(began)
				mu.Unlock()
				time.Sleep(time.Second)
			}()
			synctest.Wait()
		}
		for _, name := range []string{"a1", "a2", "a3", "a4", "a5", "a6"} {
			enter("a", name)
		}
		enter("b", "b1")
		enter("c", "c1")
		time.Sleep(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		p.mu.Lock()
		defer p.mu.Unlock()
		for name, want := range map[string]time.Duration{"a1": 0, "a2": 0, "b1": time.Second, "c1": time.Second, "a3": 2 * time.Second, "a6": 3 * time.Second} {
			if took[name] != want {
				t.Errorf("%s got its place after %s, want %s", name, took[name], want)
			}
		}
		if p.free != 2 || len(p.held) != 0 || len(p.waiting) != 0 {
			t.Errorf("afterwards: %d free, %v, %d wait", p.free, p.held, len(p.waiting))
		}
	})
}

func TestWhoDoesNotWaitAnyMoreTakesNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTenantSemaphore(1, 1)
		leave, err := p.acquire(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		short, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if _, err := p.acquire(short, "b"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it got a place: %v", err)
		}
		leave()
		if p.free != 1 || len(p.held) != 0 || len(p.waiting) != 0 {
			t.Errorf("afterwards: %d free, %v, %d wait", p.free, p.held, len(p.waiting))
		}
	})
}

// Who comes anew each time is known for a while, and so is who reads fast.
func TestWhoHadAPlaceForLongComesAfterTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTenantSemaphore(1, 1)
		keep := func(tenant string, took time.Duration) {
			leave, err := p.acquire(t.Context(), tenant)
			if err != nil {
				t.Error(err)
				return
			}
			time.Sleep(took)
			leave()
		}
		keep("slow", time.Second)
		keep("fast", time.Millisecond)
		var mu sync.Mutex
		var order []string
		turn := func() string {
			order = nil
			leave, _ := p.acquire(t.Context(), "busy")
			for _, tenant := range []string{"slow", "fast", "new"} {
				go func() {
					leave, _ := p.acquire(t.Context(), tenant)
					mu.Lock()
					order = append(order, tenant)
					mu.Unlock()
					leave()
				}()
				synctest.Wait()
			}
			leave()
			synctest.Wait()
			return strings.Join(order, " ")
		}
		if got := turn(); got != "new fast slow" {
			t.Errorf("the order is %s", got)
		}
		time.Sleep(afterwards * time.Second)
		if got := turn(); got != "slow fast new" {
			t.Errorf("a while later the order is %s", got)
		}
		time.Sleep(mostAfter)
		keep("any", 0)
		if len(p.after) != 0 {
			t.Errorf("it is never forgotten: %v", p.after)
		}
	})
}
