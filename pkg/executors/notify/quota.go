package notify

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// quotaAtOnce is how many messages a namespace may send to a sink at once, and
	// quotaEvery how soon it may send another one after that: a plan that runs in a
	// circle does not make a channel unreadable for the others. The numbers are guesses.
	quotaAtOnce = 20
	quotaEvery  = 30 * time.Second
	// quotaKept is how many pairs of namespace and sink are remembered before those that
	// have all their messages left are forgotten.
	quotaKept = 1000
)

// quota counts what namespaces send. It begins anew with the process.
type quota struct {
	mu   sync.Mutex
	left map[string]*rate.Limiter // by namespace and sink
}

func newQuota() *quota { return &quota{left: map[string]*rate.Limiter{}} }

// take takes one message off, or says how long it has to wait.
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
