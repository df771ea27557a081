package annotations

import (
	"encoding/json"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/lifecycle"
)

// Lifecycle are the lifecycle conditions on a node, and who set those that are True, by the
// node's managed fields.
func Lifecycle(n *corev1.Node) []lifecycle.Condition {
	var out []lifecycle.Condition
	for _, c := range n.Status.Conditions {
		if !slices.Contains(lifecycle.Types(), lifecycle.Type(c.Type)) {
			continue
		}
		one := lifecycle.Condition{Type: lifecycle.Type(c.Type), True: c.Status == corev1.ConditionTrue, Reason: c.Reason, Message: c.Message}
		if one.True {
			one.Foreign, one.Unknown = whoSet(n, c.Type)
		}
		out = append(out, one)
	}
	return out
}

// mergedManager is how the API server calls the oldest of more than ten managers, which it
// merges: whose a field was cannot be told any more.
const mergedManager = "ancient-changes"

// whoSet says whether somebody other than the agent was the last to set a condition's status,
// or whether that is not known.
func whoSet(n *corev1.Node, t corev1.NodeConditionType) (foreign, unknown bool) {
	key, merged := `k:{"type":"`+string(t)+`"}`, false
	for _, m := range n.ManagedFields {
		if !owns(m, key) {
			continue
		}
		switch m.Manager {
		case ManagerAgent:
			return false, false
		case mergedManager:
			merged = true
		default:
			foreign = true
		}
	}
	return foreign || !merged, !foreign && merged
}

func owns(m metav1.ManagedFieldsEntry, condition string) bool {
	if m.FieldsV1 == nil {
		return false
	}
	var fields struct {
		Status struct {
			Conditions map[string]map[string]json.RawMessage `json:"f:conditions"`
		} `json:"f:status"`
	}
	return json.Unmarshal(m.FieldsV1.GetRawBytes(), &fields) == nil && fields.Status.Conditions[condition]["f:status"] != nil
}

// LifecyclePatch is a strategic merge patch of a node's status, of the version that was
// read and no other, so that nothing that somebody sets meanwhile is overwritten.
func LifecyclePatch(uid types.UID, version string, have, change []lifecycle.Condition, now time.Time) ([]byte, error) {
	list := make([]map[string]any, len(change))
	for i, c := range change {
		stamp := now.UTC().Format(time.RFC3339)
		list[i] = map[string]any{"type": c.Type, "status": statusOf(c), "reason": c.Reason, "message": c.Message, "lastHeartbeatTime": stamp}
		if !slices.ContainsFunc(have, func(h lifecycle.Condition) bool { return h.Type == c.Type && h.True == c.True }) {
			list[i]["lastTransitionTime"] = stamp
		}
	}
	return json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": uid, "resourceVersion": version},
		"status":   map[string]any{"conditions": list},
	})
}

func statusOf(c lifecycle.Condition) corev1.ConditionStatus {
	if c.True {
		return corev1.ConditionTrue
	}
	return corev1.ConditionFalse
}
