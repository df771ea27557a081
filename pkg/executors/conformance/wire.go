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

// wire is the transport between a step and the API server. on sees each request with its number,
// from 0, and decides what becomes of it.
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

// writes are the requests that would change something.
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

// rehearsal says that a request is a dry run. The options of a deletion are in its body.
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

// changes says whether a request may change an object. A POST of an access review changes none.
func changes(r *http.Request) bool {
	return r.Method != http.MethodGet && !strings.HasSuffix(r.URL.Path, "reviews")
}

// refuse is the answer of a failing API server.
func refuse(r *http.Request, code int) *http.Response {
	body := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"conformance says no","code":%d}`, code)
	return &http.Response{
		StatusCode: code, Status: fmt.Sprintf("%d %s", code, http.StatusText(code)), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewBufferString(body)), Request: r,
	}
}

// death loses a request, before it reaches the API server or on the way back, and everything after
// it: the agent is dead.
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

// each runs a test for every request that a step makes, until a run makes fewer requests than the
// number under test.
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
