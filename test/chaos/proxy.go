package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kubectl-maint/kubectl-maint/test/chaos/check"
	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

// weather is what a proxy does to the traffic of its replica. Requests for leases
// pass, unless cut says otherwise: a replica that loses its lease does nothing, and
// nothing would be learned of what it does on bad data.
type weather struct {
	cut       bool          // every connection is closed, leases too
	delay     time.Duration // each request is sent on so much later
	swallow   float64       // share of the writes whose answer is lost after the commit
	late      float64       // share of the writes that arrive lateBy later; the client hears nothing
	lateBy    time.Duration
	halfClose float64 // share of the answers of which half arrives before the server's side is closed
	stall     bool    // new watches hang without an answer
	refuse    refusal // whose requests are answered with 403
	holdLease bool    // requests for leases get no answer
}

// refusal is whom an API server refuses while it has not read all roles.
type refusal int

const (
	nobody refusal = iota
	runners
	everybody
)

// proxy stands between one replica and the API server. It marks each request with
// an audit id of its own, so that the audit log says which process sent it.
type proxy struct {
	*httptest.Server
	token   string
	through *httputil.ReverseProxy

	mu       sync.Mutex
	random   *rand.Rand
	process  string // who speaks now
	count    int
	sends    map[string]check.Send
	now      weather
	clear    chan struct{} // closed when stalled watches may go on
	streams  map[*stream]bool
	captured func(*http.Request) bool // a write for which it answers true is late

	leaseHeld bool           // a request for a lease hangs
	onTheWay  sync.WaitGroup // late deliveries
}

func newProxy(to *rest.Config, random *rand.Rand) (*proxy, error) {
	target, err := url.Parse(to.Host)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(to.CAData) {
		return nil, errors.New("the config holds no certificate authority")
	}
	p := &proxy{token: to.BearerToken, random: random, sends: map[string]check.Send{}, streams: map[*stream]bool{}, clear: make(chan struct{})}
	p.through = httputil.NewSingleHostReverseProxy(target)
	// A connection for each: what hangs in one must not hold up another.
	p.through.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, MaxIdleConnsPerHost: 100}
	p.through.FlushInterval = -1
	p.through.ErrorLog = log.New(io.Discard, "", 0)
	p.through.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) } // the connection is cut
	p.Server = httptest.NewUnstartedServer(http.HandlerFunc(p.serve))
	p.Config.ErrorLog = p.through.ErrorLog
	p.Start()
	return p, nil
}

// config is a client configuration of the same user that goes through the proxy.
func (p *proxy) config(of *rest.Config) *rest.Config {
	out := rest.CopyConfig(of)
	out.Host, out.TLSClientConfig = p.URL, rest.TLSClientConfig{}
	return out
}

// speaks says which process the requests are from now on.
func (p *proxy) speaks(process string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.process = process
}

// set changes the weather. Watches that hang go on when stall ends.
func (p *proxy) set(change func(*weather)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(&p.now)
	if p.now.cut {
		p.CloseClientConnections()
	}
}

// stallOpen holds the watches that are open now, and no others, until thawWatches.
func (p *proxy) stallOpen() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for s := range p.streams {
		s.hold(p.clear)
	}
}

// thawWatches lets watches that hang go on with all that they missed.
func (p *proxy) thawWatches() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.clear)
	p.clear = make(chan struct{})
	p.now.stall = false
}

// capture makes late the writes for which f says so; nil ends it.
func (p *proxy) capture(f func(*http.Request) bool, lateBy time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.captured, p.now.lateBy = f, lateBy
}

// holdsLease says whether a request for a lease hangs.
func (p *proxy) holdsLease() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.leaseHeld
}

// sent are all requests so far by their audit ids.
func (p *proxy) sent() map[string]check.Send {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make(map[string]check.Send, len(p.sends))
	for k, v := range p.sends {
		out[k] = v
	}
	return out
}

// fate is what becomes of one request.
type fate struct {
	weather
	lost, slow, half bool
	clear            chan struct{}
}

func (p *proxy) admit(req *http.Request) fate {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count++
	id := fmt.Sprintf("%s-%06d", p.process, p.count)
	p.sends[id] = check.Send{At: time.Now(), Process: p.process}
	req.Header.Set("Audit-Id", id)
	req.Header.Set("Authorization", "Bearer "+p.token)
	f := fate{weather: p.now, clear: p.clear}
	if strings.Contains(req.URL.Path, "/leases") {
		f.weather = weather{cut: p.now.cut, holdLease: p.now.holdLease}
		p.leaseHeld = p.leaseHeld || p.now.holdLease
		return f
	}
	if req.Method != http.MethodGet {
		roll := p.random.Float64()
		f.lost, f.slow = roll < f.swallow, roll >= f.swallow && roll < f.swallow+f.late
		f.slow = f.slow || p.captured != nil && p.captured(req)
	}
	f.half = p.random.Float64() < f.halfClose
	return f
}

func (p *proxy) serve(w http.ResponseWriter, req *http.Request) {
	f := p.admit(req)
	if f.cut {
		panic(http.ErrAbortHandler)
	}
	if f.delay > 0 && !pause(req.Context(), f.delay) {
		return
	}
	switch {
	case f.holdLease:
		<-req.Context().Done()
	case f.refuse == everybody, f.refuse == runners && req.Header.Get("Impersonate-User") != "":
		forbid(w, req)
	case req.Method == http.MethodGet && req.URL.Query().Get("watch") != "":
		p.watch(w, req, f)
	case f.slow:
		p.deliverLate(req, f.lateBy)
		panic(http.ErrAbortHandler)
	case f.lost:
		p.through.ServeHTTP(httptest.NewRecorder(), req)
		panic(http.ErrAbortHandler) // the write happened, its reply is lost
	case f.half:
		p.half(w, req)
	default:
		p.through.ServeHTTP(w, req)
	}
}

// forbid answers as an API server does that has not read its roles yet. Asked
// whether something is allowed, it says no.
func forbid(w http.ResponseWriter, req *http.Request) {
	user := req.Header.Get("Impersonate-User")
	if user == "" {
		user = harness.AgentUser
	}
	code := http.StatusForbidden
	var answer any = metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden,
		Message: fmt.Sprintf("forbidden: User %q cannot %s path %q", user, strings.ToLower(req.Method), req.URL.Path),
	}
	if strings.HasSuffix(req.URL.Path, "/selfsubjectaccessreviews") {
		code, answer = http.StatusCreated, authorizationv1.SelfSubjectAccessReview{TypeMeta: metav1.TypeMeta{Kind: "SelfSubjectAccessReview", APIVersion: "authorization.k8s.io/v1"}}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(answer)
}

// deliverLate sends a request on after its client has given up.
func (p *proxy) deliverLate(req *http.Request, by time.Duration) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return
	}
	late := req.Clone(context.WithoutCancel(req.Context()))
	late.Body = io.NopCloser(bytes.NewReader(body))
	p.onTheWay.Go(func() {
		defer func() { _ = recover() }() // the API server may be gone by then
		pause(late.Context(), by)
		p.through.ServeHTTP(httptest.NewRecorder(), late)
	})
}

// half lets the first half of an answer through and closes the server's side.
func (p *proxy) half(w http.ResponseWriter, req *http.Request) {
	answer := httptest.NewRecorder()
	p.through.ServeHTTP(answer, req)
	hijacker, ok := w.(http.Hijacker)
	if !ok {
		return
	}
	conn, _, err := hijacker.Hijack()
	if err != nil {
		return
	}
	body := answer.Body.Bytes()
	fmt.Fprintf(conn, "HTTP/1.1 %d OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n", answer.Code, answer.Header().Get("Content-Type"), len(body))
	_, _ = conn.Write(body[:len(body)/2])
	if tcp, ok := conn.(interface{ CloseWrite() error }); ok {
		_ = tcp.CloseWrite()
	}
	_, _ = io.Copy(io.Discard, conn) // until the client closes its side too
	_ = conn.Close()
}

func (p *proxy) watch(w http.ResponseWriter, req *http.Request, f fate) {
	if f.stall {
		select {
		case <-f.clear:
		case <-req.Context().Done():
			return
		}
	}
	s := &stream{ResponseWriter: w, done: req.Context().Done()}
	p.mu.Lock()
	p.streams[s] = true
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.streams, s)
		p.mu.Unlock()
	}()
	p.through.ServeHTTP(s, req)
}

// stream is the answer of a watch, which can be held up.
type stream struct {
	http.ResponseWriter
	done <-chan struct{}
	mu   sync.Mutex
	held <-chan struct{}
}

func (s *stream) hold(until <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = until
}

// Unwrap is http.ResponseController's.
func (s *stream) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// Write is io.Writer's.
func (s *stream) Write(b []byte) (int, error) {
	s.mu.Lock()
	held := s.held
	s.mu.Unlock()
	if held != nil {
		select {
		case <-held:
		case <-s.done:
			return 0, http.ErrAbortHandler
		}
	}
	return s.ResponseWriter.Write(b)
}

// pause waits, and says whether ctx still lives.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
