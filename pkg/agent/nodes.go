package agent

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/queue"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// controlPlane are the labels of nodes that run the cluster itself.
func controlPlane() []string {
	return []string{"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"}
}

// nodeObject is what is kept of a node: whether it takes pods, where it stands, its
// role, and what we and others ask of it.
type nodeObject struct{ corev1.Node }

// slimNode keeps of a node what is looked at.
func slimNode(o any) (any, error) {
	node, ok := o.(*corev1.Node)
	if !ok {
		return o, nil
	}
	return nodeOf(node), nil
}

func nodeOf(node *corev1.Node) *nodeObject {
	n := &nodeObject{}
	n.Name, n.UID, n.ResourceVersion, n.DeletionTimestamp = node.Name, node.UID, node.ResourceVersion, node.DeletionTimestamp
	n.Spec.Unschedulable = node.Spec.Unschedulable
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			n.Status.Conditions = []corev1.NodeCondition{{Type: c.Type, Status: c.Status}}
		}
	}
	n.Annotations, n.ManagedFields = annotations.OfNode(node.Annotations), annotations.SlimCordon(node)
	n.Labels = map[string]string{}
	for _, label := range append(controlPlane(), annotations.LabelSystem, corev1.LabelTopologyZone) {
		if value, there := node.Labels[label]; there {
			n.Labels[label] = value
		}
	}
	return n
}

// same says whether nothing that is looked at differs: nodes tell their heartbeat.
func (n *nodeObject) same(o *nodeObject) bool {
	return n.UID == o.UID && n.Spec.Unschedulable == o.Spec.Unschedulable && n.ready() == o.ready() && (n.DeletionTimestamp == nil) == (o.DeletionTimestamp == nil) &&
		slices.Equal(annotations.CordonWriters(&n.Node), annotations.CordonWriters(&o.Node)) &&
		maps.Equal(n.Annotations, o.Annotations) && maps.Equal(n.Labels, o.Labels)
}

func (n *nodeObject) ready() bool { return annotations.NodeReady(&n.Node) }

// cordonedBy says whether a node is cordoned, and for a claimant among others.
func (n *nodeObject) cordonedBy(claimant string) bool {
	if n == nil || !n.Spec.Unschedulable {
		return false
	}
	record, ok := nodes.ParseCordon(n.Annotations[annotations.StatusCordoned])
	return ok && slices.Contains(record.By, claimant)
}

// sawNode tells the scheduler of a node, and metrics of one whose stanza says when
// it may be changed.
func (a *Agent) sawNode(o any) {
	n := o.(*nodeObject)
	a.keeper.saw(n)
	k := types.NamespacedName{Name: n.Name}
	in := annotations.Intent(n.Annotations)
	if !in.Stanza.Set() && !in.Pause.On && len(annotations.Requests(n.Annotations)) == 0 {
		a.gates.forget(k)
		return
	}
	q := in.Query("", nil)
	a.gates.note(k, &gated{kind: "Node", system: systemOf(n), verdict: a.nodeVerdict(q, in.Pause), strategy: func(now time.Time) schedule.Strategy {
		if in.Pause.Holds(now) {
			return schedule.Restrictive
		}
		return a.gates.book.Strategy(q, now)
	}, uses: a.gates.uses(q)})
}

func (a *Agent) lostNode(o any) {
	if n, ok := o.(*nodeObject); ok {
		a.gates.forget(types.NamespacedName{Name: n.Name})
		a.keeper.ring()
	}
}

// nodeVerdict asks anew each time: the policies behind a node may have changed.
func (a *Agent) nodeVerdict(q policy.Question, pause schedule.Switch) func(time.Time) schedule.Verdict {
	return func(now time.Time) schedule.Verdict {
		if pause.Holds(now) {
			until := schedule.Stanza{Strategy: schedule.Restrictive}
			if pause.Until != nil {
				until = schedule.Stanza{Strategy: schedule.RestrictiveUntil, Until: pause.Until}
			}
			return schedule.NewGate(schedule.GateSpec{Own: until}).Verdict(now)
		}
		if gate := a.gates.ask(q); gate != nil {
			return gate.Verdict(now)
		}
		return schedule.NewGate(schedule.GateSpec{}).Verdict(now)
	}
}

// clusterGate is what keeps change from starting on any node: a pause of the whole
// cluster, or doubt about the clock; nil: nothing.
func (a *Agent) clusterGate(now time.Time) *nodes.Gate {
	if doubt := a.clock.Doubt(); doubt != "" {
		next := now.Add(queue.ResyncPeriod)
		return &nodes.Gate{Reason: doubt, Next: &next}
	}
	for _, p := range a.pauses(a.options.Namespace) {
		if p.Holds(now) {
			return &nodes.Gate{Reason: "the whole cluster is paused", Next: p.Until}
		}
	}
	return nil
}

// nodeGate says whether change may start on a node now.
func (a *Agent) nodeGate(n *nodeObject, everywhere *nodes.Gate, now time.Time) nodes.Gate {
	if everywhere != nil {
		return *everywhere
	}
	in := annotations.Intent(n.Annotations)
	if in.Pause.Holds(now) {
		return nodes.Gate{Reason: "the node is paused", Next: in.Pause.Until}
	}
	return nodes.GateOf(a.nodeVerdict(in.Query("", nil), in.Pause)(now))
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
func claimantOf(l *liveRun) string {
	return nodes.PlanClaimant(l.run.Namespace, l.run.Plan)
}
