package admission_test

import (
	"cmp"
	"errors"
	"fmt"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/setup"
	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

// What install --cloud adds lets the agent ask for tokens of the accounts that it acts as,
// for STS of AWS and for an hour at most; others' requests it does not look at.
func TestForWhomTheAgentAsksForTokens(t *testing.T) {
	l := newLab(t)
	text, err := setup.Manifests{Version: "v0.0.0", Namespace: annotations.DefaultNamespace, Image: "none", Cloud: true}.Render()
	l.must(err)
	l.must(harness.Apply(l.ctx, world.cluster.AdminConfig(), "", []byte(text), func(u *unstructured.Unstructured) bool {
		return u.GetName() != "maint-agent-cloud" && u.GetName() != "maint-agent-tokens"
	}))
	for _, name := range []string{"maint-runner", "deployer"} {
		_, err := world.admin.CoreV1().ServiceAccounts(l.ns).Create(l.ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	asks := func(account string, seconds int64, audiences ...string) request {
		return func(l *lab, k kubernetes.Interface) (metav1.Object, error) {
			return k.CoreV1().ServiceAccounts(l.ns).CreateToken(l.ctx, account, &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: audiences, ExpirationSeconds: &seconds}}, metav1.CreateOptions{})
		}
	}
	const sts, api = "sts.amazonaws.com", "https://kubernetes.default.svc"
	l.must(eventuallyErr(l.ctx, func() error { // policies take a moment
		if _, err := asks("maint-runner", 600, api)(l, world.as(agent())); !apierrors.IsForbidden(err) {
			return fmt.Errorf("a token for the API server is not refused: %w", cmp.Or(err, errors.New("it was given")))
		}
		return nil
	}))
	l.table([]row{
		{name: "for STS", who: agent(), asks: asks("maint-runner", 600, sts)},
		{name: "for an hour", who: agent(), asks: asks("maint-runner", 3600, sts)},
		{name: "not for a day", who: agent(), asks: asks("maint-runner", 86400, sts), denied: "an hour at most"},
		{name: "not for the API server", who: agent(), asks: asks("maint-runner", 600, api), denied: "for no other audience"},
		{name: "not for it beside STS", who: agent(), asks: asks("maint-runner", 600, sts, api), denied: "for no other audience"},
		{name: "not for whom Kubernetes takes by itself", who: agent(), asks: asks("maint-runner", 600), denied: "for no other audience"},
		{name: "not of an account that it may not act as", who: agent(), asks: asks("deployer", 600, sts), denied: "cannot create resource"},
		{name: "an admin asks for what an admin wants", who: admin(), asks: asks("maint-runner", 600, api)},
	})
}
