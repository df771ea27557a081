package queue

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// mostBudgets is how many are kept although nothing was taken from them.
const mostBudgets = 1000

// budgets are what each namespace may take of something. They refill with time, and may be overdrawn.
type budgets struct {
	now               func() time.Time
	atOnce, perSecond int

	mu          sync.Mutex
	byNamespace map[string]*rate.Limiter
}

func newBudgets(now func() time.Time, atOnce, perSecond int) *budgets {
	return &budgets{now: now, atOnce: atOnce, perSecond: perSecond, byNamespace: map[string]*rate.Limiter{}}
}

// of is the limiter of a namespace. The lock is held, also while it is used: it may be forgotten
// afterwards.
func (b *budgets) of(namespace string) *rate.Limiter {
	tokens := b.byNamespace[namespace]
	if tokens == nil {
		if len(b.byNamespace) >= mostBudgets {
			b.forgetFull()
		}
		tokens = rate.NewLimiter(rate.Limit(b.perSecond), b.atOnce)
		b.byNamespace[namespace] = tokens
	}
	return tokens
}

// forgetFull drops the limiters of which nothing is taken: a new one is the same. The lock is held.
func (b *budgets) forgetFull() {
	for namespace, tokens := range b.byNamespace {
		if b.tokens(tokens) == b.atOnce {
			delete(b.byNamespace, namespace)
		}
	}
}

// tokens is what may be taken now. What was due before a clock is set back stays.
func (b *budgets) tokens(of *rate.Limiter) int {
	now := b.now()
	of.ReserveN(now, 0)
	return int(of.TokensAt(now))
}

// left is what a namespace may take now.
func (b *budgets) left(namespace string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.tokens(b.of(namespace))
}

// spend takes from a namespace's budget, at once as much as a limiter can.
func (b *budgets) spend(namespace string, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for tokens := b.of(namespace); n > 0; n -= b.atOnce {
		tokens.ReserveN(b.now(), min(n, b.atOnce))
	}
}
