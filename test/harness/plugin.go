package harness

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
)

// Output keeps what processes print.
type Output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write is io.Writer's.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

// String is all that was printed.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// Tail are the last lines of it.
func (o *Output) Tail(lines int) string {
	all := strings.Split(o.String(), "\n")
	return strings.Join(all[max(len(all)-lines, 0):], "\n")
}

// Plugin runs the built plugin, and returns its exit code and all that it printed. An error is
// one of starting it.
func Plugin(ctx context.Context, binary, kubeconfig string, args ...string) (code int, out string, err error) {
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "NO_COLOR=1")
	text, err := cmd.CombinedOutput()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		return 0, "", err
	}
	return cmd.ProcessState.ExitCode(), string(text), nil
}
