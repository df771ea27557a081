package cmd

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// refusing is a cluster with a frozen namespace, in which one verb on one
// resource is refused.
func refusing(verb, resource string) *cluster {
	kube := fake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Annotations: map[string]string{annotations.ChangeStrategy: "Restrictive"}}})
	kube.PrependReactor(verb, resource, func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("not for you")
	})
	return &cluster{kube: kube, namespace: "shop"}
}

func TestAFrozenNamespaceIsFrozenWhateverElseMayNotBeRead(t *testing.T) {
	var said bytes.Buffer
	book, unread := refusing("list", "configmaps").bookOf(t.Context(), &said, "maint-system", "shop")
	if v := book.Gate(plan.Question{Namespace: "shop"}).Verdict(time.Now()); v.Permitted || len(unread) != 0 || !strings.Contains(said.String(), "read the policies of namespace shop") {
		t.Errorf("%+v, unread %v, said %q", v, unread, said.String())
	}
}

func TestANamespaceThatMayNotBeReadPermitsNothing(t *testing.T) {
	var said bytes.Buffer
	book, unread := refusing("get", "namespaces").bookOf(t.Context(), &said, "maint-system", "shop")
	if unread["shop"] == nil {
		t.Fatalf("unread %v", unread)
	}
	c := &cli{}
	c.ErrOut = &said
	c.doubt(book, "shop", unread["shop"])
	if v := book.Gate(plan.Question{Namespace: "shop"}).Verdict(time.Now()); v.Permitted || v.Ready || !strings.Contains(said.String(), "whether it is frozen is not known") {
		t.Errorf("%+v, said %q", v, said.String())
	}
}
