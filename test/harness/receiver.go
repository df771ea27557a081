package harness

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
)

// Delivery is one request that a Receiver got.
type Delivery struct {
	Path, Key, Attempt, Body string
}

// Receiver is a real HTTP server that counts what it is sent.
type Receiver struct {
	*httptest.Server
	mu     sync.Mutex
	got    []Delivery
	answer func(Delivery) int
	heard  func(Delivery)
}

// NewReceiver listens on loopback. answer gives the status for each delivery;
// nil means 200 always.
func NewReceiver(answer func(Delivery) int) (*Receiver, error) {
	r := &Receiver{answer: answer}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for webhooks: %w", err)
	}
	r.Server = httptest.NewUnstartedServer(http.HandlerFunc(r.serve))
	_ = r.Listener.Close()
	r.Listener = listener
	r.Start()
	return r, nil
}

// Heard has a function called for each delivery, before it is answered.
func (r *Receiver) Heard(f func(Delivery)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.heard = f
}

func (r *Receiver) serve(w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(io.LimitReader(req.Body, 1<<20))
	d := Delivery{Path: req.URL.Path, Key: req.Header.Get("Idempotency-Key"), Attempt: req.Header.Get("Maint-Attempt"), Body: string(body)}
	r.mu.Lock()
	r.got = append(r.got, d)
	answer, heard := r.answer, r.heard
	r.mu.Unlock()
	if heard != nil {
		heard(d)
	}
	if answer != nil {
		w.WriteHeader(answer(d))
	}
}

// Deliveries are all requests so far, in order.
func (r *Receiver) Deliveries() []Delivery {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got)
}

// Keys are the different Idempotency-Keys that came to a path.
func (r *Receiver) Keys(path string) []string {
	var keys []string
	for _, d := range r.Deliveries() {
		if d.Path == path && !slices.Contains(keys, d.Key) {
			keys = append(keys, d.Key)
		}
	}
	return keys
}
