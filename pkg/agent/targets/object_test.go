package targets

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

// Of a target no more is kept than says who declares its labels, and that has a bound.
func TestWhatIsKeptOfATarget(t *testing.T) {
	target := func(labels map[string]string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
		u.SetNamespace("shop")
		u.SetName("settings")
		u.SetLabels(labels)
		u.SetManagedFields([]metav1.ManagedFieldsEntry{
			{Manager: "flux", Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(`{"f:data":{"f:` + strings.Repeat("k", 250_000) + `":{}},"f:metadata":{"f:finalizers":{},"f:labels":{"f:size":{}}}}`)},
			{Manager: "app", Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: metav1.NewFieldsV1(`{"f:data":{"f:` + strings.Repeat("k", 250_000) + `":{}}}`)},
		})
		return u
	}
	small := Slim(target(map[string]string{"size": "4"}), client.ClusterIdentity{})
	if len(small.ManagedFields) != 1 || string(small.ManagedFields[0].FieldsV1.GetRawBytes()) != `{"f:metadata":{"f:labels":{"f:size":{}}}}` {
		t.Errorf("of its managers: %v", small.ManagedFields)
	}
	if by := annotations.DeclaredBy(&small.ObjectMeta, "size"); by != "flux" || small.Labels["size"] != "4" || small.NotReady != "" {
		t.Errorf("the label %q is declared by %q; it is not ready: %q", small.Labels["size"], by, small.NotReady)
	}
	many := map[string]string{}
	for i := range 2000 {
		many[fmt.Sprint("example.org/", i)] = strings.Repeat("x", 60)
	}
	if large := Slim(target(many), client.ClusterIdentity{}); large.Labels != nil || large.ManagedFields != nil || large.NotReady != "its labels, annotations and managedFields take more than 64 KiB, and are not read" {
		t.Errorf("of a large one %d labels; it is not ready: %q", len(large.Labels), large.NotReady)
	}
}
