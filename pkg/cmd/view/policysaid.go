package view

import (
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
)

// PolicySaid is what the agent published of a policy: whether it permits change, and from when until
// when; nil where it has not said. What it said of another version of the document, or of a time
// that is over, it has not said of now.
func PolicySaid(cm *corev1.ConfigMap, now time.Time) (permitted *bool, said *policy.Behavior) {
	if cm.Annotations[annotations.StatusObserved] != annotations.Observed(cm) {
		return nil, nil
	}
	var b policy.Behavior
	if json.Unmarshal([]byte(cm.Annotations[annotations.StatusBehavior]), &b) == nil {
		said = &b
	}
	if end := b.Current.EndTime; end != nil && !end.After(now) {
		return nil, nil
	}
	if text := cm.Annotations[annotations.StatusPermitted]; text != "" {
		permitted = new(text == "true")
	}
	return permitted, said
}
