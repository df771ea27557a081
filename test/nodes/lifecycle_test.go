package nodes_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
)

// withoutLifecycle takes the lifecycle conditions off a node.
func (l *lab) withoutLifecycle(name string) {
	n, err := l.admin.CoreV1().Nodes().Get(context.Background(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return
	}
	if err != nil {
		l.Errorf("the conditions of %s stay: %v", name, err)
		return
	}
	ours := annotations.Lifecycle(n)
	if len(ours) == 0 {
		return
	}
	var deletions []map[string]string
	for _, c := range ours {
		deletions = append(deletions, map[string]string{"type": string(c.Type), "$patch": "delete"})
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": deletions}})
	if err == nil {
		_, err = l.admin.CoreV1().Nodes().Patch(context.Background(), name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	}
	if err != nil {
		l.Errorf("the conditions of %s stay: %v", name, err)
	}
}

// lifecycle are the lifecycle conditions of a node, as TYPE STATUS REASON: MESSAGE.
func (l *lab) lifecycle(name string) []string {
	l.Helper()
	out := []string{}
	for _, c := range l.node(name).Status.Conditions {
		if slices.Contains([]string{"MaintenancePlanned", "DrainInProgress", "Drained", "MaintenanceInProgress"}, string(c.Type)) {
			out = append(out, strings.TrimSuffix(fmt.Sprintf("%s %s %s: %s", c.Type, c.Status, c.Reason, c.Message), ": "))
		}
	}
	slices.Sort(out)
	return out
}

// lifecycleIs waits until a node has these conditions, and no other that is True. What was
// over before anybody looked may have been written or not.
func (l *lab) lifecycleIs(name string, want ...string) {
	l.Helper()
	l.eventually("conditions of "+name, func() (bool, string) {
		got := l.lifecycle(name)
		missing := slices.ContainsFunc(want, func(c string) bool { return !slices.Contains(got, c) })
		more := slices.ContainsFunc(got, func(c string) bool { return strings.Contains(c, " True ") && !slices.Contains(want, c) })
		return !missing && !more, strings.Join(got, "\n")
	})
}

// What others read of a node is in its status: for requests and for rollouts, until it is
// released, and never over what somebody else has set.
func TestTheConditionsOfANodeSayWhatIsDoneToIt(t *testing.T) {
	l := newLab(t, "{nodes: {maxParallelOperations: 1}, outbound: {allow: [127.0.0.1]}}")
	l.must(l.setCondition("node-2", "Drained", "CAPI"))
	l.request("node-0", "gpu-operator", "{}")
	l.phase("node-0", "gpu-operator", nodes.Ready)
	l.lifecycleIs("node-0", "Drained True DrainCompleted: gpu-operator: pods have left", "MaintenanceInProgress True HandedOver: gpu-operator: has the node")
	l.request("node-2", "os", "{}")
	l.lifecycleIs("node-2", "Drained True CAPI", "MaintenancePlanned True MaintenanceRequested: os: waits for the node")

	b := newBench(t)
	l.roller()
	l.pool("kernel", "node-1")
	l.roll("kernel", "maxUnavailable: 1", b)
	plan := "plan " + l.ns + "/kernel: "
	l.lifecycleIs("node-1", "MaintenancePlanned True RolloutPlanned: "+plan+"waits for the node")

	l.release("node-0", "gpu-operator")
	l.phase("node-2", "os", nodes.Ready)
	l.lifecycleIs("node-0", "Drained False NodeReleased", "MaintenanceInProgress False NodeReleased")
	l.lifecycleIs("node-2", "Drained True CAPI", "MaintenanceInProgress True HandedOver: os: has the node", "MaintenancePlanned False MaintenanceStarted")
	l.release("node-2", "os")
	l.lifecycleIs("node-2", "Drained True CAPI", "MaintenanceInProgress False NodeReleased", "MaintenancePlanned False MaintenanceStarted")

	l.eventually("the rollout works on node-1", func() (bool, string) {
		_, there, _ := b.now()
		return slices.Equal(there, []string{"node-1"}), fmt.Sprint(there)
	})
	l.lifecycleIs("node-1", "Drained True DrainCompleted: "+plan+"pods have left", "MaintenanceInProgress True RolloutAtWork: "+plan+"works on the node", "MaintenancePlanned False MaintenanceStarted")
	l.agent.Kill()
	l.start() // which finds what the one before had written
	b.letGo()
	l.ends("kernel", 1)
	l.lifecycleIs("node-1", "Drained False NodeReleased", "MaintenanceInProgress False NodeReleased", "MaintenancePlanned False MaintenanceStarted")
}

// setCondition is what another controller writes.
func (l *lab) setCondition(node, condition, reason string) error {
	l.Helper()
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []corev1.NodeCondition{{Type: corev1.NodeConditionType(condition), Status: corev1.ConditionTrue, Reason: reason}}}})
	if err != nil {
		return err
	}
	_, err = l.admin.CoreV1().Nodes().Patch(l.ctx, node, types.StrategicMergePatchType, patch, metav1.PatchOptions{FieldManager: "capi"}, "status")
	return err
}
