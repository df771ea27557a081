package source

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// FindSubject finds a plan, policy or node of the cluster by its name.
func FindSubject(ctx context.Context, c *factory.Factory, k *factory.Cluster, text string) (view.Subject, error) {
	agent, _ := c.Agent(ctx, k)
	return SubjectOf(ctx, c, k, agent, text)
}

// SubjectOf is FindSubject with an agent whose state is known.
func SubjectOf(ctx context.Context, c *factory.Factory, k *factory.Cluster, agent factory.AgentState, text string) (view.Subject, error) {
	found, err := k.Find(ctx, text, annotations.KindPlan, annotations.KindPolicy)
	switch {
	case err != nil:
		return view.Subject{}, err
	case found.Node != nil:
		return nodeSubject(ctx, c, k, agent, found.Node), nil
	}
	cm := found.Document
	if cm.Labels[annotations.LabelKind] == annotations.KindPolicy {
		return PolicySubject(ctx, c, k, agent, cm), nil
	}
	b := ReadRestrictions(ctx, k, agent.Namespace, cm.Namespace)
	spec, faults := annotations.Plan(cm)
	gate, _ := b.planGate(c, agent, cm, spec)
	s := view.NewSubject(annotations.KindPlan, cm.Namespace, cm.Name, view.PlanZone(spec, c.Zone), gate)
	s.UID = string(cm.UID)
	s.Pauses = append(b.AbovePlan(c, cm), annotations.Intent(cm.Annotations).Pause)
	s.Invalid, s.Deleting = view.Plan{Object: cm, Faults: faults}.Invalid(), b.DeletingOf(cm)
	return s, nil
}

// PolicySubject is a policy with what stands behind it.
func PolicySubject(ctx context.Context, c *factory.Factory, k *factory.Cluster, agent factory.AgentState, cm *corev1.ConfigMap) view.Subject {
	b := ReadRestrictions(ctx, k, agent.Namespace, cm.Namespace)
	b.WarnOf(c, policy.Query{Policies: []policy.PolicyRef{{Name: cm.Name, Namespace: cm.Namespace}}})
	s := view.PolicySubject(cm.Namespace, cm.Name, view.PolicyZone(annotations.Policy(cm).Spec, c.Zone), b.Resolver.Resolver)
	s.Pauses = []schedule.Pause{annotations.Intent(cm.Annotations).Pause}
	s.Gates, s.Deleting = gatesSaid(cm), b.Deleting(cm.Namespace)
	return s
}

// WarnInvalid warns that nothing of an invalid plan begins, whatever is permitted.
func WarnInvalid(c *factory.Factory, s view.Subject) {
	if s.Invalid != "" {
		c.Warn("the plan is invalid, so it starts nothing: " + s.Invalid + "; the answer is of what else decides over it")
	}
}

// WarnDeleting warns that nothing begins in a namespace that is being deleted, whatever is permitted.
func WarnDeleting(c *factory.Factory, s view.Subject) {
	if s.Deleting {
		c.Warn(view.NamespaceGoes + ", so that nothing begins in it; the answer is of what else decides over " + s.String())
	}
}

func gatesSaid(cm *corev1.ConfigMap) string {
	held, wrong := view.GatesOf(cm)
	switch {
	case wrong != "":
		return "its gates do not hold: " + wrong
	case held != "":
		return "its gates hold: " + held
	}
	return ""
}

func nodeSubject(ctx context.Context, c *factory.Factory, k *factory.Cluster, agent factory.AgentState, node *corev1.Node) view.Subject {
	in := annotations.Intent(node.Annotations)
	b := ReadRestrictions(ctx, k, agent.Namespace, PolicyNamespaces(in)...)
	s := view.NewSubject(factory.KindNode, "", node.Name, c.Zone, b.NodeGate(c, agent, node))
	s.Pauses = append(b.Above(agent.Namespace), in.Pause)
	return s
}

// Subject finds the plan or policy in files: the one of that name, or else the only plan, or else
// the only policy. user is the user's zone.
func (w Set) Subject(name, user string) (view.Subject, error) {
	var plans, policies []view.Subject
	for _, p := range w.Plans {
		if s := view.NewSubject(annotations.KindPlan, p.Namespace, p.Name, view.PlanZone(p.Spec, user), w.GateOf(p)); name == "" || p.Name == factory.BareName(name) {
			s.Pauses = []schedule.Pause{p.Intent.Pause, w.Pauses[p.Namespace]}
			plans = append(plans, s)
		}
	}
	for _, p := range w.policies {
		if name == "" || p.Name == strings.TrimPrefix(name, "policy/") {
			policies = append(policies, view.PolicySubject(p.Namespace, p.Name, view.PolicyZone(p.Spec, user), w.Resolver))
		}
	}
	for _, found := range [][]view.Subject{plans, policies} {
		if len(found) == 1 {
			return found[0], nil
		}
		if len(found) > 1 {
			return view.Subject{}, exit.Errorf(exit.CodeUsage, "the files hold %s: name one (%s)", view.Counted(len(found), found[0].Kind), names(found))
		}
	}
	if name != "" {
		return view.Subject{}, fmt.Errorf("the files hold no plan or policy %q", name)
	}
	return view.Subject{}, fmt.Errorf("the files hold neither a plan nor a policy")
}

func names(list []view.Subject) string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = s.Name
	}
	return strings.Join(out, ", ")
}
