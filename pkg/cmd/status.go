package cmd

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
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

type statusOptions struct {
	*cli
	names      []string
	everywhere bool
	watch      bool
	seen       *watched // nodes, while they are watched; nil: they are read each time
	faults     faults
}

func newStatus(c *cli) *cobra.Command {
	o := &statusOptions{cli: c}
	cmd := &cobra.Command{
		Use:   "status [PLAN|NODE|RUN...]",
		Short: "What runs, what waits and why, what is next",
		Long: `What runs, what waits and why, and what is next: on one screen for a namespace
and the nodes that are in maintenance or asked for, in full for what is named. Where
a plan and a node have one name, write plan/NAME or node/NAME. -w keeps it live,
until Ctrl-C.`,
		Example: `  kubectl maint status
  kubectl maint status orders-weekly -w
  kubectl maint status node/worker-1`,
		RunE:              run(o),
		ValidArgsFunction: beside(c.complete(annotations.LabelKind+" in (plan,run)", nil), c.completeNodes(maintained)),
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
		o.faults.add("-A and names exclude each other: a name is looked for in one namespace")
	}
	return o.faults.err()
}

func (o *statusOptions) Run(ctx context.Context) error {
	k, err := o.connect()
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
func (o *statusOptions) live(ctx context.Context, k *cluster) error {
	w, err := k.watch(ctx, o.namespace(k), byLabel(annotations.LabelKind+" in (plan,run)"))
	if err != nil {
		return o.notFollowed(ctx, "", err)
	}
	o.watchNodes(ctx, k, w.changed)
	screen := screen{env: o.Env}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		lines, said, err := o.picture(ctx, k)
		switch {
		case ctx.Err() != nil:
		case err != nil && screen.empty():
			return err
		case err != nil: // what is on the screen was true; say why it is not renewed
			screen.show([]string{err.Error()}, []line{{of: "error", text: err.Error()}})
		default:
			screen.show(lines, said)
		}
		pause := tick.C
		if !o.OutTerminal {
			pause = nil
		}
		select {
		case <-ctx.Done():
			return &ExitError{Code: CodeInterrupted}
		case <-w.changed:
		case <-pause: // the ages run on
		}
	}
}

// watchNodes has changes of nodes ring too: of all where all is shown, else of
// those that are named. Who may not read nodes does without.
func (o *statusOptions) watchNodes(ctx context.Context, k *cluster, bell chan struct{}) {
	var names []string
	for _, name := range o.names {
		if found, err := k.thing(ctx, name, annotations.KindPlan, annotations.KindRun); err == nil && found.node != nil {
			names = append(names, found.node.Name)
		}
	}
	if len(o.names) > 0 && len(names) == 0 {
		return
	}
	if seen, err := k.watchNodes(ctx, bell, names...); err == nil && len(o.names) == 0 {
		o.seen = seen
	}
}

func (o *statusOptions) namespace(k *cluster) string {
	if o.everywhere {
		return ""
	}
	return k.namespace
}

// picture is the status as a screen, and as plain lines for those who watch.
func (o *statusOptions) picture(ctx context.Context, k *cluster) ([]string, []line, error) {
	agent, err := o.agent(ctx, k)
	head := o.agentLines(agent, err)
	if len(o.names) == 0 {
		lines, said, err := o.overview(ctx, k, agent)
		return append(head, lines...), said, err
	}
	var lines []string
	var said []line
	for i, name := range o.names {
		if i > 0 {
			lines = append(lines, "")
		}
		found, err := k.thing(ctx, name, annotations.KindPlan, annotations.KindRun)
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
func (o *statusOptions) agentLines(s agentState, err error) []string {
	switch {
	case err != nil:
		return []string{o.view(o.Zone).warn(err.Error()), ""}
	case s.missing != "":
		return []string{o.view(o.Zone).bad(s.missing), ""}
	}
	return nil
}

// one is a plan, a run or a node in full.
func (o *statusOptions) one(ctx context.Context, k *cluster, agent agentState, found thing) ([]string, []line, error) {
	if found.node != nil {
		n, err := o.knowNode(ctx, k, agent, found.node)
		if err != nil {
			return nil, nil, err
		}
		return o.view(o.Zone).nodeLines(n), nodeSaid(n), nil
	}
	cm := found.document
	if cm.Labels[annotations.LabelKind] == annotations.KindRun {
		r, err := readRun(cm)
		if err != nil {
			return nil, nil, err
		}
		v := o.view(zoneOf(r.run.Spec, o.Zone))
		return append([]string{v.bold("Run "+r.run.Name) + "  " + v.runHead(r)}, indent(v.stepLines(r))...), runLines(r), nil
	}
	p, err := o.know(ctx, k, agent, cm)
	if err != nil {
		return nil, nil, err
	}
	return o.view(zoneOf(p.spec, o.Zone)).planLines(p, false), planSaid(p), nil
}

func planSaid(p aPlan) []line {
	phase, message := p.phaseOf()
	out := []line{{of: p.object.Namespace + "/" + p.object.Name, text: fmt.Sprintf("plan %s: %s%s", p.object.Name, phase, colon(message))}}
	for _, r := range p.live {
		out = append(out, runLines(r)...)
	}
	return out
}

// know reads what there is to know about one plan.
func (c *cli) know(ctx context.Context, k *cluster, agent agentState, cm *corev1.ConfigMap) (aPlan, error) {
	ledger, _, err := k.ledger(ctx, cm)
	if err != nil {
		return aPlan{}, err
	}
	live, err := k.runsOf(ctx, cm.Namespace, cm.Name, liveOnly)
	if err != nil {
		return aPlan{}, err
	}
	book, _ := k.bookOf(ctx, c.ErrOut, agent.Namespace, cm.Namespace)
	return know(cm, ledger, live, k.pausesOf(ctx, agent.Namespace, cm.Namespace)[cm.Namespace], book, c.Now()), nil
}

// overview is one screen for all plans: runs with their steps on top, then what
// is next.
func (o *statusOptions) overview(ctx context.Context, k *cluster, agent agentState) ([]string, []line, error) {
	plans, err := o.plans(ctx, k, agent)
	if err != nil {
		return nil, nil, err
	}
	below, about := o.nodeLines(ctx, k)
	if len(plans) == 0 {
		return append([]string{fmt.Sprintf("no plans%s; '%s schedule' writes one", in(o.namespace(k)), o.Name)}, below...), about, nil
	}
	lines := o.pauseLines(ctx, k, agent)
	var said []line
	for _, p := range plans {
		v := o.view(zoneOf(p.spec, o.Zone))
		said = append(said, planSaid(p)...)
		for _, r := range p.live {
			lines = append(lines, v.bold(r.run.Namespace+"/"+r.run.Name)+"  "+v.runHead(r))
			lines = append(lines, indent(v.stepLines(r))...)
			lines = append(lines, "")
		}
	}
	return slices.Concat(lines, o.planTable(plans), below), append(said, about...), nil
}

// nodeLines are the nodes that are in maintenance, or asked for, below the plans.
// Who may not read nodes does without.
func (o *statusOptions) nodeLines(ctx context.Context, k *cluster) ([]string, []line) {
	var list []*corev1.Node
	if o.seen != nil {
		list = o.seen.nodes()
	} else {
		var err error
		if list, err = k.nodeList(ctx, ""); err != nil {
			return nil, nil
		}
	}
	runs, err := k.liveRuns(ctx)
	if err != nil {
		return nil, nil
	}
	claims := claimsOf(list, rollingOf(runs))
	if len(claims) == 0 {
		return nil, nil
	}
	return append([]string{""}, o.view(o.Zone).claimTable(claims)...), claimsSaid(claims)
}

func in(namespace string) string {
	if namespace == "" {
		return " in the cluster"
	}
	return " in namespace " + namespace
}

func (o *statusOptions) plans(ctx context.Context, k *cluster, agent agentState) ([]aPlan, error) {
	list, err := k.plansIn(ctx, o.namespace(k), "")
	if err != nil {
		return nil, err
	}
	runs, err := k.runsOf(ctx, o.namespace(k), "", liveOnly)
	if err != nil {
		return nil, err
	}
	ledgers, err := k.ledgersIn(ctx, o.namespace(k))
	if err != nil {
		return nil, err
	}
	var namespaces []string
	for _, cm := range list {
		namespaces = append(namespaces, cm.Namespace)
	}
	pauses := k.pausesOf(ctx, agent.Namespace, namespaces...)
	book, _ := k.bookOf(ctx, o.ErrOut, agent.Namespace, namespaces...)
	var out []aPlan
	for _, cm := range list {
		var live []aRun
		for _, r := range runs {
			if r.run.Namespace == cm.Namespace && r.run.Plan == cm.Name {
				live = append(live, r)
			}
		}
		out = append(out, know(cm, ledgers[cm.Namespace+"/"+annotations.LedgerName(cm.Name, string(cm.UID))], live, pauses[cm.Namespace], book, o.Now()))
	}
	slices.SortStableFunc(out, func(a, b aPlan) int { return cmp.Compare(urgency(a), urgency(b)) })
	return out, nil
}

// urgency puts what needs eyes before what sleeps.
func urgency(p aPlan) int {
	phase, _ := p.phaseOf()
	order := []string{string(plan.PhaseRunning), string(plan.PhaseInvalid), string(plan.PhaseWaiting), string(plan.PhasePaused)}
	if i := slices.Index(order, phase); i >= 0 {
		return i
	}
	return len(order)
}

// pauseLines say that the namespace or the cluster is held.
func (o *statusOptions) pauseLines(ctx context.Context, k *cluster, agent agentState) []string {
	if o.everywhere {
		return nil
	}
	v := o.view(o.Zone)
	for _, s := range k.pausesOf(ctx, agent.Namespace, k.namespace)[k.namespace] {
		if !s.Holds(v.now) {
			continue
		}
		until := "until resumed"
		if s.Until != nil {
			until = "until " + v.when(*s.Until)
		}
		return []string{v.warn("all plans of the namespace are paused " + until), ""}
	}
	return nil
}

func (o *statusOptions) planTable(plans []aPlan) []string {
	var b strings.Builder
	w := printers.GetNewTabWriter(&b)
	head := "PLAN\tPHASE\tNEXT\tLAST\tMESSAGE"
	if o.everywhere {
		head = "NAMESPACE\t" + head
	}
	fmt.Fprintln(w, head)
	for _, p := range plans {
		v := o.view(zoneOf(p.spec, o.Zone))
		phase, message := p.phaseOf()
		row := []string{p.object.Name, phase, v.shortNext(p), v.shortLast(p), message}
		if o.everywhere {
			row = append([]string{p.object.Namespace}, row...)
		}
		for i, cell := range row {
			row[i] = orDash(cell)
		}
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	w.Flush()
	return strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return strings.ReplaceAll(s, "\n", " ")
}

func (v view) shortNext(p aPlan) string {
	if p.decision.Next == nil {
		return ""
	}
	at := plan.StartsAt(p.spec, p.object.Namespace, p.object.Name, p.decision.Next.At, p.decision.Next.Index)
	return fmt.Sprintf("%s (%s)", localTime(at, v.zone), roughly(at.Sub(v.now)))
}

func (v view) shortLast(p aPlan) string {
	if p.ledger == nil || p.ledger.Last == nil {
		return ""
	}
	l := p.ledger.Last
	return fmt.Sprintf("%s %s ago", l.Phase, roughly(v.now.Sub(l.EndedAt)))
}
