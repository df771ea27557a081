package look

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/completion"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/print"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/rollout"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/source"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/watch"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/trigger"
)

type statusOptions struct {
	*factory.Factory
	out        *print.Values
	names      []string
	everywhere bool
	selector   string
	watch      bool
	begun      bool                   // of a stream: what was named may be gone by now
	seen       *watch.Cache           // nodes, while they are watched; nil: they are read each time
	agent      *factory.AgentLiveness // while the status goes on; nil: the heartbeat is read each time
	silent     string                 // what was said of an agent that shows itself no more
	trouble    trouble                // in which a status that goes on may be old
	config     configuration
	needed     needed
	skips      skips
	faults     exit.Faults
}

// NewStatus shows what runs, what waits and why, and what is next.
func NewStatus(c *factory.Factory) *cobra.Command {
	o := &statusOptions{Factory: c, out: print.NewValues()}
	cmd := &cobra.Command{
		Use:   "status [PLAN|POLICY|NODE|RUN...]",
		Short: "What runs, what waits and why, what is next",
		Long: `What runs, what waits and why, what sleeps until when, and what is next: on one screen
for a namespace and the nodes that are in maintenance or requested, or in full for the
objects that you name. Where a plan and a node have one name, write plan/NAME or
node/NAME. -w keeps it live: on a terminal as a screen with keys (? shows them, q ends
it), else as a line for each change, until Ctrl-C.`,
		Example: `  kubectl maint status
  kubectl maint status orders-weekly -w
  kubectl maint status node/worker-1`,
		RunE:              factory.RunE(o),
		ValidArgsFunction: completion.Both(completion.Kinds(c, annotations.KindPlan, annotations.KindHibernatePlan, annotations.KindPolicy, annotations.KindRun), completion.Likely(c, completion.Maintained)),
	}
	cmd.Flags().BoolVarP(&o.everywhere, "all-namespaces", "A", false, "of all namespaces")
	cmd.Flags().StringVarP(&o.selector, "selector", "l", "", "of plans with these labels")
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "keep it live; with -o json a line for each change")
	o.out.AddFlags(cmd)
	return cmd
}

func (o *statusOptions) Complete(_ *cobra.Command, args []string) error {
	o.names = args
	return nil
}

func (o *statusOptions) Validate() error {
	o.out.Check(&o.faults)
	if o.everywhere && len(o.names) > 0 {
		o.faults.Add("-A and names exclude each other: a name is looked for in one namespace")
	}
	if o.selector != "" && len(o.names) > 0 {
		o.faults.Add("-l and names exclude each other: give one or the other")
	}
	return o.faults.Err()
}

func (o *statusOptions) Run(ctx context.Context) error {
	k, err := o.Connect()
	if err != nil {
		return err
	}
	switch {
	case o.watch && !o.out.Lines():
		return o.stream(ctx, k)
	case o.watch:
		return o.live(ctx, k)
	case !o.out.Lines():
		return o.printValues(ctx, k)
	}
	lines, _, err := o.picture(ctx, k)
	if err != nil {
		return err
	}
	out := o.Out
	if onlyAside(lines) {
		print.Empty(o.ErrOut, k.Whole(o.everywhere).Namespace)
		out = o.ErrOut
	}
	_, err = io.WriteString(out, strings.Join(view.Texts(lines), "\n")+"\n")
	return err
}

// onlyAside says whether a picture shows nothing but what stands for what is not there.
func onlyAside(lines []view.Line) bool {
	return !slices.ContainsFunc(lines, func(l view.Line) bool { return !l.Aside && l.Text != "" })
}

// picture is the status as a screen, and as plain lines for those who watch.
func (o *statusOptions) picture(ctx context.Context, k *factory.Cluster) ([]view.Line, []print.Update, error) {
	if len(o.names) == 0 {
		r, err := o.read(ctx, k)
		if err != nil {
			return nil, nil, err
		}
		lines, said := o.overview(k, r)
		above, news := o.agentLines(r.agent, r.noAgent, onlyAside(lines)), o.agentUpdates(r.agent, r.noAgent)
		if r.config != "" {
			above, news = append(above, aside(o.newPrinter(o.Zone).Bad(r.config))...), append(news, print.Update{Of: "configuration", Text: r.config})
		}
		return append(above, lines...), append(news, said...), nil
	}
	agent, err := o.agentNow(ctx, k)
	head, said := o.agentLines(agent, err, false), o.agentUpdates(agent, err)
	var lines []view.Line
	for i, name := range o.names {
		if i > 0 {
			lines = append(lines, view.Line{})
		}
		found, err := o.find(ctx, k, name)
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

// agentLines warn where no agent acts; standard error does, too, unless a person sees both, or nothing else
// is shown: then they are printed there.
func (o *statusOptions) agentLines(s factory.AgentState, err error, alone bool) []view.Line {
	switch {
	case err != nil:
		return aside(o.newPrinter(o.Zone).Warn(err.Error()))
	case s.Amiss() != "":
		if !o.watch && !o.OutTerminal && !alone {
			o.WarnSilent(s)
		}
		return aside(o.newPrinter(o.Zone).Bad(s.Amiss()))
	}
	return nil
}

// aside is a line above what is shown, and beside it where that is nothing.
func aside(text string) []view.Line {
	lines := heads(text, "")
	for i := range lines {
		lines[i].Aside = true
	}
	return lines
}

// agentUpdates report in plain lines when the agent falls silent and when it is back; an unknown
// state is neither.
func (o *statusOptions) agentUpdates(s factory.AgentState, err error) []print.Update {
	switch {
	case err == nil && s.Amiss() != "" && o.silent == "": // a new age is not news
		o.silent = s.Amiss()
	case err == nil && s.Amiss() == "" && o.silent != "":
		o.silent = ""
		return []print.Update{{Of: "agent", Text: "the agent in namespace " + s.Namespace + " is back"}}
	}
	if o.silent == "" {
		return nil
	}
	return []print.Update{{Of: "agent", Text: o.silent}}
}

// one is a plan, a run or a node in full.
func (o *statusOptions) one(ctx context.Context, k *factory.Cluster, agent factory.AgentState, found factory.Resource) ([]view.Line, []print.Update, error) {
	if found.Node != nil {
		n, err := source.ReadNode(ctx, o.Factory, k, agent, found.Node)
		if err != nil {
			return nil, nil, err
		}
		v := o.newPrinter(o.Zone)
		lines := append(v.NeedLines(needsOn(v, found.Node, n)), v.NodeLines(n)...)
		return view.LinesOf(view.NodeResource(n.Name, found.Node), lines...), v.NodeUpdates(n), nil
	}
	cm := found.Document
	if cm.Labels[annotations.LabelKind] == annotations.KindRun {
		r, err := k.ReadRun(ctx, cm)
		if err != nil {
			return nil, nil, err
		}
		r = k.Answered(ctx, r)
		v := o.newPrinter(view.PlanZone(r.Run.Spec, o.Zone))
		lines := slices.Concat(v.NeedLines(needsOfRun(ctx, k, v, r)), []string{v.Bold("Run "+r.Run.Name) + "  " + v.RunHead(r)}, print.Indent(v.StepLines(r)))
		return view.LinesOf(view.RunResource(r), lines...), v.RunUpdates(r), nil
	}
	if cm.Labels[annotations.LabelKind] == annotations.KindHibernatePlan {
		s := source.ReadSleeper(ctx, o.Factory, k, agent, cm)
		v := o.newPrinter(s.Zone())
		lines := slices.Concat(v.NeedLines(v.SleeperNeeds(s)), v.SleeperLines(s, false), v.SleptLines(source.ReadSlept(ctx, k, cm, o.Now())))
		return view.LinesOf(view.SleeperResource(s), lines...), v.SleepUpdates(s), nil
	}
	if cm.Labels[annotations.LabelKind] == annotations.KindPolicy {
		p := showPolicy(ctx, o.Factory, k, agent, cm)
		verdict := p.lines(false)
		return heads(append(p.v.NeedLines(p.needs()), verdict...)...), []print.Update{{Of: p.subject.String(), Text: strings.Join(verdict[1:], "; ")}}, nil
	}
	p, err := source.ReadPlan(ctx, o.Factory, k, agent, cm)
	if err != nil {
		return nil, nil, err
	}
	left := o.needed.look(ctx, o.Now(), k, &p)
	v := o.newPrinter(view.PlanZone(p.Spec, o.Zone))
	needs := slices.Concat(v.PlanNeeds(p), stuckRollouts(v, p.ResponsiveRuns(), fleetOf(ctx, k, p.ResponsiveRuns()...)), leftCordoned(v, p, left))
	lines := append(v.NeedLines(needs), v.PlanLines(p, false)...)
	return view.LinesOf(view.PlanResource(p), lines...), v.PlanUpdates(p), nil
}

// noPlans is what stands in place of plans.
func (o *statusOptions) noPlans(k *factory.Cluster, r reads) string {
	where := view.In(k.Whole(o.everywhere).Namespace)
	switch {
	case o.everywhere, o.selector != "":
	case r.around.Missing(k.Namespace):
		return "no plans" + where + ", which is not there"
	case r.around.Deleting(k.Namespace):
		return "no plans" + where + ", which is being deleted"
	}
	if o.selector != "" {
		return fmt.Sprintf("no plans with the labels %s%s", o.selector, where)
	}
	return fmt.Sprintf("no plans%s; %s asks for what one needs, %s writes one", where, o.Suggest().New(), o.Suggest().Schedule())
}

// overview is one screen for all plans: runs with their steps on top, then what
// is next.
func (o *statusOptions) overview(k *factory.Cluster, r reads) ([]view.Line, []print.Update) {
	plans, sleepers := r.views, o.sleepers(r)
	above, nodes := o.above(k, r), o.nodeNeeds(r)
	below, about := o.nodeLines(view.NodeClaims(r.nodes, r.use), r.nodes)
	if len(plans)+len(sleepers) == 0 {
		head := append(o.needLines(above, nil, nil, nodes, r.nodes), view.Line{Text: o.noPlans(k, r), Head: true, Aside: true})
		return append(head, below...), about
	}
	lines := o.needLines(above, plans, sleepers, nodes, r.nodes)
	var said []print.Update
	for _, p := range plans {
		v := o.printer(view.PlanZone(p.Spec, o.Zone), p.Object.Namespace)
		said = append(said, v.PlanUpdates(p)...)
		for _, r := range p.Active {
			about := append([]string{v.Bold(r.Run.Namespace+"/"+r.Run.Name) + "  " + v.RunHead(r)}, print.Indent(v.StepLines(r))...)
			lines = append(append(lines, view.LinesOf(view.RunResource(r), about...)...), view.Line{})
		}
	}
	for _, s := range sleepers {
		v := o.printer(s.Zone(), s.Namespace)
		lines = append(lines, view.LinesOf(view.SleeperResource(s), v.SleepBusy(s)...)...)
		said = append(said, v.SleepUpdates(s)...)
	}
	return slices.Concat(lines, o.planTable(plans), o.sleeperTable(sleepers, len(plans) > 0), below), append(said, about...)
}

// printer prints for one namespace, which suggested commands name where all are shown.
func (o *statusOptions) printer(zone, namespace string) print.Printer {
	v := o.newPrinter(zone)
	if o.everywhere {
		return v.In(namespace)
	}
	return v
}

// newPrinter prints in a zone. What scripts are told of changes says nothing that changes with the clock alone.
func (o *statusOptions) newPrinter(zone string) print.Printer {
	v := print.New(o.Env, zone)
	v.Fixed = o.streams()
	return v
}

// streams says whether scripts are told of changes.
func (o *statusOptions) streams() bool { return o.watch && !o.out.Lines() }

// about is a name, with its namespace where all are shown.
func (o *statusOptions) about(namespace, name string) string {
	if o.everywhere {
		return namespace + "/" + name
	}
	return name
}

// needOf is a need and what keys of the live view act on.
type needOf struct {
	print.Need
	of view.Resource
}

// needLines are what needs somebody, before all that goes on by itself: first what failed.
func (o *statusOptions) needLines(above []held, plans []view.Plan, sleepers []view.Sleeper, nodes []print.Need, fleet []*corev1.Node) []view.Line {
	var all []needOf
	for _, h := range above {
		for _, n := range h.needs { // no key of the live view acts on it
			all = append(all, needOf{n, view.Resource{}})
		}
	}
	add := func(of view.Resource, namespace string, needs []print.Need) {
		for _, n := range needs {
			n.About = o.about(namespace, n.About)
			all = append(all, needOf{n, of})
		}
	}
	for _, p := range plans {
		v := o.printer(view.PlanZone(p.Spec, o.Zone), p.Object.Namespace)
		p.Deleting = false // the namespace says so itself
		add(view.PlanResource(p), p.Object.Namespace, append(v.PlanNeeds(p), stuckRollouts(v, p.ResponsiveRuns(), fleet)...))
	}
	for _, s := range sleepers {
		add(view.SleeperResource(s), s.Namespace, o.printer(s.Zone(), s.Namespace).SleeperNeeds(s))
	}
	node := named(fleet)
	for _, n := range nodes {
		all = append(all, needOf{n, node(n.About)})
	}
	slices.SortStableFunc(all, func(a, b needOf) int { return cmp.Compare(failedFirst(a.Need), failedFirst(b.Need)) })
	needs := make([]print.Need, len(all))
	for i, n := range all {
		needs[i] = n.Need
	}
	lines := heads(o.newPrinter(o.Zone).NeedLines(needs)...)
	for i, need := range all { // two lines each, below the heading
		for n := 1 + 2*i; n <= 2+2*i; n++ {
			lines[n].Of, lines[n].Head, lines[n].Part = need.of, false, 1+i
		}
	}
	return lines
}

func failedFirst(n print.Need) int {
	if n.Failed {
		return 0
	}
	return 1
}

// stuckRollouts are the rollouts of a plan that go no further until somebody frees a place.
func stuckRollouts(v print.Printer, active []view.Run, fleet []*corev1.Node) []print.Need {
	var out []print.Need
	for _, r := range active {
		for _, f := range rollout.Of(r, fleet, v.Now, v.Suggest()) {
			if f.Stuck() {
				out = append(out, print.Need{About: r.Run.Plan, What: f.Said(r), Remedy: f.Remedy()})
			}
		}
	}
	return out
}

// needsOfRun are what a run that is named needs of somebody, as beside its plan. Of one that
// does not do what it is asked, nobody is asked for anything.
func needsOfRun(ctx context.Context, k *factory.Cluster, v print.Printer, r view.Run) []print.Need {
	if r.Journal.Phase.Ended() {
		return nil
	}
	out := v.RunNeeds(r)
	for i := range out {
		out[i].About = r.Run.Plan
	}
	if out = append(out, stuckRollouts(v, []view.Run{r}, fleetOf(ctx, k, r))...); len(out) == 0 {
		return nil
	}
	cm, err := k.ConfigMaps(r.Run.Namespace).Get(ctx, r.Run.Plan, metav1.GetOptions{})
	if err == nil && !view.Responsive(cm, r.Run.Name) {
		return nil
	}
	return out
}

// leftCordoned are the nodes that a run of a plan left cordoned. Beside all plans, the nodes say so
// themselves.
func leftCordoned(v print.Printer, p view.Plan, left []nodes.Node) []print.Need {
	var out []print.Need
	for _, n := range left {
		out = append(out, print.Need{About: "node " + n.Name, What: "is left cordoned for it since " + v.When(n.Cordon.At) + ": its next run goes on with the node", Remedy: rollout.Uncordon(v.Suggest(), n, nodes.PlanClaimant(p.Object.Namespace, p.Object.Name))})
	}
	return out
}

// named finds nodes by their names, as they stand in lines.
func named(fleet []*corev1.Node) func(name string) view.Resource {
	known := make(map[string]*corev1.Node, len(fleet))
	for _, n := range fleet {
		known[n.Name] = n
	}
	return func(name string) view.Resource {
		return view.NodeResource(name, known[strings.TrimPrefix(name, "node ")])
	}
}

// nodeLines show the nodes in maintenance, or requested, below the plans.
func (o *statusOptions) nodeLines(claims []view.NodeClaim, fleet []*corev1.Node) ([]view.Line, []print.Update) {
	if len(claims) == 0 {
		return nil, nil
	}
	v, node := o.newPrinter(o.Zone), named(fleet)
	var rows [][]string
	var about []view.Resource
	for _, c := range claims {
		about, rows = append(about, node(c.Node)), append(rows, v.ClaimCells(c))
	}
	return append([]view.Line{{}}, tableOf(print.ClaimColumns(), rows, about, "SINCE", "FOR", "LEFT")...), v.ClaimUpdates(claims)
}

func (o *statusOptions) plans(r reads) []view.Plan {
	live := map[string][]view.Run{} // by the uid of their plan: an earlier one of its name may have been deleted
	for _, one := range r.runs {
		live[one.Run.PlanUID] = append(live[one.Run.PlanUID], one)
	}
	var out []view.Plan
	for _, cm := range r.plans {
		out = append(out, view.NewPlan(cm, r.ledgers[cm.UID], live[string(cm.UID)], r.around.Plan(o.Factory, r.agent, cm), o.Now()))
	}
	slices.SortStableFunc(out, func(a, b view.Plan) int { return cmp.Compare(urgency(a), urgency(b)) })
	return out
}

// urgency sorts what needs attention before what is at rest.
func urgency(p view.Plan) int {
	phase, _ := p.Phase()
	order := []string{string(trigger.PhaseRunning), string(trigger.PhaseInvalid), string(trigger.PhaseWaiting), string(trigger.PhasePaused)}
	if i := slices.Index(order, phase); i >= 0 {
		return i
	}
	return len(order)
}

func (o *statusOptions) planTable(plans []view.Plan) []view.Line {
	var rows [][]string
	var about []view.Resource
	for _, p := range plans {
		v := o.newPrinter(view.PlanZone(p.Spec, o.Zone))
		phase, _ := p.Phase()
		about = append(about, view.PlanResource(p))
		rows = append(rows, []string{p.Object.Namespace, p.Object.Name, phase, v.ShortNext(p), v.ShortLast(p), shortMessage(v, p)})
	}
	return o.table([]string{"NAMESPACE", "PLAN", "PHASE", "NEXT", "LAST", "MESSAGE"}, rows, about, "LAST", "NEXT")
}

// shortMessage is the agent's message about a plan with what is skipped of it, for a cell of a table.
// Where nothing is next, the skip comes first: it is why.
func shortMessage(v print.Printer, p view.Plan) string {
	_, message := p.Phase()
	var skips []string
	for _, s := range v.Skips(p) {
		skips = append(skips, "skips "+strings.Join(strings.Fields(s), " "))
	}
	parts := []string{v.AgentText(message), strings.Join(skips, "; "), p.OnlyDry()}
	if p.Decision.Status.Next == nil {
		slices.Reverse(parts)
	}
	return joined(parts...)
}

// joined are the parts of a message that are not empty.
func joined(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "; ")
}

// sleepers are the HibernatePlans, those that need attention first.
func (o *statusOptions) sleepers(r reads) []view.Sleeper {
	out := source.Sleepers(o.Factory, r.agent, r.sleepers, r.around)
	slices.SortStableFunc(out, func(a, b view.Sleeper) int { return cmp.Compare(sleepUrgency(a), sleepUrgency(b)) })
	return out
}

// sleepUrgency sorts failures first, then what is in transition, then what is at rest.
func sleepUrgency(s view.Sleeper) int {
	phase, _ := s.Phase()
	order := []hibernate.Phase{hibernate.InError, hibernate.Invalid, hibernate.WakingUp, hibernate.Hibernating}
	if i := slices.Index(order, hibernate.Phase(phase)); i >= 0 {
		return i
	}
	return len(order)
}

// sleeperTable is shown below the plans.
func (o *statusOptions) sleeperTable(sleepers []view.Sleeper, below bool) []view.Line {
	var rows [][]string
	var about []view.Resource
	for _, s := range sleepers {
		v := o.newPrinter(s.Zone())
		phase, message := s.Phase()
		about = append(about, view.SleeperResource(s))
		rows = append(rows, []string{s.Namespace, s.Name, phase, v.ShortSince(s), v.ShortSleep(s), joined(v.AgentText(message), s.OnlyDry())})
	}
	lines := o.table([]string{"NAMESPACE", "HIBERNATEPLAN", "PHASE", "ASLEEP", "NEXT", "MESSAGE"}, rows, about, "ASLEEP", "NEXT")
	if below && len(lines) > 0 {
		return append([]view.Line{{}}, lines...)
	}
	return lines
}

// table has the namespace as its first column, which is shown for several namespaces.
func (o *statusOptions) table(head []string, rows [][]string, about []view.Resource, spare ...string) []view.Line {
	if !o.everywhere {
		head = head[1:]
		for i := range rows {
			rows[i] = rows[i][1:]
		}
	}
	return tableOf(head, rows, about, spare...)
}

// tableOf are the lines of a table. On a narrow screen, spare columns are left out; the narrowest shows
// the phase and the column before it.
func tableOf(head []string, rows [][]string, about []view.Resource, spare ...string) []view.Line {
	if len(rows) == 0 {
		return nil
	}
	t := &view.Table{Keep: slices.Index(head, "PHASE")}
	for _, name := range spare {
		t.Spare = append(t.Spare, slices.Index(head, name))
	}
	var b strings.Builder
	w := printers.GetNewTabWriter(&b)
	cells := append([][]string{head}, rows...)
	for i, row := range cells {
		if i > 0 {
			for j, cell := range row {
				row[j] = view.OrDash(cell)
			}
		}
		t.Fit(row)
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	_ = w.Flush() // a Builder accepts everything
	return tableLines(t, strings.Split(strings.TrimRight(b.String(), "\n"), "\n"), cells, about)
}

// tableLines are the lines of a table with their cells.
func tableLines(t *view.Table, texts []string, cells [][]string, about []view.Resource) []view.Line {
	lines := heads(texts...)
	if len(texts) != len(cells) { // a message with several lines: text only
		return lines
	}
	for i := range lines {
		lines[i].Cells, lines[i].Table = cells[i], t
		if i > 0 {
			lines[i].Of, lines[i].Head = about[i-1], false
		}
	}
	return lines
}

// heads are headings, which the filter keeps.
func heads(texts ...string) []view.Line {
	lines := view.LinesOf(view.Resource{}, texts...)
	for i := range lines {
		lines[i].Head = true
	}
	return lines
}

// find is what a name means.
func (o *statusOptions) find(ctx context.Context, k *factory.Cluster, name string) (factory.Resource, error) {
	return k.Find(ctx, name, annotations.KindPlan, annotations.KindHibernatePlan, annotations.KindPolicy, annotations.KindRun)
}
