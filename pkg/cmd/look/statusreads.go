package look

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"golang.org/x/sync/errgroup"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/rollout"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/source"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// reads is everything that an overview is made from.
type reads struct {
	agent           factory.AgentState
	noAgent         error  // why the agent's state is not known
	config          string // why the configuration is invalid; empty: it is valid, or not known
	plans, sleepers []*corev1.ConfigMap
	restores        []view.Restore // only where all plans are read
	runs            []view.Run
	ledgers         map[types.UID]view.Ledger // of the plans
	around          source.Restrictions
	nodes           []*corev1.Node
	nodesDenied     error        // why nodes could not be read
	nodesUnread     error        // why not all was read of what the nodes are at; nil: all was
	use             view.NodeUse // of nodes, by live runs
	views           []view.Plan  // of the plans, those that need attention first
}

// read makes all requests concurrently: one after the other would take a second with a distant API
// server. An error of the agent's state is part of the result.
func (o *statusOptions) read(ctx context.Context, k *factory.Cluster) (reads, error) {
	var r reads
	r.agent, r.noAgent = o.agentNow(ctx, k) // first, so that the others reuse its connection
	namespace := k.Whole(o.everywhere).Namespace
	var failed [5]error
	var group errgroup.Group
	ask := func(i int, do func() error) {
		group.Go(func() error { failed[i] = do(); return nil })
	}
	ask(0, func() (err error) { r.plans, err = k.Plans(ctx, namespace, o.selector); return err })
	ask(1, func() (err error) { r.runs, err = k.Runs(ctx, namespace, "", factory.ActiveOnly); return err })
	var ledgers factory.Ledgers
	ask(2, func() (err error) { ledgers, err = k.Ledgers(ctx, namespace); return err })
	ask(3, func() (err error) { r.sleepers, err = k.HibernatePlans(ctx, namespace, o.selector); return err })
	if o.selector == "" {
		ask(4, func() (err error) { r.restores, err = k.Restores(ctx, namespace, ""); return err })
	}
	var active []view.Run
	group.Go(func() error { active, r.nodesUnread = o.nodes(ctx, k, &r); return nil })
	group.Go(func() error { r.config = o.config.look(ctx, o.Now(), k, r.agent); return nil })
	if !o.everywhere {
		group.Go(func() error { r.around = source.ReadRestrictions(ctx, k, r.agent.Namespace, namespace); return nil })
	}
	_ = group.Wait() // each has its own error; the first in order is reported
	for _, err := range failed {
		if err != nil {
			return r, err
		}
	}
	if o.everywhere && apierrors.IsForbidden(r.nodesDenied) { // who asks for one namespace need not be told
		o.Warn(r.nodesDenied.Error())
	}
	r.ledgers = map[types.UID]view.Ledger{}
	for _, cm := range r.plans {
		r.ledgers[cm.UID] = ledgers.Of(ctx, cm)
	}
	counted := rollout.Count(active, r.plans, func(plan *corev1.ConfigMap) view.Ledger { return r.ledgers[plan.UID] })
	r.use.Steps, r.use.Alone = view.StepClaims(counted.Counted), counted.Alone
	r.use.Gone = counted.NotRead(r.nodes, func(at string) bool { return o.selector == "" && (namespace == "" || at == namespace) })
	if o.everywhere {
		var namespaces []string
		for _, cm := range slices.Concat(r.plans, r.sleepers) {
			namespaces = append(namespaces, cm.Namespace)
		}
		r.around = source.ReadAllRestrictions(ctx, k, r.agent.Namespace, namespaces...)
	}
	r.views = o.plans(r)
	o.skips.look(ctx, o.Now(), k, r.views)
	return r, nil
}

// configuration is what is wrong with the agent's configuration. During a live view it is read no
// more often than the heartbeat.
type configuration struct {
	fault string
	until time.Time // not read again before
}

// configurationFor is how long the answer is used (a guess).
const configurationFor = 30 * time.Second

func (c *configuration) look(ctx context.Context, now time.Time, k *factory.Cluster, agent factory.AgentState) string {
	if !now.Before(c.until) {
		c.fault, c.until = k.InvalidConfiguration(ctx, agent.Namespace), now.Add(configurationFor)
	}
	return cmp.Or(c.fault, agent.Unconfigured)
}

// skips are the annotations by which targets skip plans. During a live view they are read no more
// often than the configuration, and of new plans and targets at once.
type skips struct {
	of    map[types.UID]targetSkip
	until time.Time // not read again before
}

type targetSkip struct {
	target plan.ObjectRef
	by     string // what was read last; empty: no skip, or nothing was read yet
}

func (s *skips) look(ctx context.Context, now time.Time, k *factory.Cluster, plans []view.Plan) {
	last := s.of
	old := !now.Before(s.until)
	s.of = make(map[types.UID]targetSkip, len(plans))
	specs := map[types.NamespacedName]plan.Spec{}
	for _, p := range plans {
		if !factory.SkippableByTarget(p.Spec) {
			continue
		}
		was, known := last[p.Object.UID]
		if known = known && was.target == *p.Spec.Target; !known {
			was = targetSkip{target: *p.Spec.Target}
		}
		s.of[p.Object.UID] = was
		if old || !known {
			specs[types.NamespacedName{Namespace: p.Object.Namespace, Name: p.Object.Name}] = p.Spec
		}
	}
	found := k.TargetSkips(ctx, specs)
	if old {
		s.until = now.Add(configurationFor)
	}
	for i, p := range plans {
		is := s.of[p.Object.UID]
		if by, read := found[types.NamespacedName{Namespace: p.Object.Namespace, Name: p.Object.Name}]; read {
			is.by = by
			s.of[p.Object.UID] = is
		}
		plans[i].SkipBy(is.by)
	}
}

// nodes reads all nodes, and the live runs that may have some; none where they cannot be read. It
// says why one of both could not be read.
func (o *statusOptions) nodes(ctx context.Context, k *factory.Cluster, r *reads) (active []view.Run, unread error) {
	var err error
	if o.seen != nil {
		r.nodes = o.seen.Nodes()
	} else if r.nodes, err = k.Nodes(ctx, ""); err != nil {
		r.nodesDenied = fmt.Errorf("what goes on on nodes is not shown: %w", err)
		o.warnUnread(ctx, r.nodesDenied)
		return nil, r.nodesDenied
	}
	if active, r.use.Unseen, err = k.ActiveRuns(ctx); err != nil {
		err = fmt.Errorf("which runs have nodes is not shown: %w", err)
		o.warnUnread(ctx, err)
	}
	return active, err
}

// warnUnread warns that a part is missing, unless the user may not read it.
func (o *statusOptions) warnUnread(ctx context.Context, err error) {
	if !apierrors.IsForbidden(err) && ctx.Err() == nil {
		o.Warn(err.Error())
	}
}

// needed is what does not exist of what plans need, what their targets skip, and which nodes their runs
// left cordoned. During a live view it is looked at no more often than the configuration.
type needed struct {
	of map[types.UID]neededLook
}

type neededLook struct {
	gone    []string
	skipped string
	left    []nodes.Node
	rested  bool
	until   time.Time
}

// look notes on a plan what is needed, and returns the nodes that were left cordoned.
func (n *needed) look(ctx context.Context, now time.Time, k *factory.Cluster, p *view.Plan) (left []nodes.Node) {
	last, known := n.of[p.Object.UID]
	switch {
	case known && now.Before(last.until) && (last.rested || !source.Rests(*p)):
		if source.Rests(*p) {
			p.Gone = last.gone
		}
		p.SkipBy(last.skipped)
		if len(p.Active) > 0 { // a run that goes on may have them now
			return nil
		}
		return last.left
	case n.of == nil:
		n.of = map[types.UID]neededLook{}
	}
	source.LookForNeeded(ctx, k, p)
	left = rollout.LeftCordoned(*p, func() ([]*corev1.Node, error) { return k.Nodes(ctx, "") })
	n.of[p.Object.UID] = neededLook{gone: p.Gone, skipped: p.Skipped, left: left, rested: source.Rests(*p), until: now.Add(configurationFor)}
	return left
}
