package ask

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/choice"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/completion"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/instant"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/print"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/source"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/watch"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
	"github.com/kubectl-maint/kubectl-maint/pkg/trigger"
)

type resumeOptions struct {
	*factory.Factory
	scope
	factory.DryRun
	watch.Waiting
	reason string
	faults exit.Faults
}

// NewResume ends a plan's pause, or a run's suspend.
func NewResume(c *factory.Factory) *cobra.Command {
	o := &resumeOptions{Factory: c}
	cmd := &cobra.Command{
		Use:   "resume PLAN|POLICY|NODE|RUN[/STEP]... | -l SELECTOR | --all",
		Short: "End a plan's pause, or a run's suspend", DisableFlagsInUseLine: true,
		Long: `End the pause of plans or nodes, or the suspend step that a run waits in. Slots that
passed during a pause do not run later. A HibernatePlan sleeps or wakes as its schedule
says for the present time. A pause of a plan and a suspend of its run are two things:
where only the run waits, resume of the plan says so, with the command for the run, and
ends with exit code 3. RUN/STEP ends the suspend of one step, or accepts what was changed
after it; PLAN/STEP is the step of the newest run of the plan.

A run that is held because somebody changed what one of its steps did goes on, and the
change is accepted. If the run is in a suspend step at that time, the same command ends
that step, too.

For a run that has ended and could not restore or clean up something, resume confirms that you know,
and its plan no longer reports it; RUN/STEP does that for one step. --all ends the pause of the namespace, with -A that
of the whole cluster; plans that were paused by name stay paused.`,
		Example: `  kubectl maint resume orders-weekly
  kubectl maint resume maint-run-orders-weekly-k2x7a`,
		RunE:              factory.RunE(o),
		ValidArgsFunction: completion.Both(completion.Resumable(c, isPaused), completion.Nodes(c, isPaused)),
	}
	o.scope.addFlags(cmd)
	o.DryRun.AddFlag(cmd)
	cmd.Flags().StringVar(&o.reason, "reason", "", "why")
	o.Waiting.AddFlags(cmd, "the run that is resumed until it ends")
	return cmd
}

func (o *resumeOptions) Complete(_ *cobra.Command, args []string) error {
	o.names = args
	return nil
}

func (o *resumeOptions) Validate() error {
	o.scope.check(&o.faults, "PLAN, POLICY, NODE or RUN")
	o.DryRun.Check(&o.faults)
	o.Waiting.Check(&o.faults)
	if o.Wait && len(o.names) != 1 {
		o.faults.Add("--wait is for one RUN")
	}
	return o.faults.Err()
}

func (o *resumeOptions) Run(ctx context.Context) (err error) {
	ctx, done := watch.WithTimeout(ctx, o.Timeout)
	defer done(&err)
	k, err := o.Connect()
	if err != nil {
		return err
	}
	if o.all {
		return o.resumeAll(ctx, k)
	}
	var things []resumed
	for _, name := range o.names {
		found, err := o.find(ctx, k, name)
		if err != nil {
			return err
		}
		if o.Wait && !found.isRun() {
			return exit.Errorf(exit.CodeUsage, "--wait is for a run, and %s is none: its pause ends at once", found.object().GetName())
		}
		things = append(things, found)
	}
	plans, err := o.selected(ctx, o.Factory, k)
	if err != nil {
		return err
	}
	for _, found := range plans {
		things = append(things, resumed{Resource: found})
	}
	agent := sync.OnceValue(func() agentSeen { return lookForAgent(ctx, o.Factory, k.Whole(o.everywhere)) }) // of several, only the first asks
	return choice.Each(ctx, o.Factory, o.chosen(), things, resumed.object, func(found resumed) error { return o.resumeOne(ctx, k, found, agent) })
}

// agentSeen is the agent's heartbeat, or why it is not known.
type agentSeen struct {
	factory.AgentState
	unknown error
}

func lookForAgent(ctx context.Context, c *factory.Factory, k *factory.Cluster) agentSeen {
	state, err := c.Agent(ctx, k)
	return agentSeen{AgentState: state, unknown: err}
}

// resumed is what is resumed: a document, a node, or a run whose object is gone.
type resumed struct {
	factory.Resource
	gone *view.Run
	step string // of the run, which alone is meant; empty: the whole run
}

func (r resumed) isRun() bool {
	return r.gone != nil || r.Node == nil && r.Document.Labels[annotations.LabelKind] == annotations.KindRun
}

func (r resumed) object() metav1.Object {
	if r.gone != nil {
		return &metav1.ObjectMeta{Namespace: r.gone.Run.Namespace, Name: r.gone.Run.Name}
	}
	return objectOf(r.Resource)
}

// find takes RUN/STEP apart where no kind stands before the slash, and looks in the ledgers for a run
// that is gone: what it left behind can be acknowledged by its name, however long ago it was pruned.
func (o *resumeOptions) find(ctx context.Context, k *factory.Cluster, name string) (resumed, error) {
	kind, _ := factory.SplitKind(name)
	if of, step := view.SplitStep(name); step != "" && kind != factory.KindNode {
		cm, err := o.LiveRunObject(ctx, k, of)
		if errors.As(err, new(factory.NotFoundError)) {
			if gone, _ := k.LeftBy(ctx, factory.BareName(of)); gone != nil {
				rec, err := stepOf(*gone, step)
				if err != nil {
					return resumed{}, fmt.Errorf("%w, of what it did not put back or clean up", err)
				}
				return resumed{gone: gone, step: rec.Path}, nil
			}
		}
		if bare := factory.BareName(of); err == nil || bare != of || strings.HasPrefix(bare, view.RunPrefix) || !errors.As(err, new(factory.NotFoundError)) {
			return resumed{Resource: factory.Resource{Document: cm}, step: step}, err
		}
	}
	found, err := k.Find(ctx, name, annotations.KindPlan, annotations.KindHibernatePlan, annotations.KindPolicy, annotations.KindRun)
	if !errors.As(err, new(factory.NotFoundError)) || !view.MayMean(kind, annotations.KindRun) {
		return resumed{Resource: found}, err
	}
	gone, readErr := k.LeftBy(ctx, factory.BareName(name))
	if gone == nil {
		return resumed{}, errors.Join(err, readErr)
	}
	return resumed{gone: gone}, nil
}

func (o *resumeOptions) resumeOne(ctx context.Context, k *factory.Cluster, found resumed, agent func() agentSeen) error {
	switch {
	case found.gone != nil:
		return o.acknowledge(ctx, k, *found.gone, found.gone.Run.Name+view.Prefix("/", found.step))
	case found.Node != nil:
		return o.resumeNode(ctx, k, found.Node, agent())
	case found.Document.Labels[annotations.LabelKind] == annotations.KindRun:
		return o.resumeRun(ctx, k, found.Document, found.step)
	}
	return o.resumePlan(ctx, k, found.Document, agent())
}

// sayDeclared warns that an annotation which a file declares comes back after its removal.
func sayDeclared(c *factory.Factory, on metav1.ObjectMeta, key string) {
	if on.Annotations[key] == "" {
		return
	}
	if manager := annotations.AnnotationDeclaredBy(&on, key); manager != "" {
		fmt.Fprintf(c.ErrOut, "warning: %s is in the files that %s applies, and comes back with the next apply: remove it there, too\n", key, manager)
	}
}

func (o *resumeOptions) resumeNode(ctx context.Context, k *factory.Cluster, n *corev1.Node, agent agentSeen) error {
	was := n.Annotations[annotations.Pause]
	sayDeclared(o.Factory, n.ObjectMeta, annotations.Pause)
	_, err := k.AnnotateNode(ctx, n, &o.DryRun, func(n *corev1.Node) (factory.Change, error) {
		if _, there := n.Annotations[annotations.Pause]; !there {
			return nil, nil
		}
		return factory.Change{annotations.Pause: nil}.Signed(annotations.Pause, "", ""), nil
	})
	if err != nil {
		return err
	}
	if err := o.Report(o.IOStreams, false, "node/%s %s", n.Name, o.resumed(was)); err != nil {
		return err
	}
	o.stillPaused(ctx, k, agent.Namespace, agent.Namespace)
	return nil
}

func (o *resumeOptions) resumePlan(ctx context.Context, k *factory.Cluster, cm *corev1.ConfigMap, agent agentSeen) error {
	was := cm.Annotations[annotations.Pause]
	sayDeclared(o.Factory, cm.ObjectMeta, annotations.Pause)
	unseen := cm.Labels[annotations.LabelKind] == annotations.KindPlan && agent.mayNotHaveSeen(cm)
	err := k.Annotate(ctx, cm, &o.DryRun, func(cm *corev1.ConfigMap) (factory.Change, error) {
		if _, there := cm.Annotations[annotations.Pause]; !there {
			return nil, nil
		}
		return o.noMore(cm.Annotations, unseen), nil
	})
	if err != nil {
		return err
	}
	waits := o.runWaits(ctx, k, cm)
	if waits != "" && !paused(was) && o.selector == "" {
		return exit.Errorf(exit.CodeNotNow, "plan/%s was not paused; %s", o.nameOf(cm), waits)
	}
	if unseen {
		o.sayEnded(was)
	}
	if err := o.Report(o.IOStreams, false, "%s/%s %s", cm.Labels[annotations.LabelKind], o.nameOf(cm), o.resumed(was)); err != nil {
		return err
	}
	if paused(was) && o.Format() == "" {
		o.sayLevel(ctx, k, agent, cm)
	}
	if waits != "" {
		fmt.Fprintf(o.ErrOut, "but %s\n", waits)
	}
	o.stillPaused(ctx, k, agent.Namespace, cm.Namespace)
	return nil
}

// runWaits says that a run of a plan waits to be resumed, which the end of the plan's pause does not
// do; empty: none does, or that cannot be seen.
func (o *resumeOptions) runWaits(ctx context.Context, k *factory.Cluster, cm *corev1.ConfigMap) string {
	if cm.Labels[annotations.LabelKind] != annotations.KindPlan {
		return ""
	}
	runs, _ := k.RunsOf(ctx, cm, factory.ActiveOnly)
	for _, r := range runs {
		if held := view.ResumeHelps(view.Answered(r, cm)); held != "" && view.Responsive(cm, r.Run.Name) {
			return fmt.Sprintf("its run %s %s: run %s", r.Run.Name, held, o.Suggest().Resume(r.Run.Name))
		}
	}
	return ""
}

// paused says whether the annotation of a pause is a switch that is on, over or not.
func paused(was string) bool { return was != "" && was != "false" }

// resumed says what became of a pause.
func (o *resumeOptions) resumed(was string) string {
	if !paused(was) {
		return "was not paused"
	}
	return "resumed" + o.Mark()
}

// sayLevel says what state a HibernatePlan should have now.
func (o *resumeOptions) sayLevel(ctx context.Context, k *factory.Cluster, agent agentSeen, cm *corev1.ConfigMap) {
	if cm.Labels[annotations.LabelKind] != annotations.KindHibernatePlan {
		return
	}
	s := source.ReadSleeper(ctx, o.Factory, k, agent.AgentState, cm)
	v := print.New(o.Env, s.Zone())
	switch {
	case s.Table == nil:
	case s.Hold.Holds(o.Now()):
		fmt.Fprintf(o.Out, "  %s; %s\n", v.HoldWords(s.Name, s.Hold), v.Then(s))
	default:
		fmt.Fprintf(o.Out, "  %s\n", v.Then(s))
	}
}

// mayNotHaveSeen says whether the agent may have missed a plan's pause: it is not known to be
// running, or the user may not look, and the plan's status does not show the pause.
func (agent agentSeen) mayNotHaveSeen(cm *corev1.ConfigMap) bool {
	if agent.unknown != nil {
		return cm.Annotations[annotations.StatusPhase] != string(trigger.PhasePaused)
	}
	return agent.In(cm.Namespace).Missing != ""
}

// noMore ends a pause. Where the agent may have missed it, the annotation stays with an end in the
// past: otherwise the slots of the pause would be made up for once the agent is back. A pause that
// was over already stays as it is.
func (o *resumeOptions) noMore(on map[string]string, unseen bool) factory.Change {
	was := pauseOf(on[annotations.Pause])
	switch {
	case !unseen || !was.On:
		return factory.Change{annotations.Pause: nil}.Signed(annotations.Pause, "", "")
	case !was.Holds(o.Now()):
		return nil
	}
	reason := ""
	if by := annotations.ActorOf(on, annotations.Pause); by != (intent.Actor{}) { // the slots of the pause are told with it
		reason = by.Said("paused") + ", and resumed since"
	}
	return factory.Change{annotations.Pause: factory.Value(o.ended().Format(time.RFC3339))}.Signed(annotations.Pause, "", reason)
}

// pauseOf reads the annotation of a pause.
func pauseOf(value string) schedule.Pause {
	return annotations.Intent(map[string]string{annotations.Pause: value}).Pause
}

// ended is the end of the present second: a slot of this second still belongs to the pause.
func (o *resumeOptions) ended() time.Time {
	return o.Now().UTC().Add(time.Second - time.Nanosecond).Truncate(time.Second)
}

func (o *resumeOptions) sayEnded(was string) {
	if pauseOf(was).Holds(o.Now()) {
		fmt.Fprintf(o.ErrOut, "the agent may not have seen this pause: it is kept as a pause that ended at %s, so that slots in it do not run late when the agent is back\n", instant.Both(o.ended(), o.Zone))
	}
}

// stillPaused says that a pause above what was resumed in a namespace still holds it.
func (o *resumeOptions) stillPaused(ctx context.Context, k *factory.Cluster, agentNamespace, namespace string) {
	v := print.New(o.Env, o.Zone)
	if namespace != agentNamespace && namespace != k.Namespace {
		v = v.In(namespace)
	}
	o.sayPauses(v, source.ReadPauses(ctx, k, agentNamespace, namespace).Above(namespace))
}

func (o *resumeOptions) sayPauses(v print.Printer, pauses []schedule.Pause) {
	for _, p := range pauses {
		for _, n := range v.PauseNeeds(p) {
			fmt.Fprintf(o.ErrOut, "but %s %s: run %s\n", n.About, n.What, n.Remedy)
		}
	}
}

func (o *resumeOptions) resumeRun(ctx context.Context, k *factory.Cluster, cm *corev1.ConfigMap, step string) error {
	r, err := k.ReadRun(ctx, cm)
	if err != nil {
		return err
	}
	if r.Journal.Phase.Ended() {
		return o.resumeEnded(ctx, k, r, step)
	}
	about, wanted, not := r, cm.Name, ""
	if step != "" {
		rec, err := stepOf(r, step)
		if err != nil {
			return err
		}
		about, wanted = r.OfStep(*rec), cm.Name+"/"+rec.Path
		not = fmt.Sprintf("step %s of run %s is not suspended now: it is %s (type %s)", rec.Path, cm.Name, rec.Phase, rec.Type)
	}
	drifting, ends := view.Drifted(about), print.New(o.Env, o.Zone).EndsSuspend(about)
	if ends == "" && len(drifting) == 0 {
		if not == "" { // what somebody else has answered is asked of nobody
			not = "run " + cm.Name + " is not suspended now" + view.Colon(print.New(o.Env, o.Zone).RunHead(k.Answered(ctx, r)))
		}
		return exit.Errorf(exit.CodeNotNow, "%s", not)
	}
	if err := o.askRun(ctx, k, r, wanted); err != nil {
		return err
	}
	for _, rec := range drifting {
		fmt.Fprintf(o.ErrOut, "it goes on although after step %s %s\n", rec.Path, rec.Drift.Said())
	}
	if len(drifting) > 0 && ends != "" {
		fmt.Fprintf(o.ErrOut, "and %s\n", ends)
	}
	if o.Kept() {
		sayStillWaits(ctx, o.Factory, k, r)
	}
	if !o.Wait || !o.Kept() {
		return o.Report(o.IOStreams, false, "run/%s resumed%s", wanted, o.Mark())
	}
	if err := o.Report(o.IOStreams, true, "run/%s resumed", wanted); err != nil {
		return err
	}
	return watch.FollowRun(ctx, o.BesideOutput(&o.DryRun), k, planOf(r), cm.Name)
}

// askRun asks the agent to resume a run, or to take note of what it left. Where there is none, neither happens.
func (o *resumeOptions) askRun(ctx context.Context, k *factory.Cluster, r view.Run, wanted string) error {
	if !o.Client() {
		if err := o.NeedAgent(ctx, k, factory.NothingAsked); err != nil {
			return err
		}
	}
	return askRun(ctx, o.Factory, k, r, annotations.Resume, wanted, o.reason, &o.DryRun)
}

// resumeEnded acknowledges what an ended run, or one step of it, left.
func (o *resumeOptions) resumeEnded(ctx context.Context, k *factory.Cluster, r view.Run, step string) error {
	wanted, j := r.Run.Name, r.Journal
	if step != "" {
		rec, err := stepOf(r, step)
		if err != nil {
			return err
		}
		wanted, step, j.Steps = r.Run.Name+"/"+rec.Path, rec.Path, []run.Record{*rec}
	}
	if !j.CleanupFailed() {
		return fmt.Errorf("run %s has ended (%s)%s: there is nothing to resume", r.Run.Name, j.Phase, view.Prefix(", and left nothing of step ", step))
	}
	return o.acknowledge(ctx, k, r, wanted)
}

// acknowledge notes that somebody knows what was not restored: all that a run left, or what a step did.
func (o *resumeOptions) acknowledge(ctx context.Context, k *factory.Cluster, r view.Run, wanted string) error {
	if err := o.askRun(ctx, k, r, wanted); err != nil {
		return err
	}
	return o.Report(o.IOStreams, false, "run/%s: what it did not put back or clean up is acknowledged%s; it stays as it is", wanted, o.Mark())
}

func (o *resumeOptions) resumeAll(ctx context.Context, k *factory.Cluster) error {
	agent := lookForAgent(ctx, o.Factory, k.Whole(o.everywhere))
	namespace, err := o.namespace(o.Factory, k, agent)
	if err != nil {
		return err
	}
	unseen, was := agent.unknown != nil || agent.Missing != "", ""
	err = annotateNamespace(ctx, k, namespace, &o.DryRun, func(ns *corev1.Namespace) factory.Change {
		was = ns.Annotations[annotations.Pause]
		sayDeclared(o.Factory, ns.ObjectMeta, annotations.Pause)
		return o.noMore(ns.Annotations, unseen)
	})
	if err != nil {
		return err
	}
	if unseen {
		o.sayEnded(was)
	}
	whole := namespace == agent.Namespace
	of, what := annotations.NamespaceNamed(namespace), "all plans in namespace "+namespace
	if whole {
		of, what = annotations.WholeCluster, "all maintenance in the cluster"
	}
	if !paused(was) {
		what = of
	}
	if err := o.Report(o.IOStreams, false, "%s %s", what, o.resumed(was)); err != nil {
		return err
	}
	if whole {
		namespace = ""
	}
	o.stillHeld(ctx, k, agent.Namespace, namespace, of)
	return nil
}

// stillHeld names what is paused besides what was resumed: namespaces, or the whole cluster, and
// what has a pause of its own. An empty namespace stands for all. What may not be read is left out.
func (o *resumeOptions) stillHeld(ctx context.Context, k *factory.Cluster, agentNamespace, namespace, resumed string) {
	names, namespaces := source.PausedThemselves(ctx, k, namespace, o.Now())
	v := print.New(o.Env, o.Zone)
	if namespace != "" {
		o.sayPauses(v, except(resumed, source.ReadPauses(ctx, k, agentNamespace, namespace).Above(namespace)))
	} else {
		all := source.ReadAllRestrictions(ctx, k, agentNamespace, namespaces...).Pauses
		for _, name := range all.Namespaces() {
			o.sayPauses(v.In(name), except(resumed, all.Above(name)))
		}
	}
	if len(names) > 0 {
		fmt.Fprintf(o.ErrOut, "still paused themselves: %s\n", strings.Join(names, ", "))
	}
}

// except leaves out the pause that was ended: one that ends with this second, and after a trial,
// it still stands.
func except(resumed string, pauses []schedule.Pause) []schedule.Pause {
	return slices.DeleteFunc(pauses, func(p schedule.Pause) bool { return p.Of == resumed })
}
