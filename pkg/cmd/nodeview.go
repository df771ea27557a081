package cmd

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// rolling is a node that a step of a run has, had without success, or is still to
// take: of a rollout, or of a drain.
type rolling struct {
	run     aRun
	path    string
	node    string
	phase   plan.StepPhase // Running, Failed, or empty: not begun
	message string         // of the node where it has one, else of the step
	order   int            // its place in its step
	next    bool           // not begun, and its step may begin it now
	yielded bool           // its drain is blocked, and others have its slot
}

func (r rolling) claimant() string { return nodes.PlanClaimant(r.run.run.Namespace, r.run.run.Plan) }

// step names the step as the ranking does.
func (r rolling) step() string { return r.run.run.Name + "/" + r.path }

func (r rolling) words() string {
	switch {
	case r.yielded:
		return "its drain is blocked, and others have its turn: the node stays cordoned, and goes on first"
	case r.phase == plan.StepRunning:
		return "at work"
	case r.phase == plan.StepFailed:
		return "failed, and left as it is" + colon(r.message)
	}
	return "not begun" + colon(r.message)
}

// rollingOf are the nodes that live runs have, or want, by what the agent counts.
func rollingOf(runs []aRun) []rolling {
	var out []rolling
	for _, r := range runs {
		holds, wants := nodes.NodeClaims(r.run, r.journal)
		has := map[string]bool{} // a drain within a rollout has what the rollout has
		for _, h := range holds {
			if has[h.Node] {
				continue
			}
			has[h.Node] = true
			one := rolling{run: r, path: h.Path, node: h.Node, phase: plan.StepRunning, message: r.itemSays(h.Path, h.Node), yielded: h.Yielded}
			if h.Yielded {
				one.message = r.itemSays(h.Drain, h.Node)
			}
			if h.Failed {
				one.phase = plan.StepFailed
			}
			out = append(out, one)
		}
		for i, w := range wants {
			out = append(out, rolling{run: r, order: i, path: w.Path, node: w.Node, message: r.itemSays(w.Path, w.Node), next: w.Next})
		}
	}
	return out
}

// itemSays is what a step says of one of its nodes, else of all.
func (r aRun) itemSays(path, node string) string {
	rec := r.journal.Record(path)
	if rec == nil {
		return ""
	}
	for _, item := range rec.Items {
		if item.Name == node && item.Message != "" {
			return item.Message
		}
	}
	return rec.Message
}

// claim is one line of the nodes under maintenance, or asked for.
type claim struct {
	node, by, phase, left, reason string
	since                         time.Time // zero: nobody says
}

// claimsOf are who has nodes, or asks for them, by node.
func claimsOf(list []*corev1.Node, rollings []rolling) []claim {
	var out []claim
	for _, n := range list {
		facts := annotations.Node(n)
		for _, a := range facts.Asked {
			out = append(out, claimOf(n.Name, a))
		}
		var plans []string
		for _, r := range rollings {
			if r.node == n.Name && r.phase != "" {
				plans = append(plans, r.claimant())
				c := claim{node: n.Name, by: claimantWords(r.claimant()), phase: string(r.phase), reason: fmt.Sprintf("run %s, step %s", r.run.run.Name, r.path)}
				if r.yielded {
					c.phase, c.reason = "Yielded", c.reason+colon(r.message)
				}
				out = append(out, c)
			}
		}
		out = append(out, leftClaims(facts, plans)...)
	}
	return out
}

func claimOf(node string, a nodes.Asked) claim {
	c := claim{node: node, by: a.Request.Requestor, phase: string(nodes.Pending), left: leftWords(a.Status)}
	if a.Status == nil || a.Gone {
		c.reason = askedWords(&a)
	}
	if a.Status != nil {
		c.phase, c.since = string(a.Status.Phase), a.Status.Since
		c.reason = cmp.Or(c.reason, a.Status.Reason)
	}
	return c
}

// leftClaims are the plans for which a node is cordoned, though no rollout of
// theirs has it.
func leftClaims(n nodes.Node, rolling []string) []claim {
	if n.Cordon == nil {
		return nil
	}
	var out []claim
	for _, by := range n.Cordon.By {
		if nodes.IsPlan(by) && !slices.Contains(rolling, by) {
			out = append(out, claim{node: n.Name, by: claimantWords(by), phase: "Cordoned", since: n.Cordon.At, reason: "cordoned for it"})
		}
	}
	return out
}

func (v view) claimTable(claims []claim) []string {
	if len(claims) == 0 {
		return nil
	}
	var b strings.Builder
	w := printers.GetNewTabWriter(&b)
	fmt.Fprintln(w, "NODE\tFOR\tPHASE\tSINCE\tLEFT\tREASON")
	for _, c := range claims {
		since := ""
		if !c.since.IsZero() {
			since = roughly(v.now.Sub(c.since))
		}
		fmt.Fprintln(w, strings.Join([]string{c.node, c.by, c.phase, orDash(since), orDash(c.left), orDash(c.reason)}, "\t"))
	}
	w.Flush()
	return strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
}

func claimsSaid(claims []claim) []line {
	var out []line
	for _, c := range claims {
		out = append(out, line{of: "node/" + c.node + "/" + c.by, text: fmt.Sprintf("node %s: %s: %s%s", c.node, c.by, c.phase, colon(c.reason))})
	}
	return out
}

// aNode is a node with everything that can be said about it.
type aNode struct {
	nodes.Node
	subject  subject // whether it may be changed
	rollings []rolling
}

// nodeLines are a node's standing: for whom it is cordoned and how it was before,
// who asks for it, when it may be changed, and who rolls through it.
func (v view) nodeLines(n aNode) []string {
	var asked, rolled []string
	for _, a := range n.Asked {
		asked = append(asked, a.Request.Requestor+"  "+v.asked(&a)+progressWords(a.Status))
	}
	for _, r := range n.rollings {
		rolled = append(rolled, fmt.Sprintf("%s  %s (run %s, step %s)", claimantWords(r.claimant()), r.words(), r.run.run.Name, r.path))
	}
	if len(asked) == 0 {
		asked = []string{"nobody asks for it"}
	}
	return v.labelled(
		"Node", v.bold(n.Name)+"  "+strings.Join(v.nodeStates(n.Node), ", "),
		"Zone", n.Zone,
		"Cordoned", v.cordoned(n.Node),
		"Requests", strings.Join(asked, "\n"),
		"Rollouts", strings.Join(rolled, "\n"),
		"Window", v.windowOf(n.subject),
	)
}

func progressWords(s *nodes.Status) string {
	if s == nil || s.Progress == nil || s.Phase == nodes.Draining { // the reason counts them itself
		return ""
	}
	return fmt.Sprintf(" (%s pods left)", leftWords(s))
}

func (v view) nodeStates(n nodes.Node) []string {
	ready := v.good("Ready")
	if n.NotReady {
		ready = v.bad("NotReady")
	}
	out := []string{ready}
	if n.Unschedulable {
		out = append(out, v.warn("unschedulable"))
	}
	if n.Deleting {
		out = append(out, v.warn("is being deleted"))
	}
	return out
}

// cordoned says for whom a node is cordoned, and what becomes of it after them.
func (v view) cordoned(n nodes.Node) string {
	switch {
	case n.Cordon == nil && n.Unschedulable:
		return "not by us: it stays so"
	case n.Cordon == nil:
		return ""
	}
	var by []string
	for _, claimant := range n.Cordon.By {
		by = append(by, claimantWords(claimant))
	}
	text := "for " + strings.Join(by, ", ") + ", since " + v.when(n.Cordon.At)
	switch {
	case n.Cordon.Undone && !n.Unschedulable:
		return text + "\nsomebody uncordoned it since: that is left as it is"
	case n.Cordon.Before:
		return text + "\nit was cordoned before, and stays so afterwards"
	}
	return text + "\nit was schedulable before, and is again when the last one leaves"
}

func (v view) windowOf(s subject) string {
	verdict := s.verdict(v.now)
	word := "closed"
	if verdict.Permitted {
		word = "open"
	}
	if verdict.Until != nil {
		word += " until " + v.both(*verdict.Until) + ", in " + roughly(verdict.Until.Sub(v.now))
	}
	return word + " (" + verdict.Reason + ")"
}

func nodeSaid(n aNode) []line {
	out := claimsSaid(claimsOfNode(n))
	if len(out) == 0 {
		out = []line{{of: "node/" + n.Name, text: "node " + n.Name + ": nobody asks for it"}}
	}
	return out
}

func claimsOfNode(n aNode) []claim {
	var out []claim
	for _, a := range n.Asked {
		out = append(out, claimOf(n.Name, a))
	}
	for _, r := range n.rollings {
		out = append(out, claim{node: n.Name, by: claimantWords(r.claimant()), phase: r.words(), reason: "run " + r.run.run.Name})
	}
	return append(out, leftClaims(n.Node, claimantsOf(n.rollings))...)
}

func claimantsOf(rollings []rolling) []string {
	var out []string
	for _, r := range rollings {
		out = append(out, r.claimant())
	}
	return out
}

// liveRuns are those of all namespaces, or of this one where no more may be read.
func (k *cluster) liveRuns(ctx context.Context) ([]aRun, error) {
	runs, err := k.runsOf(ctx, "", "", liveOnly)
	if err == nil || k.namespace == "" {
		return runs, err
	}
	return k.runsOf(ctx, k.namespace, "", liveOnly)
}

// knowNode reads what there is to know about one node.
func (c *cli) knowNode(ctx context.Context, k *cluster, agent agentState, n *corev1.Node) (aNode, error) {
	runs, err := k.liveRuns(ctx)
	if err != nil {
		return aNode{}, err
	}
	out := aNode{Node: annotations.Node(n), subject: c.nodeSubject(ctx, k, agent, n)}
	out.rollings = slices.DeleteFunc(rollingOf(runs), func(r rolling) bool { return r.node != n.Name })
	return out, nil
}
