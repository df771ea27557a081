package annotations

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// Policy reads the policy in a ConfigMap, with what its annotations say.
func Policy(cm *corev1.ConfigMap) policy.State {
	in := Intent(cm.Annotations)
	state := policy.State{Namespace: cm.Namespace, Name: cm.Name, Pause: in.Pause, Stanza: in.Stanza}
	text, fault := DocumentText(cm)
	if fault != nil {
		state.Faults = document.Faults{*fault}
		return state
	}
	state.Spec, state.Faults = policy.Parse([]byte(text))
	if fault := accountLabel(cm, state.Spec.ServiceAccountName); fault != nil && len(state.Faults) == 0 {
		state.Faults = document.Faults{*fault}
	}
	return state
}

// Calendar reads the calendar in a ConfigMap. Faulty lines are reported, and the
// others count; it is nil where nothing can be read.
func Calendar(cm *corev1.ConfigMap) (*schedule.Calendar, document.Faults) {
	text, fault := DocumentText(cm)
	if fault != nil {
		return nil, document.Faults{*fault}
	}
	if _, ics := cm.Data[DataICS]; ics {
		return policy.ParseCalendarICS([]byte(text))
	}
	return policy.ParseCalendarYAML([]byte(text))
}

// accountLabel is the fault of a document that names an account its label does
// not name.
func accountLabel(cm *corev1.ConfigMap, account string) *document.Fault {
	if account == "" || account == policy.DefaultServiceAccount || cm.Labels[LabelServiceAccount] == account {
		return nil
	}
	return &document.Fault{Path: "metadata.labels", Message: "needs the label " + LabelServiceAccount + ": " + account + ", since it runs as that account, and admission policies see labels only"}
}
