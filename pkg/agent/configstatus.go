package agent

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// conditionForbidden is the type of the condition that says that the agent may not
// write nodes.
const conditionForbidden = "NodesForbidden"

// syncConfig publishes on an AgentConfig whether it is in force, and what of it, or
// what right that is missing, holds maintenance back. Who set it looks there first.
func (a *Agent) syncConfig(ctx context.Context, k types.NamespacedName, cm *corev1.ConfigMap) error {
	if cm.DeletionTimestamp != nil || a.terminating(k.Namespace) {
		return nil
	}
	valid, limits, known := a.config.conditions(cm)
	message := "in force"
	wrote, err := a.writeStatus(ctx, cm, a.plans.writtenOf(k), func(have map[string]string) map[string]string {
		if !known { // this leader has not looked at the nodes yet: what the one before said stands
			limits = standingLimits(have[annotations.StatusConditions])
		}
		list := append([]metav1.Condition{valid}, limits...)
		for _, c := range list {
			if c.Type != valid.Type || c.Status != metav1.ConditionTrue {
				message = c.Message
				break
			}
		}
		return map[string]string{
			annotations.StatusMessage: plan.Cut(message, plan.MaxMessage), annotations.StatusObserved: annotations.Observed(cm),
			annotations.StatusConditions: conditions(have[annotations.StatusConditions], list, a.now()),
		}
	})
	if wrote && valid.Status != metav1.ConditionTrue {
		a.events.Event(cm, corev1.EventTypeWarning, "Config"+valid.Reason, plan.Cut(valid.Message, plan.MaxMessage))
	}
	return err
}

// conditions says how a configuration stands. known is false until the nodes have
// been looked at.
func (c *config) conditions(cm *corev1.ConfigMap) (valid metav1.Condition, limits []metav1.Condition, known bool) {
	valid = metav1.Condition{Type: "Valid", Status: metav1.ConditionTrue, Reason: "InForce", Message: "the configuration is in force"}
	if cm.Namespace != c.namespace || cm.Name != annotations.AgentConfigName {
		valid.Status, valid.Reason = metav1.ConditionFalse, "NotUsed"
		valid.Message = "this agent uses the ConfigMap " + c.namespace + "/" + annotations.AgentConfigName + ", and this one counts for nothing"
		return valid, nil, true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.broken) > 0 {
		valid.Status, valid.Reason = metav1.ConditionFalse, "Faults"
		valid.Message = plan.Cut("broken, and what was in force before stays so: "+c.broken.Error(), 4*plan.MaxMessage)
	}
	return valid, slices.Clone(c.limits), c.limitsKnown
}

// setLimits notes what of the limits over nodes holds maintenance back, and says
// whether that is news.
func (c *config) setLimits(found []metav1.Condition) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.limitsKnown && slices.Equal(c.limits, found) {
		return false
	}
	c.limits, c.limitsKnown = found, true
	return true
}

// standingLimits are the conditions of the limits as they stand on a configuration.
func standingLimits(have string) []metav1.Condition {
	var list []metav1.Condition
	if json.Unmarshal([]byte(have), &list) != nil {
		return nil
	}
	return slices.DeleteFunc(list, func(c metav1.Condition) bool { return c.Type == "Valid" })
}

// reportLimits says on the agent's configuration what of it, and of the agent's
// rights, holds maintenance of nodes back.
func (k *nodeKeeper) reportLimits(found []nodes.Condition, now time.Time) {
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
	if k.agent.config.setLimits(list) {
		k.agent.ringPlan(types.NamespacedName{Namespace: k.agent.options.Namespace, Name: annotations.AgentConfigName})
	}
}

// forbidden says whether every write of a node has been refused for want of a right
// for so long that it is no API server that has just begun.
func (k *nodeKeeper) forbidden(now time.Time) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.refused.Times > 1 && now.Sub(k.refused.Since) >= plan.RefusalPatience
}

// withheld says whether requests are left out, since the agent may not write nodes.
func (k *nodeKeeper) withheld(now time.Time) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return now.Before(k.denied)
}

// forgetRefusal forgets that writes of nodes were refused, once no node bears a
// request, or what the agent said of one: nothing is to be written then.
func (k *nodeKeeper) forgetRefusal(objects map[string]*nodeObject) {
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
	k.refused, k.denied = plan.Refusal{}, time.Time{}
}
