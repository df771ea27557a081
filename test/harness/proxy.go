package harness

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"

	"k8s.io/client-go/rest"
)

// Proxy stands between an agent and the API server. It lets everything through
// and tells of each write, before it is sent on and after it was answered, so
// that a test can end the agent exactly there.
type Proxy struct {
	*httptest.Server
	mu      sync.Mutex
	point   func(req *http.Request, answered bool) bool
	stalled func(req *http.Request) bool // watches of which nothing comes through
	changed chan struct{}                // closed when stalled changes
}

// NewProxy forwards to the API server of a config, with that config's token:
// clients do not send theirs over plain HTTP.
func NewProxy(to *rest.Config) (*Proxy, error) {
	target, err := url.Parse(to.Host)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(to.CAData) {
		return nil, errors.New("the config holds no certificate authority")
	}
	p := &Proxy{changed: make(chan struct{})}
	through := httputil.NewSingleHostReverseProxy(target)
	through.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true}
	through.FlushInterval = -1
	through.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		req.Header.Set("Authorization", "Bearer "+to.BearerToken)
		if req.Method == http.MethodGet || !p.passes(req, false) {
			if req.Method == http.MethodGet {
				through.ServeHTTP(p.stalling(w, req), req)
			}
			return
		}
		answer := httptest.NewRecorder()
		through.ServeHTTP(answer, req)
		if !p.passes(req, true) {
			return // the write happened, its reply is lost
		}
		for k, v := range answer.Header() {
			w.Header()[k] = v
		}
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes())
	}))
	return p, nil
}

// At sets what is called at each write; when it answers false, the request, or
// its reply, goes no further.
func (p *Proxy) At(point func(req *http.Request, answered bool) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.point = point
}

// StallWatches holds back what the matching watches would show, those that are open
// and those to come, while everything else passes; nil lets all of it through.
func (p *Proxy) StallWatches(match func(req *http.Request) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stalled = match
	close(p.changed)
	p.changed = make(chan struct{})
}

// EveryWatch is for StallWatches.
func EveryWatch(*http.Request) bool { return true }

func (p *Proxy) stalling(w http.ResponseWriter, req *http.Request) http.ResponseWriter {
	if watch := req.URL.Query().Get("watch"); watch != "true" && watch != "1" {
		return w
	}
	return &watchWriter{ResponseWriter: w, proxy: p, req: req}
}

// watchWriter holds what a watch shows while it is stalled.
type watchWriter struct {
	http.ResponseWriter
	proxy *Proxy
	req   *http.Request
}

// Write is io.Writer's.
func (w *watchWriter) Write(b []byte) (int, error) {
	for {
		w.proxy.mu.Lock()
		stalled, changed := w.proxy.stalled, w.proxy.changed
		w.proxy.mu.Unlock()
		if stalled == nil || !stalled(w.req) {
			return w.ResponseWriter.Write(b)
		}
		select {
		case <-changed:
		case <-w.req.Context().Done():
			return 0, w.req.Context().Err()
		}
	}
}

// Unwrap is for http.ResponseController, which flushes.
func (w *watchWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (p *Proxy) passes(req *http.Request, answered bool) bool {
	p.mu.Lock()
	point := p.point
	p.mu.Unlock()
	return point == nil || point(req, answered)
}

// Config is a client configuration of the same user that goes through the proxy.
func (p *Proxy) Config(of *rest.Config) *rest.Config {
	out := rest.CopyConfig(of)
	out.Host, out.TLSClientConfig = p.URL, rest.TLSClientConfig{}
	return out
}
