package client

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// ErrFenced says that nothing may be changed.
var ErrFenced = errors.New("the lease was not renewed in time: another agent may lead, so this one changes nothing") //nolint:gochecknoglobals // a sentinel for errors.Is

// Fence keeps an agent that lost its lease without noticing (it was stopped, its
// machine slept) from changing anything: it stands below every client that the agent
// and its executors have, and before every act. It compares both clocks: the monotonic
// one stands still while the machine sleeps, the wall clock can be set.
type Fence struct {
	lease time.Duration
	now   func() time.Time

	mu      sync.Mutex
	enabled bool
	closed  bool // for good: the lease was given away
	renewed time.Time
	term    int // how often the lease had changed hands when this agent took it
}

// NewFence lets everything pass until a lease is renewed for the first time.
func NewFence(lease time.Duration, now func() time.Time) *Fence {
	return &Fence{lease: lease, now: now}
}

// Renew notes that the lease was renewed by a request that was sent at that time.
// After a gap longer than the lease another may have led and let go meanwhile, and
// what this agent remembers is from before: the lease's own count of its holders says
// whether one has.
func (f *Fence) Renew(sent time.Time, term int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.enabled && term != f.term {
		f.closed = true
		return
	}
	f.enabled, f.renewed, f.term = true, sent, term
}

// Close lets nothing pass any more: the lease is about to be another's.
func (f *Fence) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
}

// Closed says whether this agent can lead no more, whatever it renews.
func (f *Fence) Closed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.closed
}

// within says whether an instant lies within the lease, by both clocks.
func (f *Fence) within(t time.Time) bool {
	return t.Sub(f.renewed) < f.lease && t.Round(0).Sub(f.renewed.Round(0)) < f.lease
}

// Valid says whether no other agent can have become leader yet.
func (f *Fence) Valid() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.closed && (!f.enabled || f.within(f.now()))
}

// Check is for what is about to have an effect, here or anywhere else: an error where
// another agent may lead by now.
func (f *Fence) Check() error {
	if f.Valid() {
		return nil
	}
	return ErrFenced
}

// wrap guards the requests to the API server that change something.
func (f *Fence) wrap(next http.RoundTripper) http.RoundTripper {
	return RoundTripper(func(req *http.Request) (*http.Response, error) {
		if changes(req) {
			if err := f.Check(); err != nil {
				return nil, err
			}
		}
		return next.RoundTrip(req)
	})
}

// changes says whether a request to the API server may change something. A stream
// into a container is opened by a GET.
// The lease has a guard of its own: it is written on the version that was read.
func changes(req *http.Request) bool {
	if req.Method != http.MethodGet {
		return req.Header.Get("Impersonate-User") != "" || !strings.HasPrefix(req.URL.Path, "/apis/coordination.k8s.io/")
	}
	if strings.EqualFold(req.Header.Get("Connection"), "upgrade") || req.Header.Get("Upgrade") != "" {
		return true
	}
	for _, stream := range []string{"/exec", "/attach", "/portforward"} {
		if strings.Contains(req.URL.Path, "/pods/") && strings.HasSuffix(req.URL.Path, stream) {
			return true
		}
	}
	return false
}

// Client guards every request of a client for the outside, each redirect and each
// request on a connection that was kept open.
func (f *Fence) Client(c *http.Client) *http.Client {
	if c == nil {
		return nil
	}
	guarded := *c
	next := c.Transport
	if next == nil {
		next = http.DefaultTransport
	}
	guarded.Transport = RoundTripper(func(req *http.Request) (*http.Response, error) {
		if err := f.Check(); err != nil {
			return nil, err
		}
		return next.RoundTrip(req)
	})
	return &guarded
}

// DialFunc dials as net.Dialer does.
type DialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// Dialer guards what speaks no HTTP: each dial, and each write on what was dialed.
func (f *Fence) Dialer(dial DialFunc) DialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if err := f.Check(); err != nil {
			return nil, err
		}
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &fencedConn{Conn: conn, fence: f}, nil
	}
}

// fencedConn sends nothing once another agent may lead.
type fencedConn struct {
	net.Conn
	fence *Fence
}

// Write is net.Conn's.
func (c *fencedConn) Write(b []byte) (int, error) {
	if err := c.fence.Check(); err != nil {
		_ = c.Close()
		return 0, err
	}
	return c.Conn.Write(b)
}

// RoundTripper is a function that is an http.RoundTripper.
type RoundTripper func(*http.Request) (*http.Response, error)

// RoundTrip is http.RoundTripper's.
func (f RoundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
