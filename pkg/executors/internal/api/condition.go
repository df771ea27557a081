package api

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
)

// Condition says whether a condition of an object is True, and describes what was found. As for
// kubectl wait, a condition of an older generation does not count.
func Condition(live *unstructured.Unstructured, want string) (bool, string) {
	conditions, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions")
	for _, item := range conditions {
		c, _ := item.(map[string]any)
		if c["type"] != want {
			continue
		}
		if seen, behind := lags(live, c); behind {
			return false, fmt.Sprintf("condition %s speaks of generation %d, the object is at %d", want, seen, live.GetGeneration())
		}
		why := fmt.Sprintf("condition %s is %v", want, c["status"])
		if message, _ := c["message"].(string); message != "" {
			why += ": " + document.Cut(message, 300)
		}
		return c["status"] == "True", why
	}
	return false, fmt.Sprintf("condition %s is not there yet", want)
}

// lags says that the condition, or its status, is older than the object's last change.
func lags(live *unstructured.Unstructured, condition map[string]any) (int64, bool) {
	seen, ok, _ := unstructured.NestedInt64(condition, "observedGeneration")
	if ok && seen < live.GetGeneration() {
		return seen, true
	}
	seen, ok, _ = unstructured.NestedInt64(live.Object, "status", "observedGeneration")
	return seen, ok && seen < live.GetGeneration()
}
