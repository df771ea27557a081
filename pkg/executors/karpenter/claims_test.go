package karpenter

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
)

// The API server of another cluster is anybody's, and may list NodeClaims without end.
func TestTheNodeClaimsOfAnotherClusterAreBounded(t *testing.T) {
	page := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		page++
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"kind": "NodeClaimList", "apiVersion": "karpenter.sh/v1", "metadata": {"continue": "%d"}, "items": [`, page)
		for i := range pageOf {
			fmt.Fprintf(w, `{"kind": "NodeClaim", "apiVersion": "karpenter.sh/v1", "metadata": {"name": "claim-%d-%d", "uid": "u"}},`, page, i)
		}
		fmt.Fprint(w, `{"kind": "NodeClaim", "apiVersion": "karpenter.sh/v1", "metadata": {"name": "last"}}]}`)
	}))
	t.Cleanup(server.Close)
	objects, err := dynamic.NewForConfig(&rest.Config{Host: server.URL, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	_, err = claimsOf(ctx, executors.SleepCall{Clients: executors.Clients{Cluster: "theirs", Dynamic: objects}})
	if err == nil || !strings.Contains(err.Error(), "shows more than 10000 NodeClaims") {
		t.Errorf("after %d pages it says %v", page, err)
	}
}
