package print

import (
	"fmt"
	"strings"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/instant"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
)

// ClaimColumns are those of a table of nodes that somebody has or asks for.
func ClaimColumns() []string { return []string{"NODE", "FOR", "PHASE", "SINCE", "LEFT", "REASON"} }

// ClaimCells are a claim's in those columns.
func (v Printer) ClaimCells(c view.NodeClaim) []string {
	since := ""
	if !c.Since.IsZero() {
		since = instant.Approximate(v.Now.Sub(c.Since))
	}
	return []string{c.Node, c.By, c.Phase, since, c.Left, v.AgentText(c.Reason)}
}

// NodeLines show a node: for whom it is cordoned and how it was before, its requests, when it may
// be changed, and which rollouts have it.
func (v Printer) NodeLines(n view.Node) []string {
	var asked, rolled []string
	for _, a := range n.Asked {
		asked = append(asked, a.Request.Requestor+"  "+v.Asked(&a)+progressWords(a.Status))
	}
	for _, r := range n.StepClaims {
		rolled = append(rolled, r.Named()+"  "+r.Words())
	}
	if len(asked) == 0 {
		asked = []string{"nobody asks for it"}
	}
	return v.Labelled(
		"Node", v.Bold(n.Name)+"  "+strings.Join(v.nodeStates(n.Node), ", "),
		"Zone", n.Zone,
		"Cordoned", v.cordoned(n),
		"Requests", strings.Join(asked, "\n"),
		"Rollouts", strings.Join(rolled, "\n"),
		"Window", v.windowOf(n.Subject),
	)
}

func progressWords(s *nodes.Status) string {
	if s == nil || s.Progress == nil || s.Phase == nodes.Draining { // the reason has the numbers
		return ""
	}
	return fmt.Sprintf(" (%s pods left)", view.PodsLeft(s))
}

func (v Printer) nodeStates(n nodes.Node) []string {
	ready := v.good("Ready")
	if n.NotReady {
		ready = v.Bad("NotReady")
	}
	out := []string{ready}
	if n.Unschedulable {
		out = append(out, v.Warn("unschedulable"))
	}
	if n.Deleting {
		out = append(out, v.Warn("is being deleted"))
	}
	return out
}

// cordoned says for whom a node is cordoned, and what happens after them.
func (v Printer) cordoned(n view.Node) string {
	switch {
	case n.Cordon == nil && n.Unschedulable:
		return v.CordonedByOthers(n.Name, n.Cordoners)
	case n.Cordon == nil:
		return ""
	}
	text := "for " + strings.Join(view.ClaimantNames(n.Cordon.By), ", ") + ", since " + v.When(n.Cordon.At)
	staying, alone, unseen := view.Staying(n)
	uncordon := v.Uncordon(n.Name, n.Use().AtWork(n.Node))
	switch {
	case n.Cordon.Undone && !n.Unschedulable:
		return text + "\nsomebody uncordoned it since: that is left as it is"
	case n.Cordon.Before:
		return text + "\nit was cordoned before, and stays so afterwards"
	case len(n.Gone) > 0 && len(staying)+len(alone)+len(unseen) == 0:
		return text + "\nit was schedulable before, and stays as it is" + goneOf(n, uncordon)
	case len(unseen) > 0 && len(staying)+len(alone) == 0:
		return text + "\nit was schedulable before" + unseenRuns(unseen) + goneOf(n, uncordon)
	case len(staying)+len(alone) > 0:
		var who []string
		if len(staying) > 0 {
			who = append(who, "no run of "+strings.Join(staying, ", ")+" goes on with it; the plan's next run does")
		}
		for _, by := range alone {
			who = append(who, "the agent leaves run "+n.Alone[by]+" of "+nodes.ClaimantName(by)+" alone; "+v.WhyAlone(by, n.Alone[by])+" says why")
		}
		return text + "\nit was schedulable before, and stays as it is: " + strings.Join(who, "; ") + ", or " + uncordon + unseenRuns(unseen) + goneOf(n, uncordon)
	}
	return text + "\nit was schedulable before, and is again when the last one leaves"
}

// Uncordon is the command that uncordons a node, and whom it would stop before they have given the node back.
func (v Printer) Uncordon(node string, atWork []string) string {
	return v.Suggest().Uncordon(node) + view.PrefixList(view.OnceGivenBack, atWork)
}

// CordonedByOthers says who cordoned a node that is not cordoned for maintenance, as far as its managed
// fields tell.
func (v Printer) CordonedByOthers(node string, by []annotations.CordonWriter) string {
	who := "not by us"
	if len(by) > 0 {
		last := by[len(by)-1]
		who += ", but by " + last.Manager + " at " + v.When(last.At)
	}
	return who + ": it stays so after any maintenance; " + v.Suggest().Uncordon(node) + " opens it"
}

// WhyAlone is the command that says why the agent leaves a run alone of a plan, which is a claimant.
func (v Printer) WhyAlone(by, run string) string {
	namespace, _, _ := nodes.PlanOf(by)
	return v.In(namespace).Suggest().Why(run)
}

// goneOf says that nobody uncordons a node for a plan that does not exist any more.
func goneOf(n view.Node, uncordon string) string {
	if len(n.Gone) == 0 {
		return ""
	}
	return ": there is no " + strings.Join(view.ClaimantNames(n.Gone), ", no ") + " any more, and nobody else uncordons it: " + uncordon
}

func unseenRuns(of []string) string {
	if len(of) == 0 {
		return ""
	}
	return "; whether a run of " + strings.Join(of, ", ") + " goes on with it cannot be seen"
}

func (v Printer) windowOf(s view.Subject) string { return v.window(s.Verdict(v.Now)) }

// Asked is the state of a request, with its age.
func (v Printer) Asked(a *nodes.Asked) string {
	if a == nil || a.Gone || a.Status == nil {
		return v.Warn(view.RequestWords(a))
	}
	return fmt.Sprintf("%s %s%s", v.Phase(string(a.Status.Phase)), v.lasts(a.Status.Since), view.Colon(v.AgentText(view.RequestReason(*a))))
}
