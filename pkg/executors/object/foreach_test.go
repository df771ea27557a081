package object

import (
	"strings"
	"testing"
)

func TestUntilNamesTheObjectsForWhichItCannotBeEvaluated(t *testing.T) {
	const until = "object.status.readyReplicas == 2"
	var found look
	found.at(until, "ready", map[string]any{"status": map[string]any{"readyReplicas": int64(2)}})
	found.at(until, "shop:starting", map[string]any{"status": map[string]any{"readyReplicas": int64(1)}})
	found.at(until, "shop:fresh", map[string]any{"status": map[string]any{}})
	got := found.message(until, 3)
	for _, want := range []string{"does not hold yet for 2 of 3: shop:starting, shop:fresh", "cannot be evaluated for shop:fresh", "no such key: readyReplicas"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q lacks %q", got, want)
		}
	}
}
