package nodemaintenance

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/lifecycle"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// controlPlane are the labels of nodes that run the cluster itself.
func controlPlane() []string {
	return []string{"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"}
}

// nodeObject is what is kept of a node: whether it takes pods, where it stands, its
// role, and what we and others ask of it.
type nodeObject struct {
	corev1.Node
	lifecycle []lifecycle.Condition
}

// SlimNode keeps of a node what is looked at.
func SlimNode(o any) (any, error) {
	node, ok := o.(*corev1.Node)
	if !ok {
		return o, nil
	}
	return nodeOf(node), nil
}

func nodeOf(node *corev1.Node) *nodeObject {
	n := &nodeObject{}
	n.Name, n.UID, n.ResourceVersion, n.DeletionTimestamp = node.Name, node.UID, node.ResourceVersion, node.DeletionTimestamp
	n.Spec.Unschedulable, n.Spec.ProviderID = node.Spec.Unschedulable, node.Spec.ProviderID
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			n.Status.Conditions = []corev1.NodeCondition{{Type: c.Type, Status: c.Status}}
		}
	}
	n.lifecycle = annotations.Lifecycle(node)
	n.Annotations, n.ManagedFields = annotations.OfNode(node.Annotations), annotations.SlimCordon(node)
	n.Labels = map[string]string{}
	for _, label := range append(controlPlane(), annotations.LabelSystem, corev1.LabelTopologyZone) {
		if value, there := node.Labels[label]; there {
			n.Labels[label] = value
		}
	}
	return n
}

// ProviderID names the node's machine in its cloud, as aws:///eu-central-1a/i-0123; empty:
// it is of none, or none has said so yet.
func (n *nodeObject) ProviderID() string { return n.Spec.ProviderID }

// same says whether nothing that is looked at differs: nodes tell their heartbeat.
func (n *nodeObject) same(o *nodeObject) bool {
	return n.UID == o.UID && n.Spec.Unschedulable == o.Spec.Unschedulable && n.ready() == o.ready() && (n.DeletionTimestamp == nil) == (o.DeletionTimestamp == nil) &&
		slices.Equal(annotations.CordonWriters(&n.Node), annotations.CordonWriters(&o.Node)) &&
		slices.Equal(n.lifecycle, o.lifecycle) && maps.Equal(n.Annotations, o.Annotations) && maps.Equal(n.Labels, o.Labels)
}

// asked says whether the node bears a request, or what the agent said of one.
func (n *nodeObject) asked() bool {
	return len(annotations.Requests(n.Annotations)) > 0 || len(annotations.RequestStatuses(n.Annotations)) > 0
}

func (n *nodeObject) ready() bool { return annotations.NodeReady(&n.Node) }

// cordonedBy says whether a node is cordoned, and for a claimant among others.
func (n *nodeObject) cordonedBy(claimant string) bool {
	return n != nil && n.Spec.Unschedulable && cordonedFor(n, claimant)
}

// systemOf is a node's role, unless its label says otherwise.
func systemOf(n *nodeObject) string {
	if s := n.Labels[annotations.LabelSystem]; s != "" {
		return s
	}
	for _, label := range controlPlane() {
		if _, there := n.Labels[label]; there {
			return "control-plane"
		}
	}
	return "worker-nodes"
}

// claimantOf is whom a run takes nodes for.
func claimantOf(l *store.LiveRun) string {
	return nodes.PlanClaimant(l.Head.Namespace, l.Head.Plan)
}

// maxGoneChecks bounds the nodes that one run's end asks for (a guess); the next asks for the rest.
const maxGoneChecks = 50

// Gone are those of the nodes that are not there any more: asked for live, as
// the watch may be behind. An agent that watches no nodes knows of none.
func (k *Controller) Gone(ctx context.Context, known run.NodeTurns) map[string]bool {
	gone, asked := map[string]bool{}, 0
	if k.Scope.WatchNamespace != "" {
		return gone
	}
	for name := range known {
		if _, there, err := k.Nodes.GetByKey(name); there || err != nil || asked == maxGoneChecks {
			continue
		}
		asked++
		_, err := k.Clients.Kube.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		gone[name] = apierrors.IsNotFound(err)
	}
	return gone
}
