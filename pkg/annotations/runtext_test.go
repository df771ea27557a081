package annotations

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"testing"

	"pgregory.net/rapid"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// TestTheTextOfARunIsTheUsualYAML compares with sigs.k8s.io/yaml, byte for byte: runs that an
// older agent wrote and those of this one look the same. The library reads JSON as YAML: it
// refuses DEL and turns U+0085 into a space. There only what is read back counts.
func TestTheTextOfARunIsTheUsualYAML(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := run.Run{
			Namespace: "shop", Name: rapid.String().Draw(t, "name"), Plan: "orders", PlanUID: "u1",
			Request: run.Request{Kind: run.ByLabel, Reason: rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"\u0085", "a\u0085b", "\x7f", "a\u2028 b"})).Draw(t, "reason")},
			Spec:    plan.Spec{Steps: []plan.Step{{Name: "s", Type: "patch-object", Properties: map[string]any{"patch": drawn(t, 3)}}}},
		}
		got, err := runText(r)
		if err != nil {
			t.Fatal(err)
		}
		if !readsAs(t, got, r) {
			t.Fatalf("read back as another run:\n%s", got)
		}
		want, err := sigsyaml.Marshal(r)
		if err == nil && !bytes.Contains(got, []byte(`"\u003c\u003c":`)) && readsAs(t, want, r) && !bytes.Equal(got, want) {
			t.Fatalf("got\n%s\nwant\n%s", got, want)
		}
	})
}

// A key that YAML without quotes takes for a merge is a key like any other.
func TestARunWithTheKeyOfAMergeIsReadBack(t *testing.T) {
	for _, value := range []any{"b", map[string]any{"b": "c"}, []any{map[string]any{"b": "c"}}} {
		r := run.Run{Namespace: "shop", Name: "maint-run-a", Spec: plan.Spec{Steps: []plan.Step{{Name: "s", Properties: map[string]any{"patch": map[string]any{"<<": value, "a": "b"}}}}}}
		text, err := runText(r)
		if err != nil {
			t.Fatal(err)
		}
		var back run.Run
		if err := sigsyaml.Unmarshal(text, &back); err != nil || !reflect.DeepEqual(back.Spec.Steps[0].Properties, r.Spec.Steps[0].Properties) {
			t.Errorf("%v: read back as %+v from\n%s", err, back.Spec.Steps, text)
		}
	}
}

// readsAs says whether a text holds exactly this run.
func readsAs(t *rapid.T, text []byte, r run.Run) bool {
	var back run.Run
	if err := sigsyaml.Unmarshal(text, &back); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	var plain run.Run
	if err := json.Unmarshal([]byte(jsonOf(t, r)), &plain); err != nil {
		t.Fatal(err)
	}
	return jsonOf(t, back) == jsonOf(t, plain)
}

func jsonOf(t *rapid.T, r run.Run) string {
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// drawn is a value as a document may hold it.
func drawn(t *rapid.T, depth int) any {
	kinds := []*rapid.Generator[any]{
		rapid.String().AsAny(), rapid.Bool().AsAny(), rapid.Int64().AsAny(), rapid.Uint64().AsAny(), rapid.Float64().AsAny(),
		rapid.SampledFrom([]any{nil, "", "1", "yes", "1e3", "~", "0x10", "2026-01-01", "a: b", "x\ny", int64(math.MaxInt64), uint64(math.MaxUint64), 1e21, 0.1, math.Copysign(0, -1), "\u2028"}),
	}
	if depth == 0 {
		return rapid.OneOf(kinds...).Draw(t, "leaf")
	}
	switch rapid.IntRange(0, 2).Draw(t, "kind") {
	case 0:
		out := map[string]any{}
		for range rapid.IntRange(0, 3).Draw(t, "keys") {
			out[rapid.String().Draw(t, "key")] = drawn(t, depth-1)
		}
		return out
	case 1:
		out := []any{}
		for range rapid.IntRange(0, 3).Draw(t, "items") {
			out = append(out, drawn(t, depth-1))
		}
		return out
	}
	return rapid.OneOf(kinds...).Draw(t, "leaf")
}

func TestANumberThatIsNoneIsRefused(t *testing.T) {
	if got, err := withNumbers([]any{json.Number("1e999")}); err == nil {
		t.Fatalf("got %v", got)
	}
}

func BenchmarkRunText(b *testing.B) {
	r := run.Run{Namespace: "shop", Name: "orders-1", Plan: "orders", PlanUID: "u1", Spec: plan.Spec{Steps: []plan.Step{{Name: "s", Type: "suspend", Properties: map[string]any{"duration": "5m"}}}}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := runText(r); err != nil {
			b.Fatal(err)
		}
	}
}
