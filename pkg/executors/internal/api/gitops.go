package api

import (
	"encoding/json"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// gitops are the field managers of controllers that restore the state of Git.
func gitops() []string {
	return []string{"kustomize-controller", "helm-controller", "argocd-controller", "argocd-application-controller", "fleetagent", "flux"}
}

// GitOpsOwner is the GitOps controller that owns a field of an object; empty: none. below are the
// fields that lead from there to the one that counts.
func GitOpsOwner(o metav1.Object, field string, below ...string) string {
	for _, m := range o.GetManagedFields() {
		if m.FieldsV1 == nil || !slices.Contains(gitops(), m.Manager) || !strings.Contains(m.FieldsV1.GetRawString(), owned(field)) {
			continue
		}
		var fields map[string]any
		if len(below) == 0 || json.Unmarshal([]byte(m.FieldsV1.GetRawString()), &fields) == nil && owns(fields, field, below) {
			return m.Manager
		}
	}
	return ""
}

func owned(field string) string { return `"f:` + field + `"` }

// owns says whether a field is among others, and what is below it: one without any is owned as a whole.
func owns(fields map[string]any, field string, below []string) bool {
	if found, is := fields["f:"+field].(map[string]any); is {
		for _, name := range below {
			under, there := found["f:"+name].(map[string]any)
			if !there {
				return len(found) == 0
			}
			found = under
		}
		return true
	}
	for _, other := range fields {
		if under, is := other.(map[string]any); is && owns(under, field, below) {
			return true
		}
	}
	return false
}
