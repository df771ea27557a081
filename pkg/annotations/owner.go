package annotations

import (
	"bytes"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DeclaredBy is the field manager that keeps a label by declaring it again and
// again (a GitOps tool, or any server-side apply), or nothing where a person or
// a script set it once. Those that declare it bring it back after it was taken
// away, which is no new request.
func DeclaredBy(o *metav1.ObjectMeta, label string) string {
	field := []byte(`"f:` + label + `":`)
	for _, m := range o.ManagedFields {
		if m.FieldsV1 == nil || !bytes.Contains(labelsPart(m.FieldsV1.Raw), field) {
			continue
		}
		if m.Operation == metav1.ManagedFieldsOperationApply || declares(m.Manager) {
			return m.Manager
		}
	}
	return ""
}

// declares knows the managers of tools that apply by update.
func declares(manager string) bool {
	known := []string{"argocd-controller", "argocd-application-controller", "kustomize-controller", "helm-controller", "helm", "kubectl-client-side-apply", "terraform", "pulumi-kubernetes"}
	return slices.Contains(known, strings.ToLower(manager))
}

// labelsPart is the stretch of a field set that speaks of labels.
func labelsPart(raw []byte) []byte {
	start := bytes.Index(raw, []byte(`"f:labels":{`))
	if start < 0 {
		return nil
	}
	depth := 0
	for i := start + len(`"f:labels":`); i < len(raw); i++ {
		switch raw[i] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return raw[start : i+1]
			}
		}
	}
	return raw[start:]
}
