package karpenter

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/client-go/dynamic"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/conformance"
)

// The API server of another cluster is anybody's, and may list NodeClaims without end.
func TestTheNodeClaimsOfAnotherClusterAreBounded(t *testing.T) {
	config := conformance.EndlessLists(t, "karpenter.sh/v1", "NodeClaim", func(n int) map[string]any {
		return map[string]any{"metadata": map[string]any{"name": fmt.Sprint("claim-", n), "uid": "u"}}
	})
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	_, err = claimsOf(t.Context(), executors.SleepCall{Clients: executors.Clients{Cluster: "theirs", Dynamic: objects}})
	if err == nil || !strings.Contains(err.Error(), "shows more than 10000 NodeClaims") {
		t.Errorf("it says %v", err)
	}
}
