package nodemaintenance

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/agentconfig"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
)

// reportLimits says on the agent's configuration what holds maintenance of nodes back.
func (k *Controller) reportLimits(found []nodes.Condition, now time.Time) {
	var list []metav1.Condition
	say := func(kind, reason, message string) {
		list = append(list, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: message})
	}
	for _, c := range found {
		say(c.Type, c.Type, c.Message)
	}
	if k.Settings.Limits().PauseMachineConfig {
		say("MachineConfigPoolsNotPaused", "NotAvailable", "nodes.pauseMachineConfigPool is not available in this version: no MachineConfigPool is paused while its nodes are in maintenance; a policy with a gate of knob machineconfigpool holds one outside of its windows")
	}
	if k.writer.forbidden(now) {
		say(agentconfig.NodesForbidden, "MissingRight", "the agent may not patch nodes, so requests for nodes are not carried out: bind the ClusterRole maint-agent-nodes to its ServiceAccount, or remove the requests")
	}
	k.Settings.Held(append(list, k.lifecycle.report(now)...))
}
