package knob_test

import (
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/kubectl-maint/kubectl-maint/pkg/knob"
)

// world is an object on its API server, with the people and policies around it.
type world struct {
	t        *rapid.T
	knob     knob.Knob
	values   []any // what may stand in the field
	object   map[string]any
	memory   string // annotation
	foreign  bool   // people own the field
	restrict map[string]bool
	people   knob.Value // what people last wrote that was news to the API server
	current  []string   // policies that have acted since they last changed their mind
}

func (w *world) now() knob.Value {
	v := any(w.object)
	for _, field := range w.knob.Path {
		m, isMap := v.(map[string]any)
		if !isMap {
			return knob.Value{}
		}
		v = m[field]
	}
	return knob.Value{V: v}
}

// person writes a value. What is there already is no write, and nobody can know
// of it; nor can anybody know who took a field away that is away.
func (w *world) person() {
	want := knob.Value{V: rapid.SampledFrom(w.values).Draw(w.t, "value")}
	memory, _ := knob.ReadMemory(w.memory)
	if entry := memory[w.knob.Pointer()]; want.Equal(w.now()) || want.Absent() && entry.Set != nil && entry.Set.Absent() {
		return
	}
	patch := map[string]any{w.knob.Path[0]: map[string]any{w.knob.Path[1]: want.V}}
	w.object = merge(merge(w.object, map[string]any{w.knob.Path[0]: map[string]any{w.knob.Path[1]: nil}}), patch).(map[string]any)
	w.people, w.foreign = want, !want.Absent()
	w.current = nil
}

// act lets one policy decide, and may lose the write, as a crash or a conflict
// does.
func (w *world) act(policy string, lose bool) {
	memory, err := knob.ReadMemory(w.memory)
	if err != nil {
		w.t.Fatal(err)
	}
	v, err := w.knob.Decide(knob.Facts{Object: w.object, Memory: memory, Foreign: w.foreign}, knob.DesiredState{Policy: policy, Closed: w.restrict[policy]})
	if err != nil {
		w.t.Fatal(err)
	}
	if lose {
		return
	}
	if v.Patch != nil {
		w.object = merge(w.object, v.Patch).(map[string]any)
		w.foreign = false
	}
	w.memory = v.Memory.String()
	if !slices.Contains(w.current, policy) {
		w.current = append(w.current, policy)
	}
	again, err := w.knob.Decide(knob.Facts{Object: w.object, Memory: v.Memory, Foreign: w.foreign}, knob.DesiredState{Policy: policy, Closed: w.restrict[policy]})
	if err != nil || again.Action != knob.Nothing || again.Patch != nil || !reflect.DeepEqual(again.Memory, v.Memory) {
		w.t.Fatalf("twice is not once: %+v after %+v, %v", again, v, err)
	}
	if w.restrict[policy] != v.Memory.HeldBy(policy) {
		w.t.Fatalf("policy %s restrictive %t, memory %s", policy, w.restrict[policy], v.Memory)
	}
}

func (w *world) check() {
	held := false
	for policy, restrictive := range w.restrict {
		held = held || restrictive && slices.Contains(w.current, policy)
	}
	if held && !w.knob.IsClosedValue(w.now()) {
		w.t.Fatalf("it stands open at %v while a policy holds it", w.now())
	}
	if w.memory == "" && !w.now().Equal(w.people) {
		w.t.Fatalf("nobody holds it, and it is %v; people wanted %v", w.now(), w.people)
	}
}

func TestWhatPeopleWroteComesBackWhateverHappens(t *testing.T) {
	for _, c := range []struct {
		name   string
		knob   any
		kind   [2]string
		values []any
	}{
		{"flux", "flux", [2]string{"kustomize.toolkit.fluxcd.io/v1", "Kustomization"}, []any{true, false, nil}},
		{"argocd", "argocd", [2]string{"argoproj.io/v1alpha1", "Application"}, nil},
		{"custom", map[string]any{"path": "spec.mode", "closed": "manual", "open": "auto"}, [2]string{"example.org/v1", "App"}, []any{"manual", "auto", "canary", nil}},
		{"absent is closed", map[string]any{"path": "spec.mode", "closed": nil, "open": "auto"}, [2]string{"example.org/v1", "App"}, []any{"auto", "other", nil}},
	} {
		t.Run(c.name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				w := &world{t: t, knob: parsed(t, c.knob, c.kind[0], c.kind[1]), values: c.values, object: map[string]any{}, restrict: map[string]bool{"a/p": false, "b/q": false, "b/r": false}}
				if c.values == nil { // one level deeper, and with maps
					w.knob.Path = []string{"spec", "automated"}
					w.values = []any{map[string]any{}, map[string]any{"prune": true}, map[string]any{"prune": true, "selfHeal": true}, map[string]any{"enabled": false, "prune": true}, nil}
				}
				policy := rapid.SampledFrom([]string{"a/p", "b/q", "b/r"})
				t.Repeat(map[string]func(*rapid.T){
					"person writes": func(*rapid.T) { w.person() },
					"policy turns": func(t *rapid.T) {
						p := policy.Draw(t, "policy")
						w.restrict[p] = !w.restrict[p]
						w.current = slices.DeleteFunc(w.current, func(c string) bool { return c == p })
					},
					"policy acts":   func(t *rapid.T) { w.act(policy.Draw(t, "policy"), false) },
					"write is lost": func(t *rapid.T) { w.act(policy.Draw(t, "policy"), true) },
					"":              func(*rapid.T) { w.check() },
				})
				for p := range w.restrict { // all policies are deleted in the end
					w.restrict[p] = false
					w.act(p, false)
				}
				if w.memory != "" || !w.now().Equal(w.people) {
					t.Fatalf("at the end it is %v, people wanted %v, memory %s", w.now(), w.people, w.memory)
				}
			})
		})
	}
}
