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
	byNamespace map[string]*rate.Limiter
}

// NewSearches has taken nothing yet.
func NewSearches(now func() time.Time) *Searches {
	return &Searches{now: now, byNamespace: map[string]*rate.Limiter{}}
}

// Of is the budget of a namespace, the same one for whoever asks.
func (s *Searches) Of(namespace string) schedule.Budget { return searchBudget{s, namespace} }

// of is the limiter of a namespace. The lock is held, also while it is used: it may be forgotten
// afterwards.
func (s *Searches) of(namespace string) *rate.Limiter {
	tokens := s.byNamespace[namespace]
	if tokens == nil {
		if len(s.byNamespace) >= mostBudgets {
			s.forgetFull()
		}
		tokens = rate.NewLimiter(searchPerSecond, searchAtOnce)
		s.byNamespace[namespace] = tokens
	}
	return tokens
}

// forgetFull drops the limiters of which nothing is taken: a new one is the same. The lock is held.
func (s *Searches) forgetFull() {
	for namespace, tokens := range s.byNamespace {
		if s.left(tokens) == searchAtOnce {
			delete(s.byNamespace, namespace)
		}
	}
}

// left is what may be taken now. What was due before a clock is set back stays.
func (s *Searches) left(tokens *rate.Limiter) int {
	now := s.now()
	tokens.ReserveN(now, 0)
	return int(tokens.TokensAt(now))
}

// searchBudget is that of a namespace. It refills with time, and may be overdrawn.
type searchBudget struct {
	of        *Searches
	namespace string
}

// Left is what may be taken now.
func (b searchBudget) Left() int {
	b.of.mu.Lock()
	defer b.of.mu.Unlock()
	return b.of.left(b.of.of(b.namespace))
}

// Spend takes from the budget, at once as much as a limiter can.
func (b searchBudget) Spend(n int) {
	b.of.mu.Lock()
	defer b.of.mu.Unlock()
	for tokens := b.of.of(b.namespace); n > 0; n -= searchAtOnce {
		tokens.ReserveN(b.of.now(), min(n, searchAtOnce))
	}
}
