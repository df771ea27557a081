package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/test/cluster"
	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

// While it is measured how soon work goes on after a fault, a loop over so many
// objects sends one webhook after another, each of which takes a while.
const (
	recoveryObjects   = 250
	recoveryPace      = 200 * time.Millisecond
	recoveryNamespace = "bench-recovery"
	recoverySeen      = 6 // deliveries after a fault among which the longest gap is looked for
	inARow            = 5 // restarts of the API server, a second of life between them
)

// pair is two agents, one of which leads, and the receiver of what they send.
type pair struct {
	bench           *bench
	leader, standby *agent
	receiver        *harness.Receiver

	mu   sync.Mutex
	came map[string][]time.Time // deliveries, by path
}

// recoveryFaults are what is done to the pair, in their order. Each answers from when
// on the time counts that is to be measured.
func (p *pair) recoveryFaults() []recoveryFault {
	return []recoveryFault{
		{"killed", "after the leader was killed", func(context.Context) (time.Time, error) {
			at := time.Now()
			p.leader.Kill()
			return at, nil
		}},
		{"terminated", "after the leader was told to end (SIGTERM)", func(context.Context) (time.Time, error) {
			at := time.Now()
			return at, p.leader.Stop()
		}},
		{"frozen", "after the leader was stopped where it was (SIGSTOP)", func(context.Context) (time.Time, error) {
			return time.Now(), p.leader.Freeze()
		}},
		{"restarted", "after an API server that restarted once was ready", func(ctx context.Context) (time.Time, error) { return p.restart(ctx, 1) }},
		{"in-a-row", fmt.Sprintf("after one that restarted %d times in a row was ready", inARow), func(ctx context.Context) (time.Time, error) { return p.restart(ctx, inARow) }},
	}
}

type recoveryFault struct {
	name, what string
	happen     func(ctx context.Context) (counts time.Time, err error)
}

// recovery measures how long work stands still after a leader, or the API server, is
// gone.
func (b *bench) recovery(ctx context.Context, out io.Writer) (err error) {
	if err := b.open(ctx, cluster.Options{}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	b.printHead(out, "two agents, a loop of webhooks")
	if err := b.makeRecovery(ctx); err != nil {
		return err
	}
	p := &pair{bench: b, came: map[string][]time.Time{}}
	if err := p.open(ctx); err != nil {
		return err
	}
	defer p.close()
	var samples []sample
	for i := range b.rounds {
		s := sample{}
		for _, f := range p.recoveryFaults() {
			if s[f.name], err = p.suffer(ctx, f, fmt.Sprintf("%s-%d", f.name, i)); err != nil {
				return fmt.Errorf("%s: %w", f.name, err)
			}
			b.say("recovery: %.2f s %s; load average %s", s[f.name], f.what, loadAverage())
		}
		samples = append(samples, s)
	}
	var figures []figure
	for _, f := range p.recoveryFaults() {
		figures = append(figures, figure{f.name, "s", f.what})
	}
	table(out, "until work goes on, a webhook in flight all the while", samples, figures)
	return nil
}

// makeRecovery makes what the loops go over, and the account that may list it.
func (b *bench) makeRecovery(ctx context.Context) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: recoveryNamespace}}
	if _, err := b.admin.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		return err
	}
	rule := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list"}}
	if err := harness.Runner(ctx, b.admin, recoveryNamespace, rule); err != nil {
		return err
	}
	return each(ctx, recoveryObjects, func(ctx context.Context, i int) error {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("cell-%04d", i), Labels: map[string]string{targetLabel: "true"}}}
		_, err := b.admin.CoreV1().ConfigMaps(recoveryNamespace).Create(ctx, object, metav1.CreateOptions{})
		return err
	})
}

func recoveryText(url string) string {
	return fmt.Sprintf(`apiVersion: maint.dev/v1alpha1
kind: Plan
spec:
  maxDuration: 1h
  triggers: {onCreate: true}
  steps:
  - name: cells
    type: for-each
    properties:
      apiVersion: v1
      kind: ConfigMap
      selector: {matchLabels: {%s: "true"}}
      maxConcurrency: 1
      steps:
      - {name: call, type: webhook, properties: {url: %q}}
`, targetLabel, url)
}

// open starts both agents, the leader first.
func (p *pair) open(ctx context.Context) (err error) {
	p.receiver, err = harness.NewReceiver(func(harness.Delivery) int {
		time.Sleep(recoveryPace)
		return http.StatusOK
	})
	if err != nil {
		return err
	}
	p.receiver.Heard(func(d harness.Delivery) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.came[d.Path] = append(p.came[d.Path], time.Now())
	})
	if p.leader, err = p.bench.startAgent(ctx); err == nil {
		p.standby, err = p.bench.startStandby(ctx)
	}
	return err
}

func (p *pair) close() {
	for _, a := range []*agent{p.leader, p.standby} {
		if a != nil {
			a.Kill()
		}
	}
	if p.receiver != nil {
		p.receiver.Close()
	}
}

// suffer begins a loop, has a fault happen in its middle, and answers how many seconds
// later work went on.
func (p *pair) suffer(ctx context.Context, f recoveryFault, name string) (float64, error) {
	cm := annotations.NewPlan(recoveryNamespace, name, recoveryText(p.receiver.URL+"/"+name), "")
	if _, err := p.bench.admin.CoreV1().ConfigMaps(recoveryNamespace).Create(ctx, cm, metav1.CreateOptions{}); err != nil {
		return 0, err
	}
	if _, err := p.deliveries(ctx, name, time.Time{}); err != nil {
		return 0, err
	}
	began := time.Now()
	counts, err := f.happen(ctx)
	if err != nil {
		return 0, err
	}
	if counts.After(began.Add(time.Second)) { // what came between the restarts is not asked for
		began = counts
	}
	came, err := p.deliveries(ctx, name, began)
	if err != nil {
		return 0, err
	}
	return max(0, resumed(began, came).Sub(counts).Seconds()), p.mend(ctx)
}

// resumed is the end of the longest gap: a leader that is told to end may have sent
// one more.
func resumed(began time.Time, came []time.Time) time.Time {
	longest, at, last := time.Duration(0), began, began
	for _, t := range came {
		if gap := t.Sub(last); gap > longest {
			longest, at = gap, t
		}
		last = t
	}
	return at
}

// deliveries waits for the first few of a loop that came after an instant.
func (p *pair) deliveries(ctx context.Context, name string, from time.Time) ([]time.Time, error) {
	limit := time.Now().Add(2 * time.Minute)
	for {
		p.mu.Lock()
		var came []time.Time
		for _, t := range p.came["/"+name] {
			if t.After(from) {
				came = append(came, t)
			}
		}
		p.mu.Unlock()
		if len(came) >= recoverySeen {
			return came, nil
		}
		if time.Now().After(limit) {
			return nil, fmt.Errorf("%d deliveries within 2 minutes; the leader said:\n%s\nthe standby:\n%s", len(came), p.leader.Log(), p.standby.Log())
		}
		if err := until(ctx, time.Now().Add(50*time.Millisecond)); err != nil {
			return nil, err
		}
	}
}

// restart restarts the API server some times, and answers when it was ready at last.
func (p *pair) restart(ctx context.Context, times int) (time.Time, error) {
	for i := range times {
		if i > 0 {
			if err := until(ctx, time.Now().Add(time.Second)); err != nil {
				return time.Time{}, err
			}
		}
		if err := p.bench.cluster.RestartAPIServer(ctx); err != nil {
			return time.Time{}, err
		}
	}
	return time.Now(), nil
}

// mend makes the two agents a leader and a standby again.
func (p *pair) mend(ctx context.Context) error {
	m, err := p.standby.metrics(ctx)
	if err != nil {
		return fmt.Errorf("%w; the standby said:\n%s", err, p.standby.Log())
	}
	if m["maint_leading"] == 1 {
		p.leader, p.standby = p.standby, p.leader
	}
	p.standby.Kill()
	p.standby, err = p.bench.startStandby(ctx)
	return err
}

// startStandby returns when an agent beside the leader has read all, and has seen the
// lease.
func (b *bench) startStandby(ctx context.Context) (*agent, error) {
	a, err := b.launch(ctx)
	if err != nil {
		return nil, err
	}
	limit := time.Now().Add(30 * time.Second)
	for {
		if a.address = a.Address(); a.address != "" {
			if body, err := a.get(ctx, "/readyz"); err == nil {
				body.Close()
				return a, until(ctx, time.Now().Add(3*time.Second))
			}
		}
		if time.Now().After(limit) {
			a.Kill()
			return nil, fmt.Errorf("the standby is not ready within 30 s; it said:\n%s", a.Log())
		}
		if err := until(ctx, time.Now().Add(50*time.Millisecond)); err != nil {
			return nil, err
		}
	}
}
