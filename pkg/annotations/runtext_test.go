package annotations

import (
	"bytes"
	"encoding/json"
	"math"
	"testing"

	"pgregory.net/rapid"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// TestTheTextOfARunIsTheUsualYAML compares with sigs.k8s.io/yaml, byte for byte: runs that an
// older agent wrote and those of this one look the same.
func TestTheTextOfARunIsTheUsualYAML(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := run.Run{
			Namespace: "shop", Name: rapid.String().Draw(t, "name"), Plan: "orders", PlanUID: "u1",
			Request: run.Request{Kind: run.ByLabel, Reason: rapid.String().Draw(t, "reason")},
			Spec:    plan.Spec{Steps: []plan.Step{{Name: "s", Type: "patch-object", Properties: map[string]any{"patch": drawn(t, 3)}}}},
		}
		got, err := runText(r)
		if err != nil {
			t.Fatal(err)
		}
		// It refuses characters that JSON may hold and YAML may not, as DEL.
		if want, err := sigsyaml.Marshal(r); err == nil && !bytes.Equal(got, want) {
			t.Fatalf("got\n%s\nwant\n%s", got, want)
		}
	})
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
