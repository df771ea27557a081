package look

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/print"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/source"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/stream"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// printValues prints the status for scripts: a value for one name, else a list.
func (o *statusOptions) printValues(ctx context.Context, k *factory.Cluster) error {
	items, unread, err := o.values(ctx, k)
	if err != nil {
		return err
	}
	if len(o.names) == 1 {
		return o.out.Print(o.Out, items[0])
	}
	return o.out.PrintList(o.Out, print.KindStatusList, items, unread.Why...)
}

// values are the content of the screen, and what could not be read for it. A missing agent is
// reported on standard error.
func (o *statusOptions) values(ctx context.Context, k *factory.Cluster) ([]print.Value, stream.Unread, error) {
	if len(o.names) == 0 {
		r, err := o.read(ctx, k)
		o.warnOfAgent(r.agent, r.noAgent)
		if r.config != "" {
			o.Warn(r.config)
		}
		if err != nil {
			return nil, stream.Unread{}, err
		}
		return append(o.allValues(k, r), o.agentValue(r)...), stream.NewUnread(func(key stream.Key) bool { return o.unread(k, r, key) }, r.nodesUnread), nil
	}
	agent, err := o.agentNow(ctx, k)
	o.warnOfAgent(agent, err)
	var out []print.Value
	for _, name := range o.names {
		found, err := o.find(ctx, k, name)
		if o.begun && left(ctx, k, name, err) {
			continue
		}
		if err != nil {
			return nil, stream.Unread{}, err
		}
		value, err := o.valueOf(ctx, k, agent, found)
		if err != nil {
			return nil, stream.Unread{}, err
		}
		out = append(out, value)
	}
	return out, stream.Unread{}, nil
}

// unread says of a value that is not among all values if that is because it could not be read. What
// else could not be read is an error.
func (o *statusOptions) unread(k *factory.Cluster, r reads, key stream.Key) bool {
	switch key.Kind {
	case print.KindNodeStatus:
		return r.nodesUnread != nil
	case print.KindAgentStatus:
		return r.noAgent != nil
	case print.KindNamespaceStatus:
		name := strings.TrimPrefix(key.Name, "namespace/")
		return r.around.Unread(name) && !r.around.AgentAsked(name)
	case print.KindPolicyStatus:
		return r.around.Unread(key.Namespace) || r.nodesUnread != nil && !o.listsPolicies(k, key.Namespace)
	}
	return false
}

// left says whether the error of looking for a name means that there is no such document or node any
// more, or one that has lost the label of its kind.
func left(ctx context.Context, k *factory.Cluster, name string, err error) bool {
	kind, bare := factory.SplitKind(name)
	switch {
	case err == nil:
		return false
	case errors.As(err, new(factory.NotFoundError)):
		return true
	case kind == factory.KindNode:
		return false
	}
	cm, unread := k.ConfigMaps(k.Namespace).Get(ctx, bare, metav1.GetOptions{})
	return unread == nil && !view.MayMean(kind, cm.Labels[annotations.LabelKind])
}

// agentValue is the agent where it needs somebody: nobody shows that one is at work, or its
// configuration is broken. What scripts are told of changes says since when, and not for how long.
func (o *statusOptions) agentValue(r reads) []print.Value {
	var needs []print.Need
	add := func(what string) {
		needs = append(needs, print.Need{About: "agent", What: what, Remedy: o.Suggest().DoctorAll()})
	}
	switch since := r.agent.Heartbeat; {
	case r.noAgent != nil || r.agent.Amiss() == "":
	case o.streams() && !since.IsZero() && !r.agent.Elsewhere && r.agent.Others == "": // else its words do not move with the clock
		add("the agent in namespace " + r.agent.Namespace + " was last seen " + since.UTC().Format(time.RFC3339))
	default:
		add(r.agent.Amiss())
	}
	if r.config != "" {
		add(r.config)
	}
	if len(needs) == 0 {
		return nil
	}
	return []print.Value{{Kind: print.KindAgentStatus, Name: "agent/maint-agent", Body: print.HeldValue(r.agent.Namespace, "maint-agent", needs)}}
}

func (o *statusOptions) warnOfAgent(agent factory.AgentState, err error) {
	switch {
	case err != nil:
		o.Warn(err.Error())
	case agent.Amiss() != "":
		o.Warn(agent.Amiss())
	}
}

func (o *statusOptions) valueOf(ctx context.Context, k *factory.Cluster, agent factory.AgentState, found factory.Resource) (print.Value, error) {
	if found.Node != nil {
		n, err := source.ReadNode(ctx, o.Factory, k, agent, found.Node)
		if err != nil {
			return print.Value{}, err
		}
		v := o.newPrinter(o.Zone)
		body := v.NodeValue(found.Node, view.ClaimsOfNode(n), needsOn(v, found.Node, n))
		verdict := n.Subject.Verdict(o.Now())
		body.Permission = &verdict
		return nodeValue(body), nil
	}
	cm := found.Document
	switch cm.Labels[annotations.LabelKind] {
	case annotations.KindRun:
		r, err := k.ReadRun(ctx, cm)
		if err != nil {
			return print.Value{}, err
		}
		r = k.Answered(ctx, r)
		return runValue(print.RunValue(r, needsOfRun(ctx, k, o.printer(view.PlanZone(r.Run.Spec, o.Zone), r.Run.Namespace), r)...)), nil
	case annotations.KindHibernatePlan:
		s := source.ReadSleeper(ctx, o.Factory, k, agent, cm)
		body := o.printer(s.Zone(), s.Namespace).SleeperValue(s)
		body.Slept = slept(ctx, o.Factory, k, cm)
		return sleeperValue(body), nil
	case annotations.KindPolicy:
		p := showPolicy(ctx, o.Factory, k, agent, cm)
		p.v.Fixed = o.streams()
		return policyValue(p.value()), nil
	}
	p, err := source.ReadPlan(ctx, o.Factory, k, agent, cm)
	if err != nil {
		return print.Value{}, err
	}
	left := o.needed.look(ctx, o.Now(), k, &p)
	v := o.printer(view.PlanZone(p.Spec, o.Zone), p.Object.Namespace)
	return o.planValue(p, fleetOf(ctx, k, p.ResponsiveRuns()...), leftCordoned(v, p, left)...), nil
}

// allValues are the plans of both kinds, runs and restore data without a plan, paused or frozen
// namespaces and policies, and nodes in maintenance, claimed or requested. Where nodes may not be
// read, they are left out.
func (o *statusOptions) allValues(k *factory.Cluster, r reads) []print.Value {
	out := []print.Value{}
	for _, p := range r.views {
		out = append(out, o.planValue(p, r.nodes))
	}
	for _, s := range o.sleepers(r) {
		out = append(out, o.sleeperValue(s))
	}
	for _, h := range o.above(k, r) {
		out = append(out, h.value)
	}
	for _, n := range r.nodes {
		v, claims := o.newPrinter(o.Zone), view.NodeClaims([]*corev1.Node{n}, r.use)
		if needs := append(v.ClaimNeeds(claims), v.NodeNeeds(n)...); len(claims)+len(needs) > 0 {
			out = append(out, nodeValue(v.NodeValue(n, claims, needs)))
		}
	}
	return out
}

func (o *statusOptions) planValue(p view.Plan, fleet []*corev1.Node, more ...print.Need) print.Value {
	v := o.printer(view.PlanZone(p.Spec, o.Zone), p.Object.Namespace)
	return planValue(v.PlanValue(p, append(stuckRollouts(v, p.ResponsiveRuns(), fleet), more...)...))
}

// fleetOf are all nodes, where one of some runs has a rollout at work; none where they may not be read.
func fleetOf(ctx context.Context, k *factory.Cluster, active ...view.Run) []*corev1.Node {
	rolls := func(rec run.Record) bool { return rec.Type == plan.TypeForEachNode && rec.Phase == run.StepRunning }
	if !slices.ContainsFunc(active, func(r view.Run) bool { return slices.ContainsFunc(r.Journal.Steps, rolls) }) {
		return nil
	}
	list, _ := k.Nodes(ctx, "")
	return list
}

func (o *statusOptions) sleeperValue(s view.Sleeper) print.Value {
	return sleeperValue(o.printer(s.Zone(), s.Namespace).SleeperValue(s))
}

// slept is how long the resources of a HibernatePlan slept lately; if that is not known, standard
// error says why.
func slept(ctx context.Context, f *factory.Factory, k *factory.Cluster, cm *corev1.ConfigMap) []print.SleptValue {
	rows, err := source.ReadSlept(ctx, k, cm, f.Now())
	if err != nil {
		f.Warn("how long it slept is not known: " + err.Error())
	}
	return print.SleptValues(rows)
}

func planValue(body print.PlanStatus) print.Value {
	return print.Value{Kind: print.KindPlanStatus, Name: "plan/" + body.Metadata.Name, Body: body}
}

func sleeperValue(body print.HibernatePlanStatus) print.Value {
	return print.Value{Kind: print.KindHibernatePlanStatus, Name: "hibernate-plan/" + body.Metadata.Name, Body: body}
}

func runValue(body print.RunStatus) print.Value {
	return print.Value{Kind: print.KindRunStatus, Name: "run/" + body.Metadata.Name, Body: body}
}

func nodeValue(body print.NodeStatus) print.Value {
	return print.Value{Kind: print.KindNodeStatus, Name: "node/" + body.Metadata.Name, Body: body}
}

// printValues prints everything about runs and plans for scripts.
func (o *describeOptions) printValues(ctx context.Context, k *factory.Cluster) error {
	var items []print.Value
	for _, name := range o.names {
		cm, err := o.find(ctx, k, name)
		agent, _ := o.agent()
		if gone := (*factory.GoneRunError)(nil); errors.As(err, &gone) {
			items = append(items, o.goneValue(gone))
			continue
		}
		if err != nil {
			return err
		}
		value, err := o.valueOf(ctx, k, agent, cm)
		if err != nil {
			return fmt.Errorf("%s: %w", cm.Name, err)
		}
		items = append(items, value)
	}
	if len(items) == 1 {
		return o.out.Print(o.Out, items[0])
	}
	return o.out.PrintList(o.Out, print.KindStatusList, items)
}

// goneValue is what the ledger remembers of a run that is no longer kept.
func (o *describeOptions) goneValue(gone *factory.GoneRunError) print.Value {
	o.WarnOfLedger(gone.Namespace, gone.Plan, view.Ledger{Doubt: gone.Doubt})
	return print.Value{Kind: "Ledger", Name: "run/" + gone.Entry.Run, Body: view.NewLedgerItem(gone.Namespace, gone.Plan, gone.Entry)}
}

func (o *describeOptions) valueOf(ctx context.Context, k *factory.Cluster, agent factory.AgentState, cm *corev1.ConfigMap) (print.Value, error) {
	if cm.Labels[annotations.LabelKind] == annotations.KindPolicy {
		return o.policyInFull(ctx, k, agent, cm), nil
	}
	events := o.eventValues(ctx, k, cm)
	if cm.Labels[annotations.LabelKind] == annotations.KindRun {
		r, err := k.ReadRun(ctx, cm)
		if err != nil {
			return print.Value{}, err
		}
		r = k.Answered(ctx, r)
		body := print.RunInFull(r, needsOfRun(ctx, k, print.New(o.Env, view.PlanZone(r.Run.Spec, o.Zone)), r)...)
		body.Events = events
		return runValue(body), nil
	}
	if cm.Labels[annotations.LabelKind] == annotations.KindHibernatePlan {
		s := source.ReadSleeper(ctx, o.Factory, k, agent, cm)
		kept, err := k.Ledger(ctx, cm)
		if err != nil {
			return print.Value{}, err
		}
		o.WarnOfLedger(cm.Namespace, cm.Name, kept)
		body := print.New(o.Env, s.Zone()).SleeperValue(s)
		body.Spec, body.Events, body.Slept = &s.Spec, events, slept(ctx, o.Factory, k, cm)
		if kept.Head != nil {
			body.History = kept.Head.Recent
		}
		return sleeperValue(body), nil
	}
	p, err := source.ReadPlan(ctx, o.Factory, k, agent, cm)
	if err != nil {
		return print.Value{}, err
	}
	source.LookForNeeded(ctx, k, &p)
	v := print.New(o.Env, view.PlanZone(p.Spec, o.Zone))
	body := v.PlanValue(p, stuckRollouts(v, p.ResponsiveRuns(), fleetOf(ctx, k, p.ResponsiveRuns()...))...)
	body.Spec, body.Events = &p.Spec, events
	if p.Ledger != nil {
		body.History = p.Ledger.Recent
	}
	newest, err := newestRun(ctx, k, cm)
	if err != nil {
		return print.Value{}, err
	}
	if newest != nil {
		body.NewestRun = new(print.RunInFull(*newest))
	}
	return planValue(body), nil
}

func (o *describeOptions) eventValues(ctx context.Context, k *factory.Cluster, cm *corev1.ConfigMap) (out []print.EventValue) {
	events, err := eventsOf(ctx, k, cm)
	if err != nil {
		o.Warn("Events are not known: " + err.Error())
	}
	for _, e := range events {
		out = append(out, print.EventValue{At: eventAt(e).UTC(), Type: e.Type, Reason: e.Reason, Message: e.Message})
	}
	return out
}
