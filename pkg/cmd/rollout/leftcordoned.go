package rollout

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/remedy"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// mayCordon says whether a run of a plan may cordon nodes. What a template holds is not known here.
func mayCordon(spec plan.Spec) (may bool) {
	plan.Tree{Spec: spec}.Walk(func(s plan.Step) {
		may = may || s.Type == plan.TypeForEachNode || s.Type == plan.TypeDrain || s.Type == "cordon" || strings.HasPrefix(s.Type, plan.TemplatePrefix)
	})
	return may
}

// LeftCordoned are the nodes that a run of a plan left cordoned, if no live run continues with them;
// none if nodes may not be listed. list is asked only of plans that may leave some.
func LeftCordoned(p view.Plan, list func() ([]*corev1.Node, error)) []nodes.Node {
	if len(p.Active) > 0 || !mayCordon(p.Spec) {
		return nil
	}
	all, err := list()
	if err != nil {
		return nil
	}
	var out []nodes.Node
	for _, object := range all {
		n := annotations.Node(object)
		if n.Unschedulable && n.Cordon != nil && slices.Contains(n.Cordon.By, nodes.PlanClaimant(p.Object.Namespace, p.Object.Name)) {
			out = append(out, n)
		}
	}
	return out
}

// Uncordon is the command that uncordons a node which a run of a plan left cordoned, and whom it would stop before
// they have given the node back. Beside other plans it is why, which looks at what their runs are at: one that
// failed gives nothing back.
func Uncordon(c remedy.Commands, n nodes.Node, claimant string) string {
	if Shared(n, claimant) {
		return c.Why("node/" + n.Name)
	}
	return c.Uncordon(n.Name) + view.PrefixList(view.OnceGivenBack, view.NodeUse{}.AtWork(n))
}

// Shared says whether a node is cordoned for other plans of this cluster, too.
func Shared(n nodes.Node, claimant string) bool {
	return slices.ContainsFunc(view.CordonedFor(n), func(by types.NamespacedName) bool {
		return nodes.PlanClaimant(by.Namespace, by.Name) != claimant
	})
}
