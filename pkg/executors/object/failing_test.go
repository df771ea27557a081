package object

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/api"
)

// The agent looks for what is wrong with a patch on its own copy of the object: each copy in it may
// double that.
func TestAPatchOfManyCopiesIsNotCarriedOutByTheAgent(t *testing.T) {
	copies := func(n int) []any {
		var ops []any
		for i := range n {
			ops = append(ops, map[string]any{"op": "copy", "from": "/data", "path": fmt.Sprintf("/data/x%d", i)})
		}
		return ops
	}
	wrong := map[string]any{"op": "remove", "path": "/data/none"}
	for name, c := range map[string]struct {
		ops  []any
		says string
	}{
		"copies of copies":               {copies(14), ""},
		"a few of them, and a wrong one": {append(copies(2), wrong), "patch[2] cannot be applied"},
		"too many operations":            {append(idle(), wrong), ""},
	} {
		t.Run(name, func(t *testing.T) {
			live := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"k": strings.Repeat("x", 200_000)}}}
			w := write{live: live, patch: api.Patch{Type: types.JSONPatchType, Body: c.ops}}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			said := w.failingOperation()
			runtime.ReadMemStats(&after)
			if (said == "") != (c.says == "") || !strings.Contains(said, c.says) {
				t.Errorf("it says %q, want %q", said, c.says)
			}
			if took := after.TotalAlloc - before.TotalAlloc; took > 400<<20 {
				t.Errorf("it took %d MiB", took>>20)
			}
		})
	}
}

// idle are a thousand operations that change nothing.
func idle() []any {
	var ops []any
	for range 1000 {
		ops = append(ops, map[string]any{"op": "test", "path": "/kind", "value": "ConfigMap"})
	}
	return ops
}
