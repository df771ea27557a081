package store

import (
	"context"
	"sync"
	"time"
)

// sharedCheck is a look whose answer serves everybody who needs one at that time.
type sharedCheck struct {
	turn chan struct{} // whoever looks holds its one place

	mu sync.Mutex
	at time.Time // when the last one began
}

// newSharedCheck is one that nobody has made yet.
func newSharedCheck() *sharedCheck { return &sharedCheck{turn: make(chan struct{}, 1)} }

// do looks where nobody has just now. Whoever comes meanwhile waits for that look, and no longer
// than its ctx.
func (s *sharedCheck) do(ctx context.Context, now func() time.Time, look func() error) error {
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-s.turn }()
	began := now()
	if s.recent(began) {
		return nil
	}
	if err := look(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at = began
	return nil
}

// recent says whether the last look still counts.
func (s *sharedCheck) recent(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return now.Sub(s.at).Abs() < freshTTL
}
