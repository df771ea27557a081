package node

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/api"
	"github.com/kubectl-maint/kubectl-maint/pkg/kube"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// claimant is the name of a step's plan in the record of a cordon. On another cluster it includes
// the plan's uid: a plan of the same name there is another plan, and must not uncordon its nodes.
func claimant(call executors.Call) string {
	if call.Clients.Cluster != "" {
		return nodes.PlanElsewhere(call.Plan.Namespace, call.Plan.Name, call.Plan.UID)
	}
	return nodes.PlanClaimant(call.Plan.Namespace, call.Plan.Name)
}

// cordoned is a node and the record of our cordon on it.
type cordoned struct {
	*corev1.Node
	record *nodes.Cordon // nil: there is none
}

func action(verb, name string) api.Action {
	return api.Action{Verb: verb, Resource: corev1.SchemeGroupVersion.WithResource("nodes"), Name: name}
}

func readNode(ctx context.Context, clients executors.Clients, name string) (cordoned, error) {
	n, err := clients.Kube.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return cordoned{}, api.Failed(action("get", name), err)
	}
	return cordonOf(n)
}

func cordonOf(n *corev1.Node) (cordoned, error) {
	text, noted := n.Annotations[annotations.StatusCordoned]
	if _, read := nodes.ParseCordon(text); noted && !read { // the state before the cordon must not be guessed
		return cordoned{}, api.Refuse(executors.ReasonInvalid, "Node/%s: %s is %q: remove the annotation once you know whether the node shall be schedulable", n.Name, annotations.StatusCordoned, document.Cut(text, 100))
	}
	facts := annotations.Node(n)
	if facts.Taken.By != "" {
		facts.Cordon.Before = true
	}
	return cordoned{n, facts.Cordon}, nil
}

// claimed says whether the record names a claimant.
func (n cordoned) claimed(by string) bool { return n.record != nil && slices.Contains(n.record.By, by) }

// write patches the cordon and its record together, under the version that was read: a write of
// somebody else in between is a conflict, and is looked at again.
func write(ctx context.Context, call executors.Call, n cordoned, unschedulable bool, record *nodes.Cordon) error {
	step := nodes.Step{CordonChanged: true, Cordon: record}
	if unschedulable != n.Spec.Unschedulable {
		step.Unschedulable = &unschedulable
	}
	b, err := annotations.NodePatch(n.UID, n.ResourceVersion, step)
	if err != nil {
		return fmt.Errorf("patch of Node/%s: %w", n.Name, err)
	}
	options := metav1.PatchOptions{FieldManager: call.Plan.Manager}
	if call.DryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	_, err = call.Clients.Kube.CoreV1().Nodes().Patch(ctx, n.Name, types.MergePatchType, b, options)
	return api.Failed(action("patch", n.Name), err)
}

// claim cordons a node for a claimant, unless that is done already.
func claim(ctx context.Context, call executors.Call, n cordoned, by string, now time.Time) (changed bool, err error) {
	if n.Spec.Unschedulable && n.claimed(by) && n.record.Handed == nil {
		return false, nil
	}
	if c := n.record; c != nil && c.Undone && !n.Spec.Unschedulable && slices.ContainsFunc(c.By, func(other string) bool { return !nodes.IsPlan(other) }) {
		return false, api.Refuse("Uncordoned", "Node/%s was uncordoned by somebody else while %s has it: it is left so", n.Name, c.By[0])
	}
	record := n.record.With(by, n.Spec.Unschedulable, now)
	record.Node = string(n.UID)
	return true, write(ctx, call, n, true, record)
}

// release removes a claimant from the record, and uncordons the node when nobody else claims it. It
// describes the resulting state.
func release(ctx context.Context, call executors.Call, n cordoned, by string) (said string, changed bool, err error) {
	record, uncordon := n.record.Without(by)
	uncordon = uncordon && n.Spec.Unschedulable
	switch {
	case !n.claimed(by) && n.Spec.Unschedulable:
		return "stays cordoned: it was not this plan that cordoned it", false, nil
	case !n.claimed(by):
		if late := executors.Late(call.Nodes.InterruptedAt, call.Now); late != nil && !call.DryRun {
			return "", false, late
		}
		return "is schedulable", false, nil
	}
	if err := write(ctx, call, n, n.Spec.Unschedulable && !uncordon, record); err != nil {
		return "", false, err
	}
	switch {
	case uncordon:
		return "is schedulable again", true, nil
	case !n.Spec.Unschedulable:
		return "is schedulable", true, nil
	case record != nil:
		return fmt.Sprintf("stays cordoned: %s wants it so", record.By[0]), true, nil
	case n.record.Undone:
		return "stays cordoned: somebody else cordoned it after ours was undone", true, nil
	}
	return "stays cordoned: it was before", true, nil
}

// noteUncordoned notes that somebody else uncordoned a node that we claim.
func noteUncordoned(ctx context.Context, call executors.Call, n cordoned) error {
	if n.record == nil || n.record.Undone {
		return nil
	}
	record := *n.record
	record.Undone = true
	return write(ctx, call, n, false, &record)
}

// mostAbroad is how many bytes of another cluster's nodes are kept at once (a guess: five thousand
// nodes have some). Its API server may list them without end.
const mostAbroad = 32 << 20

// nodesOf are the nodes that a step means, sorted by name.
func nodesOf(ctx context.Context, call executors.Call, p plan.NodeProperties) ([]cordoned, error) {
	switch {
	case p.Node != "":
		n, err := readNode(ctx, call.Clients, p.Node)
		return []cordoned{n}, err
	case p.Selector == nil:
		return nil, api.Refuse(executors.ReasonInvalid, "step %s names no node: write node or selector", call.Path)
	}
	selector, err := api.Selector(*p.Selector)
	if err != nil {
		return nil, err
	}
	var out []cordoned
	var unreadable, tooMany error
	size := 0
	err = kube.EachOf(ctx, call.Clients.Kube.CoreV1().Nodes().List, selector, func(n *corev1.Node) error {
		n.Status.Images = nil // half of a node's size, and unused
		if size += n.Size(); size > mostAbroad && call.Clients.Cluster != "" {
			tooMany = api.Refuse("TooMany", "K8SCluster %s shows nodes of more than %d MiB: narrow the selector", call.Clients.Cluster, mostAbroad>>20)
			return tooMany
		}
		one, err := cordonOf(n)
		out, unreadable = append(out, one), cmp.Or(unreadable, err)
		return nil
	})
	switch {
	case tooMany != nil:
		return nil, tooMany
	case err != nil:
		return nil, api.Failed(action("list", ""), err)
	case unreadable != nil:
		return nil, unreadable
	case len(out) == 0 && len(call.Nodes.Closed) == 0:
		return nil, api.Refuse(executors.ReasonNotFound, "the selector %q picks no node", selector)
	}
	return out, nil
}

// nodesToOpen are the nodes that a step means, followed by those that the run cordoned by its
// selector and that the selector no longer picks, since their labels were changed. Nodes of the run
// that are gone or were replaced need no uncordon.
func nodesToOpen(ctx context.Context, call executors.Call, p plan.NodeProperties) ([]cordoned, error) {
	out, err := nodesOf(ctx, call, p)
	named := func(n run.DrainTarget) bool { return n.Name == p.Node }
	switch {
	case p.Node != "" && api.IsMissing(err) && (p.Node == call.Nodes.Current || slices.ContainsFunc(call.Nodes.Closed, named)):
		return nil, nil
	case err != nil || p.Node != "":
		return out, err
	}
	for _, closed := range call.Nodes.Closed {
		if slices.ContainsFunc(out, func(n cordoned) bool { return n.Name == closed.Name }) {
			continue
		}
		n, err := readNode(ctx, call.Clients, closed.Name)
		if err != nil && !api.IsMissing(err) {
			return nil, err
		}
		if err == nil && string(n.UID) == closed.UID && n.claimed(claimant(call)) {
			out = append(out, n)
		}
	}
	return out, nil
}

func changeOf(node, what string) run.Change {
	return run.Change{APIVersion: "v1", Kind: "Node", Name: node, What: what}
}
