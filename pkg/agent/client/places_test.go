package client

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestWhoHasTheFewestPlacesGetsTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlaces(2)
		var mu sync.Mutex
		took := map[string]time.Duration{}
		began := time.Now()
		enter := func(tenant, name string) {
			go func() {
				if err := p.acquire(t.Context(), tenant); err != nil {
					t.Error(err)
				}
				mu.Lock()
				took[name] = time.Since(began)
				mu.Unlock()
				time.Sleep(time.Second)
				p.release(tenant)
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
		if p.free != 2 || len(p.held) != 0 || len(p.waiting) != 0 || len(p.last) != 0 {
			t.Errorf("afterwards: %d free, %v, %d wait", p.free, p.held, len(p.waiting))
		}
	})
}

func TestWhoDoesNotWaitAnyMoreTakesNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlaces(1)
		if err := p.acquire(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		short, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if err := p.acquire(short, "b"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it got a place: %v", err)
		}
		p.release("a")
		if p.free != 1 || len(p.held) != 0 || len(p.waiting) != 0 || len(p.last) != 0 {
			t.Errorf("afterwards: %d free, %v, %d wait", p.free, p.held, len(p.waiting))
		}
	})
}
