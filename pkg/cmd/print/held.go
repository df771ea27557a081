package print

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// Kinds of values for namespaces, policies and the agent.
const (
	KindNamespaceStatus = "NamespaceStatus"
	KindPolicyStatus    = "PolicyStatus"
	KindAgentStatus     = "AgentStatus"
)

// KindRestoreStatus is restore data whose HibernatePlan is gone.
const KindRestoreStatus = "RestoreStatus"

// RestoreStatus is restore data whose HibernatePlan is gone.
type RestoreStatus struct {
	Metadata Identity    `json:"metadata"`
	Plan     string      `json:"plan"`
	Target   string      `json:"target,omitempty"`
	Needs    []NeedValue `json:"needs"`
}

// RestoreValue is restore data whose HibernatePlan is gone, for scripts.
func RestoreValue(r view.Restore, needs []Need) RestoreStatus {
	return RestoreStatus{Metadata: identityOf(r.Object.ObjectMeta), Plan: r.Of(), Target: r.Record.Target, Needs: needValues(needs)}
}

// HeldStatus is a namespace or a policy that is paused or frozen, or an agent that needs somebody.
type HeldStatus struct {
	Metadata Identity    `json:"metadata"`
	Needs    []NeedValue `json:"needs"`
}

// HeldValue is a namespace or a policy for scripts.
func HeldValue(namespace, name string, needs []Need) HeldStatus {
	return HeldStatus{Metadata: identityOf(metav1.ObjectMeta{Namespace: namespace, Name: name}), Needs: needValues(needs)}
}

// PauseNeeds are the pause of a namespace, or of the whole cluster.
func (v Printer) PauseNeeds(p schedule.Pause) []Need {
	remedy := v.Suggest().ResumeAll()
	if p.Of == annotations.WholeCluster {
		remedy = v.Suggest().ResumeCluster()
	}
	return v.held(p.Of, intent.Intent{Pause: p}, remedy, "")
}

// FreezeNeeds are the freeze of a namespace.
func (v Printer) FreezeNeeds(namespace string, s policy.StanzaText) []Need {
	return v.held(annotations.NamespaceNamed(namespace), intent.Intent{Stanza: s}, "", v.In("").Suggest().Unfreeze("namespace/"+namespace))
}

// PolicyNeeds are what is wrong with a policy or its gates, and its pause and freeze.
func (v Printer) PolicyNeeds(about string, p policy.State, notReady, gates string) []Need {
	of := "policy/" + p.Name
	var out []Need
	if notReady != "" {
		out = append(out, Need{About: about, What: "is not ready, so that nothing begins that waits for it: " + v.AgentText(notReady), Remedy: v.Suggest().Why(of)})
	}
	if gates != "" {
		out = append(out, Need{About: about, What: "has gates that do not hold, so objects that they should close may be open: " + v.AgentText(gates), Remedy: v.Suggest().Why(of)})
	}
	return append(out, v.held(about, intent.Intent{Pause: p.Pause, Stanza: p.Stanza}, v.Suggest().Resume(of), v.Suggest().Unfreeze(of))...)
}

// NodeNeeds are the pause and the freeze of a node.
func (v Printer) NodeNeeds(n *corev1.Node) []Need {
	of, hand := "node/"+n.Name, v.In("").Suggest()
	return v.held("node "+n.Name, annotations.Intent(n.Annotations), hand.Resume(of), hand.Unfreeze(of))
}

func (v Printer) held(about string, in intent.Intent, resume, unfreeze string) []Need {
	var out []Need
	if in.Pause.Holds(v.Now) {
		out = append(out, Need{About: about, What: v.Paused(in.Pause), Remedy: resume})
	}
	if what := v.Frozen(in); what != "" {
		out = append(out, Need{About: about, What: what, Remedy: unfreeze})
	}
	return out
}

// Paused says until when, by whom and why something is paused.
func (v Printer) Paused(p schedule.Pause) string {
	return "is paused " + v.pauseUntil(p) + p.Clause()
}
