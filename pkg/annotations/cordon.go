package annotations

import (
	"encoding/json"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
)

// CordonWriter is a field manager that wrote spec.unschedulable of a node.
type CordonWriter struct {
	Manager string
	At      time.Time
}

// CordonWriters are the managers of spec.unschedulable, as far as the managed fields tell: the API
// server keeps who wrote the field, and not who removed it.
func CordonWriters(n *corev1.Node) []CordonWriter {
	var out []CordonWriter
	for _, m := range n.ManagedFields {
		if m.FieldsV1 == nil || m.Time == nil {
			continue
		}
		var fields struct {
			Spec map[string]json.RawMessage `json:"f:spec"`
		}
		if json.Unmarshal(m.FieldsV1.GetRawBytes(), &fields) == nil && fields.Spec["f:unschedulable"] != nil {
			out = append(out, CordonWriter{m.Manager, m.Time.Time})
		}
	}
	return out
}

// takenCordon says whether somebody else cordoned a node that is cordoned by us. The
// field is ours from our cordon on: who else wrote it had it open before, but for
// those who declare it beside us.
func takenCordon(n *corev1.Node) nodes.CordonTakeover {
	var taken nodes.CordonTakeover
	ours := false
	for _, w := range CordonWriters(n) {
		if w.Manager == ManagerAgent || strings.HasPrefix(w.Manager, PlanManagerPrefix) {
			ours = true
			continue
		}
		taken.By = w.Manager
	}
	taken.Opened = taken.By != "" && !ours
	return taken
}

// SlimCordon are the managed fields of a node that tell who cordoned it, and nothing
// else of them; none for a node that is not cordoned by us.
func SlimCordon(n *corev1.Node) []metav1.ManagedFieldsEntry {
	if !n.Spec.Unschedulable || n.Annotations[StatusCordoned] == "" {
		return nil
	}
	var out []metav1.ManagedFieldsEntry
	for _, w := range CordonWriters(n) {
		out = append(out, metav1.ManagedFieldsEntry{Manager: w.Manager, Time: &metav1.Time{Time: w.At}, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:unschedulable":{}}}`)})
	}
	return out
}
