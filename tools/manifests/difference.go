package main

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// patch is one of a kustomization's patches.
type patch struct {
	Target *target `json:"target,omitempty"`
	Patch  string  `json:"patch"`
}

type target struct {
	Group   string `json:"group,omitempty"`
	Version string `json:"version,omitempty"`
	Kind    string `json:"kind"`
	Name    string `json:"name"`
}

func targetOf(u *unstructured.Unstructured) *target {
	k := u.GroupVersionKind()
	return &target{k.Group, k.Version, k.Kind, u.GetName()}
}

type differences struct {
	added   []*unstructured.Unstructured
	patches []patch
}

// difference is what has to be added to, taken from and patched in some objects so that
// they become others.
func difference(before, after []*unstructured.Unstructured) (differences, error) {
	was, is := byTarget(before), byTarget(after)
	var out differences
	for _, u := range after {
		if was[*targetOf(u)] == nil {
			out.added = append(out.added, u)
		}
	}
	for _, u := range before {
		next := is[*targetOf(u)]
		if next == nil {
			out.patches = append(out.patches, deletion(u))
			continue
		}
		ops := operations("", u.Object, next.Object)
		if len(ops) == 0 {
			continue
		}
		text, err := yaml.Marshal(ops)
		if err != nil {
			return out, err
		}
		out.patches = append(out.patches, patch{targetOf(u), string(text)})
	}
	return out, nil
}

func byTarget(all []*unstructured.Unstructured) map[target]*unstructured.Unstructured {
	out := map[target]*unstructured.Unstructured{}
	for _, u := range all {
		out[*targetOf(u)] = u
	}
	return out
}

func deletion(u *unstructured.Unstructured) patch {
	text := fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata:\n  name: %s\n", u.GetAPIVersion(), u.GetKind(), u.GetName())
	if u.GetNamespace() != "" {
		text += "  namespace: " + u.GetNamespace() + "\n"
	}
	return patch{Patch: text + "$patch: delete\n"}
}

// operation is one of a JSON patch (RFC 6902).
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// operations make one object of another. What is appended to a list is appended by the
// patch, so that components which do so can be combined.
func operations(path string, before, after map[string]any) []operation {
	var out []operation
	for _, key := range slices.Sorted(maps.Keys(before)) {
		at := path + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
		next, there := after[key]
		if !there {
			out = append(out, operation{Op: "remove", Path: at})
			continue
		}
		out = append(out, valueOperations(at, before[key], next)...)
	}
	for _, key := range slices.Sorted(maps.Keys(after)) {
		if _, there := before[key]; !there {
			out = append(out, operation{"add", path + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key), after[key]})
		}
	}
	return out
}

func valueOperations(at string, before, after any) []operation {
	if reflect.DeepEqual(before, after) {
		return nil
	}
	if was, ok := before.(map[string]any); ok {
		if is, ok := after.(map[string]any); ok {
			return operations(at, was, is)
		}
	}
	was, list := before.([]any)
	is, alsoList := after.([]any)
	if !list || !alsoList {
		return []operation{{"replace", at, after}}
	}
	return listOperations(at, was, is)
}

func listOperations(at string, was, is []any) []operation {
	var out []operation
	switch {
	case len(is) > len(was) && reflect.DeepEqual(is[:len(was)], was):
		for _, item := range is[len(was):] {
			out = append(out, operation{"add", at + "/-", item})
		}
	case len(is) == len(was):
		for i := range was {
			out = append(out, valueOperations(fmt.Sprintf("%s/%d", at, i), was[i], is[i])...)
		}
	default:
		out = []operation{{"replace", at, is}}
	}
	return out
}

func documents(all []*unstructured.Unstructured) (string, error) {
	var out []string
	for _, u := range all {
		text, err := yaml.Marshal(u.Object)
		if err != nil {
			return "", err
		}
		out = append(out, string(text))
	}
	return strings.Join(out, "---\n"), nil
}
