package node

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/conformance"
	"github.com/kubectl-maint/kubectl-maint/pkg/kube"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/selector"
)

// The API server of another cluster is anybody's, and may list nodes without end.
func TestTheNodesOfAnotherClusterAreBounded(t *testing.T) {
	notes := strings.Repeat("x", 4096)
	config := conformance.EndlessLists(t, "v1", "Node", func(n int) map[string]any {
		return map[string]any{"metadata": map[string]any{"name": fmt.Sprint("n-", n), "annotations": map[string]any{"notes": notes}}}
	})
	core, err := kube.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	call := executors.Call{Clients: executors.Clients{Cluster: "theirs", Kube: core}}
	_, err = nodesOf(t.Context(), call, plan.NodeProperties{Selector: &selector.LabelSelector{MatchLabels: map[string]string{"role": "db"}}})
	if err == nil || !strings.Contains(err.Error(), "shows nodes of more than 32 MiB") {
		t.Errorf("it says %v", err)
	}
}
