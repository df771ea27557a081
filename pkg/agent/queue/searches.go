package queue

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// What the searches for the windows of one namespace's policies may ask, in sources (guesses): a
// second of work at once, and then a hundredth of a core.
const (
	searchAtOnce    = 1_000_000
	searchPerSecond = 10_000

	mostBudgets = 1000 // that are kept although nothing was taken from them
)

// Searches bounds what the searches for windows take of the agent for each namespace, so that
// nobody's policies keep it from the plans of others.
type Searches struct {
	now func() time.Time

	mu          sync.Mutex
	byNamespace map[string]*searchBudget
}

// NewSearches has taken nothing yet.
func NewSearches(now func() time.Time) *Searches {
	return &Searches{now: now, byNamespace: map[string]*searchBudget{}}
}

// Of is the budget of a namespace.
func (s *Searches) Of(namespace string) schedule.Budget {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.byNamespace[namespace]
	if b == nil {
		if len(s.byNamespace) >= mostBudgets {
			s.forgetFull()
		}
		b = &searchBudget{now: s.now, tokens: rate.NewLimiter(searchPerSecond, searchAtOnce)}
		s.byNamespace[namespace] = b
	}
	return b
}

// forgetFull drops budgets of which nothing is taken: a new one is the same. The lock is held.
func (s *Searches) forgetFull() {
	for namespace, b := range s.byNamespace {
		if b.Left() == searchAtOnce {
			delete(s.byNamespace, namespace)
		}
	}
}

// searchBudget refills with time. It may be overdrawn.
type searchBudget struct {
	now    func() time.Time
	tokens *rate.Limiter
}

// Left is what may be taken now. What was due before a clock is set back stays.
func (b *searchBudget) Left() int {
	now := b.now()
	b.tokens.ReserveN(now, 0)
	return int(b.tokens.TokensAt(now))
}

// Spend takes from the budget, at once as much as a limiter can.
func (b *searchBudget) Spend(n int) {
	for ; n > 0; n -= searchAtOnce {
		b.tokens.ReserveN(b.now(), min(n, searchAtOnce))
	}
}
