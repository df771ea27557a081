package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// replacement is a target of a kustomization's replacements.
type replacement struct {
	Select     target            `json:"select"`
	FieldPaths []string          `json:"fieldPaths"`
	Options    replacementOption `json:"options"`
}

type replacementOption struct {
	Delimiter string `json:"delimiter"`
	Index     int    `json:"index"`
}

// mentions are the places where a namespace stands inside a text. Where it is a field of
// its own, kustomize's namespace changes it.
func mentions(objects []*unstructured.Unstructured, namespace string) ([]replacement, error) {
	var out []replacement
	for _, u := range objects {
		var failed error
		texts(u.Object, "", func(path, text string) {
			if text == namespace || !strings.Contains(text, namespace) {
				return
			}
			found := between(text, namespace)
			if len(found) != strings.Count(text, namespace) {
				failed = fmt.Errorf("%s %s: %s: %q stands where no delimiter parts it", u.GetKind(), u.GetName(), path, namespace)
			}
			for _, option := range found {
				out = append(out, replacement{*targetOf(u), []string{path}, option})
			}
		})
		if failed != nil {
			return nil, failed
		}
	}
	return out, nil
}

// between are the ways to take a text apart so that a part is the word.
func between(text, word string) []replacementOption {
	var out []replacementOption
	for _, delimiter := range []string{":", "'", "="} {
		for i, part := range strings.Split(text, delimiter) {
			if part == word {
				out = append(out, replacementOption{delimiter, i})
			}
		}
	}
	return out
}

// texts visits the texts in an object, by kustomize's paths.
func texts(value any, path string, visit func(path, text string)) {
	switch v := value.(type) {
	case string:
		visit(path, v)
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			texts(v[key], strings.TrimPrefix(path+"."+strings.ReplaceAll(key, ".", `\.`), "."), visit)
		}
	case []any:
		for i, item := range v {
			texts(item, fmt.Sprintf("%s.%d", path, i), visit)
		}
	}
}
