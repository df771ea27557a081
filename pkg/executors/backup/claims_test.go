package backup

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/conformance"
	"github.com/kubectl-maint/kubectl-maint/pkg/kube"
)

// The API server of another cluster is anybody's, and may list claims without end.
func TestTheClaimsOfAnotherClusterAreBounded(t *testing.T) {
	config := conformance.EndlessLists(t, "v1", "PersistentVolumeClaim", func(n int) map[string]any {
		return map[string]any{"metadata": map[string]any{"namespace": "shop", "name": fmt.Sprint("data-", n)}}
	})
	core, err := kube.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	_, err = listClaims(t.Context(), executors.Call{Clients: executors.Clients{Cluster: "theirs", Kube: core}}, "")
	if err == nil || !strings.Contains(err.Error(), "shows more than 10000 PersistentVolumeClaims") {
		t.Errorf("it says %v", err)
	}
}
