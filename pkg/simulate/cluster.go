package simulate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
	"github.com/kubectl-maint/kubectl-maint/pkg/trigger"
)

// mostLooks bounds what may happen at one instant (a guess, far beyond what a
// plan can claim): more is two parts of the core that never agree.
const mostLooks = 1_000_000

// cluster is the memory of a cluster and of the one agent in it.
type cluster struct {
	scenario Scenario
	now      time.Time
	since    time.Time // since when the present agent looks
	outages  []Span    // to come
	plans    []*planState
	timers   timers
	runs     []*item // queued, and not looked at yet
	decides  []*item
	live     map[string][]*runState // by namespace
	entries  []Entry
}

// planState is a plan's document and its ledger.
type planState struct {
	Plan
	uid     string
	created time.Time
	set     schedule.Set
	gate    *schedule.Gate
	above   *schedule.Gate // what its namespace alone restricts
	target  *trigger.Target
	ledger  *ledger.Ledger
	live    []*runState
	item    *item
}

func newCluster(s Scenario) (*cluster, error) {
	c := &cluster{
		scenario: s, since: s.From, outages: merged(s.Outages, s.From), live: map[string][]*runState{},
	}
	plans := slices.SortedStableFunc(slices.Values(s.Plans), func(a, b Plan) int { return strings.Compare(a.key(), b.key()) })
	for _, p := range plans {
		set, err := plan.ParseSchedules(p.Spec.Triggers.Schedules)
		if err != nil {
			return nil, fmt.Errorf("plan %s: %w", p.key(), err)
		}
		asks := p.Intent.Query(p.Namespace, p.Spec.Policies)
		state := &planState{Plan: p, uid: p.key(), created: s.From.Add(-time.Nanosecond), set: set, gate: gateOf(s.Resolver, asks), above: gateOf(s.Resolver, asks.OfNamespace()), target: targetOf(p)}
		state.item = &item{look: func() (time.Time, error) { return c.decide(state) }}
		c.plans = append(c.plans, state)
		c.timers.set(state.item, s.From)
	}
	return c, nil
}

// gateOf is the gate of one question; nil where nothing stands between.
func gateOf(resolver *policy.Resolver, q policy.Query) *schedule.Gate {
	if resolver == nil {
		resolver = policy.NewResolver("")
	}
	return resolver.GateIfAny(q)
}

// targetOf is the target of a plan, which is there. Its uid says no more than
// that it is the same object for all plans of a namespace.
func targetOf(p Plan) *trigger.Target {
	if p.Spec.Target == nil {
		return nil
	}
	group, _, _ := strings.Cut(p.Spec.Target.APIVersion, "/")
	parts := []string{p.Namespace, group, p.Spec.Target.Kind, p.Spec.Target.Name}
	if on := p.Spec.ConnectorRef; on != nil {
		parts = append(parts, on.Name)
	}
	return &trigger.Target{UID: strings.Join(parts, "/")}
}

// play lets time pass.
func (c *cluster) play() error {
	for {
		next, ok := c.timers.next()
		if !ok || !next.Before(c.scenario.To) && !slices.ContainsFunc(c.plans, c.owes) {
			return nil
		}
		if len(c.outages) > 0 && !next.Before(c.outages[0].From) {
			c.begin(c.outages[0].To)
			c.outages = c.outages[1:]
		} else {
			c.now = next
		}
		for _, b := range c.timers.due(c.now) {
			c.enqueue(b)
		}
		if err := c.work(); err != nil {
			return fmt.Errorf("at %s: %w", c.now.UTC().Format(time.RFC3339), err)
		}
	}
}

// begin is the end of an outage: another agent, which looks at everything.
func (c *cluster) begin(at time.Time) {
	c.now, c.since = at, at
	for _, p := range c.plans {
		for _, r := range p.live {
			c.enqueue(r.item)
		}
		c.enqueue(p.item)
	}
}

func (c *cluster) enqueue(b *item) {
	switch {
	case b.queued:
		return
	case b.run:
		c.runs = append(c.runs, b)
	default:
		c.decides = append(c.decides, b)
	}
	b.queued = true
}

// work looks at all that is queued, until nothing is any more at this instant.
func (c *cluster) work() error {
	for range mostLooks {
		var b *item
		switch {
		case len(c.runs) > 0:
			b, c.runs = c.runs[0], c.runs[1:]
		case len(c.decides) > 0:
			b, c.decides = c.decides[0], c.decides[1:]
		default:
			return nil
		}
		b.queued = false
		if b.dead {
			continue
		}
		wake, err := b.look()
		if err != nil {
			return err
		}
		if !wake.IsZero() && !wake.After(c.now) {
			return fmt.Errorf("asks to be looked at again at %s, which is past", wake.UTC().Format(time.RFC3339Nano))
		}
		c.timers.set(b, wake)
	}
	return fmt.Errorf("does not come to rest")
}

// owes says whether a slot of the span has no end yet. A run that has started has
// one: it ran, however it ends.
func (c *cluster) owes(p *planState) bool {
	if p.ledger == nil {
		return true
	}
	for _, r := range p.live {
		if slot := r.run.Request.Slot; slot != nil && slot.Before(c.scenario.To) && r.journal.StartedAt == nil {
			return true
		}
	}
	slot, ok := p.set.Next(p.ledger.Watermark)
	return ok && slot.At.Before(c.scenario.To)
}

// stillAtWork records the runs that have started and not ended.
func (c *cluster) stillAtWork() {
	for _, p := range c.plans {
		for _, r := range p.live {
			if r.journal.StartedAt != nil {
				c.close(r)
				c.entries[len(c.entries)-1].At = time.Time{}
			}
		}
	}
}

// waiting says which runs without a slot still wait at the end, when those at work are
// recorded.
func (c *cluster) waiting() []string {
	var out []string
	for _, p := range c.plans {
		for _, r := range p.live {
			if r.run.Request.Slot == nil {
				out = append(out, fmt.Sprintf("plan %s: the run by %s still waits at the end: %s", p.key(), r.run.Request.Why(), r.journal.Message))
			}
		}
	}
	return out
}
