package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/kubectl-maint/kubectl-maint/test/chaos/check"
	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

// replica is one agent of the Deployment: a process that is started again when it
// ends, behind a proxy of its own.
type replica struct {
	name   string
	binary string
	config string
	dir    string
	proxy  *proxy
	say    func(who, format string, args ...any)

	mu      sync.Mutex
	lives   int
	process *harness.Process
	paused  bool // nobody starts it again
	panics  []string
}

// keep starts the replica, and again whenever it has ended, until ctx does.
func (r *replica) keep(ctx context.Context) {
	for ctx.Err() == nil {
		if r.held() {
			pause(ctx, 100*time.Millisecond)
			continue
		}
		p, name, err := r.start()
		if err != nil {
			r.say(r.name, "does not start: %v", err)
			pause(ctx, time.Second)
			continue
		}
		select {
		case <-p.Ended():
		case <-ctx.Done():
			if err := p.Stop(); err != nil {
				r.note(name, err.Error())
			}
		}
		r.ended(p, name)
		pause(ctx, time.Second) // a kubelet takes as long
	}
}

func (r *replica) held() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.paused
}

// hold keeps a replica that has ended from being started again, or lets it be.
func (r *replica) hold(on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.paused = on
}

func (r *replica) start() (*harness.Process, string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lives++
	name := fmt.Sprintf("%s%d", r.name, r.lives)
	r.proxy.speaks(name)
	p, err := harness.StartAgent(r.binary, r.config)
	if err != nil {
		return nil, "", err
	}
	r.process = p
	r.say(r.name, "started as %s, pid %d", name, p.PID())
	return p, name, nil
}

func (r *replica) ended(p *harness.Process, name string) {
	text := p.Log()
	if err := os.WriteFile(filepath.Join(r.dir, "agent-"+name+".log"), []byte(text), 0o644); err != nil {
		r.say(r.name, "its log could not be kept: %v", err)
	}
	lines := strings.Split(strings.TrimSpace(text), "\n")
	r.say(r.name, "%s has ended: %s", name, lines[len(lines)-1])
	for _, sign := range []string{"panic:", "fatal error:", "DATA RACE", "internal error"} {
		if at := strings.Index(text, sign); at >= 0 {
			r.note(name, text[at:min(at+400, len(text))])
		}
	}
}

func (r *replica) note(name, what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.panics = append(r.panics, name+": "+what)
}

func (r *replica) current() *harness.Process {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.process
}

// named is the process that a pid is, or was.
func (r *replica) named(pid int) (string, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.process == nil || r.process.PID() != pid {
		return "", false
	}
	return fmt.Sprintf("%s%d", r.name, r.lives), true
}

// leads says whether the replica says of itself that it leads.
func (r *replica) leads(ctx context.Context) bool {
	m, err := r.metrics(ctx)
	return err == nil && m["maint_leading"] == 1
}

func (r *replica) metrics(ctx context.Context) (map[string]float64, error) {
	p := r.current()
	if p == nil || p.Address() == "" {
		return nil, errors.New("the agent does not serve metrics yet")
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.Address()+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	out := map[string]float64{}
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), " ")
		if v, err := strconv.ParseFloat(value, 64); err == nil {
			out[name] = v
		}
	}
	return out, nil
}

// size is the least that the replica took in a few looks.
func (r *replica) size(ctx context.Context, looks int) (check.Process, error) {
	var least check.Process
	for i := range looks {
		m, err := r.metrics(ctx)
		if err != nil {
			return least, err
		}
		now := check.Process{Goroutines: m["go_goroutines"], HeapMiB: m["go_memstats_heap_alloc_bytes"] / (1 << 20)}
		if i == 0 {
			least = now
		}
		least = check.Process{Goroutines: min(least.Goroutines, now.Goroutines), HeapMiB: min(least.HeapMiB, now.HeapMiB)}
		pause(ctx, time.Second)
	}
	return least, nil
}
