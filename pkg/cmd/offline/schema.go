package offline

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kubectl-maint/kubectl-maint/docs"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
)

// node is a part of a JSON Schema.
type node map[string]any

// kindSchema is the schema of one kind of document.
type kindSchema struct {
	kind, key string // Plan, plan.yaml
	enveloped bool   // it begins with apiVersion and kind
	root      node
}

// kinds are those that have a schema, as people write them.
func kinds() []string {
	return []string{"plan", "hibernateplan", "policy", "calendar", "steptemplate", "agentconfig", "cloudprovider", "k8scluster", "prices"}
}

// schemaOf reads the schema of a kind, as plan, Plan, plans or hibernate-plan.
func schemaOf(kind string) (kindSchema, error) {
	name := strings.ReplaceAll(strings.ToLower(kind), "-", "")
	i := slices.IndexFunc(kinds(), func(k string) bool {
		return name == k || name == k+"s" || k == "policy" && name == "policies" || k == "steptemplate" && strings.TrimSuffix(name, "s") == "template"
	})
	if i < 0 {
		return kindSchema{}, exit.Errorf(exit.CodeUsage, "%q is no kind of document: it must be one of %s%s", document.Cut(kind, 60), strings.Join(kinds(), ", "), document.DidYouMean(name, kinds()))
	}
	text, err := docs.Schemas.ReadFile("schemas/" + strings.TrimPrefix(kinds()[i], "step") + ".schema.json")
	if err != nil {
		return kindSchema{}, err
	}
	s := kindSchema{}
	if err := json.Unmarshal(text, &s.root); err != nil {
		return kindSchema{}, err
	}
	title, _ := s.root["title"].(string)
	_, s.key, _ = strings.Cut(strings.TrimSuffix(title, ")"), "(")
	if s.kind, s.enveloped = s.resolved(s.root).children("properties")["kind"]["const"].(string); !s.enveloped {
		s.kind, _, _ = strings.Cut(title, " ")
	}
	return s, nil
}

// children are the schemas below a keyword, by name.
func (n node) children(keyword string) map[string]node {
	out := map[string]node{}
	all, _ := n[keyword].(map[string]any)
	for name, part := range all {
		if p, ok := part.(map[string]any); ok {
			out[name] = p
		}
	}
	return out
}

func (n node) list(keyword string) []node {
	all, _ := n[keyword].([]any)
	var out []node
	for _, part := range all {
		if p, ok := part.(map[string]any); ok {
			out = append(out, p)
		}
	}
	return out
}

func (n node) child(keyword string) node {
	p, _ := n[keyword].(map[string]any)
	return p
}

// words are the values of a list of plain values.
func (n node) words(keyword string) []string {
	all, _ := n[keyword].([]any)
	var out []string
	for _, v := range all {
		out = append(out, fmt.Sprint(v))
	}
	return out
}

// resolved follows references; what is written beside one stays.
func (s kindSchema) resolved(n node) node {
	for {
		ref, _ := n["$ref"].(string)
		if ref == "" {
			return n
		}
		to := maps.Clone(s.root.child("$defs").child(strings.TrimPrefix(ref, "#/$defs/")))
		if to == nil {
			return n
		}
		if words, ok := n["description"]; ok {
			to["description"] = words
		}
		n = to
	}
}

// object is the schema that has the fields of a value: that of a list's items, or of a map's
// values.
func (s kindSchema) object(n node) node {
	n = s.resolved(n)
	if one := s.onlyObject(n); one != nil {
		n = one
	}
	switch {
	case len(n.child("items")) > 0:
		return s.object(n.child("items"))
	case len(n.children("properties")) == 0 && len(n.child("additionalProperties")) > 0:
		return s.object(n.child("additionalProperties"))
	}
	return n
}

// onlyObject is the alternative of a schema that has fields; nil where none, or several, have.
func (s kindSchema) onlyObject(n node) node {
	var found []node
	for _, form := range slices.Concat(n.list("anyOf"), n.list("oneOf")) {
		if form = s.resolved(form); len(form.children("properties")) > 0 && form["type"] != nil {
			found = append(found, form)
		}
	}
	if len(found) != 1 {
		return nil
	}
	return found[0]
}

// find follows a path of fields. Below a step or a target, its type decides the schema of its
// properties or parameters.
func (s kindSchema) find(path []string) (node, error) {
	at := s.resolved(s.root)
	for i, name := range path {
		object := s.object(at)
		if next, ok := object.children("properties")[name]; ok {
			at = next
			continue
		}
		if next, ok := s.byType(object)[name]; ok {
			at = next
			continue
		}
		where := strings.Join(append([]string{strings.ToLower(s.kind)}, path[:i]...), ".")
		has := append(slices.Sorted(maps.Keys(object.children("properties"))), slices.Sorted(maps.Keys(s.byType(object)))...)
		if len(has) == 0 {
			return nil, fmt.Errorf("%s is a %s, and has no fields", where, s.typeOf(at))
		}
		return nil, fmt.Errorf("%s has no field %q: it has %s%s", where, document.Cut(name, 60), strings.Join(has, ", "), document.DidYouMean(name, has))
	}
	return at, nil
}

// byType are the properties of a step, or the parameters of a target, by its type.
func (s kindSchema) byType(object node) map[string]node {
	out := map[string]node{}
	for _, rule := range object.list("allOf") {
		kind, _ := rule.child("if").child("properties").child("type")["const"].(string)
		for _, field := range []string{"properties", "parameters"} {
			if then, ok := rule.child("then").children("properties")[field]; ok && kind != "" {
				out[kind] = then
			}
		}
	}
	return out
}

// expressionPattern is that of texts with an expression, which may stand for a value of any type.
const expressionPattern = `\$\{`

// typeOf is a field's type in words: string, []Step, map[string]string.
func (s kindSchema) typeOf(n node) string {
	if ref, _ := n["$ref"].(string); ref != "" {
		if name := strings.TrimPrefix(ref, "#/$defs/"); len(s.resolved(n).children("properties")) > 0 {
			return name
		}
	}
	n = s.resolved(n)
	forms := slices.Concat(n.list("anyOf"), n.list("oneOf"))
	kind, _ := n["type"].(string)
	switch {
	case kind == "string" && n["pattern"] == expressionPattern:
		return "${…}"
	case kind == "array":
		return "[]" + s.typeOf(n.child("items"))
	case kind == "object" && len(n.child("additionalProperties")) > 0:
		return "map[string]" + s.typeOf(n.child("additionalProperties"))
	case kind != "":
		return kind
	case len(n.words("type")) > 0:
		return strings.Join(n.words("type"), "|")
	case n["const"] != nil:
		return "string"
	}
	var names []string
	for _, form := range forms {
		if name := s.typeOf(form); name != "any" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return "any"
	}
	return strings.Join(names, "|")
}

// about describes a field: its description, its values and its default.
func (s kindSchema) about(n node) []string {
	n = s.resolved(n)
	var out []string
	if words, _ := n["description"].(string); words != "" {
		out = append(out, words)
	}
	for _, form := range append([]node{n}, slices.Concat(n.list("anyOf"), n.list("oneOf"))...) {
		if list := form.words("enum"); len(list) > 0 {
			out = append(out, "one of "+strings.Join(list, ", "))
		}
	}
	if v, ok := n["default"]; ok {
		out = append(out, fmt.Sprintf("default %v", v))
	}
	if list := n.words("examples"); len(list) > 0 {
		out = append(out, "as "+strings.Join(list, "; "))
	}
	return out
}
