package look

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/instant"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/print"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/source"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// shownPolicy is a policy with what it permits now and what its gates do.
type shownPolicy struct {
	object  *corev1.ConfigMap
	state   policy.State
	verdict schedule.Verdict
	subject view.Subject
	v       print.Printer
}

func showPolicy(ctx context.Context, c *factory.Factory, k *factory.Cluster, agent factory.AgentState, cm *corev1.ConfigMap) shownPolicy {
	s := source.PolicySubject(ctx, c, k, agent, cm)
	return shownPolicy{object: cm, state: annotations.Policy(cm), verdict: s.Verdict(c.Now()), subject: s, v: print.New(c.Env, s.Zone)}
}

// lines are its standing: for status what needs eyes, for describe all.
func (p shownPolicy) lines(all bool) []string {
	verdict := print.VerdictLines(p.subject, p.verdict, p.v.Now)
	verdict[0] = strings.TrimPrefix(verdict[0], p.subject.String()+": ")
	paused := ""
	switch pause := p.subject.PauseAt(p.v.Now); {
	case pause.Of != "":
		paused = p.v.PauseAbove(pause)
	case pause.On:
		paused = strings.TrimPrefix(p.v.Paused(pause), "is paused ")
	}
	var conditions []string
	if all {
		for _, c := range view.Conditions(p.object) {
			conditions = append(conditions, c.Type+"="+string(c.Status)+view.Prefix(" ", instant.InText(c.Message, p.subject.Zone)))
		}
	}
	return p.v.Labelled(
		"Policy", p.v.Bold(p.object.Name)+" in namespace "+p.object.Namespace,
		"Change", strings.Join(verdict, "\n"),
		"Pause", paused,
		"Gates", strings.TrimPrefix(p.subject.Gates, "its gates "),
		"Conditions", strings.Join(conditions, "\n"),
	)
}

func (p shownPolicy) needs() []print.Need {
	notReady := ""
	switch {
	case len(p.state.Faults) > 0:
		notReady = p.state.Faults[0].String()
	case !p.verdict.Ready && !p.verdict.Hidden():
		notReady = strings.TrimPrefix(p.verdict.Reason, "not ready: ")
	}
	_, wrong := view.GatesOf(p.object)
	return p.v.PolicyNeeds("policy "+p.object.Name, p.state, notReady, wrong)
}

// policyStatus is a policy for scripts. The last two are of describe alone.
type policyStatus struct {
	print.HeldStatus
	Permission *schedule.Verdict  `json:"permission"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	Faults     []string           `json:"faults,omitempty"`
	Spec       *policy.PolicySpec `json:"spec,omitempty"`
	Events     []print.EventValue `json:"events,omitempty"`
}

func (p shownPolicy) value() policyStatus {
	out := policyStatus{HeldStatus: print.HeldValue(p.object.Namespace, p.object.Name, p.needs()), Permission: &p.verdict, Conditions: view.Conditions(p.object)}
	for _, f := range p.state.Faults {
		out.Faults = append(out.Faults, f.String())
	}
	return out
}

func policyValue(body policyStatus) print.Value {
	return print.Value{Kind: print.KindPolicyStatus, Name: "policy/" + body.Metadata.Name, Body: body}
}

// describePolicy tells everything about a policy.
func (o *describeOptions) describePolicy(ctx context.Context, k *factory.Cluster, agent factory.AgentState, cm *corev1.ConfigMap) []string {
	p := showPolicy(ctx, o.Factory, k, agent, cm)
	lines := append(p.lines(true), faultLines(p.state.Faults)...)
	lines = append(lines, eventLines(ctx, k, cm, p.v)...)
	return append(lines, "", "Document:", print.IndentText(cm.Data[annotations.DataPolicy]))
}

func (o *describeOptions) policyInFull(ctx context.Context, k *factory.Cluster, agent factory.AgentState, cm *corev1.ConfigMap) print.Value {
	p := showPolicy(ctx, o.Factory, k, agent, cm)
	body := p.value()
	body.Spec, body.Events = &p.state.Spec, o.eventValues(ctx, k, cm)
	return policyValue(body)
}
