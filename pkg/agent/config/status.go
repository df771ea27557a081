package config

import (
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/status"
	"github.com/kubectl-maint/kubectl-maint/pkg/agentconfig"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
)

// notUsed is the reason of a configuration that counts for nothing.
const notUsed = "NotUsed"

// Conditions says how a configuration stands. known is false until the nodes have
// been looked at.
func (c *Store) Conditions(cm *corev1.ConfigMap) (valid metav1.Condition, limits []metav1.Condition, known bool) {
	valid = metav1.Condition{Type: "Valid", Status: metav1.ConditionTrue, Reason: "InForce", Message: "the configuration is in force"}
	if cm.Namespace != c.config.Namespace || cm.Name != annotations.AgentConfigName {
		valid.Status, valid.Reason = metav1.ConditionFalse, notUsed
		valid.Message = "this agent uses the ConfigMap " + c.config.Namespace + "/" + annotations.AgentConfigName + ", and ignores this one"
		return valid, nil, true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.broken) > 0 {
		valid.Status, valid.Reason = metav1.ConditionFalse, "Faults"
		valid.Message = document.Cut("the document is invalid, and the previous configuration stays in force: "+c.broken.Error(), 4*document.MaxMessage)
	}
	return valid, slices.Clone(c.limits), c.limitsKnown
}

// SetLimits notes what of the limits over nodes holds maintenance back, and says
// whether that is news.
func (c *Store) SetLimits(found []metav1.Condition) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.limitsKnown && slices.Equal(c.limits, found) {
		return false
	}
	c.limits, c.limitsKnown = found, true
	return true
}

// ConditionConfined is False where no admission policy can confine the agent's token.
const ConditionConfined = "TokenConfined"

// LimitConditions are the conditions of the limits as they stand on a configuration.
func LimitConditions(have string) []metav1.Condition {
	var list []metav1.Condition
	if json.Unmarshal([]byte(have), &list) != nil {
		return nil
	}
	return slices.DeleteFunc(list, func(c metav1.Condition) bool {
		return slices.Contains([]string{"Valid", "SigningKey", ConditionConfined, status.ConditionFreezes, agentconfig.DryRun, status.ConditionClockDoubt}, c.Type)
	})
}
