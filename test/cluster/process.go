package cluster

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// How long a part may take to answer, on a machine that builds something else
// at the same time. Usually it is one to three seconds.
const readyTimeout = 90 * time.Second

// process is one running binary.
type process struct {
	name      string
	healthURL string
	logFile   string
	cmd       *exec.Cmd
	gone      chan struct{} // closed when the process has ended and was waited for
}

// startProcess runs a binary of the assets with its output in a file. It ends
// with this process, at the latest.
func (c *Cluster) startProcess(name, healthURL string, args ...string) (*process, error) {
	c.progress("starting %s", name)
	logs := filepath.Join(c.dir, "logs")
	if err := os.MkdirAll(logs, 0o755); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p := &process{
		name:      name,
		healthURL: healthURL,
		logFile:   filepath.Join(logs, name+".log"),
		cmd:       exec.Command(c.assets.path(name), args...),
		gone:      make(chan struct{}),
	}
	p.cmd.Dir = c.dir
	if err := p.run(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return p, nil
}

func (p *process) run() error {
	// Appended to, so that a restarted API server keeps its earlier log.
	output, err := os.OpenFile(p.logFile, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	p.cmd.Stdout, p.cmd.Stderr = output, output
	p.cmd.SysProcAttr = dieWithParent()
	started := make(chan error)
	go func() {
		// The kernel's "die with your parent" means the parent *thread*. This
		// goroutine keeps its thread until the child has ended.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer output.Close()
		err := p.cmd.Start()
		started <- err
		if err != nil {
			return
		}
		defer close(p.gone)
		// The exit status says nothing here: it is we who kill, and who look
		// at the log when the process ended by itself.
		_ = p.cmd.Wait()
	}()
	return <-started
}

// freeze stops the process where it is, and returns what lets it go on.
func (p *process) freeze() (thaw func() error, err error) {
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return nil, fmt.Errorf("freeze %s: %w", p.name, err)
	}
	return func() error { return p.cmd.Process.Signal(syscall.SIGCONT) }, nil
}

// kill ends the process and returns when it is gone. Killing is enough: what it
// leaves behind is thrown away, or is etcd's, which has handed every write to the
// kernel before it answers.
func (p *process) kill() {
	// An error means that it has ended already.
	_ = p.cmd.Process.Kill()
	<-p.gone
}

// waitReady returns when the health endpoint says 200, or an error with the
// end of the log when the process ends or takes too long.
func (p *process) waitReady(ctx context.Context, client *http.Client) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if healthy(ctx, client, p.healthURL) {
			return nil
		}
		select {
		case <-p.gone:
			return fmt.Errorf("%s ended before it was ready (%s); its last words:\n%s", p.name, p.cmd.ProcessState, p.logTail())
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w; its last words:\n%s", p.name, ctx.Err(), p.logTail())
		case <-tick.C:
		}
	}
}

func healthy(ctx context.Context, client *http.Client, url string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	response, err := client.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	return response.StatusCode == http.StatusOK
}

func (p *process) logTail() string {
	const lines = 15
	text, err := os.ReadFile(p.logFile)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
