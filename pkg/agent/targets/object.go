// Package targets looks at the objects that plans are about, as the plans' accounts.
package targets

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/trigger"
)

// Object is what is kept of a target: enough to see requests and
// readiness, and nothing of what it holds.
type Object struct {
	metav1.ObjectMeta
	NotReady string // why it is not ready; empty: it is
	Where    client.ClusterIdentity
}

// ObjectID tells the object apart from all others of all clusters.
func (t *Object) ObjectID() types.UID { return t.Where.UID(t.UID) }

// UIDOf is the uid that an API server knows, of what Facts say of an object.
func UIDOf(mark string) string {
	uid, _, _ := strings.Cut(mark, "@")
	return uid
}

// Facts are a target as the decisions look at it.
func (t *Object) Facts(keys []string) *trigger.Target {
	out := &trigger.Target{UID: string(t.ObjectID()), Labels: map[string]trigger.TargetLabel{}, Handled: map[string]int64{}}
	for _, k := range keys {
		if value, present := t.Labels[k]; present {
			out.Labels[k] = trigger.TargetLabel{Value: value, Owner: annotations.DeclaredBy(&t.ObjectMeta, k)}
		}
		// Whoever may annotate the target may write any number there.
		if n, err := strconv.ParseInt(t.Annotations[annotations.Handled(k)], 10, 64); err == nil && n > 0 && n < trigger.MaxOrdinal {
			out.Handled[k] = n
		}
	}
	return out
}

// Slim keeps of an object of a cluster what decisions over its plans look at.
func Slim(u *unstructured.Unstructured, where client.ClusterIdentity) *Object {
	t := &Object{NotReady: notReady(u), Where: where}
	t.Name, t.Namespace, t.UID, t.ResourceVersion = u.GetName(), u.GetNamespace(), u.GetUID(), u.GetResourceVersion()
	t.Labels, t.ManagedFields, t.DeletionTimestamp = u.GetLabels(), managersOf(u), u.GetDeletionTimestamp()
	t.Annotations = map[string]string{}
	for k, v := range u.GetAnnotations() {
		switch {
		case strings.HasPrefix(k, annotations.StatusPrefix) || strings.HasSuffix(k, annotations.MirrorSkip):
			t.Annotations[k] = v
		case annotations.MaybeMirror(k):
			t.Annotations[k] = "" // its being there is enough, and others may have such keys
		}
	}
	t.bound()
	return t
}

// maxKept is how many bytes are kept of an object's metadata (a guess: it is some hundred). A watch
// shows all objects of a kind, and tenants may fill each.
const maxKept = 64 << 10

// bound takes out what is too large. Such a target is not ready: what its labels and annotations
// say is not known.
func (t *Object) bound() {
	weight := 0
	for _, m := range []map[string]string{t.Labels, t.Annotations} {
		for k, v := range m {
			weight += len(k) + len(v)
		}
	}
	for _, m := range t.ManagedFields {
		weight += len(m.Manager) + len(m.FieldsV1.GetRawBytes())
	}
	if weight > maxKept {
		t.Labels, t.Annotations, t.ManagedFields = nil, map[string]string{}, nil
		t.NotReady = fmt.Sprintf("its labels, annotations and managedFields take more than %d KiB, and are not read", maxKept>>10)
	}
}

// managersOf are the managers of an object's labels and annotations: that of its other fields is
// most of it, and nobody looks at it.
func managersOf(u *unstructured.Unstructured) (out []metav1.ManagedFieldsEntry) {
	for _, m := range u.GetManagedFields() {
		var fields struct {
			Metadata map[string]json.RawMessage `json:"f:metadata"`
		}
		if m.FieldsV1 == nil || json.Unmarshal(m.FieldsV1.GetRawBytes(), &fields) != nil || fields.Metadata == nil {
			continue
		}
		maps.DeleteFunc(fields.Metadata, func(section string, _ json.RawMessage) bool {
			return section != "f:labels" && section != "f:annotations"
		})
		if kept, err := json.Marshal(fields); err == nil && len(fields.Metadata) > 0 {
			m.FieldsV1 = metav1.NewFieldsV1(string(kept))
			out = append(out, m)
		}
	}
	return out
}

// notReady says why an object is not ready yet: by its replicas where it has
// such, by its Ready condition where it has one, else it is ready by being there.
func notReady(u *unstructured.Unstructured) string {
	if observed, found, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration"); found && observed < u.GetGeneration() {
		return "its controller has not seen its newest generation"
	}
	if want, found, _ := unstructured.NestedInt64(u.Object, "spec", "replicas"); found {
		have, _, _ := unstructured.NestedInt64(u.Object, "status", "readyReplicas")
		if have < want {
			return fmt.Sprintf("%d of %d replicas are ready", have, want)
		}
		return ""
	}
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range conditions {
		if m, ok := c.(map[string]any); ok && m["type"] == "Ready" && m["status"] != "True" {
			return "its condition Ready is " + fmt.Sprint(m["status"])
		}
	}
	return ""
}

// GoneError says that a target is not there.
type GoneError struct{ Ref plan.ObjectRef }

func (e GoneError) Error() string { return e.Ref.String() + " does not exist" }

// UnreadableError says that a target is of a kind whose objects nobody can read.
type UnreadableError struct{ Ref plan.ObjectRef }

func (e UnreadableError) Error() string {
	return fmt.Sprintf("the API server lets nobody read a %s of %s, so %s can be no target", e.Ref.Kind, e.Ref.APIVersion, e.Ref)
}

// Read reads a target live.
func Read(ctx context.Context, from client.ClusterAccess, ref plan.ObjectRef) (*unstructured.Unstructured, error) {
	objects, err := from.Resource(ref)
	if err != nil {
		return nil, err
	}
	u, err := objects.Get(ctx, ref.Name, metav1.GetOptions{})
	kind := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	if apierrors.IsNotFound(err) {
		gone, asked := from.ObjectGone(err, kind)
		if gone {
			return nil, GoneError{ref}
		}
		err = errors.Join(err, asked)
	}
	if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
		if lacks, asked := from.Lacks(kind, "get"); lacks && asked == nil {
			return nil, UnreadableError{ref}
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read the target %s as %s: %w", ref, from.Actor(), from.Explain(err))
	}
	return u, nil
}
