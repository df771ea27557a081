package metrics

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/savings"
	"github.com/kubectl-maint/kubectl-maint/pkg/transition"
)

// Troubles are what alerts are about, each by the object that has it. They are states
// and not counts of events: what happened while nobody scraped, or before this agent
// led, is seen all the same.
type Troubles struct {
	// Leading: those who wait for the lease would tell the same again.
	Leading      func() bool
	Plans        func() map[types.NamespacedName]ledger.Trouble // those that have any
	Hibernations func() map[types.NamespacedName]transition.Trouble
	Slept        func() []savings.Sleep               // those that there are now
	Drains       func() []BlockedDrain                // of steps of runs
	Gates        func() map[types.NamespacedName]bool // of each policy with gates, whether they do what they should
	Now          func() time.Time
}

// BlockedDrain is a drain that no waiting ends. One for a requestor has no plan.
type BlockedDrain struct{ Namespace, Plan, Node string }

// troubles exports them.
type troubles struct {
	Troubles                                                                 Troubles
	missed, failed, notBack, overdue, slept, blocked, enforced, certificates *prometheus.Desc

	mu   sync.Mutex
	held []BlockedDrain // of requests, and of nodes that wait for their turn
	seen map[executors.Certificate]certificateSeen
}

// certificateSeen is when a certificate ends, and when it was seen last.
type certificateSeen struct{ ends, at time.Time }

// Bounds of the certificates that are remembered (guesses): the endpoint of a function
// may come from an expression, and one that is called once a month is to stay.
const (
	mostCertificates = 500
	certificateKept  = 35 * 24 * time.Hour
)

func newTroubles() *troubles {
	object := []string{"namespace", "object"}
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	return &troubles{
		Troubles:     Troubles{Leading: func() bool { return false }},
		missed:       desc("maint_slot_missed_timestamp_seconds", "The newest slot of a plan that was missed, until one runs.", object...),
		failed:       desc("maint_run_failed_timestamp_seconds", "When the last run of a plan ended, where it failed.", object...),
		notBack:      desc("maint_not_put_back", "What ended runs of a plan did not put back, or targets of a HibernatePlan that cannot be woken.", "kind", "namespace", "object"),
		slept:        desc("maint_target_hibernated_seconds", "How long the resources of a target have slept in its present sleep, together, by their kind.", "namespace", "object", "target", "executor", "resource"),
		overdue:      desc("maint_asleep_past_wake_seconds", "For how long a resource of a HibernatePlan has slept past the time when it should be awake.", object...),
		blocked:      desc("maint_drain_blocked", "1 for each drain that cannot end by waiting, by node and by the plan whose run drains it.", "namespace", "object", "node"),
		enforced:     desc("maint_policy_enforced", "1 while the gates of a policy are in the state that it requires, else 0.", object...),
		certificates: desc("maint_function_certificate_expiry_timestamp_seconds", "When the certificate expires that was last used to call a function.", "namespace", "endpoint", "side"),
		seen:         map[executors.Certificate]certificateSeen{},
	}
}

// CountTroubles exports what is wrong with which object.
func (m *Metrics) CountTroubles(t Troubles) {
	m.troubles.mu.Lock()
	defer m.troubles.mu.Unlock()
	m.troubles.Troubles = t
}

// DrainsBlocked says which drains of requests, and of nodes that a rollout would take,
// could not end; those of steps at work are asked for.
func (m *Metrics) DrainsBlocked(now []BlockedDrain) {
	m.troubles.mu.Lock()
	defer m.troubles.mu.Unlock()
	m.troubles.held = now
}

// CertificateSeen notes when a certificate of a function's call ends.
func (m *Metrics) CertificateSeen(c executors.Certificate, ends time.Time) {
	t := m.troubles
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.Troubles.Now == nil {
		return
	}
	now := t.Troubles.Now()
	t.forget(now)
	if _, known := t.seen[c]; !known && len(t.seen) >= mostCertificates {
		delete(t.seen, t.oldest())
	}
	t.seen[c] = certificateSeen{ends: ends, at: now}
}

// forget drops certificates that were not seen for long.
func (t *troubles) forget(now time.Time) {
	for c, s := range t.seen {
		if now.Sub(s.at) > certificateKept {
			delete(t.seen, c)
		}
	}
}

// oldest is the certificate that was not seen for longest, of the namespace that has the most: none
// pushes out those of others.
func (t *troubles) oldest() executors.Certificate {
	held := map[string]int{}
	for c := range t.seen {
		held[c.Namespace]++
	}
	var first executors.Certificate
	most, at := 0, time.Time{}
	for c, s := range t.seen {
		if n := held[c.Namespace]; n > most || n == most && s.at.Before(at) {
			first, most, at = c, n, s.at
		}
	}
	return first
}

// Describe is prometheus.Collector's.
func (t *troubles) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{t.missed, t.failed, t.notBack, t.overdue, t.slept, t.blocked, t.enforced, t.certificates} {
		out <- d
	}
}

// Collect is prometheus.Collector's.
func (t *troubles) Collect(out chan<- prometheus.Metric) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.Troubles.Leading() {
		return
	}
	set := func(d *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	t.plans(set)
	t.hibernations(set)
	for _, s := range t.Troubles.Slept() {
		for _, one := range s.Slept {
			set(t.slept, one.Hours*time.Hour.Seconds(), s.Namespace, s.Plan, one.Target, one.Executor, one.Kind)
		}
	}
	t.drains(set)
	for k, holds := range t.Troubles.Gates() {
		set(t.enforced, truth(holds), k.Namespace, k.Name)
	}
	t.forget(t.Troubles.Now())
	for c, s := range t.seen {
		set(t.certificates, float64(s.ends.Unix()), c.Namespace, c.Endpoint, c.Side)
	}
}

type setter func(d *prometheus.Desc, value float64, labels ...string)

func (t *troubles) plans(set setter) {
	for k, p := range t.Troubles.Plans() {
		if !p.Missed.IsZero() {
			set(t.missed, float64(p.Missed.Unix()), k.Namespace, k.Name)
		}
		if !p.Failed.IsZero() {
			set(t.failed, float64(p.Failed.Unix()), k.Namespace, k.Name)
		}
		if p.NotBack > 0 {
			set(t.notBack, float64(p.NotBack), "Plan", k.Namespace, k.Name)
		}
	}
}

func (t *troubles) hibernations(set setter) {
	for k, h := range t.Troubles.Hibernations() {
		if !h.Overdue.IsZero() {
			set(t.overdue, max(0, t.Troubles.Now().Sub(h.Overdue).Seconds()), k.Namespace, k.Name)
		}
		if h.NotBack > 0 {
			set(t.notBack, float64(h.NotBack), "HibernatePlan", k.Namespace, k.Name)
		}
	}
}

// drains sets each once: a run's step may say the same as who gives the nodes.
func (t *troubles) drains(set setter) {
	all := append(slices.Clone(t.held), t.Troubles.Drains()...)
	slices.SortFunc(all, func(a, b BlockedDrain) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Plan, b.Plan), cmp.Compare(a.Node, b.Node))
	})
	for _, d := range slices.Compact(all) {
		set(t.blocked, 1, d.Namespace, d.Plan, d.Node)
	}
}

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
