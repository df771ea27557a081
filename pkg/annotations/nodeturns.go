package annotations

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// maxNodeTurns bounds a plan's node turns in bytes: a ConfigMap holds a mebibyte.
const maxNodeTurns = 900_000

// nodeTurns is what stands in the part of a ledger about nodes.
type nodeTurns struct {
	PlanUID string        `json:"planUID"`
	Nodes   run.NodeTurns `json:"nodes"`
}

// NodeTurnsObject is the ConfigMap of the turns that nodes had in a plan's rollouts; it is deleted
// with its plan. If not all turns fit, it has the newest. It is apart from the head of the ledger,
// which is written at every claim.
func NodeTurnsObject(namespace, planName, planUID string, turns run.NodeTurns) (*corev1.ConfigMap, error) {
	name := NodeTurnsName(planName, planUID)
	for {
		b, err := json.Marshal(nodeTurns{PlanUID: planUID, Nodes: turns})
		if err != nil {
			return nil, fmt.Errorf("write the node turns %s/%s: %w", namespace, name, err)
		}
		if len(b) > maxNodeTurns {
			turns = turns.Newest(len(turns) * 3 / 4)
			continue
		}
		return &corev1.ConfigMap{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
			ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: name,
				Labels:          map[string]string{LabelKind: KindLedger, LabelPlan: planName},
				OwnerReferences: []metav1.OwnerReference{PlanOwner(planName, planUID)},
			},
			Data: map[string]string{DataNodes: string(b)},
		}, nil
	}
}

// ReadNodeTurns reads what a plan's ledger knows of nodes and makes sure that it is
// the plan's own.
func ReadNodeTurns(cm *corev1.ConfigMap, planUID string) (run.NodeTurns, error) {
	var t nodeTurns
	if cm.Labels[LabelKind] != KindLedger {
		return nil, fmt.Errorf("%s/%s %w: it lacks the label %s: %s; delete or rename it", cm.Namespace, cm.Name, ErrForeign, LabelKind, KindLedger)
	}
	if err := json.Unmarshal([]byte(cm.Data[DataNodes]), &t); err != nil {
		return nil, fmt.Errorf("read the node turns %s/%s: %w", cm.Namespace, cm.Name, err)
	}
	if t.PlanUID != planUID {
		return nil, fmt.Errorf("%s/%s %w: it belongs to a plan of uid %q; delete or rename it", cm.Namespace, cm.Name, ErrForeign, t.PlanUID)
	}
	return t.Nodes, nil
}
