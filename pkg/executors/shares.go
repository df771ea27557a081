package executors

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
)

// Shares are units, such as places or bytes, of which one namespace may take a limited part, so
// that some are left for the others. What belongs to no namespace may take all.
type Shares struct {
	free     *semaphore.Weighted
	all, own int64

	mu          sync.Mutex
	byNamespace map[string]*Share
}

// Share is the part of a namespace. It is remembered while somebody uses it.
type Share struct {
	of        *Shares
	namespace string
	free      *semaphore.Weighted
	users     int
}

// NewShares makes that many units, with a limit for each namespace.
func NewShares(all, own int64) *Shares {
	return &Shares{free: semaphore.NewWeighted(all), all: all, own: own, byNamespace: map[string]*Share{}}
}

// Open is the part of a namespace, for one more user. Close ends the use.
func (s *Shares) Open(namespace string) *Share {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.byNamespace[namespace]
	if one == nil {
		size := s.own
		if namespace == "" {
			size = s.all
		}
		one = &Share{of: s, namespace: namespace, free: semaphore.NewWeighted(size)}
		s.byNamespace[namespace] = one
	}
	one.users++
	return one
}

// Close ends a use of the part. Everything taken has to be released before.
func (one *Share) Close() {
	s := one.of
	s.mu.Lock()
	defer s.mu.Unlock()
	if one.users--; one.users == 0 {
		delete(s.byNamespace, one.namespace)
	}
}

// Acquire takes n units when they are free, until Release. It waits for the namespace's part first:
// a namespace that waits for its own units holds none that others need.
func (one *Share) Acquire(ctx context.Context, n int64) error {
	if err := one.free.Acquire(ctx, n); err != nil {
		return err
	}
	if err := one.of.free.Acquire(ctx, n); err != nil {
		one.free.Release(n)
		return err
	}
	return nil
}

// TryAcquire takes n units if they are free now.
func (one *Share) TryAcquire(n int64) bool {
	if !one.free.TryAcquire(n) {
		return false
	}
	if !one.of.free.TryAcquire(n) {
		one.free.Release(n)
		return false
	}
	return true
}

// Release gives n units back.
func (one *Share) Release(n int64) {
	one.of.free.Release(n)
	one.free.Release(n)
}

// Wait takes one unit of a namespace when it is free. leave gives it back.
func (s *Shares) Wait(ctx context.Context, namespace string) (leave func(), ok bool) {
	return s.Open(namespace).enter(func(one *Share) bool { return one.Acquire(ctx, 1) == nil })
}

// Take takes one unit of a namespace if it is free now. leave gives it back.
func (s *Shares) Take(namespace string) (leave func(), ok bool) {
	return s.Open(namespace).enter(func(one *Share) bool { return one.TryAcquire(1) })
}

func (one *Share) enter(acquire func(*Share) bool) (leave func(), ok bool) {
	if !acquire(one) {
		one.Close()
		return nil, false
	}
	return func() {
		one.Release(1)
		one.Close()
	}, true
}

// Len is how many namespaces use a part.
func (s *Shares) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.byNamespace)
}
