package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/claims"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

// StepClaim is a node that a step of a run has, failed on, or still has to take: in a rollout or a
// drain.
type StepClaim struct {
	Run      Run
	Path     string
	Node     string
	Phase    run.StepPhase // Running, Failed, or empty: not begun
	Message  string        // the node's, else the step's
	Order    int           // its place in its step
	Next     bool          // not begun, and its step may begin it now
	Yielded  bool          // its drain is blocked, and others have its slot
	Cordoned bool          // the run says that the node is cordoned for it: it counts if the node says so, too
	Since    time.Time     // since when it waits; zero: not known
	Blocked  nodes.Block   // what the agent found before a cordon
	Needs    time.Duration // about how long it takes; 0: not known
}

// Claimant is the run's plan, as the cordon of a node names it: plan:NAMESPACE/NAME.
func (r StepClaim) Claimant() string { return nodes.PlanClaimant(r.Run.Run.Namespace, r.Run.Run.Plan) }

// Named is the claimant as people read it, with its run and step.
func (r StepClaim) Named() string {
	return fmt.Sprintf("%s (run %s, step %s)", nodes.ClaimantName(r.Claimant()), r.Run.Run.Name, r.Path)
}

// Step is RUN/PATH, by which nodes.Rank tells steps apart.
func (r StepClaim) Step() string { return r.Run.Run.Name + "/" + r.Path }

// Words are the state of the step on the node.
func (r StepClaim) Words() string {
	switch {
	case r.Yielded:
		return "its drain is blocked, and others have its turn: the node stays cordoned, and goes on first"
	case r.Phase == run.StepRunning:
		return "at work"
	case r.Phase == run.StepFailed:
		return "failed, and left as it is" + Colon(r.Message)
	}
	return "not begun" + Colon(r.Message)
}

// StepClaims are the nodes that live runs have or want, as the agent counts them.
func StepClaims(runs []Run) []StepClaim {
	var out []StepClaim
	for _, r := range runs {
		holds, wants := workflow.NodeClaims(r.Run, r.Journal, r.Run.Cordons)
		if r.Unclaimed {
			wants = nil
		}
		has := map[string]bool{} // a drain within a rollout has what the rollout has
		for _, h := range claims.ActualHolds(holds, r.Unclaimed) {
			if has[h.Node] {
				continue
			}
			has[h.Node] = true
			one := StepClaim{Run: r, Path: h.Path, Node: h.Node, Phase: run.StepRunning, Message: r.itemSays(h.Path, h.Node), Yielded: h.Yielded, Cordoned: h.Cordoned}
			if h.Yielded {
				one.Message = r.itemSays(h.Drain, h.Node)
			}
			if h.Failed {
				one.Phase = run.StepFailed
			}
			out = append(out, one)
		}
		for i, w := range wants {
			out = append(out, StepClaim{Run: r, Order: i, Path: w.Path, Node: w.Node, Message: r.itemSays(w.Path, w.Node), Next: w.Next, Since: w.Since, Blocked: w.Blocked, Needs: claims.EstimatedDuration(r.Run, w.Path)})
		}
	}
	return out
}

// UnseenRuns says which live runs could not be read.
type UnseenRuns struct {
	Some bool   // not all could
	But  string // those of this namespace could; empty: of none
}

// Of says whether the runs of a plan are among them.
func (u UnseenRuns) Of(claimant string) bool {
	return u.Some && (u.But == "" || !strings.HasPrefix(claimant, nodes.PlanClaimant(u.But, "")))
}

// NodeClaim is one line of the nodes under maintenance, or asked for.
type NodeClaim struct {
	Node, By, Phase, Left, Reason string
	Blocked                       bool      // its drain, for good
	Passes                        bool      // the drain goes on all the same when its time is over
	Since                         time.Time // zero: nobody says
	Alone                         string    // for a plan whose run the agent leaves alone: that run
	Elsewhere                     bool      // for a plan of another cluster, whose agent goes on with the node
	Unseen                        bool      // for a plan whose runs could not be read: one may have the node
	Gone                          bool      // for a plan that does not exist any more
	Uncordon                      bool      // for plans that do not exist any more alone: an uncordon stops nobody
}

// NodeUse is what is known of what runs are at on nodes.
type NodeUse struct {
	Steps  []StepClaim
	Unseen UnseenRuns        // of these, no steps are known
	Alone  map[string]string // runs that the agent leaves alone, by their plans as claimants
	Gone   []string          // plans that nodes are cordoned for and that do not exist, as claimants
}

// gone says whether a claimant is a plan that does not exist, and has no run that may go on.
func (u NodeUse) gone(by string) bool {
	return slices.Contains(u.Gone, by) && u.Alone[by] == "" && !u.Unseen.Of(by)
}

// OnceGivenBack precedes those whom a command would stop before they have given a node back.
const OnceGivenBack = " once it is given back by "

// AtWork are those for whom a node is cordoned and whom an uncordon would stop, as far as is seen: requests
// that stand, and plans of which a run has the node, still comes to it, or may have it unseen.
func (u NodeUse) AtWork(n nodes.Node) (out []string) {
	if n.Cordon == nil {
		return nil
	}
	for _, by := range n.Cordon.By {
		has := func(c StepClaim) bool { return c.Node == n.Name && c.Claimant() == by && c.Phase != run.StepFailed }
		stands := func(a nodes.Asked) bool { return a.Request.Requestor == by && !a.Gone }
		switch {
		case u.Alone[by] != "":
		case slices.ContainsFunc(n.Asked, stands), nodes.IsElsewhere(by), nodes.IsPlan(by) && u.Unseen.Of(by), slices.ContainsFunc(u.Steps, has):
			out = append(out, nodes.ClaimantName(by))
		}
	}
	return out
}

// NodeClaims are the claims on nodes, by node.
func NodeClaims(list []*corev1.Node, use NodeUse) []NodeClaim {
	var out []NodeClaim
	for _, n := range list {
		facts := annotations.Node(n)
		out = append(out, requestClaims(facts)...)
		var plans []string
		for _, r := range use.Steps {
			if r.Node == n.Name && r.Phase != "" {
				plans = append(plans, r.Claimant())
				c := NodeClaim{Node: n.Name, By: nodes.ClaimantName(r.Claimant()), Phase: string(r.Phase), Reason: fmt.Sprintf("run %s, step %s", r.Run.Run.Name, r.Path)}
				if r.Phase == run.StepFailed {
					c.Reason += Colon(r.Message)
				}
				if r.Yielded {
					c.Phase, c.Reason = "Yielded", c.Reason+Colon(r.Message)
				}
				out = append(out, c)
			}
		}
		out = append(out, leftClaims(facts, plans, use)...)
	}
	return out
}

// RequestClaims are the requests for a node.
func RequestClaims(n *corev1.Node) []NodeClaim { return requestClaims(annotations.Node(n)) }

func requestClaims(n nodes.Node) []NodeClaim {
	var out []NodeClaim
	for _, a := range n.Asked {
		out = append(out, requestClaim(n.Name, a))
	}
	return out
}

func requestClaim(node string, a nodes.Asked) NodeClaim {
	c := NodeClaim{Node: node, By: a.Request.Requestor, Phase: string(nodes.Pending), Left: PodsLeft(a.Status)}
	if a.Status == nil || a.Gone {
		c.Reason = RequestWords(&a)
	}
	if a.Status != nil {
		c.Phase, c.Since = string(a.Status.Phase), a.Status.Since
		c.Reason = cmp.Or(c.Reason, RequestReason(a))
		_, c.Blocked = BlockedForGood(*a.Status)
		c.Passes = PassesBlock(a)
	}
	return c
}

// leftClaims are the plans for which a node is cordoned although no rollout of theirs has it, as far as
// that is seen. A node that somebody has uncordoned is cordoned for nobody.
func leftClaims(n nodes.Node, rolling []string, use NodeUse) []NodeClaim {
	if n.Cordon == nil || !n.Unschedulable {
		return nil
	}
	var out []NodeClaim
	for _, by := range n.Cordon.By {
		if nodes.IsPlan(by) && !slices.Contains(rolling, by) {
			left := NodeClaim{Node: n.Name, By: nodes.ClaimantName(by), Phase: "Cordoned", Since: n.Cordon.At, Alone: use.Alone[by], Elsewhere: nodes.IsElsewhere(by), Unseen: !nodes.IsElsewhere(by) && use.Unseen.Of(by)}
			left.Gone = use.gone(by)
			left.Uncordon = !slices.ContainsFunc(n.Cordon.By, func(by string) bool { return !use.gone(by) })
			left.Reason = leftReason(left)
			out = append(out, left)
		}
	}
	return out
}

func leftReason(c NodeClaim) string {
	switch {
	case c.Elsewhere:
		return "cordoned for it; the agent there goes on with the node"
	case c.Alone != "":
		return "the agent leaves its run " + c.Alone + " alone"
	case c.Unseen:
		return RunsUnseen
	case c.Gone:
		return "there is no such plan any more: nobody else uncordons it"
	}
	return "no run of that plan has it now"
}

// RunsUnseen is what is known of a plan whose runs could not be read.
const RunsUnseen = "whether a run of that has it now cannot be seen"

// Staying are the plans for which a node is cordoned and whose runs will not uncordon it: no run
// has the node, or one has failed there. alone are those whose run there the agent leaves alone, as
// claimants; unseen are those of which nothing is known.
func Staying(n Node) (out, alone, unseen []string) {
	if n.Cordon == nil {
		return nil, nil, nil
	}
	for _, by := range n.Cordon.By {
		leaves := func(c StepClaim) bool { return c.Claimant() == by && c.Phase != run.StepFailed }
		switch {
		case !nodes.IsPlan(by) || nodes.IsElsewhere(by) || slices.ContainsFunc(n.StepClaims, leaves) || slices.Contains(n.Gone, by):
		case n.Alone[by] != "":
			alone = append(alone, by)
		case n.Unseen.Of(by):
			unseen = append(unseen, nodes.ClaimantName(by))
		default:
			out = append(out, nodes.ClaimantName(by))
		}
	}
	return out, alone, unseen
}

// Node is a node with everything about it.
type Node struct {
	nodes.Node
	Subject    Subject // whether it may be changed
	StepClaims []StepClaim
	Unseen     UnseenRuns        // of these, no StepClaims are known
	Alone      map[string]string // runs that the agent leaves alone, by their plans as claimants
	Gone       []string          // plans that it is cordoned for and that do not exist, as claimants
	Cordoners  []annotations.CordonWriter
}

// Use is what is known of what runs are at on it.
func (n Node) Use() NodeUse {
	return NodeUse{Steps: n.StepClaims, Unseen: n.Unseen, Alone: n.Alone, Gone: n.Gone}
}

// CordonedFor are the plans of this cluster for which a node is cordoned.
func CordonedFor(n nodes.Node) (out []types.NamespacedName) {
	if n.Cordon == nil {
		return nil
	}
	for _, by := range n.Cordon.By {
		if namespace, name, is := nodes.PlanOf(by); is {
			out = append(out, types.NamespacedName{Namespace: namespace, Name: name})
		}
	}
	return out
}

// MayBeRolledBy says whether a run of a plan has the node, or still has to come to it, for all that is known.
func (n Node) MayBeRolledBy(claimant string) bool {
	return n.Unseen.Of(claimant) || slices.ContainsFunc(n.StepClaims, func(c StepClaim) bool { return c.Claimant() == claimant })
}

// ClaimsOfNode are the claims on one node.
func ClaimsOfNode(n Node) []NodeClaim {
	var out []NodeClaim
	for _, a := range n.Asked {
		out = append(out, requestClaim(n.Name, a))
	}
	for _, r := range n.StepClaims {
		out = append(out, NodeClaim{Node: n.Name, By: nodes.ClaimantName(r.Claimant()), Phase: r.Words(), Reason: "run " + r.Run.Run.Name})
	}
	return append(out, leftClaims(n.Node, holdersOf(n.StepClaims), n.Use())...)
}

// ClaimantNames are claimants as people say them.
func ClaimantNames(claimants []string) []string {
	out := make([]string, len(claimants))
	for i, claimant := range claimants {
		out[i] = nodes.ClaimantName(claimant)
	}
	return out
}

// holdersOf are the plans whose runs have a node, without those that have still to come to it.
func holdersOf(rollings []StepClaim) []string {
	var out []string
	for _, r := range rollings {
		if r.Phase != "" {
			out = append(out, r.Claimant())
		}
	}
	return out
}
