package backup

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
)

// The API server of another cluster is anybody's, and may list claims without end.
func TestTheClaimsOfAnotherClusterAreBounded(t *testing.T) {
	page := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		page++
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"kind": "PersistentVolumeClaimList", "apiVersion": "v1", "metadata": {"continue": "%d"}, "items": [`, page)
		for i := range 500 {
			fmt.Fprintf(w, `{"metadata": {"namespace": "shop", "name": "data-%d-%d"}},`, page, i)
		}
		fmt.Fprint(w, `{"metadata": {"namespace": "shop", "name": "last"}}]}`)
	}))
	t.Cleanup(server.Close)
	core, err := kube.NewForConfigAndClient(&rest.Config{Host: server.URL, QPS: -1}, server.Client())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	_, err = listClaims(ctx, executors.Call{Clients: executors.Clients{Cluster: "theirs", Kube: core}}, "")
	if err == nil || !strings.Contains(err.Error(), "shows more than 10000 PersistentVolumeClaims") {
		t.Errorf("after %d pages it says %v", page, err)
	}
}
