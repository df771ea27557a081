package node

import (
	"context"
	"fmt"
	"strings"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/api"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// Cordoner executes the step type cordon. It needs get and patch on nodes, and
// list for a selector.
type Cordoner struct{}

// Pass cordons each node that is not yet, and writes down for whom.
func (Cordoner) Pass(ctx context.Context, call executors.Call) executors.Outcome {
	p, err := api.PropertiesAs[plan.CordonProperties](call)
	if err != nil {
		return api.Outcome(ctx, call, err)
	}
	picked, err := nodesOf(ctx, call, p.NodeProperties)
	if err != nil {
		return api.Outcome(ctx, call, err)
	}
	return eachNode(ctx, call, picked, func(n cordoned) (string, bool, error) {
		changed, err := claim(ctx, call, n, claimant(call), call.Now)
		return "is cordoned", changed, err
	})
}

// Uncordoner executes the step type uncordon. It needs what a Cordoner needs.
type Uncordoner struct{}

// Pass takes the plan off each node's record, also of those that the run closed by the
// same selector and that it picks no more. A node that was cordoned before, or that somebody
// else wants cordoned, stays so, and that is said.
func (Uncordoner) Pass(ctx context.Context, call executors.Call) executors.Outcome {
	p, err := api.PropertiesAs[plan.CordonProperties](call)
	if err != nil {
		return api.Outcome(ctx, call, err)
	}
	picked, err := nodesToOpen(ctx, call, p.NodeProperties)
	switch {
	case err != nil:
		return api.Outcome(ctx, call, err)
	case len(picked) == 0:
		return api.Done("no node is left that it could open")
	}
	return eachNode(ctx, call, picked, func(n cordoned) (string, bool, error) {
		return release(ctx, call, n, claimant(call))
	})
}

// eachNode does one write on each node. What was written before a pass broke off
// is found done by the next.
func eachNode(ctx context.Context, call executors.Call, nodes []cordoned, do func(cordoned) (said string, changed bool, err error)) executors.Outcome {
	var said []string
	var changes []run.Change
	for _, n := range nodes {
		text, changed, err := do(n)
		if err != nil {
			out := api.Outcome(ctx, call, err)
			out.Changed = changes
			return out
		}
		if changed && !call.DryRun {
			changes = append(changes, changeOf(n.Name, text))
		}
		said = append(said, "Node/"+n.Name+" "+text)
	}
	out := api.Done("%s", joined(said))
	if call.DryRun {
		out = api.Done("dry run: %s", joined(said))
	} else {
		out.Memory = memory(call, meant(call, nodes))
	}
	out.Changed = changes
	return out
}

// meant are the nodes of a step, for the steps after it that rely on what it did.
func meant(call executors.Call, nodes []cordoned) run.DrainMemory {
	m := run.DrainMemory{Attempt: call.Attempt, Since: call.Now.UTC()}
	for _, n := range nodes {
		m.Nodes = append(m.Nodes, run.DrainTarget{Name: n.Name, UID: string(n.UID)})
	}
	return m
}

// joined is the first few of a list.
func joined(items []string) string {
	const few = 5
	if n := len(items) - few; n > 0 {
		return strings.Join(items[:few], "; ") + fmt.Sprintf("; and %d more", n)
	}
	return strings.Join(items, "; ")
}
