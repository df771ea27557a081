package runs

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
)

// shares are places of which one namespace may take a few: it leaves room for the others.
type shares struct {
	all *semaphore.Weighted
	own int64

	mu          sync.Mutex
	byNamespace map[string]*share
}

// share is what a namespace has taken of the places, and how many take or wait.
type share struct {
	places *semaphore.Weighted
	users  int
}

func newShares(all, own int64) *shares {
	return &shares{all: semaphore.NewWeighted(all), own: own, byNamespace: map[string]*share{}}
}

// wait takes a place of a namespace when one is free. leave gives it back.
func (s *shares) wait(ctx context.Context, namespace string) (leave func(), ok bool) {
	return s.enter(namespace, func(places *semaphore.Weighted) bool { return places.Acquire(ctx, 1) == nil })
}

// take takes a place of a namespace if one is free now.
func (s *shares) take(namespace string) (leave func(), ok bool) {
	return s.enter(namespace, func(places *semaphore.Weighted) bool { return places.TryAcquire(1) })
}

func (s *shares) enter(namespace string, acquire func(*semaphore.Weighted) bool) (leave func(), ok bool) {
	one := s.open(namespace)
	if !acquire(one.places) {
		s.close(namespace, one)
		return nil, false
	}
	if !acquire(s.all) {
		one.places.Release(1)
		s.close(namespace, one)
		return nil, false
	}
	return func() {
		s.all.Release(1)
		one.places.Release(1)
		s.close(namespace, one)
	}, true
}

func (s *shares) open(namespace string) *share {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.byNamespace[namespace]
	if one == nil {
		one = &share{places: semaphore.NewWeighted(s.own)}
		s.byNamespace[namespace] = one
	}
	one.users++
	return one
}

// close forgets a namespace that has nothing under way.
func (s *shares) close(namespace string, one *share) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one.users--; one.users == 0 {
		delete(s.byNamespace, namespace)
	}
}
