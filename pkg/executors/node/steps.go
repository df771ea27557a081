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

// Pass cordons the nodes that are not cordoned yet, and records the claimant.
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

// Pass removes the plan from each node's record, also on nodes that the run cordoned by the same
// selector and that it no longer picks. A node of the run that is gone needs no uncordon. One that was
// cordoned before, or that another claimant wants cordoned, stays cordoned, and the outcome says so.
func (Uncordoner) Pass(ctx context.Context, call executors.Call) executors.Outcome {
	p, err := api.PropertiesAs[plan.CordonProperties](call)
	if err != nil {
		return api.Outcome(ctx, call, err)
	}
	picked, err := nodesToOpen(ctx, call, p.NodeProperties)
	switch {
	case err != nil:
		return api.Outcome(ctx, call, err)
	case len(picked) == 0 && p.Node != "":
		return api.Done("Node/%s is gone: there is nothing to uncordon", p.Node)
	case len(picked) == 0:
		return api.Done("no node is left that it could open")
	}
	return eachNode(ctx, call, picked, func(n cordoned) (string, bool, error) {
		return release(ctx, call, n, claimant(call))
	})
}

// eachNode makes one write on each node. After an interrupted pass, the next finds what was
// written.
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

// meant are the nodes of a step, for later steps that rely on what it did.
func meant(call executors.Call, nodes []cordoned) run.DrainMemory {
	m := run.DrainMemory{Attempt: call.Attempt, Since: call.Now.UTC()}
	for _, n := range nodes {
		m.Nodes = append(m.Nodes, run.DrainTarget{Name: n.Name, UID: string(n.UID)})
	}
	return m
}

// joined is the beginning of a list, for a message.
func joined(items []string) string {
	const few = 5
	if n := len(items) - few; n > 0 {
		return strings.Join(items[:few], "; ") + fmt.Sprintf("; and %d more", n)
	}
	return strings.Join(items, "; ")
}
