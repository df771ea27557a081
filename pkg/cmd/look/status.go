package look

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/print"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/source"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/watch"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/trigger"
)

type statusOptions struct {
	*factory.Factory
	names      []string
	everywhere bool
	watch      bool
	seen       *watch.Cache // nodes, while they are watched; nil: they are read each time
	faults     exit.Faults
}

// NewStatus shows what runs, what waits and why, and what is next.
func NewStatus(c *factory.Factory) *cobra.Command {
	o := &statusOptions{Factory: c}
	cmd := &cobra.Command{
		Use:   "status [PLAN|NODE|RUN...]",
		Short: "What runs, what waits and why, what is next",
		Long: `What runs, what waits and why, what sleeps until when, and what is next: on one screen
for a namespace and the nodes that are in maintenance or asked for, in full for what
is named. Where
a plan and a node have one name, write plan/NAME or node/NAME. -w keeps it live,
until Ctrl-C.`,
		Example: `  kubectl maint status
  kubectl maint status orders-weekly -w
  kubectl maint status node/worker-1`,
		RunE:              factory.RunE(o),
		ValidArgsFunction: factory.CompleteBoth(c.Complete(annotations.LabelKind+" in (plan,hibernate-plan,run)", nil), c.CompleteNodes(factory.Maintained)),
	}
	cmd.Flags().BoolVarP(&o.everywhere, "all-namespaces", "A", false, "of all namespaces")
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "keep it live")
	return cmd
}

func (o *statusOptions) Complete(_ *cobra.Command, args []string) error {
	o.names = args
	return nil
}

func (o *statusOptions) Validate() error {
	if o.everywhere && len(o.names) > 0 {
		o.faults.Add("-A and names exclude each other: a name is looked for in one namespace")
	}
	return o.faults.Err()
}

func (o *statusOptions) Run(ctx context.Context) error {
	k, err := o.Connect()
	if err != nil {
		return err
	}
	if o.watch {
		return o.live(ctx, k)
	}
	lines, _, err := o.picture(ctx, k)
	if err != nil {
		return err
	}
	_, err = io.WriteString(o.Out, strings.Join(lines, "\n")+"\n")
	return err
}

// live shows the picture again whenever something changes.
func (o *statusOptions) live(ctx context.Context, k *factory.Cluster) error {
	w, err := watch.ConfigMaps(ctx, k, o.namespace(k), watch.ByLabel(annotations.LabelKind+" in (plan,hibernate-plan,run)"))
	if err != nil {
		return watch.NotFollowed(ctx, "", err)
	}
	o.watchNodes(ctx, k, w.Changed)
	screen := watch.Screen{Env: o.Env}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		lines, said, err := o.picture(ctx, k)
		switch {
		case ctx.Err() != nil:
		case err != nil && screen.Empty():
			return err
		case err != nil: // what is on the screen was true; say why it is not renewed
			screen.Show([]string{err.Error()}, []print.Update{{Of: "error", Text: err.Error()}})
		default:
			screen.Show(lines, said)
		}
		pause := tick.C
		if !o.OutTerminal {
			pause = nil
		}
		select {
		case <-ctx.Done():
			return &exit.Error{Code: exit.CodeInterrupted}
		case <-w.Changed:
		case <-pause: // the ages run on
		}
	}
}

// watchNodes has changes of nodes redraw the status as well: of all where all is shown, else of
// those that are named. Who may not read nodes does without.
func (o *statusOptions) watchNodes(ctx context.Context, k *factory.Cluster, changed chan struct{}) {
	var names []string
	for _, name := range o.names {
		if found, err := k.Find(ctx, name, annotations.KindPlan, annotations.KindHibernatePlan, annotations.KindRun); err == nil && found.Node != nil {
			names = append(names, found.Node.Name)
		}
	}
	if len(o.names) > 0 && len(names) == 0 {
		return
	}
	if seen, err := watch.Nodes(ctx, k, changed, names...); err == nil && len(o.names) == 0 {
		o.seen = seen
	}
}

func (o *statusOptions) namespace(k *factory.Cluster) string {
	if o.everywhere {
		return ""
	}
	return k.Namespace
}

// picture is the status as a screen, and as plain lines for those who watch.
func (o *statusOptions) picture(ctx context.Context, k *factory.Cluster) ([]string, []print.Update, error) {
	agent, err := o.Agent(ctx, k)
	head := o.agentLines(agent, err)
	if len(o.names) == 0 {
		lines, said, err := o.overview(ctx, k, agent)
		return append(head, lines...), said, err
	}
	var lines []string
	var said []print.Update
	for i, name := range o.names {
		if i > 0 {
			lines = append(lines, "")
		}
		found, err := k.Find(ctx, name, annotations.KindPlan, annotations.KindHibernatePlan, annotations.KindRun)
		if err != nil {
			return nil, nil, err
		}
		one, words, err := o.one(ctx, k, agent, found)
		if err != nil {
			return nil, nil, err
		}
		lines, said = append(lines, one...), append(said, words...)
	}
	return append(head, lines...), said, nil
}

// agentLines warn where nobody would do what is shown.
func (o *statusOptions) agentLines(s factory.AgentState, err error) []string {
	switch {
	case err != nil:
		return []string{print.New(o.Env, o.Zone).Warn(err.Error()), ""}
	case s.Missing != "":
		return []string{print.New(o.Env, o.Zone).Bad(s.Missing), ""}
	}
	return nil
}

// one is a plan, a run or a node in full.
func (o *statusOptions) one(ctx context.Context, k *factory.Cluster, agent factory.AgentState, found factory.Resource) ([]string, []print.Update, error) {
	if found.Node != nil {
		n, err := source.ReadNode(ctx, o.Factory, k, agent, found.Node)
		if err != nil {
			return nil, nil, err
		}
		return print.New(o.Env, o.Zone).NodeLines(n), print.NodeUpdates(n), nil
	}
	cm := found.Document
	if cm.Labels[annotations.LabelKind] == annotations.KindRun {
		r, err := view.ReadRun(cm)
		if err != nil {
			return nil, nil, err
		}
		v := print.New(o.Env, view.PlanZone(r.Run.Spec, o.Zone))
		return append([]string{v.Bold("Run "+r.Run.Name) + "  " + v.RunHead(r)}, print.Indent(v.StepLines(r))...), print.RunUpdates(r), nil
	}
	if cm.Labels[annotations.LabelKind] == annotations.KindHibernatePlan {
		s := source.ReadSleeper(ctx, o.Factory, k, agent, cm)
		return print.New(o.Env, s.Zone()).SleeperLines(s, false), print.SleepUpdates(s), nil
	}
	p, err := source.ReadPlan(ctx, o.Factory, k, agent, cm)
	if err != nil {
		return nil, nil, err
	}
	return print.New(o.Env, view.PlanZone(p.Spec, o.Zone)).PlanLines(p, false), print.PlanUpdates(p), nil
}

// overview is one screen for all plans: runs with their steps on top, then what
// is next.
func (o *statusOptions) overview(ctx context.Context, k *factory.Cluster, agent factory.AgentState) ([]string, []print.Update, error) {
	plans, err := o.plans(ctx, k, agent)
	if err != nil {
		return nil, nil, err
	}
	sleepers, err := o.sleepers(ctx, k, agent)
	if err != nil {
		return nil, nil, err
	}
	below, about, needs := o.nodeLines(ctx, k)
	if len(plans)+len(sleepers) == 0 {
		head := append(print.New(o.Env, o.Zone).NeedLines(needs), fmt.Sprintf("no plans%s; %s writes one", view.In(o.namespace(k)), o.Suggest().Schedule()))
		return append(head, below...), about, nil
	}
	lines := append(o.pauseLines(ctx, k, agent), o.needLines(plans, sleepers, needs)...)
	var said []print.Update
	for _, p := range plans {
		v := print.New(o.Env, view.PlanZone(p.Spec, o.Zone))
		said = append(said, print.PlanUpdates(p)...)
		for _, r := range p.Active {
			lines = append(lines, v.Bold(r.Run.Namespace+"/"+r.Run.Name)+"  "+v.RunHead(r))
			lines = append(lines, print.Indent(v.StepLines(r))...)
			lines = append(lines, "")
		}
	}
	for _, s := range sleepers {
		lines = append(lines, print.New(o.Env, s.Zone()).SleepBusy(s)...)
		said = append(said, print.SleepUpdates(s)...)
	}
	return slices.Concat(lines, o.planTable(plans), o.sleeperTable(sleepers, len(plans) > 0), below), append(said, about...), nil
}

// needLines are what needs somebody, before all that goes on by itself.
func (o *statusOptions) needLines(plans []view.Plan, sleepers []view.Sleeper, nodes []print.Need) []string {
	var all []print.Need
	add := func(namespace string, needs []print.Need) {
		for _, n := range needs {
			if o.everywhere {
				n.About = namespace + "/" + n.About
				n.Remedy = strings.ReplaceAll(n.Remedy, o.Name+" ", o.Name+" -n "+namespace+" ")
			}
			all = append(all, n)
		}
	}
	for _, p := range plans {
		add(p.Object.Namespace, print.New(o.Env, view.PlanZone(p.Spec, o.Zone)).PlanNeeds(p))
	}
	for _, s := range sleepers {
		add(s.Namespace, print.New(o.Env, s.Zone()).SleeperNeeds(s))
	}
	return print.New(o.Env, o.Zone).NeedLines(append(all, nodes...))
}

// nodeLines are the nodes that are in maintenance, or asked for, below the plans.
// Who may not read nodes does without.
func (o *statusOptions) nodeLines(ctx context.Context, k *factory.Cluster) ([]string, []print.Update, []print.Need) {
	var list []*corev1.Node
	if o.seen != nil {
		list = o.seen.Nodes()
	} else {
		var err error
		if list, err = k.Nodes(ctx, ""); err != nil {
			return nil, nil, nil
		}
	}
	runs, err := k.ActiveRuns(ctx)
	if err != nil {
		return nil, nil, nil
	}
	claims := view.NodeClaims(list, view.StepClaims(runs))
	if len(claims) == 0 {
		return nil, nil, nil
	}
	v := print.New(o.Env, o.Zone)
	return append([]string{""}, v.ClaimTable(claims)...), print.ClaimUpdates(claims), v.ClaimNeeds(claims)
}

func (o *statusOptions) plans(ctx context.Context, k *factory.Cluster, agent factory.AgentState) ([]view.Plan, error) {
	list, err := k.Plans(ctx, o.namespace(k), "")
	if err != nil {
		return nil, err
	}
	runs, err := k.Runs(ctx, o.namespace(k), "", factory.ActiveOnly)
	if err != nil {
		return nil, err
	}
	ledgers, err := k.Ledgers(ctx, o.namespace(k))
	if err != nil {
		return nil, err
	}
	var namespaces []string
	for _, cm := range list {
		namespaces = append(namespaces, cm.Namespace)
	}
	switches := source.ReadSwitches(ctx, k, agent.Namespace, namespaces...)
	book := source.ReadBook(ctx, k, agent.Namespace, namespaces...)
	var out []view.Plan
	for _, cm := range list {
		var live []view.Run
		for _, r := range runs {
			if r.Run.Namespace == cm.Namespace && r.Run.Plan == cm.Name {
				live = append(live, r)
			}
		}
		out = append(out, view.NewPlan(cm, ledgers[cm.Namespace+"/"+annotations.LedgerName(cm.Name, string(cm.UID))], live, switches.AbovePlan(o.Factory, cm), book.Between(o.Factory, agent, cm), o.Now()))
	}
	slices.SortStableFunc(out, func(a, b view.Plan) int { return cmp.Compare(urgency(a), urgency(b)) })
	return out, nil
}

// urgency puts what needs eyes before what sleeps.
func urgency(p view.Plan) int {
	phase, _ := p.Phase()
	order := []string{string(trigger.PhaseRunning), string(trigger.PhaseInvalid), string(trigger.PhaseWaiting), string(trigger.PhasePaused)}
	if i := slices.Index(order, phase); i >= 0 {
		return i
	}
	return len(order)
}

// pauseLines say that the namespace or the cluster is held.
func (o *statusOptions) pauseLines(ctx context.Context, k *factory.Cluster, agent factory.AgentState) []string {
	if o.everywhere {
		return nil
	}
	var lines []string
	v := print.New(o.Env, o.Zone)
	for _, s := range source.Pauses(ctx, k, agent.Namespace, k.Namespace)[k.Namespace] {
		if !s.Holds(v.Now) {
			continue
		}
		lines = append(lines, v.Warn(v.PauseAbove(s)))
	}
	if len(lines) > 0 {
		lines = append(lines, "")
	}
	return lines
}

func (o *statusOptions) planTable(plans []view.Plan) []string {
	var rows [][]string
	for _, p := range plans {
		v := print.New(o.Env, view.PlanZone(p.Spec, o.Zone))
		phase, message := p.Phase()
		rows = append(rows, []string{p.Object.Namespace, p.Object.Name, phase, v.ShortNext(p), v.ShortLast(p), message})
	}
	return o.table([]string{"NAMESPACE", "PLAN", "PHASE", "NEXT", "LAST", "MESSAGE"}, rows)
}

// sleepers are the HibernatePlans; what needs eyes first.
func (o *statusOptions) sleepers(ctx context.Context, k *factory.Cluster, agent factory.AgentState) ([]view.Sleeper, error) {
	list, err := k.HibernatePlans(ctx, o.namespace(k), "")
	if err != nil || len(list) == 0 {
		return nil, err
	}
	out := source.ReadSleepers(ctx, o.Factory, k, agent, list)
	slices.SortStableFunc(out, func(a, b view.Sleeper) int { return cmp.Compare(sleepUrgency(a), sleepUrgency(b)) })
	return out, nil
}

// sleepUrgency puts what has failed before what is at work, and that before what is at rest.
func sleepUrgency(s view.Sleeper) int {
	phase, _ := s.Phase()
	order := []hibernate.Phase{hibernate.InError, hibernate.Invalid, hibernate.WakingUp, hibernate.Hibernating}
	if i := slices.Index(order, hibernate.Phase(phase)); i >= 0 {
		return i
	}
	return len(order)
}

// sleeperTable is below that of the plans, where there are any.
func (o *statusOptions) sleeperTable(sleepers []view.Sleeper, below bool) []string {
	var rows [][]string
	for _, s := range sleepers {
		v := print.New(o.Env, s.Zone())
		phase, message := s.Phase()
		rows = append(rows, []string{s.Namespace, s.Name, phase, v.ShortSince(s), v.ShortSleep(s), message})
	}
	lines := o.table([]string{"NAMESPACE", "HIBERNATEPLAN", "PHASE", "ASLEEP", "NEXT", "MESSAGE"}, rows)
	if below && len(lines) > 0 {
		return append([]string{""}, lines...)
	}
	return lines
}

// table has the namespace in its first column, which is shown where there may be several.
func (o *statusOptions) table(head []string, rows [][]string) []string {
	if len(rows) == 0 {
		return nil
	}
	var b strings.Builder
	w := printers.GetNewTabWriter(&b)
	for i, row := range append([][]string{head}, rows...) {
		if !o.everywhere {
			row = row[1:]
		}
		for j, cell := range row {
			if i > 0 {
				row[j] = view.OrDash(cell)
			}
		}
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	_ = w.Flush() // a Builder takes everything
	return strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
}
