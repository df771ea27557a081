package expr_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/expr"
)

// deployment is an object as JSON holds it, with names that need care.
func deployment() map[string]any {
	return map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"example.com/tier": "prod", "app": "web"}},
		"spec": map[string]any{
			"replicas":   int64(3),
			"containers": []any{map[string]any{"name": "web", "image": "web:1"}, map[string]any{"name": "log", "image": "log:2"}},
		},
		"":      "nameless",
		"a]b":   "bracket",
		"a b":   "space",
		"lists": []any{[]any{"x", "y"}, []any{"z"}},
	}
}

func TestAPathLeadsToEveryValueThatItNames(t *testing.T) {
	for _, c := range []struct {
		name, path string
		want       []any
	}{
		{"a field", ".spec.replicas", []any{int64(3)}},
		{"without the first dot", "spec.replicas", []any{int64(3)}},
		{"as JSONPath writes it", "$.spec.replicas", []any{int64(3)}},
		{"as kubectl writes it", "{.spec.replicas}", []any{int64(3)}},
		{"in braces without a dot", "{spec.replicas}", []any{int64(3)}},
		{"a dot within a name", `.metadata.labels.example\.com/tier`, []any{"prod"}},
		{"a quoted name", ".metadata.labels['example.com/tier']", []any{"prod"}},
		{"a name in double quotes", `.metadata.labels["example.com/tier"]`, []any{"prod"}},
		{"a quoted name at the beginning", "['spec'].replicas", []any{int64(3)}},
		{"a quoted name with a bracket in it", "['a]b']", []any{"bracket"}},
		{"a quoted name with a space in it", "['a b']", []any{"space"}},
		{"a space after a backslash", `a\ b`, []any{"space"}},
		{"the first item", ".spec.containers[0].name", []any{"web"}},
		{"the last item", ".spec.containers[1].name", []any{"log"}},
		{"an item that is not there", ".spec.containers[2].name", []any{}},
		{"every item", ".spec.containers[*].name", []any{"web", "log"}},
		{"every field, by name", ".metadata.labels.*", []any{"web", "prod"}},
		{"every field in brackets", ".metadata.labels[*]", []any{"web", "prod"}},
		{"an item of every item", ".lists[*][0]", []any{"x", "z"}},
		{"every item of an item", ".lists[0][*]", []any{"x", "y"}},
		{"a field that is not there", ".spec.paused", []any{}},
		{"below a field that is not there", ".status.phase.more", []any{}},
		{"a field of a list", ".spec.containers.name", []any{}},
		{"an item of an object, whose name is not that of the nameless", ".spec[0]", []any{}},
		{"an item of the object itself", "[0]", []any{}},
		{"below a number", ".spec.replicas.x", []any{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			steps, err := expr.ParsePath(c.path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, expr.Pick(deployment(), steps)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAPathThatCannotBeReadIsToldWhy(t *testing.T) {
	for path, want := range map[string]string{
		"":             "it names nothing",
		"$":            "it names nothing",
		"{}":           "it names nothing",
		"{.spec":       "its brace is not closed",
		".spec}":       `"}" cannot stand in a name without quotes`,
		".":            "a name is empty",
		"..spec":       "a name is empty",
		".spec.":       "a name is empty",
		".spec..size":  "a name is empty",
		".a b":         `" " cannot stand in a name without quotes`,
		".a(b)":        `"(" cannot stand in a name without quotes`,
		".a'b'":        `"'" cannot stand in a name without quotes`,
		".a,b":         `"," cannot stand in a name without quotes`,
		".items[":      "a bracket is not closed",
		".items[0":     "a bracket is not closed",
		".items[]":     "[] is neither an index from 0, nor [*], nor a quoted name",
		".items[-1]":   "[-1] is neither an index from 0",
		".items[x]":    "[x] is neither an index from 0",
		".items[?(@)]": "[?(@)] is neither an index from 0",
		".items[0]x":   `after a ] comes a . or a [, not "x"`,
		"['a'":         "a quoted name is empty or not closed",
		"['a\"]":       "a quoted name is empty or not closed",
		"['']":         "a quoted name is empty or not closed",
	} {
		t.Run(path, func(t *testing.T) {
			steps, err := expr.ParsePath(path)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, %v, want %q", steps, err, want)
			}
		})
	}
}

func TestABackslashAtTheEndStandsForItself(t *testing.T) {
	steps, err := expr.ParsePath(`.a\`)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]any{1}, expr.Pick(map[string]any{`a\`: 1}, steps)); diff != "" {
		t.Error(diff)
	}
}

func TestWhatIsMissingIsSeenAsNull(t *testing.T) {
	if got := expr.OrNull(nil); got != nil {
		t.Errorf("no object is %v", got)
	}
	if diff := cmp.Diff(any(map[string]any{"a": 1}), expr.OrNull(map[string]any{"a": 1})); diff != "" {
		t.Error(diff)
	}
	ok, err := expr.Bool("target == null", map[string]any{"target": expr.OrNull(nil)})
	if err != nil || !ok {
		t.Errorf("an expression sees it as null: %v, %v", ok, err)
	}
}

func TestTheFieldsThatAnExpressionReadsAreFound(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       [][]string
	}{
		{"a field", "node.status.phase == 'Ready'", [][]string{{"status"}, {"status", "phase"}}},
		{"two fields", "node.a > 1 && node.b > 2", [][]string{{"a"}, {"b"}}},
		{"a field that is asked for", "has(node.spec.taints)", [][]string{{"spec"}, {"spec", "taints"}}},
		{"a field by its name in brackets", "node.labels['a.b/c'] == 'x'", [][]string{{"labels"}, {"labels", "a.b/c"}}},
		{"what follows an index is not followed", "node.items[0].name == 'x'", [][]string{{"items"}}},
		{"of another root", "run.name == 'r'", nil},
		{"the root alone", "node == null", nil},
		{"one that does not compile", "node.", nil},
		{"a root that is not known", "nobody.a", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := expr.Paths(c.text, "node", "node", "run")
			slices.SortFunc(got, slices.Compare[[]string])
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
