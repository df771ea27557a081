package annotations

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// Policy reads the policy in a ConfigMap, with what its annotations say.
func Policy(cm *corev1.ConfigMap) plan.PolicyState {
	in := Intent(cm.Annotations)
	state := plan.PolicyState{Namespace: cm.Namespace, Name: cm.Name, Pause: in.Pause, Stanza: in.Stanza}
	text, fault := DocumentText(cm)
	if fault != nil {
		state.Faults = plan.Faults{*fault}
		return state
	}
	state.Spec, state.Faults = plan.ParsePolicy([]byte(text))
	if fault := accountLabel(cm, state.Spec.ServiceAccountName); fault != nil && len(state.Faults) == 0 {
		state.Faults = plan.Faults{*fault}
	}
	return state
}

// Calendar reads the calendar in a ConfigMap. Faulty lines are reported, and the
// others count; it is nil where nothing can be read.
func Calendar(cm *corev1.ConfigMap) (*schedule.Calendar, plan.Faults) {
	text, fault := DocumentText(cm)
	if fault != nil {
		return nil, plan.Faults{*fault}
	}
	if _, ics := cm.Data[DataICS]; ics {
		return plan.ParseCalendarICS([]byte(text))
	}
	return plan.ParseCalendarYAML([]byte(text))
}

// accountLabel is the fault of a document that names an account its label does
// not name.
func accountLabel(cm *corev1.ConfigMap, account string) *plan.Fault {
	if account == "" || account == plan.DefaultServiceAccount || cm.Labels[LabelServiceAccount] == account {
		return nil
	}
	return &plan.Fault{Path: "metadata.labels", Message: "needs the label " + LabelServiceAccount + ": " + account + ", since the document names that account and admission cannot read YAML"}
}
