package conformance

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
)

var errLost = errors.New("connection reset by conformance") //nolint:gochecknoglobals // a sentinel

// wire is what stands between a step and the API server. on sees each request
// with its number, from 0, and decides what becomes of it.
type wire struct {
	mu       sync.Mutex
	requests []*http.Request
	on       func(n int, r *http.Request, send func() (*http.Response, error)) (*http.Response, error)
}

func (w *wire) wrap(next http.RoundTripper) http.RoundTripper {
	return &wireTripper{wire: w, next: next}
}

type wireTripper struct {
	wire *wire
	next http.RoundTripper
}

func (t *wireTripper) RoundTrip(r *http.Request) (*http.Response, error) {
	t.wire.mu.Lock()
	n := len(t.wire.requests)
	t.wire.requests = append(t.wire.requests, r)
	t.wire.mu.Unlock()
	send := func() (*http.Response, error) { return t.next.RoundTrip(r) }
	if t.wire.on == nil {
		return send()
	}
	return t.wire.on(n, r, send)
}

func (w *wire) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.requests)
}

// writes are the requests that were to change something.
func (w *wire) writes() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for _, r := range w.requests {
		if changes(r) && !rehearsal(r) {
			out = append(out, r.Method+" "+r.URL.Path)
		}
	}
	return out
}

// rehearsal says that the API server is asked to change nothing. A deletion's
// options travel in its body.
func rehearsal(r *http.Request) bool {
	if r.Method != http.MethodDelete || r.GetBody == nil {
		return r.URL.Query().Get("dryRun") == "All"
	}
	body, err := r.GetBody()
	if err != nil {
		return false
	}
	defer body.Close()
	var options struct{ DryRun []string }
	return json.NewDecoder(body).Decode(&options) == nil && slices.Equal(options.DryRun, []string{"All"})
}

// changes says whether a request may change an object; asking for a review of
// one's rights is a POST that does not.
func changes(r *http.Request) bool {
	return r.Method != http.MethodGet && !strings.HasSuffix(r.URL.Path, "reviews")
}

// refuse is an answer of an API server in trouble.
func refuse(r *http.Request, code int) *http.Response {
	body := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"conformance says no","code":%d}`, code)
	return &http.Response{
		StatusCode: code, Status: fmt.Sprintf("%d %s", code, http.StatusText(code)), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewBufferString(body)), Request: r,
	}
}

// death loses a request, before it reaches the API server or its answer on the
// way back, and everything after it: the agent is dead.
func death(at int, reaches bool) *wire {
	return &wire{on: func(n int, _ *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
		if n < at {
			return send()
		}
		if n == at && reaches {
			if response, err := send(); err == nil {
				_, _ = io.Copy(io.Discard, response.Body)
				_ = response.Body.Close()
			}
		}
		return nil, errLost
	}}
}

// each runs a question for every request that a step makes: until one run makes
// fewer requests than the number asked about.
func each(t *testing.T, question func(t *testing.T, n int) (asked bool)) {
	t.Helper()
	const most = 40
	for n := range most {
		asked := true
		t.Run(fmt.Sprintf("request %d", n), func(t *testing.T) { asked = question(t, n) })
		if !asked || t.Failed() {
			return
		}
	}
	t.Fatalf("a step makes more than %d requests", most)
}
