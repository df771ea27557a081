// Package queue has keys looked at again and again: by workers, after pauses that grow,
// and at instants of the wall clock.
package queue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/informer"
)

// ErrConflict says that an object was written by somebody else since it was read: it is
// looked at again, and that is no news.
var ErrConflict = errors.New("the ledger has moved on") //nolint:gochecknoglobals // a sentinel for errors.Is

// Config is what a queue is told.
type Config struct {
	Name    string
	Now     func() time.Time
	Log     *slog.Logger
	OnPanic func() // counts what one broken object caused
}

// Queue holds the keys that are to be looked at, each once, and knows when to look
// at the others again.
type Queue struct {
	workqueue.TypedRateLimitingInterface[types.NamespacedName]
	timer  *RequeueTimer
	config Config
	order  order
}

// New is a queue without workers.
func New(c Config) *Queue {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](100*time.Millisecond, 30*time.Second)
	order := newOrder()
	keys := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[types.NamespacedName]{Name: c.Name, Queue: order})
	delaying := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[types.NamespacedName]{Name: c.Name, Queue: keys})
	q := workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[types.NamespacedName]{Name: c.Name, DelayingQueue: delaying})
	return &Queue{TypedRateLimitingInterface: q, timer: NewRequeueTimer(c.Now, q.Add), config: c, order: order}
}

// Len is how many keys are to be looked at, those with them that wait for a worker of their
// namespace.
func (q *Queue) Len() int { return q.order.Waiting() }

// Work has as many workers look at keys until ctx ends. reconcile says when to look at
// a key again; the zero instant is: when it is added.
func (q *Queue) Work(ctx context.Context, workers int, reconcile Reconcile) {
	q.WorkInShares(ctx, workers, workers, reconcile)
}

// Share is how many of the workers may look at keys of one namespace: three quarters (a guess).
func Share(workers int) int { return max(1, workers*3/4) }

// WorkInShares is Work with no more than a share of the workers at keys of one namespace. A worker
// that is free takes a key of the namespace with the fewest at work, so that no tenants, however
// many keys they have, take the workers from the others.
func (q *Queue) WorkInShares(ctx context.Context, workers, share int, reconcile Reconcile) {
	var group sync.WaitGroup
	group.Go(func() { q.timer.Run(ctx) })
	q.order.setShare(share)
	for range workers {
		group.Go(func() { q.runWorker(ctx, reconcile) })
	}
	<-ctx.Done()
	q.ShutDown()
	group.Wait()
}

// Reconcile looks at a key, and says when to look again.
type Reconcile func(context.Context, types.NamespacedName) (time.Time, error)

// runWorker takes keys off the queue. What waits for its namespace to leave a worker is taken by the
// one that has left, when it asks for the next.
func (q *Queue) runWorker(ctx context.Context, reconcile Reconcile) {
	for {
		k, stop := q.Get()
		if stop {
			return
		}
		q.look(ctx, k, reconcile)
		q.Done(k)
		q.order.Leave(k.Namespace)
	}
}

// look looks at one key. What fails is tried again later and later; what succeeds says itself
// when to be looked at again.
func (q *Queue) look(ctx context.Context, k types.NamespacedName, reconcile Reconcile) {
	wake, err := q.reconcileSafely(ctx, k, reconcile)
	switch {
	case err == nil:
		q.Forget(k)
		q.timer.Set(k, wake)
	case ctx.Err() != nil:
	case errors.Is(err, client.ErrFenced) || client.Unreachable(err): // no fault of the key's own: its pauses do not grow
		q.config.Log.Warn("will try again", "key", k.String(), "error", err.Error())
		q.AddAfter(k, informer.Backoff(4, err))
	default:
		if !errors.Is(err, ErrConflict) {
			q.config.Log.Warn("will try again", "key", k.String(), "error", err.Error())
		}
		q.AddRateLimited(k)
	}
}

// reconcileSafely keeps one broken object from taking the agent down.
func (q *Queue) reconcileSafely(ctx context.Context, k types.NamespacedName, reconcile Reconcile) (wake time.Time, err error) {
	defer func() {
		if p := recover(); p != nil {
			q.config.OnPanic()
			err = fmt.Errorf("internal error over %s: %v", k, p)
		}
	}()
	return reconcile(ctx, k)
}

// Soonest is the first of the instants that are set; zero: none is.
func Soonest(times ...time.Time) time.Time {
	var out time.Time
	for _, t := range times {
		if !t.IsZero() && (out.IsZero() || t.Before(out)) {
			out = t
		}
	}
	return out
}

// Latest is the later of two instants.
func Latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
