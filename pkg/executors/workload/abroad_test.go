package workload

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/conformance"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/api"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// The API server of another cluster is anybody's, and may list without end what a step looks at.
func TestWhatAStepListsIsBounded(t *testing.T) {
	objects, err := dynamic.NewForConfig(conformance.EndlessLists(t, "apps/v1", "Deployment", func(n int) map[string]any {
		return map[string]any{"metadata": map[string]any{"namespace": "shop", "name": fmt.Sprint("web-", n)}}
	}))
	if err != nil {
		t.Fatal(err)
	}
	kind, err := api.Resolve(executors.Call{Clients: deploymentsOf(objects).Clients}, plan.ResourceRef{APIVersion: "apps/v1", Kind: "Deployment"})
	if err != nil {
		t.Fatal(err)
	}
	if list, err := kind.List(t.Context(), "app=web"); err == nil || !strings.Contains(err.Error(), "more than 10000 deployments") {
		t.Errorf("%d are listed, and it says %v", len(list), err)
	}
	seen := 0
	err = selection{}.find(t.Context(), kind, func(*unstructured.Unstructured) error { seen++; return nil })
	if err == nil || !strings.Contains(err.Error(), "more than 20000 deployments") {
		t.Errorf("%d are checked, and it says %v", seen, err)
	}
}
