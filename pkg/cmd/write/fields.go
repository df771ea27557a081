package write

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/source"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/expr"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// UnknownFields are fields in conditions that objects of Kubernetes' own kinds do not have. A
// misspelt field is valid in CEL, but would be missing on every object.
func UnknownFields(d source.Document) []source.Fault {
	if d.Kind != annotations.KindPlan {
		return nil
	}
	spec, _ := plan.Parse([]byte(d.Text), d.Name)
	lines, _ := document.Decode([]byte(d.Text), &plan.Document{})
	var out []source.Fault
	report := func(path, text, root, apiVersion, kind string, roots ...string) {
		for _, what := range misspelt(text, root, apiVersion, kind, roots...) {
			out = append(out, source.Fault{File: d.File, Line: d.LineOf(document.Fault{Line: lines.Line(path)}), Path: path, Message: what})
		}
	}
	for i, w := range spec.Triggers.Watch {
		path := fmt.Sprintf("spec.triggers.watch[%d].when", i)
		report(path, w.When, "object", w.APIVersion, w.Kind, "object", "oldObject")
		report(path, w.When, "oldObject", w.APIVersion, w.Kind, "object", "oldObject")
	}
	visit := func(path string, s plan.Step) {
		text := func(name string) string { t, _ := s.Properties[name].(string); return t }
		switch s.Type {
		case plan.TypeForEachNode:
			report(path+".properties.when", text("when"), "node", "v1", "Node", "node")
		case plan.TypeForEach:
			report(path+".properties.when", text("when"), "each", text("apiVersion"), text("kind"), "each")
			report(path+".properties.until", text("until"), "object", text("apiVersion"), text("kind"), "object")
		}
	}
	source.WalkSteps("spec.steps", spec.Steps, visit)
	source.WalkSteps("spec.finally", spec.Finally, visit)
	source.WalkSteps("spec.onFailure", spec.OnFailure, visit)
	return out
}

// misspelt names, for each path of an expression, the field that does not exist, or is not shown.
func misspelt(text, root, apiVersion, kind string, roots ...string) []string {
	version, err := schema.ParseGroupVersion(apiVersion)
	if text == "" || err != nil {
		return nil
	}
	object, err := scheme.Scheme.New(version.WithKind(kind))
	if err != nil { // not one of Kubernetes' own kinds
		return nil
	}
	var out []string
	for _, path := range expr.Paths(text, root, roots...) {
		at, like, there := lookUp(reflect.TypeOf(object), path)
		what := ""
		switch hidden := apiVersion == "v1" && kind == "Secret" && !slices.Contains([]string{"apiVersion", "kind", "metadata"}, path[0]); {
		case there && hidden:
			what = fmt.Sprintf("%s.%s: conditions see only the metadata of a Secret; name its data in fields", root, path[0])
		case !there:
			what = fmt.Sprintf("%s.%s: a %s has no such field", root, strings.Join(path[:at+1], "."), kind)
			if like != "" {
				what += "; did you mean " + strings.Join(append(append([]string{root}, path[:at]...), like), ".") + "?"
			}
		}
		if what != "" && !slices.Contains(out, what) {
			out = append(out, what)
		}
	}
	return out
}

// lookUp follows a path of JSON names through a type: whether it exists, or at which name it ends
// and which similar name there is. Types with their own JSON are not searched.
func lookUp(t reflect.Type, path []string) (at int, like string, there bool) {
	for i, name := range path {
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		_, own := reflect.PointerTo(t).MethodByName("MarshalJSON")
		switch {
		case own || t.Kind() == reflect.Interface:
			return 0, "", true
		case t.Kind() == reflect.Map:
			t = t.Elem()
			continue
		case t.Kind() != reflect.Struct:
			return 0, "", true // an error of another kind, which its evaluation reports
		}
		fields := jsonFields(t)
		next, known := fields[name]
		if !known {
			for other := range fields {
				if strings.EqualFold(other, name) || near(other, name) {
					like = other
				}
			}
			return i, like, false
		}
		t = next
	}
	return 0, "", true
}

// jsonFields are the fields of a struct by their JSON names.
func jsonFields(t reflect.Type) map[string]reflect.Type {
	out := map[string]reflect.Type{}
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "" && (strings.Contains(options, "inline") || f.Anonymous):
			for n, inner := range jsonFields(f.Type) {
				out[n] = inner
			}
		case name != "" && name != "-":
			out[name] = f.Type
		}
	}
	return out
}

// near says whether two names differ by one letter.
func near(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(b)-len(a) > 1 {
		return false
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	if i == len(a) {
		return true
	}
	return a[i+1-(len(b)-len(a)):] == b[i+1:]
}
