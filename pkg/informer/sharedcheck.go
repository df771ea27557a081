package informer

import (
	"context"
	"sync"
	"time"
)

// SharedCheck is a look whose answer serves everybody who needs one at that time.
type SharedCheck struct {
	turn chan struct{} // whoever looks holds its one place

	mu sync.Mutex
	at time.Time // when the last one began
}

// NewSharedCheck is one that nobody has made yet.
func NewSharedCheck() *SharedCheck { return &SharedCheck{turn: make(chan struct{}, 1)} }

// Do looks where nobody has for so long. Whoever comes meanwhile waits for that look, and no longer
// than its ctx.
func (s *SharedCheck) Do(ctx context.Context, now func() time.Time, counts time.Duration, look func() error) error {
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-s.turn }()
	began := now()
	if s.Recent(began, counts) {
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

// Recent says whether the last look began so short a time ago.
func (s *SharedCheck) Recent(now time.Time, counts time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return now.Sub(s.at).Abs() < counts
}
