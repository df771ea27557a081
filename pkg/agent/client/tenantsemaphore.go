package client

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// How long a place may be kept while others wait for it, and what it costs who had it
// (guesses). Where nobody waits, it may be kept for longer: see slowAbroad.
const (
	stalledAnswer = 5 * time.Second  // without a byte
	slowAnswer    = 8 * time.Second  // from its place to its end
	lookWaiting   = time.Second      // how often who waits looks whether somebody is too slow
	afterwards    = 60               // who had a place comes after the others for so many times as long
	mostAfter     = 10 * time.Minute // but for no longer
)

// tenantSemaphore are a few places that tenants share. The next goes to who has the fewest of them,
// and of those to who has used them least of late: however many readers of others wait, or
// come again and again, somebody who reads fast waits for one of them at most.
type tenantSemaphore struct {
	own int // of one tenant at most

	mu      sync.Mutex
	free    int
	held    map[string]int
	after   map[string]time.Time // until when a tenant comes after those who are not in here
	waiting []*waiter            // the longest first
	bodies  map[*body]bool       // that are read in a place, and may be cut off
}

type waiter struct {
	tenant string
	in     chan struct{}
}

// body is an answer that is read in a place.
type body struct {
	tenant string
	began  time.Time
	asked  time.Time // since when the next bytes are waited for; zero: they are not
	cut    func()
}

func newTenantSemaphore(n, own int) *tenantSemaphore {
	return &tenantSemaphore{own: own, free: n, held: map[string]int{}, after: map[string]time.Time{}, bodies: map[*body]bool{}}
}

// acquire waits for a place as long as ctx lets it. leave gives it back.
func (p *tenantSemaphore) acquire(ctx context.Context, tenant string) (leave func(), err error) {
	w := &waiter{tenant, make(chan struct{})}
	p.mu.Lock()
	p.waiting = append(p.waiting, w)
	p.hand()
	p.mu.Unlock()
	err = p.await(ctx, w)
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-w.in: // perhaps in this very moment
		began := time.Now()
		return func() { p.release(tenant, began) }, nil
	default:
		p.waiting = slices.DeleteFunc(p.waiting, func(one *waiter) bool { return one == w })
		return nil, err
	}
}

// await waits until a place is given, and cuts off who is too slow meanwhile.
func (p *tenantSemaphore) await(ctx context.Context, w *waiter) error {
	select {
	case <-w.in:
		return nil
	default:
	}
	look := time.NewTicker(lookWaiting)
	defer look.Stop()
	for {
		select {
		case <-w.in:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case now := <-look.C:
			if late := p.late(w, now); late != nil {
				late.cut()
			}
		}
	}
}

// late is who is too slow, longest of all, and stands in the way of somebody who waits.
func (p *tenantSemaphore) late(w *waiter, now time.Time) *body {
	p.mu.Lock()
	defer p.mu.Unlock()
	var late *body
	for b := range p.bodies {
		inTheWay := b.tenant == w.tenant || p.held[w.tenant] < p.own
		slow := !b.asked.IsZero() && (now.Sub(b.asked) >= stalledAnswer || now.Sub(b.began) >= slowAnswer)
		if inTheWay && slow && (late == nil || b.began.Before(late.began)) {
			late = b
		}
	}
	if late != nil {
		delete(p.bodies, late) // once is enough
	}
	return late
}

// reads notes a body that is read in a place. done forgets it.
func (p *tenantSemaphore) reads(tenant string, cut func()) (b *body, done func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b = &body{tenant: tenant, began: time.Now(), cut: cut}
	p.bodies[b] = true
	return b, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.bodies, b)
	}
}

// asks notes since when the next bytes of a body are waited for; zero: they are not.
func (p *tenantSemaphore) asks(b *body, since time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b.asked = since
}

func (p *tenantSemaphore) release(tenant string, began time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free++
	if p.held[tenant]--; p.held[tenant] == 0 {
		delete(p.held, tenant)
	}
	now := time.Now()
	still := max(0, p.after[tenant].Sub(now))
	p.after[tenant] = now.Add(min(mostAfter, still+afterwards*now.Sub(began)))
	p.hand()
}

// hand gives what is free to those who wait. The places are locked.
func (p *tenantSemaphore) hand() {
	now := time.Now()
	maps.DeleteFunc(p.after, func(_ string, until time.Time) bool { return !until.After(now) })
	for p.free > 0 {
		able := slices.DeleteFunc(slices.Clone(p.waiting), func(w *waiter) bool { return p.held[w.tenant] >= p.own })
		if len(able) == 0 {
			return
		}
		next := slices.MinFunc(able, func(a, b *waiter) int {
			return cmp.Or(cmp.Compare(p.held[a.tenant], p.held[b.tenant]), p.after[a.tenant].Compare(p.after[b.tenant]))
		})
		p.waiting = slices.DeleteFunc(p.waiting, func(one *waiter) bool { return one == next })
		p.free--
		p.held[next.tenant]++
		close(next.in)
	}
}
