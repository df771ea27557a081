package plan

import (
	"maps"
	"slices"
	"strings"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/expr"
	"github.com/kubectl-maint/kubectl-maint/pkg/selector"
)

// Types whose steps leave an object as others are to leave it while the run lives, also
// without restoreAfter.
const (
	TypeScale = "scale"
	TypeApply = "apply-object"
)

// TypeHoldOwners is the type, and in runs of plans with holdOwners the name, of the step that
// suspends who manages an object from Git.
const TypeHoldOwners = "hold-owners"

// ApplyProperties apply an object server-side, as the plan's one field manager.
type ApplyProperties struct {
	Object map[string]any `json:"object"`
	Remove []string       `json:"remove,omitempty"` // JSON pointers to fields that shall not be there
	Force  bool           `json:"force,omitempty"`  // take fields from their owners
}

// DeleteProperties delete one object. One that is gone already is deleted.
type DeleteProperties struct {
	Resource          ResourceRef          `json:"resource"`
	PropagationPolicy string               `json:"propagationPolicy,omitempty"` // Background (default), Foreground, Orphan
	Preconditions     *DeletePreconditions `json:"preconditions,omitempty"`
}

// DeletePreconditions say which object is meant: another one stays.
type DeletePreconditions struct {
	UID             string `json:"uid,omitempty"`
	ResourceVersion string `json:"resourceVersion,omitempty"`
}

// RestartProperties restart a Deployment, StatefulSet or DaemonSet by a rolling
// update, and wait until it is through.
type RestartProperties struct {
	Resource ResourceRef `json:"resource"`
}

// HealthProperties hold a run until objects are healthy: one, those that a
// selector picks, or all workloads of the namespace. A selector without kind
// picks among the workloads: Deployments, StatefulSets, DaemonSets and Jobs.
type HealthProperties struct {
	Resource *ResourceRef    `json:"resource,omitempty"`
	Selector *ObjectSelector `json:"selector,omitempty"`
	All      bool            `json:"all,omitempty"`
}

// ObjectSelector picks objects by kind and labels.
type ObjectSelector struct {
	APIVersion       string                         `json:"apiVersion,omitempty"`
	Kind             string                         `json:"kind,omitempty"`
	Namespace        string                         `json:"namespace,omitempty"` // default: the plan's
	MatchLabels      map[string]string              `json:"matchLabels,omitempty"`
	MatchExpressions []selector.SelectorRequirement `json:"matchExpressions,omitempty"`
}

// Labels is the selector without its kind.
func (s ObjectSelector) Labels() selector.LabelSelector {
	return selector.LabelSelector{MatchLabels: s.MatchLabels, MatchExpressions: s.MatchExpressions}
}

func checkApply(p any, at document.Reporter) {
	props := p.(*ApplyProperties)
	checkApplied(props.Object, at)
	for _, pointer := range props.Remove {
		if !expr.IsTemplate(pointer) && (!strings.HasPrefix(pointer, "/") || pointer == "/" || strings.HasPrefix(pointer, "/metadata/name")) {
			at("remove", "%q points to no field that can go; write a JSON pointer like /spec/replicas", document.Cut(pointer, 100))
		}
	}
}

func checkApplied(object map[string]any, at document.Reporter) {
	if object == nil {
		return
	}
	for _, field := range []string{"apiVersion", "kind"} {
		if text, ok := object[field].(string); !ok || text == "" {
			at("object."+field, "is missing")
		}
	}
	meta, _ := object["metadata"].(map[string]any)
	if name, ok := meta["name"].(string); !ok || name == "" {
		at("object.metadata.name", "is missing")
	}
	for _, field := range []string{"managedFields", "resourceVersion", "uid", "generation", "creationTimestamp"} {
		if meta[field] != nil {
			at("object.metadata."+field, "is the API server's and cannot be applied")
		}
	}
	if where := nullIn("object", object); where != "" {
		at(where, "is null, which removes nothing under server-side apply: name the field in remove")
	}
}

// nullIn is the path of a null, if there is one.
func nullIn(path string, v any) string {
	switch v := v.(type) {
	case nil:
		return path
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if where := nullIn(path+"."+key, v[key]); where != "" {
				return where
			}
		}
	case []any:
		for _, item := range v {
			if nullIn(path, item) != "" {
				return path
			}
		}
	}
	return ""
}

func checkDelete(p any, at document.Reporter) {
	props := p.(*DeleteProperties)
	checkRef("resource", props.Resource, at)
	if !slices.Contains([]string{"", "Background", "Foreground", "Orphan"}, props.PropagationPolicy) {
		at("propagationPolicy", "must be Background, Foreground or Orphan, is %q", props.PropagationPolicy)
	}
}

func checkRestart(p any, at document.Reporter) {
	props := p.(*RestartProperties)
	checkRef("resource", props.Resource, at)
	kinds := []string{"Deployment", "StatefulSet", "DaemonSet"}
	if k := props.Resource.Kind; k != "" && !expr.IsTemplate(k) && !slices.Contains(kinds, k) {
		at("resource.kind", "must be Deployment, StatefulSet or DaemonSet, is %q", document.Cut(k, 100))
	}
}

func checkHealth(p any, at document.Reporter) {
	props := p.(*HealthProperties)
	given := 0
	for _, is := range []bool{props.Resource != nil, props.Selector != nil, props.All} {
		if is {
			given++
		}
	}
	if given != 1 {
		at("", "needs exactly one of resource, selector and all")
	}
	if props.Resource != nil {
		checkRef("resource", *props.Resource, at)
	}
	if s := props.Selector; s != nil {
		if (s.APIVersion == "") != (s.Kind == "") {
			at("selector", "needs apiVersion and kind together, or neither")
		}
		s.Labels().Check("selector", at)
	}
}
