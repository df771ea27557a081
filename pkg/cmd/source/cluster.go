package source

import (
	"context"
	"fmt"
	"io"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/rollout"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// ReadCluster reads the plans and policies of the namespace, or of all if it is empty, with the
// calendars and namespaces that they need, as files would have them. Faults are printed to ErrOut:
// a plan with faults is left out, a policy with faults stays and is not ready.
func ReadCluster(ctx context.Context, c *factory.Factory, k *factory.Cluster, selector string) (Set, error) {
	w := Set{Pauses: map[string]schedule.Pause{}}
	agent, err := c.Agent(ctx, k)
	if err != nil || agent.Namespace == "" {
		agent.Namespace = annotations.DefaultNamespace
	}
	w.agent = agent.Namespace
	c.WarnSilent(agent)
	objects, sleeping, namespaces, err := w.readPlans(ctx, c, k, selector)
	if err != nil {
		return w, err
	}
	ledgers, err := k.Ledgers(ctx, k.Namespace)
	if err != nil {
		return w, err
	}
	readAround := ReadRestrictions
	if k.Namespace == "" {
		readAround = ReadAllRestrictions
	}
	around := readAround(ctx, k, agent.Namespace, namespaces...)
	w.Resolver, w.created = around.Resolver.Resolver, around.created
	specs := map[types.NamespacedName]plan.Spec{}
	for _, p := range w.Plans {
		specs[types.NamespacedName{Namespace: p.Namespace, Name: p.Name}] = p.Spec
	}
	skips := k.TargetSkips(ctx, specs)
	for i, cm := range objects {
		w.Plans[i].skipped = skips[types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name}]
		w.Plans[i].past = pastIn(ctx, c, ledgers, cm)
		w.Plans[i].gate, w.Plans[i].gated = around.planGate(c, agent, cm, w.Plans[i].Spec)
		w.Plans[i].told = around.PublishedPause(c, cm)
		invalid := view.Invalid(cm)
		if w.Plans[i].stopped = view.Stopped(around.DeletingOf(cm), invalid); invalid != "" {
			c.Warn(cm.Namespace + "/" + cm.Name + ": " + invalid)
		}
	}
	for i, s := range Sleepers(c, agent, sleeping, around) {
		w.Sleepers[i].past, w.Sleepers[i].seen = pastIn(ctx, c, ledgers, sleeping[i]), &s
	}
	for name, said := range around.frozen {
		w.Resolver.PutNamespace(name, said)
	}
	w.policies = w.Resolver.Policies()
	for _, p := range w.policies {
		namespaces = append(namespaces, p.Namespace)
		warnOf(c.ErrOut, p.Namespace, p.Name, p.Faults)
	}
	if k.Namespace == "" {
		namespaces = append(namespaces, around.closed()...)
	}
	w.namespaces = namesOf("", namespaces)
	for _, name := range namesOf(agent.Namespace, namespaces) {
		for _, s := range around.Above(name) {
			w.Pauses[name] = schedule.LongestPause(w.Pauses[name], s)
		}
	}
	return w, nil
}

// readPlans reads the plans of both kinds without faults, and says in which namespaces there are any.
func (w *Set) readPlans(ctx context.Context, c *factory.Factory, k *factory.Cluster, selector string) (objects, sleeping []*corev1.ConfigMap, namespaces []string, err error) {
	list, err := k.Plans(ctx, k.Namespace, selector)
	if err != nil {
		return nil, nil, nil, err
	}
	namespaces = []string{k.Namespace}
	for _, cm := range list {
		namespaces = append(namespaces, cm.Namespace)
		spec, faults := annotations.Plan(cm)
		if warnOf(c.ErrOut, cm.Namespace, cm.Name, faults) {
			continue
		}
		objects = append(objects, cm)
		w.Plans = append(w.Plans, Plan{Namespace: cm.Namespace, Name: cm.Name, Spec: spec.Defaulted(), Intent: annotations.Intent(cm.Annotations)})
	}
	sleepers, err := k.HibernatePlans(ctx, k.Namespace, selector)
	if err != nil {
		return nil, nil, nil, err
	}
	for _, cm := range sleepers {
		namespaces = append(namespaces, cm.Namespace)
		spec, faults := annotations.HibernatePlan(cm)
		if warnOf(c.ErrOut, cm.Namespace, cm.Name, faults) {
			continue
		}
		hold, _ := annotations.ReadHold(cm.Annotations)
		sleeping = append(sleeping, cm)
		w.Sleepers = append(w.Sleepers, HibernatePlan{Namespace: cm.Namespace, Name: cm.Name, Spec: spec, Hold: hold})
	}
	return objects, sleeping, namespaces, nil
}

// pastIn is the past of a plan of either kind. It warns of what is wrong with its ledger.
func pastIn(ctx context.Context, c *factory.Factory, ledgers factory.Ledgers, cm *corev1.ConfigMap) past {
	kept := ledgers.Of(ctx, cm)
	c.WarnOfLedger(cm.Namespace, cm.Name, kept)
	return pastOf(cm, kept)
}

// warnOf prints the faults of a document, and says whether it has any.
func warnOf(out io.Writer, namespace, name string, faults document.Faults) bool {
	for _, f := range faults {
		fmt.Fprintf(out, "warning: %s/%s: %s\n", namespace, name, f)
	}
	return len(faults) > 0
}

// ReadNode reads everything about one node.
func ReadNode(ctx context.Context, c *factory.Factory, k *factory.Cluster, agent factory.AgentState, n *corev1.Node) (view.Node, error) {
	facts := annotations.Node(n)
	runs, err := rollout.OfNode(ctx, c, k, facts)
	if err != nil {
		return view.Node{}, err
	}
	out := view.Node{Node: facts, Subject: nodeSubject(ctx, c, k, agent, n), Unseen: runs.Unseen, Alone: runs.Alone, Cordoners: annotations.CordonWriters(n)}
	out.StepClaims = slices.DeleteFunc(view.StepClaims(runs.Counted), func(r view.StepClaim) bool { return r.Node != n.Name })
	out.Gone = slices.DeleteFunc(runs.PlansGone(ctx, k, facts), out.MayBeRolledBy)
	return out, nil
}

// ReadPlan reads everything about one plan.
func ReadPlan(ctx context.Context, c *factory.Factory, k *factory.Cluster, agent factory.AgentState, cm *corev1.ConfigMap) (view.Plan, error) {
	kept, err := k.Ledger(ctx, cm)
	if err != nil {
		return view.Plan{}, err
	}
	live, err := k.RunsOf(ctx, cm, factory.ActiveOnly)
	if err != nil {
		return view.Plan{}, err
	}
	around := ReadRestrictions(ctx, k, agent.Namespace, cm.Namespace)
	return view.NewPlan(cm, kept, live, around.Plan(c, agent, cm), c.Now()), nil
}

// Rests says whether nothing is known to keep a plan's next run from starting and none lives: then
// the agent last looked at its account and its target when it found them ready.
func Rests(p view.Plan) bool {
	_, waits := view.FindCondition(p.Conditions(), "Ready", metav1.ConditionFalse)
	return !waits && !p.Deleting && p.Invalid() == "" && len(p.Active) == 0
}

// LookForNeeded looks whether the account and the target of a plan that rests exist, and whether the
// users of the target skip the plan. unseen is what could not be looked at, and why.
func LookForNeeded(ctx context.Context, k *factory.Cluster, p *view.Plan) (unseen []string) {
	if !Rests(*p) {
		p.SkipBy(k.TargetSkip(ctx, p.Object, p.Spec))
		return nil
	}
	gone, unseen, target := k.Needed(ctx, p.Object.Namespace, p.Spec)
	p.Gone = gone
	if target != nil {
		p.SkipBy(view.TargetSkip(p.Object.Name, p.Spec, target.Annotations))
	}
	return unseen
}
