package agent

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// changeCollector exports the change_management metrics. Their values follow
// from the clock, so they are worked out when they are asked for.
type changeCollector struct {
	gates *gates
	runs  *runs
	held  func() []*heldObject // by gates
	now   func() time.Time
	// leading: those who wait for the lease see nodes, too, and would tell them twice.
	leading func() bool
}

// Values of change_management_change_pending.
const (
	pendingNone      = 0
	pendingInitiated = 1
	pendingBlocked   = 2
)

func changeDesc(name, help string, more ...string) *prometheus.Desc {
	return prometheus.NewDesc("change_management_"+name, help, append([]string{"kind", "object", "namespace", "system"}, more...), nil)
}

func pendingDesc() *prometheus.Desc {
	return changeDesc("change_pending", "Whether change is wanted: 0 no, 1 it is being initiated, 2 it is blocked.")
}

func etaDesc() *prometheus.Desc {
	return changeDesc("next_change_eta", "Seconds until change is permitted: 0 it is, -1 never, -2 not ready.")
}

func remainingDesc() *prometheus.Desc {
	return changeDesc("permissive_remaining", "Seconds for which change is still permitted: 0 it is not, -1 for ever, -2 not ready.")
}

func lastDesc() *prometheus.Desc {
	return changeDesc("last_change", "Seconds since change was last permitted or initiated: 0 it is permitted, -1 unknown.")
}

func strategyDesc() *prometheus.Desc {
	return changeDesc("strategy_enabled", "1 for the strategy in force, 0 for the others.", "strategy")
}

// Describe is prometheus.Collector's.
func (c *changeCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{pendingDesc(), etaDesc(), remainingDesc(), lastDesc(), strategyDesc()} {
		ch <- d
	}
}

// Collect is prometheus.Collector's.
func (c *changeCollector) Collect(ch chan<- prometheus.Metric) {
	if !c.leading() {
		return
	}
	now := c.now()
	pending := map[key]int{}
	objects := c.gates.objects()
	for k, o := range objects {
		if o.kind != "Plan" {
			continue
		}
		p := pendingOf(c.runs.ofPlan(k))
		if o.waits {
			p = pendingBlocked
		}
		pending[k] = p
		for _, ref := range o.uses { // a policy has pending what its plans have
			policy := key{ref.Namespace, ref.Name}
			pending[policy] = max(pending[policy], p)
		}
	}
	held := c.held()
	for _, h := range held {
		for _, ref := range h.uses { // and what its gated objects have
			policy := key{ref.Namespace, ref.Name}
			pending[policy] = max(pending[policy], h.value())
		}
	}
	for k, o := range objects {
		c.collect(ch, k, o, pending[k], now)
	}
	for _, h := range held {
		k := key{h.namespace, h.name}
		if o := objects[k]; o == nil || o.kind != h.kind { // a gated object may be called Plan, too
			c.collect(ch, k, &h.gated, h.value(), now)
		}
	}
}

func (c *changeCollector) collect(ch chan<- prometheus.Metric, k key, o *gated, pending int, now time.Time) {
	v := o.verdict(now)
	labels := []string{o.kind, k.name, k.namespace, o.system}
	send := func(d *prometheus.Desc, value float64, more ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, append(labels, more...)...)
	}
	send(pendingDesc(), float64(pending))
	send(etaDesc(), float64(v.NextChangeETA))
	send(remainingDesc(), float64(v.PermissiveRemaining))
	send(lastDesc(), lastChange(v, o.lastStart, now))
	strategy := c.gates.strategyOf(o, now)
	for _, s := range []schedule.Strategy{schedule.Permissive, schedule.Restrictive, schedule.MaintenanceScheduled, schedule.ByPolicy} {
		enabled := 0.0
		if s == strategy {
			enabled = 1
		}
		send(strategyDesc(), enabled, string(s))
	}
}

// lastChange is 0 while change is permitted, else the seconds since it last was,
// or since a run last began.
func lastChange(v schedule.Verdict, lastStart, now time.Time) float64 {
	if v.Permitted {
		return 0
	}
	last := lastStart
	if v.Since != nil && v.Since.After(last) {
		last = *v.Since
	}
	if last.IsZero() {
		return -1
	}
	return max(float64(int64(now.Sub(last).Seconds())), 1)
}

// pendingOf is what a plan's live runs say of change: one that waits is blocked,
// one at work or about to begin is initiated.
func pendingOf(live []*liveRun) int {
	out := pendingNone
	for _, l := range live {
		switch {
		case l.broken != nil:
		case l.journal.HeldSince != nil, l.journal.Phase == plan.RunPending && l.journal.Waiting != "" && l.journal.Waiting != plan.WaitJitter:
			return pendingBlocked
		default:
			out = pendingInitiated
		}
	}
	return out
}

// objects are the plans and policies to be told of.
func (g *gates) objects() map[key]*gated {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := make(map[key]*gated, len(g.seen))
	for k, o := range g.seen {
		out[k] = o
	}
	return out
}

func (g *gates) strategyOf(o *gated, now time.Time) schedule.Strategy {
	g.mu.Lock()
	defer g.mu.Unlock()
	return o.strategy(now)
}
