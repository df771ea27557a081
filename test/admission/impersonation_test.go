package admission_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Constrained impersonation, which Kubernetes 1.36 has, lets a request through that names
// a ServiceAccount and nothing else. Those for a run say for which, by an extra, and are
// refused: the day that this fails, docs/security.md and the agent's rights can change.
func TestConstrainedImpersonationKnowsNoRuns(t *testing.T) {
	l := newLab(t)
	l.given(plain("app"))
	_, err := world.admin.CoreV1().ServiceAccounts(l.ns).Create(l.ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "constrained"}}, metav1.CreateOptions{})
	l.must(err)
	config, err := world.cluster.ServiceAccountConfig(l.ctx, l.ns, "constrained")
	l.must(err)
	who := account(l.ns, "constrained")
	l.role(who, rule("authentication.k8s.io", "serviceaccounts", []string{"maint-runner"}, "impersonate:serviceaccount"), rule("", "configmaps", nil, "impersonate-on:serviceaccount:get"))
	extras := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "test-extras-" + l.ns}, Rules: []rbacv1.PolicyRule{rule("authentication.k8s.io", "userextras/maint.dev/run", nil, "impersonate", "impersonate:serviceaccount")}}
	_, err = world.admin.RbacV1().ClusterRoles().Create(l.ctx, extras, metav1.CreateOptions{})
	l.must(err)
	l.must(world.bindCluster(l.ctx, extras.Name, who))
	l.must(world.may(l.ctx, who, l.ns, "impersonate:serviceaccount", "authentication.k8s.io", "serviceaccounts", "maint-runner"))
	l.must(world.may(l.ctx, who, "", "impersonate", "authentication.k8s.io", "userextras/maint.dev/run", "x"))

	as := func(extra map[string][]string) kubernetes.Interface {
		one := rest.CopyConfig(config)
		one.Impersonate = rest.ImpersonationConfig{UserName: account(l.ns, "maint-runner").name, Extra: extra}
		kube, err := kubernetes.NewForConfig(one)
		l.must(err)
		return kube
	}
	reads := func(k kubernetes.Interface) error {
		_, err := k.CoreV1().ConfigMaps(l.ns).Get(l.ctx, "app", metav1.GetOptions{})
		return err
	}
	if err := reads(as(nil)); err != nil {
		t.Errorf("who may be the account for reading reads as it: %v", err)
	}
	if _, err := as(nil).CoreV1().ConfigMaps(l.ns).List(l.ctx, metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("and does nothing else as it: %v", err)
	}
	if err := reads(as(map[string][]string{"maint.dev/run": {l.ns + "/maint-run-orders-aaaaaaaaaa"}})); !apierrors.IsForbidden(err) {
		t.Errorf("a request for a run is more than the account: %v", err)
	}
}
