package exit

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Advice about roles is for those who lack a right: whatever else refuses with the same reason has to
// be met in another way.
func TestWhoLacksARightIsToldWhichRoleHasIt(t *testing.T) {
	cannot := errors.New(`User "rita" cannot patch it`)
	forbidden := func(group, resource string) error {
		return apierrors.NewForbidden(schema.GroupResource{Group: group, Resource: resource}, "x", cannot)
	}
	policy := apierrors.NewForbidden(corev1.Resource("configmaps"), "x", errors.New("ValidatingAdmissionPolicy 'a' with binding 'b' denied request: no"))
	policy.ErrStatus.Details.Causes = []metav1.StatusCause{{Message: "no"}}
	webhook := &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonForbidden, Code: 403, Message: `admission webhook "a" denied the request: no`}}
	quota := apierrors.NewForbidden(corev1.Resource("configmaps"), "x", errors.New("exceeded quota: q, requested: configmaps=1"))
	for _, c := range []struct {
		name      string
		err       error
		namespace string
		help      string
	}{
		{"a document", forbidden("", "configmaps"), "shop", "; the ClusterRole edit in namespace shop would let you; 'can I' shows what you may"},
		{"another object", forbidden("apps", "deployments"), "shop", "; a Role with patch on deployments.apps in namespace shop would let you; 'can I' shows what you may"},
		{"an object of the cluster", forbidden("", "nodes"), "", "; a ClusterRole with patch on nodes would let you; 'can I' shows what you may"},
		{"an admission policy", policy, "shop", ""},
		{"a webhook", webhook, "shop", ""},
		{"a quota", quota, "shop", ""},
		{"a conflict", apierrors.NewConflict(corev1.Resource("configmaps"), "x", errors.New("again")), "shop", ""},
		{"another error", errors.New("etcd is full"), "shop", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Lines(NeedsRight(fmt.Errorf("write: %w", c.err), "patch", c.namespace, "'can I'"), "")
			want := Lines(fmt.Errorf("write: %w", c.err), "")
			if want[0] += c.help; !slices.Equal(got, want) || LacksRight(c.err) != (c.help != "") {
				t.Errorf("%q\nwant %q", got, want)
			}
		})
	}
	if err := NeedsRight(nil, "patch", "shop", ""); err != nil {
		t.Error(err)
	}
}

// kubectl's words come first, so that who searches for them finds what others say about them.
func TestWhoseCredentialsAreNotAcceptedIsToldInKubectlsWords(t *testing.T) {
	const help = "; log in"
	plain := apierrors.NewUnauthorized("Unauthorized")
	for _, c := range []struct {
		err  error
		want string
	}{
		{plain, "error: You must be logged in to the server (Unauthorized)" + help},
		{fmt.Errorf("list plans: %w", plain), "error: You must be logged in to the server (Unauthorized): list plans" + help},
		{fmt.Errorf("list plans: %w", apierrors.NewUnauthorized("the server has asked for the client to provide credentials")), "error: You must be logged in to the server (the server has asked for the client to provide credentials): list plans" + help},
		{fmt.Errorf("%w, so nothing was done", plain), "error: You must be logged in to the server (Unauthorized): Unauthorized, so nothing was done" + help},
	} {
		if got := Lines(c.err, "log in"); !slices.Equal(got, []string{c.want}) {
			t.Errorf("%q\nwant %q", got, c.want)
		}
	}
}
