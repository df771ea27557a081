package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-maint/kubectl-maint/test/cluster"
	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

// What drain is measured on: so many pods on every node, the other nodes included,
// and one budget over all.
const (
	podsPerNode  = 20
	nodesPerRest = 5  // for so many nodes that are drained …
	restPer      = 2  // … there are so many that are not
	budget       = 10 // percent that may be unavailable
)

const (
	slow     = 4 * time.Minute // what takes longer has one round
	shutdown = 3 * time.Second // of a pod, where pods take their time
)

// way is one way to drain the nodes.
type way struct {
	name, title string
	agent       bool // carried out by the agent
	run         func(*drains, context.Context) error
	back        func(*drains, context.Context) error // until the nodes take pods again
	who         func(asked) bool                     // whose requests count
}

func oneKubectl() way {
	return way{
		name: "kubectl", title: "kubectl drain, one command for all nodes",
		run: (*drains).kubectlInOrder, back: (*drains).uncordon, who: isKubectl,
	}
}

func manyKubectls() way {
	return way{
		name: "kubectls", title: "kubectl drain, a process for each node, all at once",
		run: (*drains).kubectlSideBySide, back: (*drains).uncordon, who: isKubectl,
	}
}

func requested() way {
	return way{
		name: "requests", title: "requests for all nodes at once", agent: true,
		run: (*drains).request, back: (*drains).release, who: isAgent,
	}
}

func byPerson() way {
	return way{
		name: "maint-drain", title: "kubectl maint drain -l pool=bench --wait --yes", agent: true,
		run: (*drains).maintDrain, back: (*drains).maintRelease,
		who: func(a asked) bool { return isAgent(a) || strings.HasPrefix(a.UserAgent, "kubectl-maint") },
	}
}

func ways() []way { return []way{oneKubectl(), manyKubectls(), requested(), byPerson()} }

func wayNames() []string {
	var out []string
	for _, w := range ways() {
		out = append(out, w.name)
	}
	return out
}

func isKubectl(a asked) bool { return strings.HasPrefix(a.UserAgent, "kubectl/") }

func isAgent(a asked) bool {
	return a.User.Username == harness.AgentUser
}

// drain empties the same nodes in each way, in turns, with pods that are gone as
// soon as they are deleted; and once more with pods that take their time.
func (b *bench) drain(ctx context.Context, out io.Writer) (err error) {
	d := &drains{bench: b, audit: filepath.Join(b.dir, "drain-audit.log")}
	d.rest = max(b.drains*restPer/nodesPerRest, 1)
	d.pods = (b.drains + d.rest) * podsPerNode
	err = b.open(ctx, cluster.Options{ControllerManager: true, Scheduler: true, Kwok: true, Nodes: b.drains + d.rest, AuditLog: d.audit})
	defer func() { err = errors.Join(err, b.close()) }()
	if err != nil {
		return err
	}
	b.printHead(out, fmt.Sprintf("%d nodes of %d pods each to drain beside %d others, %d pods, one budget of %d %%", b.drains, podsPerNode, d.rest, d.pods, budget))
	if err := d.prepare(ctx); err != nil {
		return err
	}
	defer d.view.stop()
	if b.profile != "" {
		return d.turn(ctx, "", []way{requested()})
	}
	order := ways()
	for round := range b.rounds {
		if round%2 == 1 {
			slices.Reverse(order)
		}
		if err := d.turn(ctx, "", order); err != nil {
			return err
		}
		if round%2 == 1 {
			slices.Reverse(order)
		}
	}
	d.tables(out, "", order)
	order = []way{requested(), manyKubectls(), oneKubectl()}
	if err := d.takeTheirTime(ctx); err != nil {
		return err
	}
	if err := d.turn(ctx, slowly, order); err != nil {
		return err
	}
	d.tables(out, slowly, order)
	return nil
}

const slowly = ", pods that take 3 s to go"

// turn drains once in each way, but for those that were slow before.
func (d *drains) turn(ctx context.Context, with string, order []way) error {
	for _, w := range order {
		if !slices.Contains(d.ways, w.name) || w.name == byPerson().name && d.plugin == "" {
			continue
		}
		if before := d.samples[w.name+with]; len(before) > 0 && before[0]["took"] > slow.Seconds() {
			continue
		}
		s, err := d.round(ctx, w)
		if err != nil {
			return fmt.Errorf("%s%s: %w", w.title, with, err)
		}
		d.samples[w.name+with] = append(d.samples[w.name+with], s)
	}
	return nil
}

func (d *drains) tables(out io.Writer, with string, order []way) {
	for _, w := range order {
		table(out, w.title+with, d.samples[w.name+with], []figure{
			{"took", "s", "until all nodes are drained"},
			{"evicted", "pods", "evicted"},
			{"per-pod", "requests", "for pods, per evicted pod (evictions, gets, lists, deletes; a watch counts once)"},
			{"requests", "requests", "in all"},
			{"refused", "evictions", "of them that were refused"},
			{"failed", "times", "kubectl gave up with an error, and was run again"},
			{"eviction50", "ms", "one eviction at the API server, p50"},
			{"eviction99", "ms", "… p99"},
			{"first", "s", "until the first eviction is asked for"},
			{"last", "s", "until the last is accepted"},
			{"fewest", "pods", fmt.Sprintf("healthy at any time; the budget wants %d", d.wanted())},
			{"cpu", "s", "CPU time of all"},
			{"cpu-client", "s", "… of it who drains"},
			{"cpu-server", "s", "… the API server and etcd"},
			{"cpu-controllers", "s", "… the controllers and the scheduler"},
			{"cpu-kwok", "s", "… kwok"},
		})
	}
	ours := valuesOf(d.samples[requested().name+with], "took")
	s := sample{}
	for _, w := range []way{oneKubectl(), manyKubectls()} {
		if theirs := valuesOf(d.samples[w.name+with], "took"); len(ours) > 0 && len(theirs) > 0 {
			s[w.name] = percentile(theirs, 50) / percentile(ours, 50)
		}
	}
	table(out, "kubectl to requests, medians"+with, []sample{s}, []figure{
		{oneKubectl().name, "×", "one kubectl for all nodes"},
		{manyKubectls().name, "×", "a kubectl for each node"},
	})
}

// round fills the nodes, drains them and gives them back. What the agent is told
// and reads at its start is not measured; kubectl's own start is, as a person
// waits for it.
func (d *drains) round(ctx context.Context, w way) (s sample, err error) {
	if err := d.refill(ctx); err != nil {
		return nil, fmt.Errorf("fill the nodes: %w", err)
	}
	var a *agent
	if w.agent {
		if a, err = d.startAgent(ctx); err != nil {
			return nil, err
		}
		defer func() { _ = a.Stop() }()
		if _, err := a.quiet(ctx); err != nil {
			return nil, err
		}
	}
	from, err := auditEnd(d.audit)
	if err != nil {
		return nil, err
	}
	profiled := func() error { return nil }
	if a != nil {
		profiled = d.profiles(ctx, a, kind{name: "drain"})
	}
	d.view.begin()
	d.clients, d.failed = 0, 0
	used, began := cpuByName(), time.Now()
	if err := w.run(d, ctx); err != nil {
		if a != nil {
			return nil, fmt.Errorf("%w; the agent last said:\n%s", err, tail(a.Log()))
		}
		return nil, err
	}
	s = sample{"took": time.Since(began).Seconds()}
	if !w.agent {
		s["failed"] = float64(d.failed)
	}
	s.spent(used, cpuByName(), d.clients)
	if err := profiled(); err != nil {
		return nil, err
	}
	if err := d.tell(s, w, from, began); err != nil {
		return nil, err
	}
	d.say("%s: %.1f s, %.0f pods, %.2f pod requests each, %.0f refused, %.0f healthy at least; load average %s",
		w.name, s["took"], s["evicted"], s["per-pod"], s["refused"], s["fewest"], loadAverage())
	return s, w.back(d, ctx)
}

// tell adds what the audit log and the observer of the pods know.
func (d *drains) tell(s sample, w way, from int64, began time.Time) error {
	fewest, err := d.view.fewest()
	if err != nil {
		return err
	}
	log, err := auditSince(d.audit, from)
	if err != nil {
		return err
	}
	t := count(log, w.who)
	if t.evicted == 0 {
		return errors.New("nobody evicted a pod")
	}
	s["fewest"], s["requests"], s["evicted"], s["refused"] = float64(fewest), float64(t.all), float64(t.evicted), float64(t.refused)
	s["per-pod"] = float64(t.pods) / float64(t.evicted)
	s["eviction50"], s["eviction99"] = percentile(t.took, 50), percentile(t.took, 99)
	s["first"], s["last"] = t.first.Sub(began).Seconds(), t.last.Sub(began).Seconds()
	if t.refused > 0 {
		d.say("%s: refused evictions by status: %v", w.name, t.codes)
	}
	if fewest < d.wanted() {
		d.say("%s: THE BUDGET WAS EXCEEDED: %d healthy, %d must be", w.name, fewest, d.wanted())
	}
	return nil
}

// wanted is how many pods the budget wants healthy: a share that may be
// unavailable is rounded up.
func (d *drains) wanted() int { return d.pods - (d.pods*budget+99)/100 }

// spent adds who has used the CPU; clients are those that have ended already.
func (s sample) spent(before, now map[string]float64, clients float64) {
	names := map[string]string{
		"agent": "cpu-client", "kube-apiserver": "cpu-server", "etcd": "cpu-server",
		"kube-controller": "cpu-controllers", "kube-scheduler": "cpu-controllers", "kwok": "cpu-kwok",
	}
	s["cpu"], s["cpu-client"] = clients, clients
	for name, seconds := range now {
		used := seconds - before[name]
		s["cpu"] += used
		if key, known := names[name]; known {
			s[key] += used
		}
	}
}

// prepare makes what is drained.
func (d *drains) prepare(ctx context.Context) (err error) {
	if d.kubectl, err = cluster.Asset("kubectl"); err != nil {
		return err
	}
	if d.config, err = d.cluster.KubeconfigFile("person", d.cluster.AdminConfig()); err != nil {
		return err
	}
	if err := harness.Configure(ctx, d.cluster.AdminConfig(), "{nodes: {maxParallelOperations: 100%}}"); err != nil {
		return err
	}
	if err := d.label(ctx); err != nil {
		return err
	}
	if d.view, err = viewPods(ctx, d.admin, drainNamespace, d.goes); err != nil {
		return err
	}
	return d.fill(ctx)
}
