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

// Whoever may not look at what an installation consists of is told whom to ask.
func TestInstallNeedsTheRightsOfAnAdmin(t *testing.T) {
	client := dynamicfake.NewSimpleDynamicClient(runtime.NewScheme())
	client.PrependReactor("get", "namespaces", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "namespaces"}, "maint-system", errors.New("not for you"))
	})
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, meta.RESTScopeRoot)
	namespace := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "maint-system"}}}
	_, err := (&applier{client: client, mapper: mapper}).read(t.Context(), []*unstructured.Unstructured{namespace})
	want := []string{`Error from server (Forbidden): read namespace/maint-system: namespaces "maint-system" is forbidden: not for you; an installation has objects of the whole cluster: ask an admin of the cluster to run it`}
	if got := exit.Lines(err); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
