package conformance

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

// Flood is a server of HTTP/2 that answers with bytes without end, as fast as they are taken.
type Flood struct {
	*httptest.Server
	sent    atomic.Int64
	version atomic.Value // of the protocol that was spoken last
}

// NewFlood ends with the test.
func NewFlood(t testing.TB) *Flood {
	t.Helper()
	f := &Flood{}
	f.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.version.Store(r.Proto)
		for piece := make([]byte, 4<<10); ; {
			n, err := w.Write(piece)
			if f.sent.Add(int64(n)); err != nil {
				return
			}
			w.(http.Flusher).Flush()
		}
	}))
	f.EnableHTTP2 = true
	f.StartTLS()
	t.Cleanup(f.Close)
	return f
}

// Unread is how many bytes were taken of an answer that nobody reads, and by which protocol.
func (f *Flood) Unread() (bytes int64, protocol string) {
	for last := int64(-1); bytes != last || bytes == 0; bytes = f.sent.Load() {
		last = bytes
		time.Sleep(200 * time.Millisecond)
	}
	protocol, _ = f.version.Load().(string)
	return bytes, protocol
}
