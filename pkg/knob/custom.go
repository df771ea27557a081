package knob

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// deepest is how deep a knob's field may lie (a guess: real ones lie at two or
// three).
const deepest = 16

// custom is a knob by its field. The value that it has while it is open need not
// be the one in the document: what was found comes back. That one says what open
// looks like, so that a knob whose two values are the same is seen at once.
func custom(spelled map[string]any, kind string) (Knob, []Fault) {
	var faults []Fault
	for _, field := range slices.Sorted(maps.Keys(spelled)) {
		if !slices.Contains([]string{"path", "closed", "open"}, field) {
			faults = append(faults, Fault{field, "unknown field; a knob has path, closed and open"})
		}
	}
	for _, field := range []string{"path", "closed", "open"} {
		if _, there := spelled[field]; !there {
			faults = append(faults, Fault{field, "is missing; write a knob like {path: /spec/paused, closed: true, open: false}; null is a field that is not there"})
		}
	}
	if len(faults) > 0 {
		return Knob{}, faults
	}
	text, isText := spelled["path"].(string)
	if !isText {
		return Knob{}, []Fault{{"path", "must be a string, like /spec/paused"}}
	}
	path, problem := parsePath(text)
	if problem != "" {
		return Knob{}, []Fault{{"path", problem}}
	}
	k := Knob{Path: path, Closed: Value{spelled["closed"]}, kind: kind}
	for _, field := range []string{"closed", "open"} {
		if problem := unfit(path, spelled[field]); problem != "" {
			faults = append(faults, Fault{field, problem})
		}
	}
	if len(faults) == 0 && k.Closed.Equal(Value{spelled["open"]}) {
		faults = []Fault{{"open", "is the same as closed, so that nothing would be held"}}
	}
	return k, faults
}

// parsePath reads a JSON pointer, or names joined by dots.
func parsePath(text string) (path []string, problem string) {
	if pointer, ok := strings.CutPrefix(text, "/"); ok {
		unescape := strings.NewReplacer("~1", "/", "~0", "~")
		for part := range strings.SplitSeq(pointer, "/") {
			path = append(path, unescape.Replace(part))
		}
	} else {
		path = strings.Split(text, ".")
	}
	switch {
	case slices.Contains(path, ""):
		return nil, fmt.Sprintf("%q is no path: write a JSON pointer like /spec/paused, or names joined by dots", text)
	case len(path) > deepest:
		return nil, fmt.Sprintf("lies %d fields deep; at most %d are allowed", len(path), deepest)
	case path[0] == "status":
		return nil, "lies in the status, which belongs to the object's controller"
	case path[0] == "metadata" && (len(path) != 3 || path[1] != "annotations" && path[1] != "labels"):
		return nil, "of metadata, only a label or an annotation can be a knob: /metadata/annotations/<key>, with ~1 for / in the key"
	case path[0] == "metadata" && ours(path[2]):
		return nil, fmt.Sprintf("%q belongs to kubectl maint", path[2])
	case len(path) == 1:
		return nil, fmt.Sprintf("%q is a whole section of the object: name a field in it, like /spec/paused", text)
	}
	return path, ""
}

func ours(key string) bool {
	prefix, _, _ := strings.Cut(key, "/")
	return prefix == "maint.dev" || strings.HasSuffix(prefix, ".maint.dev")
}

// unfit says why a value cannot stand in a knob's field.
func unfit(path []string, v any) string {
	_, isText := v.(string)
	if path[0] == "metadata" && v != nil && !isText {
		return "must be a string in quotes, or null: labels and annotations hold text"
	}
	switch v.(type) {
	case map[string]any, []any:
		return "must be a string, a number, true, false or null"
	}
	return ""
}
