package argocd_test

import (
	"io"
	"net"
	"sync"
	"testing"
)

// gate passes connections on to an address, and holds back what comes from there while it
// is shut: as a repository that takes long to render.
type gate struct {
	listener net.Listener
	to       string

	mu   sync.Mutex
	open *sync.Cond
	shut bool
}

func newGate(t *testing.T, to string) *gate {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{listener: listener, to: to}
	g.open = sync.NewCond(&g.mu)
	t.Cleanup(func() {
		_ = listener.Close()
		g.set(false)
	})
	go g.serve()
	return g
}

func (g *gate) address() string { return g.listener.Addr().String() }

func (g *gate) set(shut bool) {
	g.mu.Lock()
	g.shut = shut
	g.mu.Unlock()
	g.open.Broadcast()
}

func (g *gate) serve() {
	for {
		client, err := g.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", g.to)
		if err != nil {
			_ = client.Close()
			continue
		}
		go g.pass(client, server)
	}
}

func (g *gate) pass(client, server net.Conn) {
	defer func() {
		_ = client.Close()
		_ = server.Close()
	}()
	go func() {
		_, _ = io.Copy(server, client)
		_ = server.Close()
	}()
	_, _ = io.Copy(waiting{client, g}, server)
}

// waiting writes while the gate is open.
type waiting struct {
	to io.Writer
	g  *gate
}

func (w waiting) Write(b []byte) (int, error) {
	w.g.mu.Lock()
	for w.g.shut {
		w.g.open.Wait()
	}
	w.g.mu.Unlock()
	return w.to.Write(b)
}
