package cmd

import (
	"context"
	"fmt"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// clusterWorld reads the plans and policies of the namespace, or of all where
// that is empty, with the calendars and namespaces that they need, as files
// would show them. What cannot be used is told on ErrOut: a plan with faults is
// left out, a policy with faults stays and is not ready.
func (c *cli) clusterWorld(ctx context.Context, k *cluster) (world, error) {
	w := world{pauses: map[string]plan.Switch{}}
	agent, err := c.agent(ctx, k)
	if err != nil || agent.Namespace == "" {
		agent.Namespace = annotations.DefaultNamespace // whether it runs is not asked here
	}
	list, err := k.plansIn(ctx, k.namespace, "")
	if err != nil {
		return w, err
	}
	namespaces := []string{k.namespace}
	for _, cm := range list {
		namespaces = append(namespaces, cm.Namespace)
		spec, faults := annotations.Plan(cm)
		if c.tell(cm.Namespace, cm.Name, faults) {
			continue
		}
		w.plans = append(w.plans, filePlan{namespace: cm.Namespace, name: cm.Name, spec: spec.Defaulted(), intent: annotations.Intent(cm.Annotations)})
	}
	w.book = plan.NewBook(agent.Namespace)
	if k.namespace != "" || !k.wholeBook(ctx, w.book) {
		w.book, _ = k.bookOf(ctx, c.ErrOut, agent.Namespace, namespaces...)
	}
	w.policies = w.book.Policies()
	for _, p := range w.policies {
		namespaces = append(namespaces, p.Namespace)
		c.tell(p.Namespace, p.Name, p.Faults)
	}
	for name, switches := range k.pausesOf(ctx, agent.Namespace, namespaces...) {
		for _, s := range switches {
			w.pauses[name] = longer(w.pauses[name], s)
		}
	}
	return w, nil
}

// tell warns of a document's faults, and says whether it has any.
func (c *cli) tell(namespace, name string, faults plan.Faults) bool {
	for _, f := range faults {
		fmt.Fprintf(c.ErrOut, "warning: %s/%s: %s\n", namespace, name, f)
	}
	return len(faults) > 0
}

// longer is the one of two pauses that ends last.
func longer(a, b plan.Switch) plan.Switch {
	switch {
	case !b.On:
		return a
	case !a.On, b.Until == nil, a.Until != nil && b.Until.After(*a.Until):
		return b
	}
	return a
}
