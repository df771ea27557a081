package setup

import (
	"errors"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
)

// Whoever may not read or write what an installation consists of is told whom to ask.
func TestInstallNeedsTheRightsOfAnAdmin(t *testing.T) {
	namespace := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "maint-system"}}}
	for doing, c := range map[string]struct {
		verb string
		do   func(a *applier) error
	}{
		"read": {"get", func(a *applier) error {
			_, err := a.read(t.Context(), []*unstructured.Unstructured{namespace})
			return err
		}},
		"apply": {"patch", func(a *applier) error {
			to, err := a.of(namespace)
			if err == nil {
				_, err = a.apply(t.Context(), to, namespace)
			}
			return err
		}},
		"delete": {"delete", func(a *applier) error {
			_, err := a.remove(t.Context(), namespace)
			return err
		}},
	} {
		t.Run(doing, func(t *testing.T) {
			client := dynamicfake.NewSimpleDynamicClient(runtime.NewScheme())
			client.PrependReactor(c.verb, "namespaces", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "namespaces"}, "maint-system", errors.New("not for you"))
			})
			mapper := meta.NewDefaultRESTMapper(nil)
			mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, meta.RESTScopeRoot)
			err := c.do(&applier{client: client, mapper: mapper})
			want := []string{"Error from server (Forbidden): " + doing + ` namespace/maint-system: namespaces "maint-system" is forbidden: not for you; an installation has objects of the whole cluster: ask an admin of the cluster to run it`}
			if got := exit.Lines(err, ""); !slices.Equal(got, want) {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}
