package nodes_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

// configured waits until the agent's configuration bears a condition with such a
// message, or none of that type.
func (l *lab) configured(conditionType string, status metav1.ConditionStatus, message string) {
	l.Helper()
	l.eventually(fmt.Sprintf("condition %s is %q", conditionType, status), func() (bool, string) {
		cm, err := l.admin.CoreV1().ConfigMaps(annotations.DefaultNamespace).Get(l.ctx, annotations.AgentConfigName, metav1.GetOptions{})
		l.must(err)
		text := cm.Annotations[annotations.StatusConditions]
		var list []metav1.Condition
		if text != "" {
			l.must(json.Unmarshal([]byte(text), &list))
		}
		for _, c := range list {
			if c.Type == conditionType {
				return c.Status == status && strings.Contains(c.Message, message), text
			}
		}
		return status == "", text
	})
}

func (l *lab) configure(spec string) {
	l.Helper()
	l.must(harness.Configure(l.ctx, world.cluster.AdminConfig(), spec))
}

func TestTheConfigurationSaysWhatOfItHoldsMaintenanceBack(t *testing.T) {
	l := newLab(t, `{nodes: {maxParallelOperations: 1, maxUnavailable: 5%}}`)
	t.Cleanup(func() {
		_ = harness.Configure(l.ctx, world.cluster.AdminConfig(), `{nodes: {maxParallelOperations: 1}}`)
	})
	l.configured("MaxUnavailableIsZero", metav1.ConditionTrue, "5% of 12 nodes is 0")
	l.configured("Valid", metav1.ConditionTrue, "")

	l.must(l.agent.Stop())
	l.start() // a new leader does not take it away before it has looked
	l.configured("MaxUnavailableIsZero", metav1.ConditionTrue, "5% of 12 nodes is 0")
	l.configure(`{nodes: {maxParallelOperations: 0, maxUnavailable: 25%}}`)
	l.configured("MaxUnavailableIsZero", "", "")
	l.configured("NoParallelOperations", metav1.ConditionTrue, "maxParallelOperations is 0")

	l.configure(`{nodes: {maxParalelOperations: 1}}`)
	l.configured("Valid", metav1.ConditionFalse, "maxParalelOperations")
	l.configured("NoParallelOperations", metav1.ConditionTrue, "") // what was in force stays so
	l.configure(`{nodes: {maxParallelOperations: 1}}`)
	l.configured("Valid", metav1.ConditionTrue, "in force")
	l.configured("NoParallelOperations", "", "")

	l.configure(`{nodes: {maxParallelOperations: 1, pauseMachineConfigPool: true}, minimumWindow: {hours: 8, per: 30d}, lifecycleConditions: false}`)
	l.configured("MachineConfigPoolsNotPaused", metav1.ConditionTrue, "not available in this version")
	l.configured("Valid", metav1.ConditionTrue, "in force")
	l.configure(`{nodes: {maxParallelOperations: 1}}`)
	l.configured("MachineConfigPoolsNotPaused", "", "")
}

func TestAMissingRightOverNodesStandsOnTheConfiguration(t *testing.T) {
	l := newLab(t, `{nodes: {maxParallelOperations: 1}}`)
	bindings := l.admin.RbacV1().ClusterRoleBindings()
	binding, err := bindings.Get(l.ctx, "maint-agent-nodes", metav1.GetOptions{})
	l.must(err)
	l.must(bindings.Delete(l.ctx, binding.Name, metav1.DeleteOptions{}))
	bound := func() {
		_, err := bindings.Create(l.ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: binding.Name}, RoleRef: binding.RoleRef, Subjects: binding.Subjects}, metav1.CreateOptions{})
		if !apierrors.IsAlreadyExists(err) {
			l.must(err)
		}
	}
	t.Cleanup(bound)
	// What plans drain as their own account needs none of it.
	l.roller()
	l.pool("lone", "node-2")
	l.deployment("web", 1)
	text := "apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec:\n  steps:\n  - {name: drain, type: drain, properties: {node: node-2, waitForVolumes: true}}\n  - {name: uncordon, type: uncordon, properties: {node: node-2}}\n"
	_, err = l.admin.CoreV1().ConfigMaps(l.ns).Create(l.ctx, annotations.NewPlan(l.ns, "one", text, ""), metav1.CreateOptions{})
	l.must(err)
	l.trigger("one", "x")
	if j := l.ends("one", 1); j.Phase != run.Succeeded {
		t.Errorf("the run ended %s: %+v", j.Phase, j.End)
	}
	told := func(want bool, what string) {
		t.Helper()
		l.within(90, what, func() (bool, string) {
			cm, err := l.admin.CoreV1().ConfigMaps(annotations.DefaultNamespace).Get(l.ctx, annotations.AgentConfigName, metav1.GetOptions{})
			l.must(err)
			text := cm.Annotations[annotations.StatusConditions]
			return text != "" && want == (strings.Contains(text, "NodesForbidden") && strings.Contains(text, "maint-agent-nodes")), text
		})
	}
	l.request("node-1", "os", "")
	told(true, "the missing right is told")
	l.release("node-1", "os")
	told(false, "it is told no more, since nobody asks")
	l.request("node-1", "os", "")
	told(true, "the missing right is told again")
	if why := l.why("node-1"); !strings.Contains(why, "os: the agent may not patch nodes") {
		t.Errorf("why says:\n%s", why)
	}
	bound()
	told(false, "it is told no more")
	l.release("node-1", "os")
	l.gone("node-1", "os")
}
