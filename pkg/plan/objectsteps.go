package plan

import (
	"maps"
	"slices"
	"strings"

	"github.com/kubectl-maint/kubectl-maint/pkg/expr"
	"github.com/kubectl-maint/kubectl-maint/pkg/selector"
)

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
	APIVersion       string                `json:"apiVersion,omitempty"`
	Kind             string                `json:"kind,omitempty"`
	Namespace        string                `json:"namespace,omitempty"` // default: the plan's
	MatchLabels      map[string]string     `json:"matchLabels,omitempty"`
	MatchExpressions []SelectorRequirement `json:"matchExpressions,omitempty"`
}

// Labels is the selector without its kind.
func (s ObjectSelector) Labels() LabelSelector {
	return LabelSelector{MatchLabels: s.MatchLabels, MatchExpressions: s.MatchExpressions}
}

func checkApply(p any, at Reporter) {
	props := p.(*ApplyProperties)
	checkApplied(props.Object, at)
	for _, pointer := range props.Remove {
		if !expr.IsTemplate(pointer) && (!strings.HasPrefix(pointer, "/") || pointer == "/" || strings.HasPrefix(pointer, "/metadata/name")) {
			at("remove", "%q points to no field that can go; write a JSON pointer like /spec/replicas", Cut(pointer, 100))
		}
	}
}

func checkApplied(object map[string]any, at Reporter) {
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

func checkDelete(p any, at Reporter) {
	props := p.(*DeleteProperties)
	checkRef("resource", props.Resource, at)
	if !slices.Contains([]string{"", "Background", "Foreground", "Orphan"}, props.PropagationPolicy) {
		at("propagationPolicy", "must be Background, Foreground or Orphan, is %q", props.PropagationPolicy)
	}
}

func checkRestart(p any, at Reporter) {
	props := p.(*RestartProperties)
	checkRef("resource", props.Resource, at)
	kinds := []string{"Deployment", "StatefulSet", "DaemonSet"}
	if k := props.Resource.Kind; k != "" && !expr.IsTemplate(k) && !slices.Contains(kinds, k) {
		at("resource.kind", "must be Deployment, StatefulSet or DaemonSet, is %q", Cut(k, 100))
	}
}

func checkHealth(p any, at Reporter) {
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

// Check reports what of a selector Kubernetes would refuse. A value may be a
// template: what comes of it is checked when the step is carried out.
func (s LabelSelector) Check(path string, at func(path, format string, args ...any)) {
	match := maps.Clone(s.MatchLabels)
	maps.DeleteFunc(match, func(_, value string) bool { return expr.IsTemplate(value) })
	for _, key := range slices.Sorted(maps.Keys(s.MatchLabels)) {
		if _, plain := match[key]; !plain {
			selector.Check(map[string]string{key: ""}, nil, func(below, format string, args ...any) { at(path+"."+below, format, args...) })
		}
	}
	expressions := slices.Clone(s.MatchExpressions)
	for i, e := range expressions {
		if slices.ContainsFunc(e.Values, expr.IsTemplate) {
			expressions[i].Values = []string{""}
		}
	}
	selector.Check(match, asExpressions(expressions), func(below, format string, args ...any) { at(path+"."+below, format, args...) })
}

func asExpressions(requirements []SelectorRequirement) []selector.Expression {
	out := make([]selector.Expression, len(requirements))
	for i, r := range requirements {
		out[i] = selector.Expression(r)
	}
	return out
}

// Read is the selector as Kubernetes reads it.
func (s LabelSelector) Read() (selector.Labels, error) {
	return selector.Of(s.MatchLabels, asExpressions(s.MatchExpressions))
}
