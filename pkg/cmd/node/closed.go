package node

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/claims"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/print"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/source"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// closed are requested nodes that wait for the same: a pause, a freeze or a window.
type closed struct {
	gate  nodes.Gate
	names []string
}

// sayClosed says of which nodes the agent does not take now what was asked: they, or the whole cluster, are
// paused or frozen, or their window is closed. They are requested by then, so what cannot be read is left unsaid,
// and is no error.
func (o *drainOptions) sayClosed(ctx context.Context, k *factory.Cluster, targets []*corev1.Node) {
	if o.Wait || !o.Kept() { // who waits is shown it
		return
	}
	v := print.New(o.Env, o.Zone)
	for _, c := range o.closedNow(ctx, k, targets) {
		opens := ""
		if c.gate.Opens != nil {
			opens = ", at " + v.Both(*c.gate.Opens)
		}
		waits := "waits"
		if len(c.names) > 1 {
			waits = "wait"
		}
		fmt.Fprintf(o.ErrOut, "%s %s until change is permitted there%s (%s); %s shows what would help\n", view.NodeWords(c.names), waits, opens, v.AgentText(c.gate.Reason), o.Suggest().Why("node/"+c.names[0]))
	}
}

func (o *drainOptions) closedNow(ctx context.Context, k *factory.Cluster, targets []*corev1.Node) []closed {
	agent, _ := o.Agent(ctx, k)
	quiet := source.Quiet(o.Factory)
	var namespaces []string
	for _, n := range targets {
		namespaces = append(namespaces, source.PolicyNamespaces(annotations.Intent(n.Annotations))...)
	}
	around := source.ReadRestrictions(ctx, k, agent.Namespace, namespaces...)
	shut := claims.ClusterGate("", around.Above(agent.Namespace), o.Now())
	var out []closed
	for _, n := range targets {
		if a := view.AskedBy(annotations.Node(n), o.request.requestor); a != nil && a.Status != nil && (view.GivenUp(*a) && o.alreadyAsked(n) || a.Status.Phase.Holds()) {
			continue // it waits for nothing of this
		}
		gate := claims.Gate(shut, claims.Node{Intent: annotations.Intent(n.Annotations), Verdict: around.NodeGate(quiet, agent, n).Verdict}, o.Now())
		if gate.Permitted || gate.Cause.Kind == schedule.CauseHidden || gate.Cause.Kind == schedule.CauseUnpublished {
			continue
		}
		same := func(c closed) bool { return c.gate.Reason == gate.Reason }
		if at := slices.IndexFunc(out, same); at >= 0 {
			out[at].names = append(out[at].names, n.Name)
			continue
		}
		out = append(out, closed{gate, []string{n.Name}})
	}
	return out
}
