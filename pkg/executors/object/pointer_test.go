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
	}{
		"a field":                        {[]string{"/spec/size"}, `{metadata: {annotations: {example.org/a~b: x}}, spec: {none: null, list: [{name: a, size: 2}, {name: b}]}}`, 1},
		"a key with a slash and a tilde": {[]string{"/metadata/annotations/example.org~1a~0b"}, `{metadata: {annotations: {}}, spec: {size: 1, none: null, list: [{name: a, size: 2}, {name: b}]}}`, 1},
		"a field that is null":           {[]string{"/spec/none"}, `{metadata: {annotations: {example.org/a~b: x}}, spec: {size: 1, list: [{name: a, size: 2}, {name: b}]}}`, 1},
		"a field of an item":             {[]string{"/spec/list/0/size"}, `{metadata: {annotations: {example.org/a~b: x}}, spec: {size: 1, none: null, list: [{name: a}, {name: b}]}}`, 1},
		"a field and what is in it":      {[]string{"/spec", "/spec/size"}, `{metadata: {annotations: {example.org/a~b: x}}}`, 1},
		"an item, which is no field":     {[]string{"/spec/list/0"}, object, 0},
		"an item that is not there":      {[]string{"/spec/list/9/size", "/spec/list/x/size", "/spec/list/99999999999999999999/size"}, object, 0},
		"what is not there":              {[]string{"/spec/never", "/spec/size/deeper", "/status/a/b"}, object, 0},
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
		})
	}
}
