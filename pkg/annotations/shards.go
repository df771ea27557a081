package annotations

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
)

// shard is what stands in a shard of a ledger.
type shard struct {
	PlanUID string       `json:"planUID"`
	Seen    ledger.Shard `json:"seen"`
}

// ShardObject is the ConfigMap of a part of what a plan's watch rules have seen,
// collected with its plan.
func ShardObject(namespace, planName, planUID string, number int, s ledger.Shard) (*corev1.ConfigMap, error) {
	b, err := json.Marshal(shard{PlanUID: planUID, Seen: s})
	if err != nil {
		return nil, fmt.Errorf("write shard %d of plan %s/%s: %w", number, namespace, planName, err)
	}
	return &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: ShardName(planName, planUID, number),
			Labels:          map[string]string{LabelKind: KindLedger, LabelPlan: planName},
			OwnerReferences: []metav1.OwnerReference{PlanOwner(planName, planUID)},
		},
		Data: map[string]string{DataSeen: string(b)},
	}, nil
}

// ReadShard reads a shard and makes sure that it is the plan's own.
func ReadShard(cm *corev1.ConfigMap, planUID string) (ledger.Shard, error) {
	var s shard
	if cm.Labels[LabelKind] != KindLedger {
		return nil, fmt.Errorf("%s/%s %w: it lacks the label %s: %s; delete or rename it", cm.Namespace, cm.Name, ErrForeign, LabelKind, KindLedger)
	}
	if err := json.Unmarshal([]byte(cm.Data[DataSeen]), &s); err != nil {
		return nil, fmt.Errorf("read shard %s/%s: %w", cm.Namespace, cm.Name, err)
	}
	if s.PlanUID != planUID {
		return nil, fmt.Errorf("%s/%s %w: it belongs to a plan of uid %q; delete or rename it", cm.Namespace, cm.Name, ErrForeign, s.PlanUID)
	}
	return s.Seen, nil
}

// AgentWrites says whether the agent itself writes ConfigMaps of a kind. Nobody
// is woken by those: a plan that watched its own runs would never rest.
func AgentWrites(kind string) bool {
	return slices.Contains(RecordKinds(), kind)
}

// RecordKinds are the kinds of ConfigMaps that the agent alone writes.
func RecordKinds() []string {
	return []string{KindRun, KindLedger, KindRestore, KindHeartbeat, KindGate}
}
