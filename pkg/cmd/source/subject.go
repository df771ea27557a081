package source

import (
	"context"
	"fmt"
	"slices"
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

// PolicySubject is a policy with what stands behind it. The pause of the whole cluster holds it, too; that
// of its namespace is of the plans there, and plans of other namespaces may name the policy. Where the
// cluster's may not be read, or what the policy names, what the agent published on the policy counts.
func PolicySubject(ctx context.Context, c *factory.Factory, k *factory.Cluster, agent factory.AgentState, cm *corev1.ConfigMap) view.Subject {
	b := ReadRestrictions(ctx, k, agent.Namespace, cm.Namespace)
	s := view.PolicySubject(cm.Namespace, cm.Name, view.PolicyZone(annotations.Policy(cm).Spec, c.Zone), b.Resolver.Resolver)
	s.Pauses = append(b.Above(agent.Namespace), annotations.Intent(cm.Annotations).Pause)
	s.Gates, s.Deleting = gatesSaid(cm), b.Deleting(cm.Namespace)
	s.Above = b.toldOfPolicy(c, agent, cm)
	return s
}

// toldOfPolicy is the gate of what the agent published on a policy, with the pause of the whole cluster,
// where not all that decides may be read; nil: all may. Without the agent's word, nothing is permitted.
func (b Resolver) toldOfPolicy(c *factory.Factory, agent factory.AgentState, cm *corev1.ConfigMap) *schedule.Gate {
	q := policy.Query{Policies: []policy.PolicyRef{{Name: cm.Name, Namespace: cm.Namespace}}}
	why, _ := b.hidden(q)
	noSwitch := b.namespaces[agent.Namespace]
	v, told := behaviorOf(cm.Annotations)
	switch {
	case len(why) == 0 && noSwitch == nil:
		return nil
	case told && observed(cm) && agent.Missing == "":
		b.warn(c, why, "the answer that the agent published is used")
		return schedule.Published(v, saysAgent)
	}
	b.WarnOf(c, q)
	if noSwitch == nil {
		return nil
	}
	return b.pauseHidden(c, []error{noSwitch})
}

// WarnInvalid warns that nothing of an invalid plan begins, whatever is permitted.
func WarnInvalid(c *factory.Factory, s view.Subject) {
	if s.Invalid != "" {
		c.Warn("the plan is invalid, so it starts nothing: " + s.Invalid + "; apart from that, this is the answer for it")
	}
}

// WarnDeleting warns that nothing begins in a namespace that is being deleted, whatever is permitted.
func WarnDeleting(c *factory.Factory, s view.Subject) {
	if s.Deleting {
		c.Warn(view.NamespaceGoes + ", so nothing begins in it; apart from that, this is the answer for " + s.String())
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
		if means(name, annotations.KindPlan, p.Name) {
			s := view.NewSubject(annotations.KindPlan, p.Namespace, p.Name, view.PlanZone(p.Spec, user), w.GateOf(p))
			s.Pauses = append(w.PausesAbove(p.Namespace), p.Intent.Pause)
			plans = append(plans, s)
		}
	}
	for _, p := range w.policies {
		if means(name, annotations.KindPolicy, p.Name) {
			s := view.PolicySubject(p.Namespace, p.Name, view.PolicyZone(p.Spec, user), w.Resolver)
			s.Pauses = append(w.PausesAbove(w.agent), p.Pause)
			policies = append(policies, s)
		}
	}
	for _, found := range [][]view.Subject{plans, policies} {
		if len(found) == 0 {
			continue
		}
		s, err := only(w, found[0].Kind, found, func(s view.Subject) (string, string) { return s.Namespace, s.Name })
		if err != nil {
			return view.Subject{}, err
		}
		return *s, nil
	}
	if name != "" {
		return view.Subject{}, fmt.Errorf("the files hold no plan or policy %q", name)
	}
	return view.Subject{}, fmt.Errorf("the files hold neither a plan nor a policy")
}

// means says whether a name on the command line, which may have a kind before it, can mean a
// document of a kind and a name. No name means any.
func means(given, kind, name string) bool {
	if given == "" {
		return true
	}
	before, bare := factory.SplitKind(given)
	return bare == name && view.MayMean(before, kind)
}

// only is the one of some documents of a kind that is meant: the only one, or else the only one in
// the namespace that -n names. nil: there are none.
func only[T any](w Set, kind string, found []T, key func(T) (namespace, name string)) (*T, error) {
	var chosen []T
	for _, one := range found {
		if namespace, _ := key(one); namespace == w.chosen {
			chosen = append(chosen, one)
		}
	}
	if len(chosen) > 0 {
		found = chosen
	}
	switch len(found) {
	case 0:
		return nil, nil
	case 1:
		return &found[0], nil
	}
	names, full, twice := make([]string, len(found)), make([]string, len(found)), false
	for i, one := range found {
		namespace, name := key(one)
		twice = twice || slices.Contains(names, name)
		names[i], full[i] = name, namespace+"/"+name
	}
	what := view.Counted(len(found), view.KindWord(kind))
	if twice {
		return nil, exit.Errorf(exit.CodeUsage, "the files hold %s: name one, and its namespace with -n (%s)", what, strings.Join(full, ", "))
	}
	return nil, exit.Errorf(exit.CodeUsage, "the files hold %s: name one (%s)", what, strings.Join(names, ", "))
}
