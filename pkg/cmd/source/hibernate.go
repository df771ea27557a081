package source

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
)

// HibernatePlan is a HibernatePlan from files or the cluster, with the intents of people.
type HibernatePlan struct {
	Source          Document
	Namespace, Name string
	Spec            hibernate.Spec
	Intent          intent.Intent
	Hold            hibernate.Hold

	past past          // of a plan in a cluster
	seen *view.Sleeper // in a cluster, with what stands around it
}

// FindSleeper is the HibernatePlan of the cluster that a name means; nil if it means something
// else, or nothing.
func FindSleeper(ctx context.Context, c *factory.Factory, k *factory.Cluster, agent factory.AgentState, name string) (*view.Sleeper, error) {
	cm, err := k.HibernatePlan(ctx, name)
	if cm == nil || err != nil {
		return nil, err
	}
	s := ReadSleeper(ctx, c, k, agent, cm)
	return &s, nil
}

// ReadSleeper reads everything about one HibernatePlan.
func ReadSleeper(ctx context.Context, c *factory.Factory, k *factory.Cluster, agent factory.AgentState, cm *corev1.ConfigMap) view.Sleeper {
	return ReadSleepers(ctx, c, k, agent, []*corev1.ConfigMap{cm})[0]
}

// ReadSleepers reads everything about HibernatePlans, in their order.
func ReadSleepers(ctx context.Context, c *factory.Factory, k *factory.Cluster, agent factory.AgentState, objects []*corev1.ConfigMap) []view.Sleeper {
	var namespaces []string
	for _, cm := range objects {
		namespaces = append(namespaces, cm.Namespace)
	}
	return Sleepers(c, agent, objects, ReadRestrictions(ctx, k, agent.Namespace, namespaces...))
}

// Sleepers describes HibernatePlans, in their order, from what was read around them.
func Sleepers(c *factory.Factory, agent factory.AgentState, objects []*corev1.ConfigMap, around Restrictions) []view.Sleeper {
	out := make([]view.Sleeper, len(objects))
	for i, cm := range objects {
		out[i] = view.NewSleeper(cm, around.AboveSleeper(c, cm), around.SleepGate(c, agent, cm))
		out[i].Deleting = around.DeletingOf(cm)
		if agent.In(cm.Namespace).Missing != "" {
			out[i].Unattended = c.Now()
		}
	}
	return out
}

// sleeper is a HibernatePlan with its surroundings.
func (w Set) sleeper(p HibernatePlan) view.Sleeper {
	if p.seen != nil {
		return *p.seen
	}
	s := view.SleeperOf(p.Namespace, p.Name, p.Spec, p.Intent, p.Hold, w.Resolver)
	s.Pauses = append(s.Pauses, w.PausesAbove(p.Namespace)...)
	return s
}

// Sleeper is the HibernatePlan in files that is meant: the one of that name, or the only one if
// there is neither a plan nor a policy. nil: something else is meant.
func (w Set) Sleeper(name string) (*view.Sleeper, error) {
	var found []view.Sleeper
	for _, p := range w.Sleepers {
		if means(name, annotations.KindHibernatePlan, p.Name) {
			found = append(found, w.sleeper(p))
		}
	}
	if name == "" && len(w.Plans) > 0 {
		return nil, nil
	}
	return only(w, annotations.KindHibernatePlan, found, func(s view.Sleeper) (string, string) { return s.Namespace, s.Name })
}

// hibernatePlan reads a HibernatePlan, with or without faults.
func (d Document) hibernatePlan(namespace string, notes map[string]string) HibernatePlan {
	spec, _ := hibernate.Parse([]byte(d.Text))
	hold, _ := annotations.ReadHold(notes)
	return HibernatePlan{Source: d, Namespace: namespace, Name: d.Name, Spec: spec, Intent: annotations.Intent(notes), Hold: hold}
}

func (d Document) hibernateFaults() document.Faults {
	if d.Object == nil {
		_, faults := hibernate.Parse([]byte(d.Text))
		return faults
	}
	_, faults := annotations.HibernatePlan(d.Object)
	_, hold := annotations.ReadHold(d.Object.Annotations)
	for _, f := range hold {
		f.Path = fieldPath("metadata.annotations", f.Path)
		faults = append(faults, f)
	}
	return append(faults, d.intentFaults()...)
}
