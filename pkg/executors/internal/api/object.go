package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// Object is one object in the API, read and written as the plan's account.
type Object struct {
	Kind      schema.GroupVersionKind
	Resource  schema.GroupVersionResource
	Namespace string // empty for cluster-scoped kinds
	Name      string

	client  dynamic.ResourceInterface
	manager string
}

// Resolve finds the resource of a reference. An empty namespace is the plan's; a cluster-scoped
// kind has none.
func Resolve(call executors.Call, ref plan.ResourceRef) (Object, error) {
	if !document.GroupVersion(ref.APIVersion) {
		return Object{}, Refuse(executors.ReasonInvalid, "%s: %q is no apiVersion", ref, document.Cut(ref.APIVersion, 100))
	}
	mapping, err := executors.Mapping(call.Clients.Mapper, ref.APIVersion, ref.Kind)
	return resolved(call, ref, mapping, err)
}

// ResolveRecorded finds the resource of a reference whose object is put back as it was: also where an
// earlier version took another spelling of its kind.
func ResolveRecorded(call executors.Call, ref plan.ResourceRef) (Object, error) {
	mapping, err := executors.RecordedMapping(call.Clients.Mapper, ref.APIVersion, ref.Kind)
	return resolved(call, ref, mapping, err)
}

func resolved(call executors.Call, ref plan.ResourceRef, mapping *meta.RESTMapping, err error) (Object, error) {
	if meta.IsNoMatchError(err) {
		return Object{}, Refuse(executors.ReasonUnknownKind, "%s: the cluster serves no kind %s in %s; is its CRD installed?", strings.TrimSuffix(ref.String(), "/"), ref.Kind, ref.APIVersion)
	}
	if err != nil {
		return Object{}, fmt.Errorf("look up the kind of %s: %w", ref, err)
	}
	if fault := document.NotNaming(ref.Name, "a "+ref.Kind); ref.Name != "" && fault != "" { // as an expression gave it
		return Object{}, Refuse(executors.ReasonInvalid, "%s", fault)
	}
	o := Object{Kind: mapping.GroupVersionKind, Resource: mapping.Resource, Name: ref.Name, manager: call.Plan.Manager}
	resource := call.Clients.Dynamic.Resource(mapping.Resource)
	o.client = resource
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		o.Namespace = ref.Namespace
		if o.Namespace == "" {
			o.Namespace = call.Plan.Namespace
		}
		o.client = resource.Namespace(o.Namespace)
	}
	return o, nil
}

// String names the object for people: Deployment/orders.
func (o Object) String() string { return o.Kind.Kind + "/" + o.Name }

// Action is a request for this object, as RBAC sees it.
func (o Object) Action(verb, subresource string) Action {
	return Action{Verb: verb, Resource: o.Resource, Subresource: subresource, Namespace: o.Namespace, Name: o.Name}
}

// Get reads the object, or one of its subresources, from the API server.
func (o Object) Get(ctx context.Context, subresource string) (*unstructured.Unstructured, error) {
	live, err := o.client.Get(ctx, o.Name, metav1.GetOptions{}, path(subresource)...)
	return live, Failed(o.Action("get", subresource), err)
}

// Patch is one write. It carries the uid and the resourceVersion that were read, so that a write of
// somebody else in between is a conflict and not lost.
type Patch struct {
	Type        types.PatchType
	Body        any // a map, or for JSON patch a list of operations
	Subresource string
	DryRun      bool
}

// Patch sends a patch and returns the new object, with DryRun the one that it would be.
func (o Object) Patch(ctx context.Context, read *unstructured.Unstructured, p Patch) (*unstructured.Unstructured, error) {
	body, err := guarded(p.Body, read)
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(body)
	if err != nil {
		return nil, Refuse(executors.ReasonInvalid, "patch of %s: %s", o, err)
	}
	options := metav1.PatchOptions{FieldManager: o.manager}
	if p.DryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	after, err := o.client.Patch(ctx, o.Name, p.Type, data, options, path(p.Subresource)...)
	return after, Failed(o.Action("patch", p.Subresource), err)
}

func path(subresource string) []string {
	if subresource == "" {
		return nil
	}
	return []string{subresource}
}

// guarded is a patch that the API server accepts only for the object that was read. A JSON patch
// replaces uid and resourceVersion instead of testing them: a failed test looks like any invalid
// patch, a wrong resourceVersion is a conflict.
func guarded(body any, read *unstructured.Unstructured) (any, error) {
	switch body := body.(type) {
	case []any:
		return append([]any{
			map[string]any{"op": "replace", "path": "/metadata/uid", "value": string(read.GetUID())},
			map[string]any{"op": "replace", "path": "/metadata/resourceVersion", "value": read.GetResourceVersion()},
		}, body...), nil
	case map[string]any:
		meta := map[string]any{}
		if given, ok := body["metadata"]; ok {
			given, ok := given.(map[string]any)
			if !ok {
				return nil, Refuse(executors.ReasonInvalid, "patch: metadata must be an object")
			}
			for key, value := range given {
				meta[key] = value
			}
		}
		meta["uid"], meta["resourceVersion"] = string(read.GetUID()), read.GetResourceVersion()
		out := map[string]any{"metadata": meta}
		for key, value := range body {
			if key != "metadata" {
				out[key] = value
			}
		}
		return out, nil
	}
	return nil, Refuse(executors.ReasonInvalid, "patch: must be an object or a list of operations, is %T", body)
}

// IsMissing says that the object does not exist. The 404 of an unknown path names no object.
func IsMissing(err error) bool { return apierrors.IsNotFound(err) && !IsUnserved(err) }

// IsUnserved says that the API server does not know the path: no such kind, or no such subresource.
func IsUnserved(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details == nil || details.Name == ""
}
