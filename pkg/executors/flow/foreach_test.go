package flow

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestUntilNamesTheObjectsForWhichItCannotBeEvaluated(t *testing.T) {
	const until = "object.status.readyReplicas == 2"
	var found look
	with := func(status map[string]any) answer {
		return ask(until, &unstructured.Unstructured{Object: map[string]any{"status": status}})
	}
	found.at("ready", with(map[string]any{"readyReplicas": int64(2)}))
	found.at("shop:starting", with(map[string]any{"readyReplicas": int64(1)}))
	found.at("shop:fresh", with(map[string]any{}))
	got := found.message(until, 3)
	for _, want := range []string{"does not hold yet for 2 of 3: shop:starting, shop:fresh", "cannot be evaluated for shop:fresh", "no such key: readyReplicas"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q lacks %q", got, want)
		}
	}
}
