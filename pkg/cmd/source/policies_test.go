package source

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
)

func TestAFrozenNamespaceIsFrozenWhateverElseMayNotBeRead(t *testing.T) {
	var said bytes.Buffer
	book, unread := Policies(t.Context(), cmdtest.Refusing("list", "configmaps"), &said, "maint-system", "shop")
	if v := book.Gate(policy.Query{Namespace: "shop"}).Verdict(time.Now()); v.Permitted || len(unread) != 0 || !strings.Contains(said.String(), "read the policies of namespace shop") {
		t.Errorf("%+v, unread %v, said %q", v, unread, said.String())
	}
}

func TestANamespaceThatMayNotBeReadPermitsNothing(t *testing.T) {
	var said bytes.Buffer
	book, unread := Policies(t.Context(), cmdtest.Refusing("get", "namespaces"), &said, "maint-system", "shop")
	if unread["shop"] == nil {
		t.Fatalf("unread %v", unread)
	}
	closeUnread(&said, book, "shop", unread["shop"])
	if v := book.Gate(policy.Query{Namespace: "shop"}).Verdict(time.Now()); v.Permitted || v.Ready || !strings.Contains(said.String(), "whether it is frozen is not known") {
		t.Errorf("%+v, said %q", v, said.String())
	}
}
