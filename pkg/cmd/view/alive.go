package view

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
)

// Asleep says whether anything of a HibernatePlan is asleep, by its status.
func Asleep(cm *corev1.ConfigMap) bool {
	phase := hibernate.Phase(cm.Annotations[annotations.StatusPhase])
	return cm.Annotations[annotations.StatusAsleep] != "" || slices.Contains([]hibernate.Phase{hibernate.Hibernated, hibernate.Hibernating, hibernate.WakingUp}, phase)
}

// AliveBeside names the runs and the sleeps that only an agent with its rights ends, in all namespaces but one. A dry
// run leaves nothing.
func AliveBeside(runs []Run, sleepers []*corev1.ConfigMap, spared string) (out []string) {
	SortRuns(runs)
	for _, r := range runs {
		if r.Run.Namespace != spared && !r.Run.Request.DryRun && !r.Journal.Phase.Ended() {
			out = append(out, "run "+r.Run.Namespace+"/"+r.Run.Name)
		}
	}
	for _, cm := range sleepers {
		if cm.Namespace != spared && Asleep(cm) {
			out = append(out, "the sleep of HibernatePlan "+cm.Namespace+"/"+cm.Name)
		}
	}
	return out
}

// CordonedHere are the claimants of this cluster for which a node is cordoned, requestors first: an uncordon would
// stop their drains.
func CordonedHere(n *corev1.Node) []string {
	c := annotations.Node(n).Cordon
	if c == nil {
		return nil
	}
	var requestors, plans []string
	for _, by := range c.By {
		switch {
		case nodes.IsElsewhere(by):
		case nodes.IsPlan(by):
			plans = append(plans, by)
		default:
			requestors = append(requestors, by)
		}
	}
	return append(requestors, plans...)
}

// RequestsAlive names the requests for which nodes are cordoned, and gives the first of them: only the agent gives
// those nodes back.
func RequestsAlive(list []*corev1.Node) (out []string, node, requestor string) {
	for _, n := range list {
		for _, by := range CordonedHere(n) {
			if nodes.IsPlan(by) {
				continue
			}
			if len(out) == 0 {
				node, requestor = n.Name, by
			}
			out = append(out, "the request of "+by+" for node "+n.Name)
		}
	}
	return out, node, requestor
}
