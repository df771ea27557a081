package object

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/kubectl-maint/kubectl-maint/pkg/expr"
)

// segment is one part of the path to a field: a key of a map, or the item of a list with that name.
// Containers, variables and volumes are found by name, so that a sidecar which somebody adds
// meanwhile does not move our fields.
type segment struct {
	Key  string `json:"key,omitempty"`
	Item string `json:"item,omitempty"`
}

type fieldPath []segment

func (p fieldPath) String() string {
	var b strings.Builder
	for _, s := range p {
		switch {
		case s.Item != "":
			fmt.Fprintf(&b, "[name=%s]", s.Item)
		case strings.ContainsAny(s.Key, "./"):
			fmt.Fprintf(&b, "[%s]", s.Key)
		case b.Len() > 0:
			b.WriteString("." + s.Key)
		default:
			b.WriteString(s.Key)
		}
	}
	return b.String()
}

func (p fieldPath) child(s segment) fieldPath { return append(slices.Clone(p), s) }

// change is one field that a patch changes: its values before and after. A nil value is absent;
// null is a value. Made marks a map that did not exist and may be removed when it is empty again.
type change struct {
	Path   fieldPath       `json:"path"`
	Before json.RawMessage `json:"before,omitempty"`
	After  json.RawMessage `json:"after,omitempty"`
	Made   bool            `json:"made,omitempty"`
	At     int             `json:"at,omitempty"` // index of a removed item in its list
	// Beneath are the other active steps that had set the field before this one.
	Beneath []beneath `json:"beneath,omitempty"`
	// ours are values besides After, set by steps that are over by now.
	ours []json.RawMessage
}

// isOurs says whether a value was set by the step, or by one of those beneath it that are over.
func (c change) isOurs(v any, found bool) bool {
	return same(v, found, c.After) || slices.ContainsFunc(c.ours, func(after json.RawMessage) bool { return same(v, found, after) })
}

// changesBetween are the fields in which two states of an object differ, without those that the API
// server manages itself.
func changesBetween(before, after map[string]any) []change {
	var d differ
	d.maps(nil, withoutBookkeeping(before), withoutBookkeeping(after))
	return d.changes
}

func withoutBookkeeping(o map[string]any) map[string]any {
	out := make(map[string]any, len(o))
	for key, value := range o {
		out[key] = value
	}
	if m, ok := o["metadata"].(map[string]any); ok {
		kept := make(map[string]any, len(m))
		for key, value := range m {
			kept[key] = value
		}
		for _, key := range []string{"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp"} {
			delete(kept, key)
		}
		out["metadata"] = kept
	}
	return out
}

type differ struct{ changes []change }

func (d *differ) maps(at fieldPath, before, after map[string]any) {
	keys := map[string]bool{}
	for key := range before {
		keys[key] = true
	}
	for key := range after {
		keys[key] = true
	}
	for _, key := range sortedKeys(keys) {
		b, had := before[key]
		a, has := after[key]
		d.value(at.child(segment{Key: key}), b, had, a, has)
	}
}

func (d *differ) value(at fieldPath, before any, had bool, after any, has bool) {
	bm, beforeIsMap := before.(map[string]any)
	am, afterIsMap := after.(map[string]any)
	switch {
	case had && has && equal(before, after):
	case beforeIsMap && afterIsMap:
		d.maps(at, bm, am)
	case !had && afterIsMap:
		d.changes = append(d.changes, change{Path: at, Made: true})
		d.maps(at, nil, am)
	case beforeIsMap && len(bm) > 0 && !has:
		// Each field is a change of its own: what somebody adds beside them later stays.
		d.maps(at, bm, nil)
	case had && has && d.lists(at, before, after):
	default:
		d.changes = append(d.changes, change{Path: at, Before: raw(before, had), After: raw(after, has)})
	}
}

// lists compares two lists item by item if all items have unique names and the common ones keep
// their order. Other lists are compared as a whole.
func (d *differ) lists(at fieldPath, before, after any) bool {
	b, beforeNames := named(before)
	a, afterNames := named(after)
	if b == nil || a == nil || !slices.Equal(common(beforeNames, a), common(afterNames, b)) {
		return false
	}
	for i, name := range beforeNames {
		item, has := a[name]
		if has {
			d.value(at.child(segment{Item: name}), b[name], true, item, true)
			continue
		}
		d.changes = append(d.changes, change{Path: at.child(segment{Item: name}), Before: raw(b[name], true), At: i})
	}
	for _, name := range afterNames {
		if _, had := b[name]; !had {
			d.changes = append(d.changes, change{Path: at.child(segment{Item: name}), After: raw(a[name], true)})
		}
	}
	return true
}

// named are a list's items by name, and the names in order; nil for a list in which items have no
// names or share one.
func named(v any) (map[string]any, []string) {
	list, ok := v.([]any)
	if !ok {
		return nil, nil
	}
	items := make(map[string]any, len(list))
	names := make([]string, 0, len(list))
	for _, item := range list {
		m, _ := item.(map[string]any)
		name, _ := m["name"].(string)
		if _, twice := items[name]; name == "" || twice {
			return nil, nil
		}
		items[name] = item
		names = append(names, name)
	}
	return items, names
}

func common(names []string, in map[string]any) []string {
	var out []string
	for _, name := range names {
		if _, ok := in[name]; ok {
			out = append(out, name)
		}
	}
	return out
}

// standing compares a live object with recorded changes.
type standing struct {
	applied   bool // every field has the value that we wrote
	untouched bool // every field has the value from before
}

func standingOf(live map[string]any, changes []change) standing {
	s := standing{applied: true, untouched: true}
	for _, c := range changes {
		v, found, _ := lookup(live, c.Path)
		if c.Made {
			_, isMap := v.(map[string]any)
			s.applied, s.untouched = s.applied && isMap, s.untouched && !found
			continue
		}
		s.applied = s.applied && same(v, found, c.After)
		s.untouched = s.untouched && same(v, found, c.Before)
	}
	return s
}

// putBack is the live object with every field restored that still has the value that we wrote; left
// are the fields that somebody changed since.
func putBack(live map[string]any, changes []change) (restored map[string]any, put, left []fieldPath) {
	restored = live
	for _, c := range changes {
		if c.Made {
			continue
		}
		v, found, reachable := lookup(restored, c.Path)
		switch {
		case same(v, found, c.Before):
		case !reachable || !c.isOurs(v, found):
			left = append(left, c.Path)
		default:
			restored = set(restored, c.Path, c.Before, c.At).(map[string]any)
			put = append(put, c.Path)
		}
	}
	for _, c := range slices.Backward(changes) {
		v, _, _ := lookup(restored, c.Path)
		if m, isMap := v.(map[string]any); c.Made && isMap && len(m) == 0 {
			restored = set(restored, c.Path, nil, 0).(map[string]any)
			put = append(put, c.Path)
		}
	}
	return restored, put, left
}

// lookup finds the value at a path. It is not reachable when a part of the path has another type.
func lookup(node any, p fieldPath) (v any, found, reachable bool) {
	for _, s := range p {
		var has bool
		if s.Item != "" {
			list, ok := node.([]any)
			if !ok {
				return nil, false, node == nil
			}
			i := indexOf(list, s.Item)
			if i < 0 {
				return nil, false, true
			}
			node = list[i]
			continue
		}
		m, ok := node.(map[string]any)
		if !ok {
			return nil, false, node == nil
		}
		if node, has = m[s.Key]; !has {
			return nil, false, true
		}
	}
	return node, true, true
}

func indexOf(list []any, name string) int {
	return slices.IndexFunc(list, func(item any) bool {
		m, ok := item.(map[string]any)
		return ok && m["name"] == name
	})
}

// set is a copy of node with a new value at a path, or without one when value is absent. Missing
// maps and lists on the path are created.
func set(node any, p fieldPath, value json.RawMessage, at int) any {
	if len(p) == 0 {
		return decode(value)
	}
	remove := len(p) == 1 && value == nil
	if name := p[0].Item; name != "" {
		list, _ := node.([]any)
		list = slices.Clone(list)
		i := indexOf(list, name)
		switch {
		case i >= 0 && remove:
			return slices.Delete(list, i, i+1)
		case i >= 0:
			list[i] = set(list[i], p[1:], value, at)
			return list
		case remove:
			return list
		}
		return slices.Insert(list, min(at, len(list)), set(map[string]any{"name": name}, p[1:], value, at))
	}
	old, _ := node.(map[string]any)
	m := make(map[string]any, len(old)+1)
	for key, v := range old {
		m[key] = v
	}
	if remove {
		delete(m, p[0].Key)
		return m
	}
	m[p[0].Key] = set(m[p[0].Key], p[1:], value, at)
	return m
}

// mergePatch is the JSON merge patch (RFC 7386) that turns one map into another.
func mergePatch(from, to map[string]any) map[string]any {
	patch := map[string]any{}
	for key := range from {
		if _, kept := to[key]; !kept {
			patch[key] = nil
		}
	}
	for key, want := range to {
		had, ok := from[key]
		if ok && equal(had, want) {
			continue
		}
		fromMap, isMap := had.(map[string]any)
		toMap, wantsMap := want.(map[string]any)
		if isMap && wantsMap {
			patch[key] = mergePatch(fromMap, toMap)
			continue
		}
		patch[key] = want
	}
	return patch
}

func same(v any, found bool, want json.RawMessage) bool {
	if !found || want == nil {
		return !found && want == nil
	}
	return equal(v, decode(want))
}

func equal(a, b any) bool { return bytes.Equal(raw(a, true), raw(b, true)) }

// raw is a value as JSON with sorted keys; nil for an absent value.
func raw(v any, present bool) json.RawMessage {
	if !present {
		return nil
	}
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("object.raw of %T: %v", v, err)) // what the API server sent always marshals
	}
	return b
}

// decode reads JSON as the API's clients do, whole numbers as int64.
func decode(b json.RawMessage) any {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil
	}
	return expr.Whole(v)
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	return keys
}
