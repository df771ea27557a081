package annotations

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/lifecycle"
)

// Whose a condition is, is told by who set its status last; the API server forgets that of the
// oldest of more than ten managers.
func TestWhoSetACondition(t *testing.T) {
	const drained = `{"f:status":{"f:conditions":{"k:{\"type\":\"Drained\"}":{".":{},"f:type":{},"f:status":{}}}}}`
	const heartbeat = `{"f:status":{"f:conditions":{"k:{\"type\":\"Drained\"}":{"f:lastHeartbeatTime":{}}}}}`
	by := func(manager, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields), Subresource: "status"}
	}
	for name, c := range map[string]struct {
		status           corev1.ConditionStatus
		managers         []metav1.ManagedFieldsEntry
		foreign, unknown bool
	}{
		"the agent":                       {managers: []metav1.ManagedFieldsEntry{by("maint-agent", drained)}},
		"the agent, and others beside":    {managers: []metav1.ManagedFieldsEntry{by("kubelet", heartbeat), by("ancient-changes", drained), by("maint-agent", drained)}},
		"somebody else":                   {managers: []metav1.ManagedFieldsEntry{by("kured", drained), by("maint-agent", heartbeat)}, foreign: true},
		"somebody else after the agent":   {managers: []metav1.ManagedFieldsEntry{by("ancient-changes", drained), by("kured", drained)}, foreign: true},
		"one of those that were merged":   {managers: []metav1.ManagedFieldsEntry{by("ancient-changes", drained), by("maint-agent", heartbeat)}, unknown: true},
		"nobody":                          {foreign: true},
		"nobody whose fields can be read": {managers: []metav1.ManagedFieldsEntry{{Manager: "maint-agent"}, by("maint-agent", "{")}, foreign: true},
		"somebody else, and it is False":  {status: corev1.ConditionFalse, managers: []metav1.ManagedFieldsEntry{by("kured", drained)}},
	} {
		t.Run(name, func(t *testing.T) {
			n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{ManagedFields: c.managers}}
			n.Status.Conditions = []corev1.NodeCondition{{Type: "Ready", Status: corev1.ConditionTrue}, {Type: "Drained", Status: corev1.ConditionTrue, Reason: "DrainCompleted", Message: "gpu: pods have left"}}
			if c.status != "" {
				n.Status.Conditions[1].Status = c.status
			}
			want := []lifecycle.Condition{{Type: lifecycle.Drained, True: c.status == "", Reason: "DrainCompleted", Message: "gpu: pods have left", Foreign: c.foreign, Unknown: c.unknown}}
			if diff := cmp.Diff(want, Lifecycle(n)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A condition that stays as it is keeps the time since when it is so.
func TestWhatIsWrittenOfConditions(t *testing.T) {
	now := time.Date(2026, 5, 1, 2, 0, 0, 0, time.UTC)
	have := []lifecycle.Condition{{Type: lifecycle.Drained, True: true}, {Type: lifecycle.Draining}}
	for name, c := range map[string]struct {
		change lifecycle.Condition
		want   string
	}{
		"it stays True":     {lifecycle.Condition{Type: lifecycle.Drained, True: true, Reason: "r", Message: "m"}, `{"type":"Drained","status":"True","reason":"r","message":"m","lastHeartbeatTime":"2026-05-01T02:00:00Z"}`},
		"it becomes False":  {lifecycle.Condition{Type: lifecycle.Drained}, `{"type":"Drained","status":"False","reason":"","message":"","lastHeartbeatTime":"2026-05-01T02:00:00Z","lastTransitionTime":"2026-05-01T02:00:00Z"}`},
		"it stays False":    {lifecycle.Condition{Type: lifecycle.Draining}, `{"type":"DrainInProgress","status":"False","reason":"","message":"","lastHeartbeatTime":"2026-05-01T02:00:00Z"}`},
		"there was no such": {lifecycle.Condition{Type: lifecycle.Planned, True: true}, `{"type":"MaintenancePlanned","status":"True","reason":"","message":"","lastHeartbeatTime":"2026-05-01T02:00:00Z","lastTransitionTime":"2026-05-01T02:00:00Z"}`},
	} {
		patch, err := LifecyclePatch("u1", "7", have, []lifecycle.Condition{c.change}, now)
		if err != nil {
			t.Fatal(err)
		}
		var got, want any
		if err := json.Unmarshal(patch, &got); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(`{"metadata":{"uid":"u1","resourceVersion":"7"},"status":{"conditions":[`+c.want+`]}}`), &want); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
