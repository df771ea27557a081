package agent_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

// as has the plugin run as somebody else.
func (l *lab) as(user string, args ...string) said {
	l.Helper()
	return l.maint(append([]string{"--as", user}, args...)...)
}

// tenant may do in the lab's namespace what the rules say, and nothing elsewhere.
func (l *lab) tenant(user string, rules ...rbacv1.PolicyRule) {
	l.Helper()
	_, err := l.admin.RbacV1().Roles(l.ns).Create(l.ctx, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: rules}, metav1.CreateOptions{})
	l.must(err)
	_, err = l.admin.RbacV1().RoleBindings(l.ns).Create(l.ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		Subjects:   []rbacv1.Subject{{Kind: "User", APIGroup: "rbac.authorization.k8s.io", Name: user}},
		RoleRef:    rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: user},
	}, metav1.CreateOptions{})
	l.must(err)
	l.eventually(user+" may read plans", func() (bool, string) {
		s := l.as(user, "list")
		return s.code == 0, s.err
	})
}

// sharedPolicy stands in the agent's namespace, where tenants cannot read it.
func (l *lab) sharedPolicy(spec string) string {
	l.Helper()
	cm := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "shared-" + l.ns, Labels: map[string]string{annotations.LabelKind: annotations.KindPolicy}},
		Data:       map[string]string{annotations.DataPolicy: "apiVersion: maint.dev/v1alpha1\nkind: Policy\nspec: " + spec + "\n"},
	}
	_, err := l.admin.CoreV1().ConfigMaps(annotations.DefaultNamespace).Create(l.ctx, cm, metav1.CreateOptions{})
	l.must(err)
	l.Cleanup(func() {
		_ = l.admin.CoreV1().ConfigMaps(annotations.DefaultNamespace).Delete(l.ctx, cm.Name, metav1.DeleteOptions{})
	})
	return cm.Name
}

func (l *lab) published(name, key, want string) {
	l.Helper()
	l.eventually(name+" has "+want, func() (bool, string) {
		got := l.seen(name).Annotations[key]
		return strings.Contains(got, want), got
	})
}

func TestATenantIsToldTheSameAsAnAdmin(t *testing.T) {
	l := newLab(t)
	l.runner()
	maps := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps", "events"}, Verbs: []string{"get", "list", "watch", "patch", "update"}}
	l.tenant("ted", maps, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get"}})
	l.tenant("tess", maps)
	shut := l.sharedPolicy("{strategy: Restrictive}")
	l.plan("shut", fmt.Sprintf("policies: [{name: %s, namespace: %s}]\nsteps: [{name: hold, type: suspend}]\n", shut, annotations.DefaultNamespace))
	l.plan("dated", fmt.Sprintf("policies: [{name: %s, namespace: %s}]\ntriggers: {schedules: [{at: \"2040-01-01T02:00:00Z\", timezone: UTC}]}\nsteps: [{name: hold, type: suspend}]\n", shut, annotations.DefaultNamespace))
	l.plan("free", "steps: [{name: hold, type: suspend}]\n")
	l.published("dated", annotations.StatusBehavior, "ChangesPaused")
	l.published("shut", annotations.StatusBehavior, "ChangesPaused")
	l.seen("free")

	const agents = "says the agent"
	l.expect(l.maint("check", "shut"), 3, "policy "+shut+": Restrictive")
	for _, user := range []string{"ted", "tess"} {
		got := l.as(user, "check", "shut")
		l.expect(got, 3, "plan/shut: change is not permitted (policy "+shut+": Restrictive, "+agents+")", "the answer that the agent published is used")
		if n := strings.Count(got.err, "warning: read the policies"); n > 1 {
			t.Errorf("%d times:\n%s", n, got.err)
		}
		l.expect(l.as(user, "why", "shut"), 3, "change is not permitted: policy "+shut+": Restrictive, "+agents)
		l.expect(l.as(user, "status", "shut"), 0, "policy "+shut+": Restrictive, "+agents)
		l.expect(l.as(user, "next", "dated", "--count", "1"), 0, "window closed, does not open by itself (policy "+shut+": Restrictive, "+agents+")")
		l.expect(l.as(user, "calendar", "--from", "2040-01-01", "--to", "2040-01-02"), 0, "not permitted then: policy "+shut+": Restrictive, "+agents)
	}
	if got := l.as("ted", "check", "free"); got.code != 0 || strings.Contains(got.err, "policies") {
		t.Errorf("a policy that nothing names is spoken of: %+v", got)
	}

	freeze := []byte(fmt.Sprintf(`{"metadata":{"annotations":{%q:"Restrictive",%q:"jane",%q:"launch"}}}`, annotations.ChangeStrategy, annotations.Actor(annotations.ChangeStrategy), annotations.Reason(annotations.ChangeStrategy)))
	_, err := l.admin.CoreV1().Namespaces().Patch(l.ctx, l.ns, types.MergePatchType, freeze, metav1.PatchOptions{})
	l.must(err)
	l.published("free", annotations.StatusBehavior, "launch")
	l.expect(l.as("ted", "check", "free"), 3, "namespace: Restrictive by jane (unverified): launch")
	l.expect(l.as("tess", "check", "free"), 3, "namespace: Restrictive by jane (unverified): launch, "+agents)

	pause := []byte(fmt.Sprintf(`{"metadata":{"annotations":{%q:null,%q:null,%q:null,%q:"true",%q:"root",%q:"upgrade"}}}`,
		annotations.ChangeStrategy, annotations.Actor(annotations.ChangeStrategy), annotations.Reason(annotations.ChangeStrategy), annotations.Pause, annotations.Actor(annotations.Pause), annotations.Reason(annotations.Pause)))
	_, err = l.admin.CoreV1().Namespaces().Patch(l.ctx, l.ns, types.MergePatchType, pause, metav1.PatchOptions{})
	l.must(err)
	l.published("free", annotations.StatusPhase, "Paused")
	l.expect(l.as("ted", "why", "free"), 3, "namespace "+l.ns+" is paused until resumed, by root (unverified): upgrade")
	l.expect(l.as("tess", "why", "free"), 3, "namespace "+l.ns+" is paused until resumed, by root (unverified): upgrade, "+agents)
	l.expect(l.as("tess", "check", "free"), 3, "is paused")
}
