package notify

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// quotaAtOnce is how many messages a namespace may send to a sink in a burst, and quotaEvery
	// the pause before each further one: a plan that runs in a loop must not flood a channel that
	// others use. The agent may send as many about the namespace. The numbers are guesses.
	quotaAtOnce = 20
	quotaEvery  = 30 * time.Second
	// quotaKept is how many pairs of namespace and sink are remembered before those with their
	// full quota are forgotten.
	quotaKept = 1000
)

// quota limits the messages of namespaces. It starts afresh with the process.
type quota struct {
	mu   sync.Mutex
	left map[string]*rate.Limiter // by namespace and sink
}

func newQuota() *quota { return &quota{left: map[string]*rate.Limiter{}} }

// take takes one message off the quota, or says how long to wait.
func (q *quota) take(namespace, sink string, now time.Time) (wait time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	key := namespace + "/" + sink
	limiter := q.left[key]
	if limiter == nil {
		q.forget(now)
		limiter = rate.NewLimiter(rate.Every(quotaEvery), quotaAtOnce)
		q.left[key] = limiter
	}
	reserved := limiter.ReserveN(now, 1)
	if wait = reserved.DelayFrom(now); wait > 0 {
		reserved.CancelAt(now)
	}
	return wait
}

func (q *quota) forget(now time.Time) {
	if len(q.left) < quotaKept {
		return
	}
	for key, limiter := range q.left {
		if limiter.TokensAt(now) >= quotaAtOnce {
			delete(q.left, key)
		}
	}
}
