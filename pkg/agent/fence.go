package agent

import (
	"errors"
	"net/http"
	"sync"
	"time"
)

var errFenced = errors.New("this agent stood still longer than its lease: another may lead, so it changes nothing") //nolint:gochecknoglobals // a sentinel for errors.Is

// fence keeps an agent that lost its lease without noticing (it was stopped, its
// machine slept) from changing anything. It compares both clocks: the monotonic
// one stands still while the machine sleeps, the wall clock can be set.
type fence struct {
	lease time.Duration
	now   func() time.Time
	lost  func()

	mu      sync.Mutex
	enabled bool
	renewed time.Time
}

// renew notes that the lease was renewed by a request that was sent at that
// time. After a gap longer than the lease it is too late: another may have led
// and let go meanwhile, and what this agent remembers is from before.
func (f *fence) renew(sent time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.enabled && !f.within(sent) {
		return
	}
	f.enabled, f.renewed = true, sent
}

// within says whether an instant lies within the lease, by both clocks.
func (f *fence) within(t time.Time) bool {
	return t.Sub(f.renewed) < f.lease && t.Round(0).Sub(f.renewed.Round(0)) < f.lease
}

// valid says whether no other agent can have become leader yet.
func (f *fence) valid() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.enabled || f.within(f.now())
}

// wrap guards the requests that change something.
func (f *fence) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		if req.Method != http.MethodGet && !f.valid() {
			f.lost()
			return nil, errFenced
		}
		return next.RoundTrip(req)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip is http.RoundTripper's.
func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
