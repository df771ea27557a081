package source

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-maint/kubectl-maint/pkg/rights"
)

// ResourceOf is RBAC's name for the kind of a need, such as deployments/scale: by the rules of
// English, since no cluster is asked.
func ResourceOf(n rights.Need) (group, resource string) {
	gv, err := schema.ParseGroupVersion(n.APIVersion)
	if err != nil { // the validator has refused it
		return "", ""
	}
	plural, _ := meta.UnsafeGuessKindToResource(gv.WithKind(n.Kind))
	if n.Subresource != "" {
		return gv.Group, plural.Resource + "/" + n.Subresource
	}
	return gv.Group, plural.Resource
}
