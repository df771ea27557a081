package client

import (
	"cmp"
	"context"
	"slices"
	"sync"
)

// places are a few places that tenants share. The next goes to who has the fewest of them,
// and has waited longest since the last: however many passes of others wait, a tenant waits
// for one of each at most.
type places struct {
	mu      sync.Mutex
	free    int
	held    map[string]int
	given   int            // how often one was given
	last    map[string]int // when one was given to a tenant of those that have or wait for one
	waiting []*waiter      // the longest first
}

type waiter struct {
	tenant string
	in     chan struct{}
}

func newPlaces(n int) *places {
	return &places{free: n, held: map[string]int{}, last: map[string]int{}}
}

// acquire waits for a place as long as ctx lets it.
func (p *places) acquire(ctx context.Context, tenant string) error {
	w := &waiter{tenant, make(chan struct{})}
	p.mu.Lock()
	p.waiting = append(p.waiting, w)
	p.hand()
	p.mu.Unlock()
	select {
	case <-w.in:
		return nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-w.in: // it was given one in this very moment
		return nil
	default:
		p.waiting = slices.DeleteFunc(p.waiting, func(one *waiter) bool { return one == w })
		p.forget(tenant)
		return ctx.Err()
	}
}

func (p *places) release(tenant string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free++
	if p.held[tenant]--; p.held[tenant] == 0 {
		delete(p.held, tenant)
	}
	p.hand()
	p.forget(tenant)
}

// forget drops what is known of a tenant that neither has nor waits for one. The places are
// locked.
func (p *places) forget(tenant string) {
	if p.held[tenant] == 0 && !slices.ContainsFunc(p.waiting, func(w *waiter) bool { return w.tenant == tenant }) {
		delete(p.last, tenant)
	}
}

// hand gives what is free to those who wait. The places are locked.
func (p *places) hand() {
	for p.free > 0 && len(p.waiting) > 0 {
		next := slices.MinFunc(p.waiting, func(a, b *waiter) int {
			return cmp.Or(cmp.Compare(p.held[a.tenant], p.held[b.tenant]), cmp.Compare(p.last[a.tenant], p.last[b.tenant]))
		})
		p.waiting = slices.DeleteFunc(p.waiting, func(one *waiter) bool { return one == next })
		p.free--
		p.given++
		p.held[next.tenant]++
		p.last[next.tenant] = p.given
		close(next.in)
	}
}
