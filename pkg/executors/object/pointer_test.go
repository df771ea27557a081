package object

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWhatAPointerRemoves(t *testing.T) {
	object := `{metadata: {annotations: {example.org/a~b: x}}, spec: {size: 1, none: null, list: [{name: a, size: 2}, {name: b}]}}`
	for name, c := range map[string]struct {
		remove []string
		left   string
		ops    int
		item   bool
	}{
		"a field":                        {remove: []string{"/spec/size"}, left: `{metadata: {annotations: {example.org/a~b: x}}, spec: {none: null, list: [{name: a, size: 2}, {name: b}]}}`, ops: 1},
		"a key with a slash and a tilde": {remove: []string{"/metadata/annotations/example.org~1a~0b"}, left: `{metadata: {annotations: {}}, spec: {size: 1, none: null, list: [{name: a, size: 2}, {name: b}]}}`, ops: 1},
		"a field that is null":           {remove: []string{"/spec/none"}, left: `{metadata: {annotations: {example.org/a~b: x}}, spec: {size: 1, list: [{name: a, size: 2}, {name: b}]}}`, ops: 1},
		"a field of an item":             {remove: []string{"/spec/list/0/size"}, left: `{metadata: {annotations: {example.org/a~b: x}}, spec: {size: 1, none: null, list: [{name: a}, {name: b}]}}`, ops: 1},
		"a field and what is in it":      {remove: []string{"/spec", "/spec/size"}, left: `{metadata: {annotations: {example.org/a~b: x}}}`, ops: 1},
		"an item, which is no field":     {remove: []string{"/spec/list/0"}, left: object, item: true},
		"an item after the last":         {remove: []string{"/spec/list/-"}, left: object, item: true},
		"an item that is not there":      {remove: []string{"/spec/list/9/size", "/spec/list/x/size", "/spec/list/99999999999999999999/size"}, left: object},
		"what is not there":              {remove: []string{"/spec/never", "/spec/size/deeper", "/status/a/b"}, left: object},
	} {
		t.Run(name, func(t *testing.T) {
			remove, err := pointers(c.remove, map[string]any{})
			if err != nil {
				t.Fatal(err)
			}
			ops, left := removals(parse(t, object), remove)
			if diff := cmp.Diff(parse(t, c.left), left); diff != "" || len(ops) != c.ops {
				t.Errorf("%d operations; want %d, and what is left (-want +got):\n%s", len(ops), c.ops, diff)
			}
			if err := fieldsAlone(parse(t, object), remove); (err != nil) != c.item {
				t.Errorf("refused: %v", err)
			}
		})
	}
}
