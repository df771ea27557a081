package api

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// gitops are the field managers of controllers that restore the state of Git.
func gitops() []string {
	return []string{"kustomize-controller", "helm-controller", "argocd-controller", "argocd-application-controller", "fleetagent", "flux"}
}

// GitOpsOwner is the GitOps controller that owns a field of an object; empty: none.
func GitOpsOwner(o metav1.Object, field string) string {
	for _, m := range o.GetManagedFields() {
		if m.FieldsV1 != nil && slices.Contains(gitops(), m.Manager) && strings.Contains(m.FieldsV1.GetRawString(), `"f:`+field+`"`) {
			return m.Manager
		}
	}
	return ""
}
