package nodes_test

import (
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
)

// onlooker gives the namespace a maint-runner that may see nodes, and nothing else of them.
func (l *lab) onlooker() {
	l.Helper()
	l.runner("onlooker", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "list", "watch"}})
}

// A tenant whose account may only see nodes held the one slot that there was, for as long as
// a step of a rollout took, which was for ever with a suspend.
func TestWhoMayNotChangeANodeTakesNobodysTurn(t *testing.T) {
	for name, step := range map[string]string{
		"a rollout that suspends": "{name: take, type: for-each-node, properties: {selector: {matchLabels: {pool: seen}}, steps: [{name: hold, type: suspend}]}}",
		"a drain":                 "{name: take, type: drain, properties: {node: node-1}}",
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, "{}")
			l.onlooker()
			l.pool("seen", "node-1")
			text := "apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec:\n  steps:\n  - " + step + "\n"
			_, err := l.admin.CoreV1().ConfigMaps(l.ns).Create(l.ctx, annotations.NewPlan(l.ns, "idle", text, ""), metav1.CreateOptions{})
			l.must(err)
			l.trigger("idle", "one")
			const missing = "may not patch nodes"
			l.eventually("the step says what is missing", func() (bool, string) {
				all := l.journals("idle")
				return len(all) == 1 && strings.Contains(fmt.Sprint(all[0].Steps), missing), fmt.Sprint(all)
			})
			l.request("node-2", "os", `{"drain":false}`)
			l.phase("node-2", "os", nodes.Ready)
			if last := l.ends("idle", 1); !strings.Contains(last.Message+fmt.Sprint(last.Steps), missing) {
				t.Errorf("it ended %s: %s", last.Phase, last.Message)
			}
		})
	}
}
