package nodemaintenance

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

// conditionForbidden is the type of the condition that says that the agent may not
// write nodes.
const conditionForbidden = "NodesForbidden"

// reportLimits says on the agent's configuration what of it, and of the agent's
// rights, holds maintenance of nodes back.
func (k *Controller) reportLimits(found []nodes.Condition, now time.Time) {
	var list []metav1.Condition
	for _, c := range found {
		list = append(list, metav1.Condition{Type: c.Type, Status: metav1.ConditionTrue, Reason: c.Type, Message: c.Message})
	}
	if k.forbidden(now) {
		list = append(list, metav1.Condition{
			Type: conditionForbidden, Status: metav1.ConditionTrue, Reason: "MissingRight",
			Message: "the agent may not patch nodes, so requests for nodes are not carried out: bind the ClusterRole maint-agent-nodes to its ServiceAccount, or remove the requests",
		})
	}
	k.Held(list)
}

// forbidden says whether every write of a node has been refused for want of a right
// for so long that it is no API server that has just begun.
func (k *Controller) forbidden(now time.Time) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.refused.Times > 1 && now.Sub(k.refused.Since) >= workflow.RefusalPatience
}

// withheld says whether requests are left out, since the agent may not write nodes.
func (k *Controller) withheld(now time.Time) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return now.Before(k.denied)
}

// forgetRefusal forgets that writes of nodes were refused, once no node bears a
// request, or what the agent said of one: nothing is to be written then.
func (k *Controller) forgetRefusal(objects map[string]*nodeObject) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.refused.Times == 0 {
		return
	}
	for _, n := range objects {
		if len(annotations.Requests(n.Annotations)) > 0 || len(annotations.RequestStatuses(n.Annotations)) > 0 {
			return
		}
	}
	k.refused, k.denied = workflow.Refusal{}, time.Time{}
}
