package annotations

import (
	"fmt"

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
		state.Faults = append(document.Faults{*fault}, NameFaults(cm, "a policy")...)
		return state
	}
	state.Spec, state.Faults = policy.Parse([]byte(text))
	if fault := accountLabel(cm, state.Spec.ServiceAccountName); fault != nil && len(state.Faults) == 0 {
		state.Faults = document.Faults{*fault}
	}
	state.Faults = append(state.Faults, NameFaults(cm, "a policy")...)
	return state
}

// Calendar reads the calendar in a ConfigMap. Faulty lines, and a name that none can
// have, are reported, and the rest counts; it is nil where nothing can be read.
func Calendar(cm *corev1.ConfigMap) (*schedule.Calendar, document.Faults) {
	named := NameFaults(cm, "a calendar")
	text, fault := DocumentText(cm)
	if fault != nil {
		return nil, append(document.Faults{*fault}, named...)
	}
	parse := policy.ParseCalendarYAML
	if _, ics := cm.Data[DataICS]; ics {
		parse = policy.ParseCalendarICS
	}
	c, faults := parse([]byte(text))
	return c, append(faults, named...)
}

// NameFaults is the fault of a document whose ConfigMap is called as no document can be,
// where it is; what is "a policy". A manifest without any name is not its concern.
func NameFaults(cm *corev1.ConfigMap, what string) document.Faults {
	if cm.Name == "" || document.DNSLabel(cm.Name) {
		return nil
	}
	return document.Faults{{Path: "metadata.name", Message: fmt.Sprintf("%q cannot name %s: at most %d characters of a-z, 0-9 and '-'", document.Cut(cm.Name, 100), what, document.MaxNameLength)}}
}

// accountLabel is the fault of a document that names an account its label does
// not name.
func accountLabel(cm *corev1.ConfigMap, account string) *document.Fault {
	if account == "" || account == policy.DefaultServiceAccount || cm.Labels[LabelServiceAccount] == account {
		return nil
	}
	return &document.Fault{Path: "metadata.labels", Message: "needs the label " + LabelServiceAccount + ": " + account + ", since it runs as that account, and admission policies see labels only"}
}
