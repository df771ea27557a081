// Package claims says what counts when nodes are given: which gate stands before whoever wants a
// node, whose requests are carried out, and what of a run's claims it really has. The agent and
// whoever explains it ask here.
package claims

import (
	"fmt"
	"slices"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// doubtRecheck is how soon a doubt about the clock is looked at again, as all is.
const doubtRecheck = 30 * time.Second

// ClusterGate is the gate that keeps change from starting on any node: of a doubt about the agent's clock,
// or of a pause of the whole cluster; nil: nothing does.
func ClusterGate(clockDoubt string, everywhere []schedule.Pause, now time.Time) *nodes.Gate {
	if clockDoubt != "" {
		return &nodes.Gate{Reason: clockDoubt, Next: new(now.Add(doubtRecheck))}
	}
	return nodes.ClosedBy(everywhere, now)
}

// Node is what stands on a node about its change, and what follows from its stanza.
type Node struct {
	Intent  intent.Intent
	Verdict func(time.Time) schedule.Verdict
}

// Gate says whether change may start on a node for a request.
func Gate(shut *nodes.Gate, n Node, now time.Time) nodes.Gate {
	if shut != nil {
		return *shut
	}
	return nodes.GateWith(n.Intent.Pause, n.Verdict, now)
}

// Work is what a run wants to do on a node.
type Work struct {
	Run   string        // its name
	Needs time.Duration // about how long it takes; 0: not known
}

// GateForRun says whether change may start on a node for a run, and whether it may only as a bypass
// on the node names the run: then no window counts.
func GateForRun(shut *nodes.Gate, n Node, w Work, now time.Time) (gate nodes.Gate, passes bool) {
	if shut != nil {
		return *shut, false
	}
	named := n.Intent.Bypass.Run != "" && n.Intent.Bypass.Run == w.Run
	if gate, passes = nodes.GateForRun(n.Intent.Pause, named, n.Verdict, now); passes {
		return gate, true
	}
	return GateForDuration(gate, w.Needs, now), false
}

// GateForDuration is the gate of a node for work that takes about so long: it begins only where it would be
// through before the node's own window closes. What nobody knows, 0, fits into each open window.
func GateForDuration(gate nodes.Gate, needs time.Duration, now time.Time) nodes.Gate {
	if !gate.Permitted || gate.Next == nil || !now.Add(needs).After(*gate.Next) {
		return gate
	}
	return nodes.Gate{
		Reason: fmt.Sprintf("it would take about %s, and the node's window closes at %s", needs, gate.Next.UTC().Format(time.RFC3339)),
		Next:   gate.Next, Cause: gate.Cause,
	}
}

// EstimatedDuration is about how long a step takes for one node; 0: nobody said.
func EstimatedDuration(one run.Run, path string) time.Duration {
	step, found := one.Tree().Find(path)
	if !found || step.Type != plan.TypeForEachNode {
		return 0
	}
	var props plan.ForEachNodeProperties
	_ = document.DecodeValue(step.Own(), "", nil, true, &props) // the validator has read it
	return props.Estimate.Or(0)
}

// Asked are the requests on a node that count. Those that the agent withholds, since it may not
// write nodes or is to change nothing, take nobody's turn.
func Asked(n nodes.Node, withheld bool) []nodes.Asked {
	if withheld {
		return nil
	}
	return n.Asked
}

// ActualHolds are the nodes that a run really has. One that its plan's ledger does not know as open begins
// nothing, and so it has nothing but what is cordoned for it.
func ActualHolds(holds []nodes.Hold, unclaimed bool) []nodes.Hold {
	if !unclaimed {
		return holds
	}
	return slices.DeleteFunc(slices.Clone(holds), func(h nodes.Hold) bool { return !h.Cordoned })
}
