package nodemaintenance

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
)

// conditionForbidden is the type of the condition that says that the agent may not
// write nodes.
const conditionForbidden = "NodesForbidden"

// conditionPools is the type of the condition that says that pools of OpenShift are not paused.
const conditionPools = "MachineConfigPoolsNotPaused"

// reportLimits says on the agent's configuration what of it, and of the agent's
// rights, holds maintenance of nodes back.
func (k *Controller) reportLimits(found []nodes.Condition, now time.Time) {
	var list []metav1.Condition
	for _, c := range found {
		list = append(list, metav1.Condition{Type: c.Type, Status: metav1.ConditionTrue, Reason: c.Type, Message: c.Message})
	}
	if k.Settings.Limits().PauseMachineConfig {
		list = append(list, metav1.Condition{
			Type: conditionPools, Status: metav1.ConditionTrue, Reason: "NotAvailable",
			Message: "nodes.pauseMachineConfigPool is not available in this version: no MachineConfigPool is paused while its nodes are in maintenance; a policy with a gate of knob machineconfigpool holds one outside of its windows",
		})
	}
	if k.writer.forbidden(now) {
		list = append(list, metav1.Condition{
			Type: conditionForbidden, Status: metav1.ConditionTrue, Reason: "MissingRight",
			Message: "the agent may not patch nodes, so requests for nodes are not carried out: bind the ClusterRole maint-agent-nodes to its ServiceAccount, or remove the requests",
		})
	}
	k.Settings.Held(append(list, k.lifecycle.report(now)...))
}
