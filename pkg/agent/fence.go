package agent

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

var errFenced = errors.New("the lease was not renewed in time: another agent may lead, so this one changes nothing") //nolint:gochecknoglobals // a sentinel for errors.Is

// fence keeps an agent that lost its lease without noticing (it was stopped, its
// machine slept) from changing anything: it stands below every client that the agent
// and its executors have, and before every act. It compares both clocks: the monotonic
// one stands still while the machine sleeps, the wall clock can be set.
type fence struct {
	lease time.Duration
	now   func() time.Time

	mu      sync.Mutex
	enabled bool
	closed  bool // for good: the lease was given away
	renewed time.Time
	term    int // how often the lease had changed hands when this agent took it
}

// renew notes that the lease was renewed by a request that was sent at that time.
// After a gap longer than the lease another may have led and let go meanwhile, and
// what this agent remembers is from before: the lease's own count of its holders says
// whether one has.
func (f *fence) renew(sent time.Time, term int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.enabled && term != f.term {
		f.closed = true
		return
	}
	f.enabled, f.renewed, f.term = true, sent, term
}

// close lets nothing pass any more: the lease is about to be another's.
func (f *fence) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
}

// over says whether this agent can lead no more, whatever it renews.
func (f *fence) over() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.closed
}

// within says whether an instant lies within the lease, by both clocks.
func (f *fence) within(t time.Time) bool {
	return t.Sub(f.renewed) < f.lease && t.Round(0).Sub(f.renewed.Round(0)) < f.lease
}

// valid says whether no other agent can have become leader yet.
func (f *fence) valid() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.closed && (!f.enabled || f.within(f.now()))
}

// ask is for what is about to have an effect, here or anywhere else: an error where
// another agent may lead by now.
func (f *fence) ask() error {
	if f.valid() {
		return nil
	}
	return errFenced
}

// wrap guards the requests to the API server that change something.
func (f *fence) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		if changes(req) {
			if err := f.ask(); err != nil {
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

// client guards every request of a client for the outside, each redirect and each
// request on a connection that was kept open.
func (f *fence) client(c *http.Client) *http.Client {
	if c == nil {
		return nil
	}
	guarded := *c
	next := c.Transport
	if next == nil {
		next = http.DefaultTransport
	}
	guarded.Transport = roundTripper(func(req *http.Request) (*http.Response, error) {
		if err := f.ask(); err != nil {
			return nil, err
		}
		return next.RoundTrip(req)
	})
	return &guarded
}

type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// dialer guards what speaks no HTTP: each dial, and each write on what was dialed.
func (f *fence) dialer(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if err := f.ask(); err != nil {
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
	fence *fence
}

// Write is net.Conn's.
func (c *fencedConn) Write(b []byte) (int, error) {
	if err := c.fence.ask(); err != nil {
		_ = c.Close()
		return 0, err
	}
	return c.Conn.Write(b)
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip is http.RoundTripper's.
func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
