package flow

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/api"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// NodeLister executes the part of a for-each-node that reads the cluster: which nodes it takes, in
// which order, and which of them need nothing. It needs list on nodes, and patch on those that need
// something.
type NodeLister struct{}

// Pass lists once.
func (NodeLister) Pass(ctx context.Context, call executors.Call) executors.Outcome {
	p, err := api.PropertiesAs[plan.ForEachNodeProperties](call)
	if err != nil {
		return api.Outcome(ctx, call, err)
	}
	if out, is := invalid(plan.TypeForEachNode, p); is {
		return out
	}
	from, err := selectionOf(call, &plan.ForEachProperties{APIVersion: "v1", Kind: "Node", Selector: p.Selector})
	if err != nil {
		return api.Outcome(ctx, call, err)
	}
	var list []metav1.ObjectMeta
	needed := map[types.UID]need{}
	if _, err := from.Each(ctx, from.selector, plan.MaxItems, func(u *unstructured.Unstructured) error {
		list = append(list, identity(u))
		needed[u.GetUID()] = needs(ctx, p.When, u)
		return ctx.Err()
	}); err != nil {
		return api.Outcome(ctx, call, err)
	}
	oldestFirst(list, call, p.Order)
	out := from.take(call, &plan.ForEachProperties{Order: asListed}, list)
	idle := 0
	var names []string
	for i := range out.Listing.Items {
		n := needed[list[i].UID]
		if n.err != nil {
			return executors.Refuse("BadCondition", "when, for node %s: %s", list[i].Name, n.err)
		}
		if !n.is {
			out.Listing.Items[i].Phase, out.Listing.Items[i].Message = run.StepSucceeded, "nothing to do: when is false"
			idle++
			continue
		}
		names = append(names, list[i].Name)
	}
	if err := api.NeedNodes(ctx, call, names); err != nil {
		return api.Outcome(ctx, call, err)
	}
	if out.Listing.Listed {
		out.Message = fmt.Sprintf("takes %d nodes, of which %d have nothing to be done", len(list), idle)
	}
	return out
}

// need is whether a node needs anything.
type need struct {
	is  bool
	err error
}

func needs(ctx context.Context, when string, node *unstructured.Unstructured) need {
	if when == "" {
		return need{is: true}
	}
	is, err := executors.Holds(ctx, when, map[string]any{"node": node.Object})
	return need{is: is, err: err}
}

// oldestFirst puts those nodes first that no earlier run of the plan has come to, then those whose last
// success is longest ago; a node that fails again and again does not keep the others from their turn.
func oldestFirst(list []metav1.ObjectMeta, call executors.Call, by string) {
	slices.SortStableFunc(list, func(a, b metav1.ObjectMeta) int {
		if last := turnOf(call, a).Compare(turnOf(call, b)); last != 0 && by != "name" {
			return last
		}
		return strings.Compare(a.Name, b.Name)
	})
}

// turnOf is a node's last turn; none where that was another node of its name.
func turnOf(call executors.Call, node metav1.ObjectMeta) run.NodeTurn {
	if turn := call.Nodes.Earlier[node.Name]; turn.Of(string(node.UID)) {
		return turn
	}
	return run.NodeTurn{}
}
