package stream_test

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/print"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/stream"
)

// formatted prints as -o says.
func formatted(t *testing.T, format string) *print.Values {
	t.Helper()
	out, cmd := print.NewValues(), &cobra.Command{}
	out.AddFlags(cmd)
	if err := cmd.Flags().Set("output", format); err != nil {
		t.Fatal(err)
	}
	return out
}

// thing is a value: what it is, and a number that may change.
func thing(namespace, name string, n int) print.Value {
	return print.Value{Kind: "Thing", Name: "thing/" + name, Body: map[string]any{"metadata": print.Identity{Namespace: namespace, Name: name, UID: "u"}, "n": n}}
}

func counting(eta int) print.Value {
	return print.Value{Kind: "Thing", Name: "thing/a", Body: map[string]any{"permission": map[string]any{"nextChangeETA": eta}}}
}

func TestChanges(t *testing.T) {
	list := func(items ...print.Value) []print.Value { return items }
	hidden := func(key stream.Key) bool { return key == stream.Key{Kind: "Thing", Namespace: "x", Name: "thing/b"} }
	const (
		first = `{"apiVersion":"maint.dev/v1alpha1","kind":"Thing","metadata":{"name":"a","namespace":"x","uid":"u"},"n":1}` + "\n"
		gone  = `{"apiVersion":"maint.dev/v1alpha1","gone":true,"kind":"Thing","metadata":{"name":"a","namespace":"x","uid":"u"}}` + "\n"
	)
	for name, c := range map[string]struct {
		format string
		looks  [][]print.Value
		unread func(stream.Key) bool
		want   string
	}{
		"a line for what has changed":            {"jsonpath={.n}", [][]print.Value{list(thing("x", "a", 1)), list(thing("x", "a", 1)), list(thing("x", "a", 2))}, nil, "1\n2\n"},
		"two are two":                            {"jsonpath={.n}", [][]print.Value{list(thing("x", "a", 1), thing("x", "b", 1))}, nil, "1\n1\n"},
		"of one name, in two namespaces":         {"jsonpath={.metadata.namespace}", [][]print.Value{list(thing("x", "a", 1), thing("y", "a", 1)), list(thing("x", "a", 1), thing("y", "a", 1))}, nil, "x\ny\n"},
		"what counts down is no change":          {"jsonpath={.permission.nextChangeETA}", [][]print.Value{list(counting(5)), list(counting(4))}, nil, "5\n"},
		"documents are parted":                   {"yaml", [][]print.Value{list(thing("x", "a", 1))}, nil, "---\napiVersion: maint.dev/v1alpha1\nkind: Thing\nmetadata:\n  name: a\n  namespace: x\n  uid: u\n\"n\": 1\n"},
		"what is gone, once":                     {"json", [][]print.Value{list(thing("x", "a", 1)), nil, nil}, nil, first + gone},
		"and there again":                        {"json", [][]print.Value{list(thing("x", "a", 1)), nil, list(thing("x", "a", 1))}, nil, first + gone + first},
		"what is gone of several, in order":      {"custom-columns=NAME:.metadata.name,GONE:.gone", [][]print.Value{list(thing("x", "c", 1), thing("x", "b", 1), thing("x", "a", 1)), list(thing("x", "c", 1))}, nil, "NAME   GONE\nc      <none>\nb     <none>\na     <none>\na     true\nb     true\n"},
		"by name: it is to be looked at again":   {"name", [][]print.Value{list(thing("x", "a", 1)), nil}, nil, "thing/a\nthing/a\n"},
		"what could not be read is not gone":     {"name", [][]print.Value{list(thing("x", "a", 1), thing("x", "b", 1)), nil}, hidden, "thing/a\nthing/b\nthing/a\n"},
		"and if it has not changed meanwhile, …": {"name", [][]print.Value{list(thing("x", "b", 1)), nil, list(thing("x", "b", 1))}, hidden, "thing/b\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			changes := stream.New(formatted(t, c.format))
			for _, items := range c.looks {
				if err := changes.Print(&out, items, stream.Unread{Has: c.unread}); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(c.want, out.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
