// Package amendment says which edits of restore data can be taken: other values to put back, of
// the shape that they had.
package amendment

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

// Value is what is to be put back of one resource, as somebody wants it.
type Value struct {
	ID     string          `json:"id"`
	Before json.RawMessage `json:"before"`
}

// Of are the resources of a record as they are to be put back, to be changed.
func Of(r hibernate.Record) []Value {
	out := make([]Value, len(r.Resources))
	for i, res := range r.Resources {
		out[i] = Value{res.ID, res.Before}
	}
	return out
}

// Put is a record with other values to put back, and the resources that have others now.
// The list is that of Of, in its order. A value keeps its fields and their types: what
// an executor wrote, it can read.
func Put(r hibernate.Record, list []Value) (out hibernate.Record, changed []string, faults document.Faults) {
	fault := func(i int, format string, args ...any) {
		faults = append(faults, document.Fault{Path: fmt.Sprintf("[%d]", i), Message: fmt.Sprintf(format, args...)})
	}
	if len(list) != len(r.Resources) {
		return r, nil, document.Faults{{Message: fmt.Sprintf("has %d resources and had %d: none may be added or removed", len(list), len(r.Resources))}}
	}
	out = r
	out.Resources = slices.Clone(r.Resources)
	for i, a := range list {
		res := r.Resources[i]
		switch {
		case a.ID != res.ID:
			fault(i, "id is %q and was %q: only before may be changed", document.Cut(a.ID, 200), document.Cut(res.ID, 200))
			continue
		case res.Was(a.Before):
			continue
		case res.RestoredAt != nil:
			fault(i, "%s is awake again: what it was is put back already", res.ID)
			continue
		case res.Left != "":
			fault(i, "%s is not put back in this cycle: %s", res.ID, res.Left)
			continue
		}
		if why := reshaped(res.Before, a.Before); why != "" {
			fault(i, "before of %s %s", res.ID, why)
			continue
		}
		out.Resources[i].Before, out.Resources[i].Under = a.Before, nil // who edits it knows of runs
		changed = append(changed, res.ID)
	}
	return out, changed, faults
}

// reshaped says how a value has not the shape of the one before it; empty: it has.
func reshaped(was, is json.RawMessage) string {
	var a, b any
	if json.Unmarshal(was, &a) != nil || json.Unmarshal(is, &b) != nil {
		return "cannot be read"
	}
	return otherShape("", a, b)
}

func otherShape(path string, was, is any) string {
	at := strings.TrimPrefix(path, ".")
	if at != "" {
		at = "." + at + " "
	}
	switch was := was.(type) {
	case map[string]any:
		is, same := is.(map[string]any)
		if have, want := slices.Sorted(maps.Keys(is)), slices.Sorted(maps.Keys(was)); !same || !slices.Equal(have, want) {
			return fmt.Sprintf("%shas the fields %s, no more and no less", at, strings.Join(want, ", "))
		}
		for _, key := range slices.Sorted(maps.Keys(was)) {
			if why := otherShape(path+"."+key, was[key], is[key]); why != "" {
				return why
			}
		}
		return ""
	case float64:
		n, same := is.(float64)
		switch {
		case !same:
			return at + "must be a number"
		case n < 0:
			return at + "must not be negative"
		case n > math.MaxInt32 && n > was: // no API takes more replicas or instances
			return fmt.Sprintf("%smust not be above %d", at, math.MaxInt32)
		case was == float64(int64(was)) && n != float64(int64(n)):
			return at + "must be a whole number"
		}
		return ""
	}
	if fmt.Sprintf("%T", was) != fmt.Sprintf("%T", is) {
		return fmt.Sprintf("%smust be of the type that it was: %v", at, was)
	}
	return ""
}
