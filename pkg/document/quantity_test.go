package document

import "testing"

func TestQuantitiesThatTakeLongToRead(t *testing.T) {
	with := func(key string, value any) any {
		return map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "c", "resources": map[string]any{key: value}}}}}
	}
	for _, c := range []struct {
		part any
		want string
	}{
		{nil, ""},
		{with("requests", map[string]any{"cpu": "100m", "memory": "1.5Gi"}), ""},
		{with("requests", map[string]any{"cpu": "1e3", "memory": "12E"}), ""},
		{with("requests", map[string]any{"cpu": int64(2), "memory": 1.5}), ""},
		{with("requests", map[string]any{"cpu": "1e-000003"}), ""},
		{with("requests", map[string]any{"cpu": "1e1000"}), "spec.containers[0].resources.requests.cpu"},
		{with("limits", map[string]any{"cpu": "12345678901234567890e-60000000"}), "spec.containers[0].resources.limits.cpu"},
		{with("Limits", map[string]any{"cpu": "1E+60000000"}), "spec.containers[0].resources.Limits.cpu"},
		{with("limits", []any{map[string]any{"x": "1e99999"}}), "spec.containers[0].resources.limits[0].x"},
		{map[string]any{"emptyDir": map[string]any{"sizeLimit": "1e99999"}}, "emptyDir.sizeLimit"},
		{map[string]any{"sizeLimit": "11111111111111111111111111111111111111111111111111111111111111111"}, "sizeLimit"},
		{map[string]any{"env": []any{map[string]any{"name": "COMMIT", "value": "7e1234567"}}}, ""},
		{map[string]any{"metadata": map[string]any{"labels": map[string]any{"capacity": "7e1234567"}}}, ""},
		{map[string]any{"requests": "some words of one, e.g. 12345"}, ""},
	} {
		if got := HugeQuantity(c.part); got != c.want {
			t.Errorf("%v: %q, want %q", c.part, got, c.want)
		}
	}
}
