package rollout

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
)

// Runs are the live runs that may have nodes, as the agent counts them.
type Runs struct {
	Counted []view.Run
	Alone   map[string]string // those that the agent leaves alone, by their plans as claimants
	Unseen  view.UnseenRuns
	plans   map[types.NamespacedName]*corev1.ConfigMap // that were read
}

// OfAllNodes reads the runs that may have any node. It lists plans and ledgers: its requests do not grow
// with the runs.
func OfAllNodes(ctx context.Context, c *factory.Factory, k *factory.Cluster) (Runs, error) {
	live, unseen, err := active(ctx, c, k)
	out := Runs{Unseen: unseen, plans: map[types.NamespacedName]*corev1.ConfigMap{}}
	if err != nil || len(live) == 0 {
		return out, err
	}
	list, _ := k.Plans(ctx, unseen.But, "")  // of those that cannot be read, the runs count
	ledgers, _ := k.Ledgers(ctx, unseen.But) // one that cannot be read says nothing of its runs
	out = Count(live, list, func(plan *corev1.ConfigMap) view.Ledger { return ledgers.Of(ctx, plan) })
	out.Unseen = unseen
	return out, nil
}

// Count counts live runs by the plans that were read, and their ledgers; those of other plans count.
func Count(live []view.Run, plans []*corev1.ConfigMap, ledger func(plan *corev1.ConfigMap) view.Ledger) Runs {
	out := Runs{plans: make(map[types.NamespacedName]*corev1.ConfigMap, len(plans))}
	for _, cm := range plans {
		out.plans[types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name}] = cm
	}
	out.Counted, out.Alone = view.CountRuns(live, func(plan types.NamespacedName) (*corev1.ConfigMap, view.Ledger) {
		cm := out.plans[plan]
		if cm == nil {
			return nil, view.Ledger{}
		}
		return cm, ledger(cm)
	})
	return out
}

// NotRead are the claimants for which nodes are cordoned that are plans which were not read, of namespaces
// of which all were: they do not exist.
func (r Runs) NotRead(list []*corev1.Node, all func(namespace string) bool) (out []string) {
	for _, n := range list {
		for _, by := range view.CordonedFor(annotations.Node(n)) {
			if all(by.Namespace) && r.plans[by] == nil {
				out = append(out, nodes.PlanClaimant(by.Namespace, by.Name))
			}
		}
	}
	return out
}

// OfNode reads the runs that may have one node, and those of the plans that it is cordoned for. It asks
// for the plans of no others.
func OfNode(ctx context.Context, c *factory.Factory, k *factory.Cluster, n nodes.Node) (Runs, error) {
	live, unseen, err := active(ctx, c, k)
	out := Runs{Unseen: unseen, plans: map[types.NamespacedName]*corev1.ConfigMap{}}
	if err != nil {
		return out, err
	}
	live = slices.DeleteFunc(live, func(r view.Run) bool { return !concerns(r, n) })
	out.Counted, out.Alone = view.CountRuns(live, func(plan types.NamespacedName) (*corev1.ConfigMap, view.Ledger) {
		cm, err := k.ConfigMaps(plan.Namespace).Get(ctx, plan.Name, metav1.GetOptions{})
		if err != nil { // its runs count
			return nil, view.Ledger{}
		}
		out.plans[plan] = cm
		kept, _ := k.Ledger(ctx, cm) // one that cannot be read says nothing of its runs
		return cm, kept
	})
	return out, nil
}

// active are the live runs. Whoever may read none is warned: the node itself is known all the same.
func active(ctx context.Context, c *factory.Factory, k *factory.Cluster) ([]view.Run, view.UnseenRuns, error) {
	live, unseen, err := k.ActiveRuns(ctx)
	if apierrors.IsForbidden(err) {
		c.Warn(err.Error() + "; which runs have the node is not shown")
		err = nil
	}
	return live, unseen, err
}

// concerns says whether a run has or wants a node, or is of a plan that the node is cordoned for.
func concerns(r view.Run, n nodes.Node) bool {
	return slices.Contains(view.CordonedFor(n), types.NamespacedName{Namespace: r.Run.Namespace, Name: r.Run.Plan}) ||
		slices.ContainsFunc(view.StepClaims([]view.Run{r}), func(c view.StepClaim) bool { return c.Node == n.Name })
}

// PlansGone are the claimants of a node's cordon that are plans which do not exist. What may not be read may be there.
func (r Runs) PlansGone(ctx context.Context, k *factory.Cluster, n nodes.Node) (out []string) {
	for _, by := range view.CordonedFor(n) {
		if r.plans[by] != nil {
			continue
		}
		if _, err := k.ConfigMaps(by.Namespace).Get(ctx, by.Name, metav1.GetOptions{}); apierrors.IsNotFound(err) {
			out = append(out, nodes.PlanClaimant(by.Namespace, by.Name))
		}
	}
	return out
}
