package queue

import (
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// What the searches for the windows of one namespace's policies may ask, in sources (guesses): a
// second of work at once, and then a hundredth of a core.
const (
	searchAtOnce    = 1_000_000
	searchPerSecond = 10_000
)

// Searches bounds what the searches for windows take of the agent for each namespace, so that
// nobody's policies keep it from the plans of others.
type Searches struct{ *budgets }

// NewSearches has taken nothing yet.
func NewSearches(now func() time.Time) *Searches {
	return &Searches{newBudgets(now, searchAtOnce, searchPerSecond)}
}

// Of is the budget of a namespace, the same one for whoever asks.
func (s *Searches) Of(namespace string) schedule.Budget { return searchBudget{s, namespace} }

// searchBudget is that of a namespace. It refills with time, and may be overdrawn.
type searchBudget struct {
	of        *Searches
	namespace string
}

// Left is what may be taken now.
func (b searchBudget) Left() int { return b.of.left(b.namespace) }

// Spend takes from the budget.
func (b searchBudget) Spend(n int) { b.of.spend(b.namespace, n) }
