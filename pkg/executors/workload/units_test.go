package workload

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestWhatPodsRequest(t *testing.T) {
	container := func(cpu, memory string) any {
		return map[string]any{"name": "c", "resources": map[string]any{"requests": map[string]any{"cpu": cpu, "memory": memory}}}
	}
	of := func(containers ...any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": containers}}}}}
	}
	for name, c := range map[string]struct {
		of       *unstructured.Unstructured
		replicas int64
		want     map[string]float64
	}{
		"of all containers and pods": {of(container("250m", "512Mi"), container("1", "1Gi")), 4, map[string]float64{"cpu": 5, "memoryGiB": 6}},
		"nothing requested":          {of(map[string]any{"name": "c"}), 4, map[string]float64{}},
		"no pods of its own":         {&unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}, 4, nil},
	} {
		if diff := cmp.Diff(c.want, units(c.of, c.replicas)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
