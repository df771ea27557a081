package annotations

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
)

// GateObject is the ConfigMap that keeps the record of a policy's gates. It has
// no owner: it must outlive the policy until everything is open again.
func GateObject(namespace string, r policy.GateRecord) (*corev1.ConfigMap, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("record of the gates of policy %s: %w", r.Policy, err)
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: GateName(r.Policy), Labels: map[string]string{LabelKind: KindGate}},
		Data:       map[string]string{DataGate: string(text)},
	}, nil
}

// ReadGates reads the record of a policy's gates.
func ReadGates(cm *corev1.ConfigMap) (policy.GateRecord, error) {
	var r policy.GateRecord
	if cm.Labels[LabelKind] != KindGate {
		return r, fmt.Errorf("%w: ConfigMap %s lacks the label %s=%s", ErrForeign, cm.Name, LabelKind, KindGate)
	}
	if err := understood(cm); err != nil {
		return r, err
	}
	if err := json.Unmarshal([]byte(cm.Data[DataGate]), &r); err != nil {
		return r, fmt.Errorf("%w: %s of ConfigMap %s: %w", ErrForeign, DataGate, cm.Name, err)
	}
	if cm.Name != GateName(r.Policy) {
		return r, fmt.Errorf("%w: ConfigMap %s speaks of policy %q", ErrForeign, cm.Name, document.Cut(r.Policy, 80))
	}
	return r, nil
}
