package object

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/api"
	"github.com/kubectl-maint/kubectl-maint/pkg/expr"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// NodeLister executes what of a for-each-node looks at the cluster: which nodes it
// takes, in which order, and which of them have nothing to be done. It needs list
// on nodes.
type NodeLister struct{}

// Pass lists once.
func (NodeLister) Pass(ctx context.Context, call executors.Call) executors.Outcome {
	p, err := api.PropertiesAs[plan.ForEachNodeProperties](call)
	if err != nil {
		return api.Outcome(ctx, call, err)
	}
	from, err := selectionOf(call, &plan.ForEachProperties{APIVersion: "v1", Kind: "Node", Selector: p.Selector})
	if err != nil {
		return api.Outcome(ctx, call, err)
	}
	list, err := from.ListMost(ctx, from.selector, plan.MaxItems)
	if err != nil {
		return api.Outcome(ctx, call, err)
	}
	oldestFirst(list, call, p.Order)
	out := from.take(call, &plan.ForEachProperties{Order: asListed}, list)
	idle := 0
	for i := range out.Items {
		need, err := needs(p.When, list[i])
		if err != nil {
			return executors.Refuse("BadCondition", "when, for node %s: %s", list[i].GetName(), err)
		}
		if !need {
			out.Items[i].Phase, out.Items[i].Message = run.StepSucceeded, "nothing to do: when is false"
			idle++
		}
	}
	if out.Listed {
		out.Message = fmt.Sprintf("takes %d nodes, of which %d have nothing to be done", len(list), idle)
	}
	return out
}

func needs(when string, node unstructured.Unstructured) (bool, error) {
	if when == "" {
		return true, nil
	}
	return expr.Bool(when, map[string]any{"node": node.Object})
}

// oldestFirst puts those first that no earlier run of the plan has come to, then
// those that one was through with longest ago, whatever came of it: a node that
// always fails does not keep the others from their turn.
func oldestFirst(list []unstructured.Unstructured, call executors.Call, by string) {
	slices.SortStableFunc(list, func(a, b unstructured.Unstructured) int {
		if last := turnOf(call, a).Compare(turnOf(call, b)); last != 0 && by != "name" {
			return last
		}
		return strings.Compare(a.GetName(), b.GetName())
	})
}

// turnOf is a node's last turn; none where the last one was that of another node
// under its name.
func turnOf(call executors.Call, node unstructured.Unstructured) run.NodeTurn {
	if turn := call.Turns[node.GetName()]; turn.Of(string(node.GetUID())) {
		return turn
	}
	return run.NodeTurn{}
}
