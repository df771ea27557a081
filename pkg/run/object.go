package run

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/expr"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// Body is an object as JSON; its whole numbers stay whole.
type Body map[string]any

// UnmarshalJSON is json.Unmarshaler's.
func (b *Body) UnmarshalJSON(text []byte) error {
	var plain map[string]any
	if err := document.Unmarshal(text, &plain); err != nil {
		return err
	}
	expr.Whole(plain)
	*b = plain
	return nil
}

// WatchedObject is an object as runs see it: without managedFields, of a Secret
// its metadata alone, and of one that is larger than the limit too, with the mark
// `truncated: true`.
func WatchedObject(body map[string]any, limit int) map[string]any {
	if body == nil {
		return nil
	}
	out := document.Clone(body)
	meta, _ := out["metadata"].(map[string]any)
	delete(meta, "managedFields")
	out = WithoutSecrets(out)
	if fits(out, limit) {
		return out
	}
	out = head(out, meta)
	out["truncated"] = true
	if fits(out, limit) {
		return out
	}
	few := map[string]any{}
	for _, key := range []string{"namespace", "name", "uid", "creationTimestamp"} {
		if v, there := meta[key]; there {
			few[key] = v
		}
	}
	out["metadata"] = few
	return out
}

// WithoutSecrets is an object as expressions may see it: of a Secret its metadata
// alone, since what an expression yields ends up in journals and messages. The
// object itself stays as it is.
func WithoutSecrets(body map[string]any) map[string]any {
	if body["apiVersion"] != "v1" || body["kind"] != "Secret" {
		return body
	}
	meta, _ := body["metadata"].(map[string]any)
	out := head(body, meta)
	if annotations, is := meta["annotations"].(map[string]any); is {
		shown := maps.Clone(annotations)
		maps.DeleteFunc(shown, func(key string, _ any) bool { return CopiesObject(key) })
		out["metadata"].(map[string]any)["annotations"] = shown
	}
	return out
}

// CopiesObject says whether tools keep a copy of the whole object under the key of an
// annotation: kubectl apply, kapp, Rancher and operators that are built with objectmatcher.
func CopiesObject(annotation string) bool {
	return strings.HasPrefix(annotation, "kapp.k14s.io/original") || slices.Contains([]string{
		"kubectl.kubernetes.io/last-applied-configuration", "objectset.rio.cattle.io/applied", "banzaicloud.com/last-applied",
	}, annotation)
}

func head(body, meta map[string]any) map[string]any {
	return map[string]any{"apiVersion": body["apiVersion"], "kind": body["kind"], "metadata": maps.Clone(meta)}
}

func fits(v any, limit int) bool {
	b, err := json.Marshal(v)
	return err == nil && len(b) <= limit
}

// ObjectStub is what is left to say of an object that nobody has seen.
func ObjectStub(apiVersion, kind, namespace, name, uid string) map[string]any {
	meta := map[string]any{"name": name, "uid": uid}
	if namespace != "" {
		meta["namespace"] = namespace
	}
	return map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": meta}
}

// Watched is the object that a request is about, as its run is handed it: the
// body that is known now, else the one that the claim kept, else its name.
func (r Request) Watched(body Body) Body {
	if r.Kind != ByWatch {
		return nil
	}
	if body == nil && r.Body != nil {
		var kept Body
		if json.Unmarshal(r.Body, &kept) == nil {
			body = kept
		}
	}
	if body == nil {
		return ObjectStub(r.APIVersion, r.ObjectKind, r.Namespace, r.Name, r.UID)
	}
	return WatchedObject(body, plan.MaxWatchedBody)
}
