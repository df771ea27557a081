package knob

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// Value is what stands in a field; nil is a field that is not there. The two
// cannot be told apart in a merge patch, nor does any controller.
type Value struct {
	V any `json:"value,omitempty"`
}

// Absent says whether the field is not there.
func (v Value) Absent() bool { return v.V == nil }

// Equal compares what two values are in JSON, where 3 and 3.0 are the same.
func (v Value) Equal(o Value) bool {
	a, errA := json.Marshal(v.V)
	b, errB := json.Marshal(o.V)
	return errA == nil && errB == nil && bytes.Equal(a, b)
}

func (v Value) size() int {
	b, err := json.Marshal(v.V)
	if err != nil {
		return 0
	}
	return len(b)
}

// read is the value at a path. What passes through a list or a scalar cannot be
// written by a merge patch.
func read(object map[string]any, path []string) (Value, error) {
	for i, field := range path[:len(path)-1] {
		below, there := object[field]
		if !there || below == nil {
			return Value{}, nil
		}
		next, isMap := below.(map[string]any)
		if !isMap {
			return Value{}, fmt.Errorf("field %s of the object is no section with fields", Knob{Path: path[:i+1]}.Pointer())
		}
		object = next
	}
	return Value{object[path[len(path)-1]]}, nil
}

// ClosedOn says whether the knob of an object is closed, whoever closed it.
func (k Knob) ClosedOn(object map[string]any) bool {
	v, err := read(object, k.Path)
	return err == nil && k.IsClosedValue(v)
}

// WrittenByOthers says whether somebody other than a field manager wrote, or declares,
// what is in the knob's field: managedFields tells that people opened it and
// closed it again, or that Git says closed by now, where the value alone does
// not. Of a field that is not there nothing can be told.
func (k Knob) WrittenByOthers(object map[string]any, manager string) bool {
	entries, err := read(object, []string{"metadata", "managedFields"})
	list, isList := entries.V.([]any)
	if err != nil || !isList {
		return false
	}
	for _, item := range list {
		entry, isMap := item.(map[string]any)
		if !isMap || entry["manager"] == manager {
			continue
		}
		if fields, isMap := entry["fieldsV1"].(map[string]any); isMap && k.owned(fields) {
			return true
		}
	}
	return false
}

func (k Knob) owned(fields map[string]any) bool {
	for _, field := range k.Path {
		below, isMap := fields["f:"+field].(map[string]any)
		if !isMap {
			return false
		}
		fields = below
	}
	return true
}

// Pick is an object with some of its fields alone. What it holds is shared with
// the object.
func Pick(object map[string]any, paths ...[]string) map[string]any {
	out := map[string]any{}
	for _, path := range paths {
		v, err := read(object, path)
		if err != nil { // kept as far as it goes, so that the fault is seen
			path = path[:1]
			v = Value{object[path[0]]}
		}
		if v.Absent() {
			continue
		}
		into := out
		for _, field := range path[:len(path)-1] {
			next, isMap := into[field].(map[string]any)
			if !isMap {
				next = map[string]any{}
				into[field] = next
			}
			into = next
		}
		into[path[len(path)-1]] = v.V
	}
	return out
}

// text is a string at a path, empty where there is none.
func text(object map[string]any, path ...string) string {
	v, err := read(object, path)
	s, isText := v.V.(string)
	if err != nil || !isText {
		return ""
	}
	return s
}

// RemovedPath is the path of what is taken out of an object where a knob is to have no value. Argo
// CD takes an empty syncPolicy out by itself, after a look at the Application as it was, and
// with it what has been put back since: none is left to it. Of the object it needs what
// [Knob.Keep] names.
func (k Knob) RemovedPath(object map[string]any) []string {
	if k.Name != ArgoCD {
		return k.Path
	}
	last := len(k.Path) - 1
	parent := object
	for _, field := range k.Path[:last] {
		parent, _ = parent[field].(map[string]any)
	}
	if _, has := parent[k.Path[last]]; has && len(parent) == 1 {
		return k.Path[:last]
	}
	return k.Path
}

// closing is the merge patch that closes the knob of an object.
func (k Knob) closing(object map[string]any) map[string]any {
	if k.Closed.Absent() {
		return patch(k.RemovedPath(object), k.Closed)
	}
	return patch(k.Path, k.Closed)
}

// patch is the merge patch that writes a value at a path. One of the values between which
// a knob changes is a scalar or not there, so that nothing of the other has to be taken
// out by itself.
func patch(path []string, want Value) map[string]any {
	out := want.V
	for _, field := range slices.Backward(path) {
		out = map[string]any{field: out}
	}
	return out.(map[string]any)
}
