package look

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/instant"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/print"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/source"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
)

type listOptions struct {
	*factory.Factory
	out        *print.Output
	what       string
	selector   string
	everywhere bool
	sleepers   map[*corev1.ConfigMap]view.Sleeper // those that are listed, with what stands around them
	unattended map[*corev1.ConfigMap]view.Plan    // plans that are listed while no agent is at work, with the same
	faults     exit.Faults
}

// listed are the kinds that can be listed, as people write them; plans by default.
func listed() []string {
	return []string{"plans", "policies", "calendars", "templates", "runs", "requests"}
}

// NewList lists the documents of a kind.
func NewList(c *factory.Factory) *cobra.Command {
	o := &listOptions{Factory: c, out: print.NewOutput()}
	cmd := &cobra.Command{
		Use:   "list [" + strings.Join(listed(), "|") + "]",
		Short: "List plans and HibernatePlans, or documents of another kind",
		Long: `List the plans of both kinds, or policies, calendars, step templates, runs, or the nodes
that somebody asks for (requests), a line each.`,
		Example: "  kubectl maint list -A -o wide\n  kubectl maint list runs\n  kubectl maint list requests -o name",
		RunE:    factory.RunE(o),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return listed(), cobra.ShellCompDirectiveNoFileComp
		},
	}
	o.out.AddFlags(cmd)
	cmd.Flags().StringVarP(&o.selector, "selector", "l", "", "labels of what is listed; those of a run are maint.dev/plan and maint.dev/phase")
	cmd.Flags().BoolVarP(&o.everywhere, "all-namespaces", "A", false, "of all namespaces")
	return cmd
}

// Complete takes the kind.
func (o *listOptions) Complete(_ *cobra.Command, args []string) error {
	o.what = "plans"
	if len(args) > 0 {
		o.what = strings.ToLower(args[0])
	}
	if len(args) > 1 {
		o.faults.Add("one kind at a time, not %d", len(args))
	}
	for _, kind := range listed() {
		if o.what == strings.TrimSuffix(kind, "s") || o.what == "policy" && kind == "policies" {
			o.what = kind
		}
	}
	return nil
}

// Validate checks the flags.
func (o *listOptions) Validate() error {
	o.out.Check(&o.faults)
	if !slices.Contains(listed(), o.what) {
		o.faults.Add("%q is not listed: it must be one of %s", o.what, strings.Join(listed(), ", "))
	}
	return o.faults.Err()
}

// Run prints the list.
func (o *listOptions) Run(ctx context.Context) error {
	k, err := o.Connect()
	if err != nil {
		return err
	}
	agent := o.AgentBeside(ctx, k.Whole(o.everywhere))
	if o.what == "requests" {
		return o.requests(ctx, k, agent)
	}
	namespace := k.Whole(o.everywhere).Namespace
	list, columns, row, err := o.documents(ctx, k, namespace, agent)
	_, _ = agent() // whoever may not look for it does without
	if err != nil {
		return err
	}
	if len(list) == 0 && o.out.Table() {
		print.Empty(o.ErrOut, namespace)
		return nil
	}
	t := print.NewTable(columns...)
	for _, cm := range list {
		print.AddRow(t, cm, row(cm)...)
	}
	if o.everywhere {
		o.out.WithNamespace()
	}
	kind, value := o.shape(ctx, k)
	return o.out.Print(o.Out, t, kind, func() ([]print.Value, error) {
		items := make([]print.Value, len(list))
		for i, cm := range list {
			items[i] = value(cm)
		}
		return items, nil
	})
}

// shape is the form of a kind for scripts.
func (o *listOptions) shape(ctx context.Context, k *factory.Cluster) (kind string, value func(*corev1.ConfigMap) print.Value) {
	if o.what == "runs" {
		return print.KindRunList, func(cm *corev1.ConfigMap) print.Value {
			r, err := k.ReadRun(ctx, cm)
			return print.RunItem(cm, r, err)
		}
	}
	now := o.Now()
	return print.KindDocumentList, func(cm *corev1.ConfigMap) print.Value { return print.DocumentValue(cm, o.plan, o.sleeper, now) }
}

// documents are those of a kind, each with its row.
func (o *listOptions) documents(ctx context.Context, k *factory.Cluster, namespace string, agent func() (factory.AgentState, error)) (list []*corev1.ConfigMap, columns []print.Column, row func(*corev1.ConfigMap) []string, err error) {
	switch o.what {
	case "policies":
		list, err = k.ListDocuments(ctx, "policies", annotations.KindPolicy, namespace, o.selector)
		return list, columnsOf("Name", "Strategy", "Permitted", "Until", "Ready", "Age"), o.policyRow, err
	case "calendars":
		list, err = k.ListDocuments(ctx, "calendars", annotations.KindCalendar, namespace, o.selector)
		return list, columnsOf("Name", "Valid", "Age"), o.validRow, err
	case "templates":
		list, err = k.ListDocuments(ctx, "step templates", annotations.KindStepTemplate, namespace, o.selector)
		return list, columnsOf("Name", "Contexts", "Parameters", "Age"), o.templateRow, err
	case "runs":
		list, err = k.ListDocuments(ctx, "runs", annotations.KindRun, namespace, o.selector)
		slices.SortStableFunc(list, func(a, b *corev1.ConfigMap) int {
			return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
		})
		return list, secondary(columnsOf("Name", "Plan", "Phase", "Asked by", "Started", "Took", "Age"), "Plan", "Asked by"), func(cm *corev1.ConfigMap) []string { return o.runRow(ctx, k, cm) }, err
	}
	plans, err := k.Plans(ctx, namespace, o.selector)
	if err != nil {
		return nil, nil, nil, err
	}
	sleepers, err := k.HibernatePlans(ctx, namespace, o.selector)
	columns = secondary(columnsOf("Name", "Kind", "Phase", "Next", "Last", "Result", "Age", "Target"), "Last", "Target")
	nothingBegins(plans, k.Deleting(ctx, namespace))
	o.readSleepers(ctx, k, agent, sleepers)
	o.readUnattended(ctx, k, agent, plans)
	return append(plans, sleepers...), columns, o.listRow, err
}

// readSleepers reads what stands around HibernatePlans.
func (o *listOptions) readSleepers(ctx context.Context, k *factory.Cluster, agent func() (factory.AgentState, error), objects []*corev1.ConfigMap) {
	if len(objects) == 0 {
		return
	}
	known, _ := agent() // whoever may not look for it does without
	o.sleepers = map[*corev1.ConfigMap]view.Sleeper{}
	for _, s := range source.ReadSleepers(ctx, o.Factory, k, known, objects) {
		o.sleepers[s.Object] = s
	}
}

func (o *listOptions) sleeper(cm *corev1.ConfigMap) view.Sleeper { return o.sleepers[cm] }

// readUnattended reads what stands around plans where no agent is at work: they may have been paused since it was.
func (o *listOptions) readUnattended(ctx context.Context, k *factory.Cluster, agent func() (factory.AgentState, error), plans []*corev1.ConfigMap) {
	known, err := agent()
	plans = slices.DeleteFunc(slices.Clone(plans), func(cm *corev1.ConfigMap) bool { return known.In(cm.Namespace).Missing == "" })
	if err != nil || len(plans) == 0 {
		return
	}
	var namespaces []string
	for _, cm := range plans {
		namespaces = append(namespaces, cm.Namespace)
	}
	around := source.ReadRestrictions(ctx, k, known.Namespace, namespaces...)
	o.unattended = map[*corev1.ConfigMap]view.Plan{}
	for _, cm := range plans {
		p := view.NewPlan(cm, view.Ledger{}, nil, around.Plan(o.Factory, known, cm), o.Now())
		if pause := p.Pause(o.Now()); pause.On && (pause.Until == nil || p.Published(annotations.StatusNextRun) < pause.Until.UTC().Format(time.RFC3339)) {
			p.Object = cm.DeepCopy()
			delete(p.Object.Annotations, annotations.StatusNextRun)
		}
		o.unattended[cm] = p
	}
}

// plan is a plan by what the agent published of it.
func (o *listOptions) plan(cm *corev1.ConfigMap) view.Plan {
	if p, unattended := o.unattended[cm]; unattended {
		return p
	}
	p := view.Plan{Object: cm, Now: o.Now()}
	p.Spec, p.Faults = annotations.Plan(cm)
	return p
}

// nothingBegins takes from what the agent published of the documents of some namespaces when they
// begin next.
func nothingBegins(list []*corev1.ConfigMap, in map[string]bool) {
	for i, cm := range list {
		if in[cm.Namespace] {
			list[i] = cm.DeepCopy()
			delete(list[i].Annotations, annotations.StatusNextRun)
			delete(list[i].Annotations, annotations.StatusSleeps)
		}
	}
}

// columnsOf are columns, with the message for -o wide.
func columnsOf(names ...string) []print.Column {
	var out []print.Column
	for _, name := range names {
		out = append(out, print.Column{Name: name})
	}
	return append(out, print.Column{Name: "Message", Wide: true})
}

// secondary moves columns to -o wide, so that the rest fits a screen of 80 to 100 columns.
func secondary(columns []print.Column, names ...string) []print.Column {
	for i := range columns {
		columns[i].Wide = columns[i].Wide || slices.Contains(names, columns[i].Name)
	}
	return columns
}

// policyRow is the row of a policy, from its document and its published status.
func (o *listOptions) policyRow(cm *corev1.ConfigMap) []string {
	state := annotations.Policy(cm)
	said, behavior := view.PolicySaid(cm, o.Now())
	permitted, until := "", ""
	if said != nil {
		permitted = strconv.FormatBool(*said)
	}
	if behavior != nil && behavior.Current.EndTime != nil {
		until = instant.Local(*behavior.Current.EndTime, o.Zone)
	}
	message := o.message(cm, state.Faults)
	if _, wrong := view.GatesOf(cm); wrong != "" {
		message = "its gates do not hold: " + wrong + view.Prefix("; ", message)
	}
	return []string{cm.Name, string(state.StrategyOf(o.Now())), permitted, until, conditionOf(cm, "Ready"), o.age(cm), message}
}

// age is how old an object is.
func (o *listOptions) age(cm *corev1.ConfigMap) string {
	return print.Age(o.Now(), cm.CreationTimestamp.Time)
}

// coming is clock of what is to come; empty: it is past, so that it was said of a slot before.
func (o *listOptions) coming(published, zone string) string {
	if at, err := time.Parse(time.RFC3339, published); err == nil && at.Before(o.Now()) {
		return ""
	}
	return clock(published, zone)
}

// clock is a published instant in a zone.
func clock(published, zone string) string {
	at, err := time.Parse(time.RFC3339, published)
	if err != nil { // nothing, or a text of somebody else
		return published
	}
	return instant.Local(at, zone)
}

func (o *listOptions) validRow(cm *corev1.ConfigMap) []string {
	_, faults := annotations.Calendar(cm)
	return []string{cm.Name, conditionOf(cm, "Valid"), o.age(cm), o.message(cm, faults)}
}

func (o *listOptions) templateRow(cm *corev1.ConfigMap) []string {
	t := annotations.StepTemplate(cm)
	var names []string
	for _, p := range t.Spec.Parameters {
		names = append(names, p.Name)
	}
	return []string{cm.Name, strings.Join(t.Contexts, ","), strings.Join(names, ","), o.age(cm), o.message(cm, t.Faults)}
}

func (o *listOptions) runRow(ctx context.Context, k *factory.Cluster, cm *corev1.ConfigMap) []string {
	r, err := k.ReadRun(ctx, cm)
	if err != nil {
		return []string{cm.Name, cm.Labels[annotations.LabelPlan], view.BrokenRun, "", "", "", o.age(cm), err.Error()}
	}
	j := r.Journal
	started, took, phase := "", "", string(j.Phase)
	if r.Run.Request.DryRun {
		phase += " (dry run)"
	}
	if j.StartedAt != nil {
		started, took = instant.Local(*j.StartedAt, o.Zone), instant.Approximate(o.Now().Sub(*j.StartedAt))
		if j.FinishedAt != nil {
			took = instant.Approximate(j.FinishedAt.Sub(*j.StartedAt))
		}
	}
	return []string{cm.Name, r.Run.Plan, phase, r.Run.Request.AskedBy(), started, took, o.age(cm), o.AgentText(j.Message, o.Zone)}
}

func conditionOf(cm *corev1.ConfigMap, kind string) string {
	for _, c := range view.Conditions(cm) {
		if c.Type == kind {
			return string(c.Status)
		}
	}
	return ""
}

// message is the first fault of a document, else the agent's message.
func (o *listOptions) message(cm *corev1.ConfigMap, faults document.Faults) string {
	if len(faults) > 0 {
		return faults[0].String() + view.AndMore(len(faults)-1)
	}
	return o.AgentText(cm.Annotations[annotations.StatusMessage], o.Zone)
}

// requests are the requested nodes, a row for each request.
func (o *listOptions) requests(ctx context.Context, k *factory.Cluster, agent func() (factory.AgentState, error)) error {
	list, err := k.Nodes(ctx, o.selector)
	_, _ = agent() // whoever may not look for it does without
	if err != nil {
		return err
	}
	t := print.NewTable(print.Column{Name: "Node"}, print.Column{Name: "For"}, print.Column{Name: "Phase"}, print.Column{Name: "Left"}, print.Column{Name: "Age"}, print.Column{Name: "Since", Wide: true}, print.Column{Name: "Reason", Wide: true})
	var asked []*corev1.Node
	for _, n := range list {
		claims := view.RequestClaims(n)
		if len(claims) > 0 {
			asked = append(asked, n)
		}
		for _, c := range claims {
			age, since := "", ""
			if !c.Since.IsZero() { // when a request came is not written down, but since when it is in its phase
				age, since = print.Age(o.Now(), c.Since), instant.Local(c.Since, o.Zone)
			}
			print.AddRow(t, nil, n.Name, c.By, c.Phase, c.Left, age, since, instant.InText(c.Reason, o.Zone))
		}
	}
	if len(asked) == 0 && o.out.Table() {
		print.Empty(o.ErrOut, "") // nodes have no namespace
		return nil
	}
	return o.out.Print(o.Out, t, print.KindNodeRequestList, func() ([]print.Value, error) {
		var items []print.Value
		for _, n := range asked {
			items = append(items, print.NodeRequestValues(n)...)
		}
		return items, nil
	})
}

func (o *listOptions) listRow(cm *corev1.ConfigMap) []string {
	if cm.Labels[annotations.LabelKind] == annotations.KindHibernatePlan {
		return o.sleeperRow(o.sleeper(cm))
	}
	p := o.plan(cm)
	phase, message := p.Phase()
	zone := view.PlanZone(p.Spec, o.Zone)
	message = joined(message, p.OnlyDry())
	return []string{cm.Name, "Plan", phase, o.coming(p.Published(annotations.StatusNextRun), zone), clock(p.Published(annotations.StatusLastRun), zone), p.Published(annotations.StatusLastResult), o.age(cm), p.Spec.TargetSaid(), o.AgentText(message, zone)}
}

// sleeperRow shows when a HibernatePlan wakes or falls asleep next, and since when it sleeps.
func (o *listOptions) sleeperRow(s view.Sleeper) []string {
	phase, message := s.Phase()
	var targets []string
	for _, t := range s.Spec.Targets {
		targets = append(targets, t.Name)
	}
	next := instant.UTC(cmp.Or(s.WakesAt(o.Now()), s.FallsAsleepAt(o.Now())))
	return []string{s.Name, "HibernatePlan", phase, o.coming(next, s.Zone()), clock(s.Published(annotations.StatusAsleep), s.Zone()), "", o.age(s.Object), strings.Join(targets, ","), joined(o.AgentText(message, s.Zone()), s.OnlyDry())}
}
