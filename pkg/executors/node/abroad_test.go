package node

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/kube"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/selector"
)

// The API server of another cluster is anybody's, and may list nodes without end.
func TestTheNodesOfAnotherClusterAreBounded(t *testing.T) {
	page := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		page++
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"kind": "NodeList", "apiVersion": "v1", "metadata": {"continue": "%d"}, "items": [`, page)
		for i := range 100 {
			fmt.Fprintf(w, `{"metadata": {"name": "n-%d-%d", "annotations": {"notes": %q}}},`, page, i, strings.Repeat("x", 4096))
		}
		fmt.Fprint(w, `{"metadata": {"name": "last"}}]}`)
	}))
	t.Cleanup(server.Close)
	core, err := kube.NewForConfigAndClient(&rest.Config{Host: server.URL, QPS: -1}, server.Client())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	call := executors.Call{Clients: executors.Clients{Cluster: "theirs", Kube: core}}
	_, err = nodesOf(ctx, call, plan.NodeProperties{Selector: &selector.LabelSelector{MatchLabels: map[string]string{"role": "db"}}})
	if err == nil || !strings.Contains(err.Error(), "shows nodes of more than 32 MiB") {
		t.Errorf("after %d pages it says %v", page, err)
	}
}
