package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/kubectl-maint/kubectl-maint/test/chaos/check"
)

// receiver is a real HTTP server for webhooks. It notes of each delivery which
// process sent it: the owner of the socket at the other end.
type receiver struct {
	*httptest.Server
	owner func(pid int) string // the process of a pid; empty: not an agent
	pids  func() []int

	mu    sync.Mutex
	got   []check.Delivery
	flaky map[string]int // deliveries refused so far, by key
	held  chan struct{}  // closed when those that are held may be answered
}

type connKey struct{}

// caller is who opened a connection, and when.
type caller struct {
	at      time.Time
	process string
	known   bool // it has sent something by it
}

// sent is when a request left its caller: when it dialled, or now, where it had a
// connection already.
func (c *caller) sent() time.Time {
	if c.known {
		return time.Now()
	}
	c.known = true
	return c.at
}

func newReceiver(pids func() []int, owner func(int) string) (*receiver, error) {
	r := &receiver{owner: owner, pids: pids, flaky: map[string]int{}, held: make(chan struct{})}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for webhooks: %w", err)
	}
	r.Server = httptest.NewUnstartedServer(http.HandlerFunc(r.serve))
	_ = r.Listener.Close()
	r.Listener = listener
	r.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		return context.WithValue(ctx, connKey{}, &caller{at: time.Now(), process: r.ownerOf(c)})
	}
	r.Start()
	return r, nil
}

// serve takes a delivery down. A path with "slow" is answered after a second, one
// with "flaky" refuses the first delivery of each key, and one with "held" is sent on
// to another, by a connection of its own, when somebody lets it.
func (r *receiver) serve(w http.ResponseWriter, req *http.Request) {
	_, _ = io.Copy(io.Discard, io.LimitReader(req.Body, 1<<20))
	from, _ := req.Context().Value(connKey{}).(*caller)
	d := check.Delivery{At: time.Now(), Sent: from.sent(), Process: from.process, Path: req.URL.Path, Key: req.Header.Get("Idempotency-Key"), Attempt: req.Header.Get("Maint-Attempt")}
	r.mu.Lock()
	r.got = append(r.got, d)
	refused := strings.Contains(d.Path, "flaky") && r.flaky[d.Key] == 0
	if refused {
		r.flaky[d.Key]++
	}
	r.mu.Unlock()
	if strings.Contains(d.Path, "slow") {
		pause(req.Context(), time.Second)
	}
	if strings.Contains(d.Path, "held") {
		<-r.held
		w.Header().Set("Connection", "close")
		http.Redirect(w, req, "/landed", http.StatusFound)
	}
	if refused {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}

func (r *receiver) deliveries() []check.Delivery {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]check.Delivery(nil), r.got...)
}

// release lets those that are held go on.
func (r *receiver) release() { close(r.held) }

// ownerOf is the agent's process at the other end of a connection. Linux says it
// in /proc; elsewhere nobody does, and what rests on it is not checked.
func (r *receiver) ownerOf(c net.Conn) string {
	inode := socketInode(c.RemoteAddr().(*net.TCPAddr).Port, c.LocalAddr().(*net.TCPAddr).Port)
	if inode == "" {
		return ""
	}
	for _, pid := range r.pids() {
		links, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
		for _, link := range links {
			if to, err := os.Readlink(link); err == nil && to == "socket:["+inode+"]" {
				return r.owner(pid)
			}
		}
	}
	return ""
}

// socketInode finds a loopback connection by its two ports.
func socketInode(from, to int) string {
	text, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		return ""
	}
	for _, line := range strings.Split(string(text), "\n") {
		f := strings.Fields(line)
		if len(f) > 9 && port(f[1]) == from && port(f[2]) == to {
			return f[9]
		}
	}
	return ""
}

func port(address string) int {
	_, hex, _ := strings.Cut(address, ":")
	n, err := strconv.ParseInt(hex, 16, 32)
	if err != nil {
		return -1
	}
	return int(n)
}
