package object

import (
	"slices"
	"strings"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/api"
)

// pointer is a JSON pointer (RFC 6901) to a field that should not be there.
type pointer struct {
	text string
	keys []string
}

// pointers reads the fields to remove from an object that is applied. A field that is both applied
// and removed would be set and removed in turns.
func pointers(texts []string, applied map[string]any) ([]pointer, error) {
	out := make([]pointer, 0, len(texts))
	for _, text := range texts {
		rest, ok := strings.CutPrefix(text, "/")
		if !ok || rest == "" {
			return nil, api.Refuse(executors.ReasonInvalid, "remove: %q is no JSON pointer to a field; write one like /spec/replicas", text)
		}
		p := pointer{text: text, keys: strings.Split(rest, "/")}
		for i, key := range p.keys {
			p.keys[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(key)
		}
		if kept(p.keys) {
			return nil, api.Refuse(executors.ReasonInvalid, "remove: %s cannot go from an object; use delete-object to delete the whole of it", text)
		}
		if _, found := p.in(applied); found {
			return nil, api.Refuse(executors.ReasonInvalid, "remove: %s is in object, too: leave one of them out", text)
		}
		out = append(out, p)
	}
	return out, nil
}

// kept says that a field is part of the identity of an object.
func kept(keys []string) bool {
	identity := [][]string{{"apiVersion"}, {"kind"}, {"metadata"}, {"metadata", "name"}, {"metadata", "namespace"}, {"metadata", "uid"}, {"metadata", "resourceVersion"}}
	return slices.ContainsFunc(identity, func(field []string) bool { return slices.Equal(field, keys) })
}

// in finds the map that holds the field.
func (p pointer) in(node any) (map[string]any, bool) {
	holder, _ := p.holder(node).(map[string]any)
	_, found := holder[p.keys[len(p.keys)-1]]
	return holder, found
}

// holder is what the field, or the item, stands in; nil where that is not there.
func (p pointer) holder(node any) any {
	for _, key := range p.keys[:len(p.keys)-1] {
		switch holder := node.(type) {
		case map[string]any:
			node = holder[key]
		case []any:
			node = itemAt(holder, key)
		default:
			return nil
		}
	}
	return node
}

// fieldsAlone refuses pointers to items of lists: once one is removed, its index means another item,
// so that a repetition, after a crash say, would remove that, too.
func fieldsAlone(object map[string]any, remove []pointer) error {
	for _, p := range remove {
		if _, list := p.holder(object).([]any); list {
			return api.Refuse(executors.ReasonInvalid, "remove: %s is an item of a list, and the next one takes its place: apply the list without it, or use patch-object with patchType: json and a test of the item", p.text)
		}
	}
	return nil
}

func itemAt(list []any, index string) any {
	n := 0
	for _, digit := range index {
		if digit < '0' || digit > '9' || n > len(list) {
			return nil
		}
		n = 10*n + int(digit-'0')
	}
	if index == "" || n >= len(list) {
		return nil
	}
	return list[n]
}

// removals are the JSON patch operations for those fields that exist, and the object without them.
func removals(object map[string]any, remove []pointer) ([]any, map[string]any) {
	var ops []any
	left := decode(raw(object, true)).(map[string]any)
	for _, p := range remove {
		if holder, found := p.in(left); found {
			delete(holder, p.keys[len(p.keys)-1])
			ops = append(ops, map[string]any{"op": "remove", "path": p.text})
		}
	}
	return ops, left
}
