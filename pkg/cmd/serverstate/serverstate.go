// Package serverstate notes whether and since when the API server answers a command, and how far its clock is
// from ours.
package serverstate

import (
	"context"
	"errors"
	"math"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// silent is from when on reads without an answer are an outage (a guess: lists of thousands take less).
const silent = 10 * time.Second

// errSilent says that requests are not answered.
var errSilent = errors.New("no answer to requests")

// State is that of one API server. Its zero value has no answer yet.
type State struct {
	ahead atomic.Int64

	mu      sync.Mutex // guards what follows
	reached bool       // it has answered once
	down    time.Time  // since when requests fail, by our clock; zero: they do not
	why     error
	open    int       // reads that wait for their answer
	asked   time.Time // since when none of those was answered, also those that were given up; zero: none waits
	back    time.Time // when it answered again; zero: it always has
}

// RoundTripper notes each answer.
func (s *State) RoundTripper(next http.RoundTripper) http.RoundTripper {
	return RoundTripFunc(func(r *http.Request) (*http.Response, error) {
		counts := read(r)
		if counts {
			s.ask()
		}
		answer, err := next.RoundTrip(r)
		s.note(r.Context(), counts, answer, err)
		return answer, err
	})
}

// RoundTripFunc is an http.RoundTripper that is a function.
type RoundTripFunc func(*http.Request) (*http.Response, error)

// RoundTrip is http.RoundTripper's.
func (f RoundTripFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// read says whether a request is a read that is answered at once. Admission may hold a write for long, and a proxy
// what follows something until there is news.
func read(r *http.Request) bool {
	q := r.URL.Query()
	return r.Method == http.MethodGet && !q.Has("watch") && !q.Has("follow")
}

func (s *State) ask() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open++; s.asked.IsZero() {
		s.asked = time.Now()
	}
}

// note takes in how a request ended.
func (s *State) note(ctx context.Context, counts bool, answer *http.Response, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if counts {
		s.open--
	}
	switch {
	case err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded): // it stays unanswered
	case err != nil && ctx.Err() != nil: // somebody gave it up
		if s.open == 0 {
			s.asked = time.Time{}
		}
	case err != nil:
		s.fail(err)
	case isOfProxy(answer.StatusCode):
		s.fail(errors.New(http.StatusText(answer.StatusCode)))
	default:
		s.answered()
	}
	if answer == nil {
		return
	}
	if at, err := http.ParseTime(answer.Header.Get("Date")); err == nil {
		s.ahead.Store(int64(time.Until(at)))
	}
}

// isOfProxy says whether an answer is that of a proxy without an API server behind it.
func isOfProxy(status int) bool {
	return status == http.StatusBadGateway || status == http.StatusServiceUnavailable || status == http.StatusGatewayTimeout
}

// fail must be called with mu held.
func (s *State) fail(err error) {
	if s.why = err; s.down.IsZero() {
		s.down = time.Now()
	}
}

// answered must be called with mu held.
func (s *State) answered() {
	now := time.Now()
	if !s.down.IsZero() || !s.asked.IsZero() && now.Sub(s.asked) >= silent {
		s.back = now
	}
	s.reached, s.down, s.asked = true, time.Time{}, time.Time{}
	if s.open > 0 {
		s.asked = now
	}
}

// Reached says whether the API server has answered once, whatever it does now.
func (s *State) Reached() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reached
}

// Skew is how far the API server's clock is ahead of ours. Less than two seconds count as zero: it
// reports whole seconds.
func (s *State) Skew() time.Duration {
	ahead := time.Duration(s.ahead.Load())
	if ahead.Abs() < 2*time.Second {
		return 0
	}
	return ahead
}

// Answering is for how long the API server has been answering since its last outage; the longest
// time if there was none.
func (s *State) Answering() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.back.IsZero() {
		return math.MaxInt64
	}
	return time.Since(s.back)
}

// Outage is since when the API server does not answer, and why; nil: it answers.
func (s *State) Outage() (time.Time, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !s.down.IsZero():
		return s.down, s.why
	case s.reached && !s.asked.IsZero() && time.Since(s.asked) >= silent:
		return s.asked, errSilent
	}
	return time.Time{}, nil
}
