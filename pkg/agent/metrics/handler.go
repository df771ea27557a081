package metrics

import (
	"bufio"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Handler serves /metrics, /healthz and /readyz.
// With scrapers, /metrics is for those alone; nil: for whoever comes.
func (m *Metrics) Handler(ready func() bool, changes func(*bufio.Writer), scrapers *Scrapers) http.Handler {
	mux := http.NewServeMux()
	served := m.scrape(changes)
	if scrapers != nil {
		served = scrapers.guard(served)
	}
	mux.Handle("/metrics", served)
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) })
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !ready() {
			http.Error(w, "not ready: the agent has not read the cluster yet, or its configuration is broken", http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("ok\n"))
	})
	return mux
}

// scrape serves what the registry has and what changes write, as text.
func (m *Metrics) scrape(changes func(*bufio.Writer)) http.Handler {
	registered := promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{DisableCompression: true})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Del("Accept") // the text format is every scraper's
		out, closed := io.Writer(w), func() error { return nil }
		if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			w.Header().Set("Content-Encoding", "gzip")
			compressed := gzip.NewWriter(w)
			out, closed = compressed, compressed.Close
		}
		lines := bufio.NewWriter(out)
		registered.ServeHTTP(bodyWriter{w, lines}, r)
		changes(lines)
		_ = errors.Join(lines.Flush(), closed()) // whoever asked has gone
	})
}

// bodyWriter is a response whose body goes another way.
type bodyWriter struct {
	http.ResponseWriter
	body io.Writer
}

// Write is io.Writer's.
func (w bodyWriter) Write(b []byte) (int, error) { return w.body.Write(b) }
