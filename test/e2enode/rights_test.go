//go:build linux

package e2enode

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

// rightsAreUsed compares what an example gives an account, by a Role and a
// ClusterRole of these names, with what the API server saw it do. spared are
// rights that the play has no use for. What is missing has failed already.
func (w *world) rightsAreUsed(account, clusterRole, role string, spared ...string) {
	w.t.Helper()
	cluster, err := w.kube.RbacV1().ClusterRoles().Get(w.t.Context(), clusterRole, metav1.GetOptions{})
	w.must(err)
	rules := cluster.Rules
	if role != "" {
		own, err := w.kube.RbacV1().Roles(home).Get(w.t.Context(), role, metav1.GetOptions{})
		w.must(err)
		rules = append(rules, own.Rules...)
	}
	used := w.used("system:serviceaccount:" + home + ":" + account)
	for _, right := range rights(rules) {
		if !used[right] && !slices.Contains(spared, right) {
			w.t.Errorf("%s is given a right that it does not use: %s", account, right)
		}
		if used[right] && slices.Contains(spared, right) {
			w.t.Errorf("%s uses a right that is called spared: %s", account, right)
		}
	}
}

func rights(rules []rbacv1.PolicyRule) []string {
	var out []string
	for _, rule := range rules {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				out = append(out, rule.APIGroups[0]+" "+resource+" "+verb)
			}
		}
	}
	return out
}

// used are the rights that an account used, itself or as whom the agent acted.
// Who watches is asked for list, too.
func (w *world) used(user string) map[string]bool {
	w.t.Helper()
	used := map[string]bool{}
	_, err := harness.EachAudited(w.requests.file, 0, user, func(e harness.AuditEvent) {
		switch {
		case e.Object.Resource == "":
			return
		case e.Impersonated != nil && e.Impersonated.Username == user:
			e.Impersonated = nil
		case e.Impersonated != nil || e.User.Username != user:
			return
		}
		e.Note(used)
	})
	w.must(err)
	for right := range used {
		if kind, is := strings.CutSuffix(right, " watch"); is {
			used[kind+" list"] = true
		}
	}
	return used
}
