package cmdtest

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// Jane is the requestor name of the Cluster's user.
const Jane = "cli.jane-example.com"

// Progress is how many pods still have to leave, of how many.
func Progress(left, total int) func(*nodes.Status) {
	return func(s *nodes.Status) { s.Progress = &nodes.Progress{Left: left, Total: total, At: Now()} }
}

// Pod is a pod of a ReplicaSet on a node.
func Pod(name, node string, edits ...func(*corev1.Pod)) *corev1.Pod {
	controller := true
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, UID: "uid-pod", Labels: map[string]string{"app": strings.Split(name, "-")[0]}, Annotations: map[string]string{},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "rs", UID: "rs", Controller: &controller}},
		},
		Spec:   corev1.PodSpec{NodeName: node},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
	for _, edit := range edits {
		edit(p)
	}
	return p
}

// OfDaemonSet makes a pod one of a DaemonSet.
func OfDaemonSet(p *corev1.Pod) *corev1.Pod {
	p.OwnerReferences[0].Kind, p.OwnerReferences[0].Name = "DaemonSet", "proxy"
	return p
}

// WithoutOwner removes a pod's controller, which would replace it.
func WithoutOwner(p *corev1.Pod) { p.OwnerReferences = nil }

// PodNoted puts an annotation on a pod.
func PodNoted(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Annotations[key] = value }
}

// BudgetOf is a budget over app, as its controller left it.
func BudgetOf(app string, minAvailable, healthy, desired, expected int32) *policyv1.PodDisruptionBudget {
	most := intstr.FromInt32(minAvailable)
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: app},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &most, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}},
		Status:     policyv1.PodDisruptionBudgetStatus{CurrentHealthy: healthy, DesiredHealthy: desired, ExpectedPods: expected, DisruptionsAllowed: max(healthy-desired, 0)},
	}
}

// Node is a Ready node without requests.
func Node(name string, edits ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), ResourceVersion: "1", Annotations: map[string]string{}, Labels: map[string]string{}},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
	for _, edit := range edits {
		edit(n)
	}
	return n
}

// Asked puts a request on a node.
func Asked(requestor, value string) func(*corev1.Node) {
	return Noted(annotations.RequestPrefix+requestor, value)
}

// Noted puts an annotation on a node.
func Noted(key, value string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Annotations[key] = value }
}

// Zoned puts a node into a zone.
func Zoned(zone string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Labels[corev1.LabelTopologyZone] = zone }
}

// Stood is the agent's status of a request, ten minutes old.
func Stood(requestor string, phase nodes.Phase, reason string, edits ...func(*nodes.Status)) func(*corev1.Node) {
	s := nodes.Status{Phase: phase, Reason: reason, Since: Now().Add(-10 * time.Minute), Asked: Now().Add(-10 * time.Minute)}
	for _, edit := range edits {
		edit(&s)
	}
	return Noted(annotations.StatusRequestPrefix+requestor, s.String())
}

// ForGood is the agent's status of a drain that is blocked for good.
func ForGood(text string) func(*nodes.Status) {
	return func(s *nodes.Status) { s.Blocked = &nodes.Block{Permanent: true, Text: text} }
}

// CordonedFor cordons a node as the agent does, ten minutes ago.
func CordonedFor(c nodes.Cordon) func(*corev1.Node) {
	c.At = Now().Add(-10 * time.Minute)
	return func(n *corev1.Node) {
		n.Spec.Unschedulable = true
		n.Annotations[annotations.StatusCordoned] = c.String()
	}
}

// Agent is the heartbeat of a running agent.
func Agent() *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: annotations.DefaultNamespace, Name: annotations.HeartbeatName, Labels: map[string]string{annotations.LabelKind: annotations.KindHeartbeat}},
		Data:       map[string]string{"version": "v0.1.0", "heartbeat": Now().Format(time.RFC3339)},
	}
}

// Configured is the agent's configuration; nodes is the YAML of spec.nodes.
func Configured(nodes string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: annotations.DefaultNamespace, Name: annotations.AgentConfigName, Labels: map[string]string{annotations.LabelKind: annotations.KindAgentConfig}},
		Data:       map[string]string{annotations.DataConfig: "{apiVersion: maint.dev/v1alpha1, kind: AgentConfig, spec: {nodes: " + nodes + "}}"},
	}
}

// RollsThrough is a live run of plan roll with a rollout over nodes.
func RollsThrough(t *testing.T, message string, items ...run.Item) *corev1.ConfigMap {
	t.Helper()
	rec := Record("roll", plan.TypeForEachNode, run.StepRunning)
	rec.Items, rec.Listed, rec.Message = items, true, message
	r := run.Run{Name: "maint-run-roll-x", Namespace: "ops", Plan: "roll", PlanUID: "u"}
	cm, err := annotations.RunObject(r, run.Journal{Phase: run.Running, StartedAt: Before(0), Steps: []run.Record{rec}})
	if err != nil {
		t.Fatal(err)
	}
	return Signed(cm)
}
