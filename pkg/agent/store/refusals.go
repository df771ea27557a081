package store

import (
	"sync"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

// Refusals remembers since when something has been refused without a break. It is
// in memory: a new leader begins the half minute anew.
type Refusals[K comparable] struct {
	mu    sync.Mutex
	since map[K]workflow.Refusal
}

// NewRefusals has seen none.
func NewRefusals[K comparable]() *Refusals[K] { return &Refusals[K]{since: map[K]workflow.Refusal{}} }

// Record notes another refusal, and says whether it is final.
func (r *Refusals[K]) Record(of K, now time.Time) (workflow.Refusal, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	next, final := r.since[of].Again(now)
	r.since[of] = next
	return next, final
}

// Clear notes that something is refused no more.
func (r *Refusals[K]) Clear(of K) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.since, of)
}

// Forget drops what match is true for.
func (r *Refusals[K]) Forget(match func(K) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for of := range r.since {
		if match(of) {
			delete(r.since, of)
		}
	}
}
