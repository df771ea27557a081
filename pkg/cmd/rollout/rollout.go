// Package rollout reads which runs may have nodes, as the agent counts them, and says which rollouts of
// runs begin no other node because all their places are taken, by whom, and what frees each.
package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/remedy"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

// Full is a for-each-node all of whose places are taken, and none by a node at work in it.
type Full struct {
	Path   string
	Places []Place
}

// Place is a node that takes a place.
type Place struct {
	Node  string
	Why   string // who has it, or what became of it
	Frees string // the command that frees it; empty: it comes back by itself
}

// Of are the rollouts of a run that are full, by its journal and by all nodes as they are.
func Of(r view.Run, all []*corev1.Node, now time.Time, c remedy.Commands) []Full {
	if r.Journal.Phase != run.Running || len(all) == 0 {
		return nil
	}
	seen := map[string]nodes.Node{}
	for _, object := range all {
		seen[object.Name] = annotations.Node(object)
	}
	var out []Full
	for _, rec := range r.Journal.Steps {
		if rec.Type != plan.TypeForEachNode || rec.Phase != run.StepRunning {
			continue
		}
		step, found := r.Run.Tree().Find(rec.Path)
		claimant := nodes.PlanClaimant(r.Run.Namespace, r.Run.Plan)
		if !found || !workflow.BlockedByUnavailable(step, rec, states(rec, seen, claimant), now) {
			continue
		}
		full := Full{Path: rec.Path}
		for _, item := range rec.Items {
			if n, there := seen[item.Name]; there && (n.Unschedulable || n.NotReady) {
				full.Places = append(full.Places, placeOf(n, item, claimant, c))
			}
		}
		out = append(out, full)
	}
	return out
}

// states are the nodes of a rollout as it counts them.
func states(rec run.Record, seen map[string]nodes.Node, claimant string) map[string]workflow.NodeState {
	out := map[string]workflow.NodeState{}
	for _, item := range rec.Items {
		n, there := seen[item.Name]
		out[item.Name] = workflow.NodeState{
			Gone: !there, Unavailable: n.Unschedulable || n.NotReady,
			Abandoned: item.Phase == "" && n.Cordon != nil && slices.Contains(n.Cordon.By, claimant),
		}
	}
	return out
}

func placeOf(n nodes.Node, item run.Item, claimant string, c remedy.Commands) Place {
	uncordon := Uncordon(c, n, claimant)
	at := slices.IndexFunc(n.Asked, func(a nodes.Asked) bool { return !a.Gone && a.Status != nil && a.Status.Phase.Holds() })
	switch {
	case at >= 0:
		requestor, phase := n.Asked[at].Request.Requestor, n.Asked[at].Status.Phase
		return Place{n.Name, fmt.Sprintf("requestor %s has it (%s)", requestor, phase), c.ReleaseFor(n.Name, requestor)}
	case item.Phase == run.StepFailed && n.Unschedulable:
		return Place{n.Name, "its steps failed", uncordon}
	case n.Cordon != nil && slices.Contains(n.Cordon.By, claimant):
		return Place{n.Name, "an earlier run of the plan left it cordoned", uncordon}
	case n.Cordon != nil && len(n.Cordon.By) > 0:
		return Place{Node: n.Name, Why: nodes.ClaimantName(n.Cordon.By[0]) + " has it"}
	case n.Unschedulable:
		return Place{n.Name, "somebody cordoned it", uncordon}
	}
	return Place{Node: n.Name, Why: "it is not Ready"}
}

// Stuck says that no place is freed by waiting: somebody has to.
func (f Full) Stuck() bool {
	return !slices.ContainsFunc(f.Places, func(p Place) bool { return p.Frees == "" })
}

// Said says who takes the places.
func (f Full) Said(r view.Run) string {
	var taken []string
	for _, p := range f.Places {
		taken = append(taken, p.Node+" ("+p.Why+")")
	}
	return "step " + f.Path + " of " + r.Named() + " begins no other node, since all its places are taken: " + strings.Join(taken, ", ")
}

// Remedy is how its places are freed.
func (f Full) Remedy() string {
	var hands []string
	for _, p := range f.Places {
		if p.Frees != "" {
			hands = append(hands, p.Frees)
		}
	}
	return cmp.Or(strings.Join(hands, ", or "), "it goes on by itself when one of them comes back")
}
