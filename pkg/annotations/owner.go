package annotations

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DeclaredBy is the field manager that keeps a label by declaring it again and
// again (a GitOps tool, or any server-side apply), or nothing where a person or
// a script set it once. Those that declare it bring it back after it was taken
// away, which is no new request.
func DeclaredBy(o *metav1.ObjectMeta, label string) string { return declaredBy(o, "f:labels", label) }

// AnnotationDeclaredBy is DeclaredBy for an annotation.
func AnnotationDeclaredBy(o *metav1.ObjectMeta, key string) string {
	return declaredBy(o, "f:annotations", key)
}

func declaredBy(o *metav1.ObjectMeta, section, key string) string {
	for _, m := range o.ManagedFields {
		if m.FieldsV1 == nil || !ownsKey(m.FieldsV1.GetRawBytes(), section, key) {
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

// ownsKey says whether a field set holds a label or an annotation of the object itself.
// Those of the pods it makes stand in the same set, under its spec.
func ownsKey(raw []byte, section, key string) bool {
	if !bytes.Contains(raw, []byte(`"f:`+key+`"`)) {
		return false // most sets end here, unparsed
	}
	var fields struct {
		Metadata map[string]json.RawMessage `json:"f:metadata"`
	}
	_ = json.Unmarshal(raw, &fields) // what cannot be read owns nothing we know
	var keys map[string]json.RawMessage
	_ = json.Unmarshal(fields.Metadata[section], &keys)
	_, owns := keys["f:"+key]
	return owns
}
