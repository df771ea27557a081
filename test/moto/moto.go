// Package moto starts a simulated AWS for tests.
package moto

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

// Account is the account that it has, whoever asks with keys.
const Account = "123456789012"

// ErrMissing says that it is not installed.
var ErrMissing = errors.New("there is no moto_server on PATH or in bin/moto, and with it no AWS; run make tools-moto") //nolint:gochecknoglobals // a sentinel for errors.Is

// Server is a simulated AWS.
type Server struct {
	Endpoint string
	Stop     func()
}

// Start has it answer on a port of its own. Without moto_server it is ErrMissing.
func Start() (*Server, error) {
	path, err := find()
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	server := exec.CommandContext(ctx, path, "-H", "127.0.0.1", "-p", fmt.Sprint(port)) //nolint:gosec // moto, as found on PATH
	server.Stdout, server.Stderr = io.Discard, io.Discard
	if err := server.Start(); err != nil {
		cancel()
		return nil, fmt.Errorf("start moto_server: %w", err)
	}
	s := &Server{Endpoint: fmt.Sprintf("http://127.0.0.1:%d", port), Stop: func() {
		cancel()
		_ = server.Wait() // it was killed
	}}
	for range 600 {
		if resp, err := http.Get(s.Endpoint + "/moto-api/"); err == nil {
			return s, resp.Body.Close()
		}
		time.Sleep(100 * time.Millisecond)
	}
	s.Stop()
	return nil, fmt.Errorf("moto_server does not answer on %s", s.Endpoint)
}

// find is the one on PATH, else what make tools-moto brought.
func find() (string, error) {
	if path, err := exec.LookPath("moto_server"); err == nil {
		return path, nil
	}
	root, err := harness.Root()
	if err != nil {
		return "", err
	}
	path := filepath.Join(root, "bin", "moto", "bin", "moto_server")
	if _, err := os.Stat(path); err != nil {
		return "", ErrMissing
	}
	return path, nil
}

// freePort is one that nobody had a moment ago.
func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return listener.Addr().(*net.TCPAddr).Port, listener.Close()
}

// Reset has nothing in it any more.
func (s *Server) Reset() error {
	resp, err := http.Post(s.Endpoint+"/moto-api/reset", "", nil)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}
