package object

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	b, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	m, ok := decode(b).(map[string]any)
	if !ok {
		t.Fatalf("%s is no object", text)
	}
	return m
}

func TestChangesBetweenAndPutBack(t *testing.T) {
	for name, c := range map[string]struct {
		before, after string
		difference    string
		meanwhile     string // the live object when it is put back; default: after
		restored      string // default: before
		left          string
	}{
		"a field that changed comes back": {
			before: `{spec: {replicas: 3}}`, after: `{spec: {replicas: 0}}`, difference: "spec.replicas: 3 → 0",
		},
		"a field that was absent goes again": {
			before: `{spec: {replicas: 3}}`, after: `{spec: {replicas: 3, paused: true}}`, difference: "spec.paused: absent → true",
		},
		"a field that was taken away comes back": {
			before: `{spec: {replicas: 3, paused: true}}`, after: `{spec: {replicas: 3}}`, difference: "spec.paused: true → absent",
		},
		"a map that was made goes when nothing else is in it": {
			before: `{metadata: {name: a}}`, after: `{metadata: {name: a, labels: {team: x}}}`, difference: "metadata.labels.team: absent → \"x\"",
		},
		"a map that was made stays for what somebody else put into it": {
			before: `{metadata: {name: a}}`, after: `{metadata: {name: a, labels: {team: x}}}`, difference: "metadata.labels.team: absent → \"x\"",
			meanwhile: `{metadata: {name: a, labels: {team: x, theirs: y}}}`, restored: `{metadata: {name: a, labels: {theirs: y}}}`,
		},
		"a map that was taken away comes back field by field": {
			before: `{spec: {a: {b: 1, c: {d: 2}}}}`, after: `{spec: {}}`, difference: "spec.a.b: 1 → absent; spec.a.c.d: 2 → absent",
		},
		"what somebody changed since stays, and the rest comes back": {
			before: `{spec: {replicas: 3, paused: false}}`, after: `{spec: {replicas: 0, paused: true}}`, difference: "spec.paused: false → true; spec.replicas: 3 → 0",
			meanwhile: `{spec: {replicas: 5, paused: true}}`, restored: `{spec: {replicas: 5, paused: false}}`, left: "spec.replicas",
		},
		"what is as before already is nobody's change": {
			before: `{spec: {replicas: 3}}`, after: `{spec: {replicas: 0}}`, difference: "spec.replicas: 3 → 0",
			meanwhile: `{spec: {replicas: 3}}`, restored: `{spec: {replicas: 3}}`,
		},
		"an item of a named list is found by its name, wherever it moved": {
			before: `{c: [{name: web, image: a}]}`, after: `{c: [{name: web, image: b}]}`, difference: `c[name=web].image: "a" → "b"`,
			meanwhile: `{c: [{name: sidecar, image: z}, {name: web, image: b}]}`, restored: `{c: [{name: sidecar, image: z}, {name: web, image: a}]}`,
		},
		"an item that was added goes again": {
			before: `{env: [{name: A, value: "1"}]}`, after: `{env: [{name: A, value: "1"}, {name: B, value: "2"}]}`, difference: `env[name=B]: absent → {"name":"B","value":"2"}`,
		},
		"an item that was taken away comes back to its place": {
			before: `{env: [{name: A}, {name: B}, {name: C}]}`, after: `{env: [{name: A}, {name: C}]}`, difference: `env[name=B]: {"name":"B"} → absent`,
		},
		"a list without names is one value": {
			before: `{args: [a, b]}`, after: `{args: [a]}`, difference: `args: ["a","b"] → ["a"]`,
		},
		"a named list in another order is one value": {
			before: `{env: [{name: A}, {name: B}]}`, after: `{env: [{name: B}, {name: A}]}`, difference: `env: [{"name":"A"},{"name":"B"}] → [{"name":"B"},{"name":"A"}]`,
		},
		"a null is a value and not absence": {
			before: `{spec: {size: null}}`, after: `{spec: {size: 3}}`, difference: "spec.size: null → 3",
		},
		"a field whose parent became something else is left": {
			before: `{spec: {a: {b: 1}}}`, after: `{spec: {a: {b: 2}}}`, difference: "spec.a.b: 1 → 2",
			meanwhile: `{spec: {a: text}}`, restored: `{spec: {a: text}}`, left: "spec.a.b",
		},
		"the API server's bookkeeping is no change": {
			before: `{metadata: {resourceVersion: "1", generation: 1}, spec: {a: 1}}`, after: `{metadata: {resourceVersion: "2", generation: 2}, spec: {a: 2}}`, difference: "spec.a: 1 → 2",
			restored: `{metadata: {resourceVersion: "2", generation: 2}, spec: {a: 1}}`,
		},
		"a key with dots and slashes is one key": {
			before: `{metadata: {labels: {a.b/c: x}}}`, after: `{metadata: {labels: {a.b/c: z}}}`, difference: `metadata.labels[a.b/c]: "x" → "z"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := parse(t, c.before), parse(t, c.after)
			changes := journaled(t, changesBetween(before, after))
			if got := difference(changes, false); got != c.difference {
				t.Errorf("difference is %q, want %q", got, c.difference)
			}
			if s := standingOf(after, changes); !s.applied || s.untouched {
				t.Errorf("after the patch: %+v", s)
			}
			if s := standingOf(before, changes); s.applied || !s.untouched {
				t.Errorf("before the patch: %+v", s)
			}
			live, want := after, before
			if c.meanwhile != "" {
				live = parse(t, c.meanwhile)
			}
			if c.restored != "" {
				want = parse(t, c.restored)
			}
			untouched := journaled(t, live)
			got, _, left := putBack(live, changes)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("restored (-want +got):\n%s", diff)
			}
			if paths(left) != c.left {
				t.Errorf("left %q, want %q", paths(left), c.left)
			}
			if diff := cmp.Diff(untouched, journaled(t, live)); diff != "" {
				t.Errorf("putBack changed its input:\n%s", diff)
			}
			again, put, _ := putBack(got, changes)
			if diff := cmp.Diff(got, again); diff != "" || len(put) > 0 && c.left == "" {
				t.Errorf("put back twice wrote %v:\n%s", put, diff)
			}
		})
	}
}

// journaled is a value after a stay in the journal.
func journaled[T any](t *testing.T, v T) T {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var out T
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestAMergePatchLeadsFromOneMapToAnother(t *testing.T) {
	from := parse(t, `{a: 1, gone: 2, same: {x: 1}, deep: {x: 1, y: 2}, list: [1]}`)
	to := parse(t, `{a: 2, same: {x: 1}, deep: {y: 3}, list: [1, 2], new: {z: 1}}`)
	want := parse(t, `{a: 2, gone: null, deep: {x: null, y: 3}, list: [1, 2], new: {z: 1}}`)
	if diff := cmp.Diff(want, mergePatch(from, to)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhichJSONPatchesCountTwice(t *testing.T) {
	for patch, want := range map[string]bool{
		`[{op: replace, path: /spec/replicas, value: 1}]`:                               false,
		`[{op: replace, path: /spec/containers/0/image, value: b}]`:                     false,
		`[{op: add, path: /metadata/labels/a, value: b}]`:                               false,
		`[{op: add, path: /spec/list/-, value: b}]`:                                     true,
		`[{op: add, path: /spec/list/0, value: b}]`:                                     true,
		`[{op: remove, path: /spec/paused}]`:                                            true,
		`[{op: test, path: /spec/a, value: 1}, {op: replace, path: /spec/a, value: 2}]`: true,
		`[{op: move, from: /spec/a, path: /spec/b}]`:                                    true,
	} {
		if got := countsTwice(parse(t, "{p: "+patch+"}")["p"]); got != want {
			t.Errorf("%s counts twice: %t, want %t", patch, got, want)
		}
	}
}

func TestWhatASecretHoldsIsNeverShown(t *testing.T) {
	secret, app := schema.GroupKind{Kind: "Secret"}, schema.GroupKind{Group: "example.org", Kind: "Secret"}
	data := changesBetween(parse(t, `{data: {a: eA==}}`), parse(t, `{data: {a: eQ==}}`))
	label := changesBetween(parse(t, `{metadata: {labels: {a: x}}}`), parse(t, `{metadata: {labels: {a: z}}}`))
	copied := changesBetween(parse(t, `{metadata: {annotations: {kubectl.kubernetes.io/last-applied-configuration: x}}}`), parse(t, `{metadata: {annotations: {}}}`))
	for _, c := range []struct {
		what    string
		kind    schema.GroupKind
		changes []change
		want    bool
	}{
		{"data of a Secret", secret, data, true},
		{"a label of a Secret", secret, label, false},
		{"kubectl's copy of a Secret", secret, copied, true},
		{"data of something else", app, data, false},
	} {
		if got := holdsSecrets(c.kind, c.changes); got != c.want {
			t.Errorf("%s: %t, want %t", c.what, got, c.want)
		}
	}
	if got := difference(data, true); got != "data.a: (hidden) → (hidden)" {
		t.Errorf("difference is %q", got)
	}
}
