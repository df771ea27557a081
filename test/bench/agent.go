package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

// agent is an agent at work, as a process of its own with the rights of its own
// ServiceAccount.
type agent struct {
	*harness.Process
	address string
}

// launch starts an agent's process.
func (b *bench) launch(ctx context.Context) (*agent, error) {
	process, err := harness.StartInstalled(ctx, b.cluster, annotations.DefaultNamespace, b.binary)
	if err != nil {
		return nil, err
	}
	return &agent{Process: process}, nil
}

// startAgent returns when the agent leads.
func (b *bench) startAgent(ctx context.Context) (*agent, error) {
	a, err := b.launch(ctx)
	if err != nil {
		return nil, err
	}
	if err := a.awaitLead(ctx); err != nil {
		a.Kill()
		return nil, fmt.Errorf("%w; the agent said:\n%s", err, a.Log())
	}
	return a, nil
}

func (a *agent) awaitLead(ctx context.Context) error {
	limit := time.NewTimer(30 * time.Second)
	defer limit.Stop()
	for {
		if a.address = a.Address(); a.address != "" {
			if m, err := a.metrics(ctx); err == nil && m["maint_leading"] == 1 {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-limit.C:
			return errors.New("the agent does not lead within 30 s")
		case <-a.Ended():
			return errors.New("the agent ended")
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// metrics are the samples that the agent exports, by name and labels.
func (a *agent) metrics(ctx context.Context) (map[string]float64, error) {
	body, err := a.get(ctx, "/metrics")
	if err != nil {
		return nil, err
	}
	defer body.Close()
	out := map[string]float64{}
	lines := bufio.NewScanner(body)
	for lines.Scan() {
		cut := strings.LastIndexByte(lines.Text(), ' ')
		if cut < 0 || strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		if v, err := strconv.ParseFloat(lines.Text()[cut+1:], 64); err == nil {
			out[lines.Text()[:cut]] = v
		}
	}
	return out, lines.Err()
}

func (a *agent) get(ctx context.Context, path string) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+a.address+path, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		response.Body.Close()
		return nil, fmt.Errorf("GET %s of the agent: %s", path, response.Status)
	}
	return response.Body, nil
}

// effort is what the agent has spent so far.
type effort struct {
	requests map[string]float64 // by method
	failed   float64            // of them, answered 4xx or 5xx, or not at all
	cpu      float64            // seconds
}

func (a *agent) effort(ctx context.Context) (effort, error) {
	e := effort{requests: map[string]float64{}}
	m, err := a.metrics(ctx)
	if err != nil {
		return e, err
	}
	for name, v := range m {
		labels, found := strings.CutPrefix(name, "rest_client_requests_total{")
		if !found {
			continue
		}
		e.requests[label(labels, "method")] += v
		if code := label(labels, "code"); !strings.HasPrefix(code, "2") {
			e.failed += v
		}
	}
	e.cpu = m["process_cpu_seconds_total"]
	return e, nil
}

func label(labels, name string) string {
	_, rest, _ := strings.Cut(labels, name+`="`)
	value, _, _ := strings.Cut(rest, `"`)
	return value
}

func (e effort) total() float64 {
	var n float64
	for _, v := range e.requests {
		n += v
	}
	return n
}

// quiet returns the effort once the agent has come to rest: fewer than five
// requests in a second, which lease and heartbeat need.
func (a *agent) quiet(ctx context.Context) (effort, error) {
	limit := time.Now().Add(2 * time.Minute)
	last, err := a.effort(ctx)
	for err == nil {
		if err := until(ctx, time.Now().Add(time.Second)); err != nil {
			return last, err
		}
		var now effort
		now, err = a.effort(ctx)
		switch {
		case err == nil && now.total()-last.total() < 5:
			return now, nil
		case time.Now().After(limit):
			return now, errors.New("the agent does not come to rest within 2 minutes")
		}
		last = now
	}
	return last, err
}

// resident are the process's resident memory now and at its highest, in MiB.
func (a *agent) resident() (now, highest float64, err error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", a.PID()))
	if err != nil {
		return 0, 0, err
	}
	field := func(name string) float64 {
		_, rest, _ := strings.Cut(string(b), name+":")
		kib, _ := strconv.ParseFloat(strings.Fields(rest + " 0")[0], 64)
		return kib / 1024
	}
	return field("VmRSS"), field("VmHWM"), nil
}
