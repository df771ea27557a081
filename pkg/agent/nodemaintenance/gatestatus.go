package nodemaintenance

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/lifecycle"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// statusWrites bounds the writes in flight that change nothing but what is told of gates (a
// guess): a window that opens for thousands of nodes holds up no drain.
const statusWrites = 64

// namesTold is how many claimants a condition names.
const namesTold = 5

// engagement is what live runs have to do with one node, by their journals, which move only
// when a step begins or ends.
type engagement struct {
	works []lifecycle.Work
	told  bool // a run has it, or a drain of one waits for it
}

// waiting are the plans that have not begun with the node.
func (e engagement) waiting() []string {
	var out []string
	for _, w := range e.works {
		if w.Planned {
			out = append(out, w.Claimant)
		}
	}
	return out
}

// engage adds what a run has and wants of nodes.
func (c *runClaims) engage(l *store.LiveRun, holds []nodes.Hold, wants []nodes.Candidate) {
	add := func(node string, told bool, works ...lifecycle.Work) {
		e := c.engaged[node]
		c.engaged[node] = engagement{works: append(e.works, works...), told: e.told || told}
	}
	for _, w := range lifecycle.OfRun(claimantOf(l), l.Journal, holds, wants) {
		add(w.Node, false, w)
	}
	for _, h := range holds {
		add(h.Node, true)
	}
	for _, w := range wants {
		rec := l.Journal.Record(w.Path)
		add(w.Node, rec != nil && rec.Type == plan.TypeDrain) // the many that a rollout lists are told of in its run
	}
}

// gateStatus adds to a step what the node is to say of its gate, where that is not what it says. An
// agent that carries out no requests leaves what stands there.
func (k *Controller) gateStatus(step *nodes.Step, o *nodeObject, n nodes.Node, by engagement, now time.Time) {
	if len(o.Annotations) == 0 && !by.told || k.Scope.DryRun || k.writer.withheld(now) {
		return
	}
	n.Gate = k.Gates.node(o, k.look.shut, now)
	if told := k.Gates.behavior(o, n, by, k.look.shut, now); told != n.Behavior {
		step.Behavior = &told
	}
	if told := k.Gates.conditions(o, n, by, k.look.shut, now); told != n.Conditions {
		step.Conditions = &told
	}
	if n.Behavior != "" || n.Conditions != "" || step.Writes() {
		k.look.by(n.Gate.Next)
	}
}

// asks says whether a request stands on a node.
func asks(n nodes.Node) bool {
	return slices.ContainsFunc(n.Asked, func(a nodes.Asked) bool { return !a.Gone })
}

// behavior is what a node tells of its gate to those who want it and may not read what stands
// behind it; empty: nobody wants it any more, or, where a request alone does, nothing stands there.
// While the clock is in doubt nothing new is told.
func (g Gates) behavior(o *nodeObject, n nodes.Node, by engagement, everywhere *nodes.Gate, now time.Time) string {
	in := annotations.Intent(o.Annotations)
	switch {
	case !asks(n) && !by.told:
		return ""
	case g.ClockDoubt() != "":
		return n.Behavior
	case !by.told && everywhere == nil && !in.Stanza.Set() && !in.Pause.Holds(now):
		return ""
	}
	strategy, v := schedule.Restrictive, schedule.Verdict{Reason: n.Gate.Reason, Until: n.Gate.Next} // in a pause: the gate has its words
	if everywhere == nil && !in.Pause.Holds(now) {
		q := in.Query("", nil)
		strategy, v = g.Store.Strategy(q, now), g.verdict(q, in.Pause)(now)
	}
	return g.Store.Behavior(n.Behavior, v, strategy, now)
}

// conditions are those of a node with a stanza, a pause or a request; empty: it has none. While
// the clock is in doubt nothing new is told.
func (g Gates) conditions(o *nodeObject, n nodes.Node, by engagement, everywhere *nodes.Gate, now time.Time) string {
	in := annotations.Intent(o.Annotations)
	switch {
	case !governed(in) && !asks(n):
		return ""
	case g.ClockDoubt() != "":
		return n.Conditions
	}
	paused := metav1.Condition{Type: policy.ChangesPaused, Status: metav1.ConditionTrue, Reason: "Restrictive", Message: document.Cut(n.Gate.Reason, document.MaxMessage)}
	switch {
	case everywhere != nil || in.Pause.Holds(now):
		paused.Reason = policy.ReasonPaused
	case n.Gate.Permitted:
		paused.Status, paused.Reason = metav1.ConditionFalse, "Permissive"
	}
	return g.Store.Conditions(n.Conditions, []metav1.Condition{paused, pendingCondition(append(n.Waiting(), by.waiting()...))}, now)
}

// governed says whether somebody said when a node may be changed.
func governed(in intent.Intent) bool { return in.Stanza.Set() || in.Pause.On }

// pendingCondition says who waits for a node.
func pendingCondition(waiting []string) metav1.Condition {
	pending := metav1.Condition{Type: "ChangesPending", Status: metav1.ConditionFalse, Reason: "Nothing", Message: "nobody waits for the node"}
	if len(waiting) == 0 {
		return pending
	}
	slices.Sort(waiting)
	waiting = slices.Compact(waiting)
	pending.Status, pending.Reason = metav1.ConditionTrue, "Waits"
	pending.Message = document.Cut("wanted by "+document.Few(waiting, namesTold), document.MaxMessage)
	return pending
}

// statusBudget is how many more writes may be begun that change nothing but what is told of gates.
type statusBudget struct{ left int }

func newStatusBudget(writing map[string]*nodeWriting, most int) *statusBudget {
	b := &statusBudget{left: most}
	for _, w := range writing {
		if w.step.OnlyGateStatus() {
			b.left--
		}
	}
	return b
}

func (b *statusBudget) allows(step nodes.Step) bool {
	if !step.OnlyGateStatus() {
		return true
	}
	b.left--
	return b.left >= 0
}
