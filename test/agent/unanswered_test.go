package agent_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

// holdsItsTongue is a server that takes connections, and says nothing on any of them.
func holdsItsTongue(t *testing.T) (address string) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var taken []net.Conn
	go func() {
		for {
			one, err := listener.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			taken = append(taken, one)
			mu.Unlock()
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		mu.Lock()
		defer mu.Unlock()
		for _, one := range taken {
			_ = one.Close()
		}
	})
	return "http://" + listener.Addr().String()
}

// Commands of the built plugin end where the API server accepts and does not answer, say so, and
// have an exit code that tells it.
func TestNoCommandHangsWhereTheAPIServerDoesNotAnswer(t *testing.T) {
	if err := world.start(); err != nil {
		t.Fatalf("start the cluster and the agent: %v", err)
	}
	t.Parallel()
	config := filepath.Join(t.TempDir(), "config")
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: c, cluster: {server: %q}}]\ncontexts: [{name: c, context: {cluster: c, user: c, namespace: shop}}]\nusers: [{name: c, user: {}}]\n", holdsItsTongue(t))
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for line, code := range map[string]int{
		"status": 1, "status -w": 1, "list": 1, "history orders": 1, "why orders": 1, "doctor": 1, "report": 1, "calendar": 1,
		"abort orders --yes": 1, "approve orders": 1, "trigger orders --wait --timeout 500ms": 124, "wait orders --timeout 500ms": 124,
		"drain worker-1 --yes --wait --timeout 500ms": 124,
	} {
		t.Run(line, func(t *testing.T) {
			got, out, err := harness.Plugin(ctx, world.plugin, config, append(strings.Fields(line), "--request-timeout", "2s", "--cache-dir", filepath.Dir(config))...)
			if err != nil || got != code || !strings.Contains(out, "does not answer") && !strings.Contains(out, "--timeout passed") || strings.Contains(out, "goroutine ") {
				t.Errorf("exit code %d, want %d, %v:\n%s", got, code, err, out)
			}
		})
	}
}
