package wait

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/choice"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/completion"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/print"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/source"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/watch"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// What can be waited for.
const (
	forEnded     = "ended"
	forPermitted = "permitted"
	forReady     = "ready"
	forReleased  = "released"
	forPhase     = "phase"
	forCondition = "condition"
)

type options struct {
	*factory.Factory
	out                   *print.Values
	name, text, requestor string
	timeout               time.Duration
	what, value           string             // of --for: phase and Idle, condition and Ready=True
	stands                string             // the last known state
	ignored               string             // what the agent has not looked at; empty: it has
	ran                   *metav1.ObjectMeta // the run; nil: the wait is for another kind
	selector              string
	everywhere            bool
	faults                exit.Faults
}

// New waits for a state.
func New(c *factory.Factory) *cobra.Command {
	o := &options{Factory: c, out: print.NewValues()}
	cmd := &cobra.Command{
		Use:   "wait RUN|PLAN|POLICY|NODE|-l SELECTOR [--for=…]",
		Short: "Wait until a condition is met; for runbooks",
		Long: `Wait until a run has ended, a plan or a policy permits change, a document has a phase
or a condition, or a node is yours.

  --for=ended                    a run, or a plan's newest; 4 if it failed
  --for=permitted                change of a plan, policy or node is permitted
  --for=phase=PHASE              a plan, a HibernatePlan or a run
  --for=condition=TYPE[=STATUS]  any of them; the default of STATUS is True
  --for=ready, --for=released    a node that was asked for with 'drain'

Without --for: ended for a run and a plan, permitted for a policy, ready for a node, and
phase=Active for a HibernatePlan. Exit code 0 when it is so, 3 when it never will be, 4 when
the run failed, 5 when the agent is silent, 124 when --timeout has passed.`,
		Example: `  kubectl maint wait orders-weekly --timeout 2h
  kubectl maint wait weekends --for=permitted && ./upgrade.sh
  kubectl maint wait worker-3 --for=ready --requestor firmware`,
		RunE:              factory.RunE(o),
		ValidArgsFunction: completion.Both(completion.Kinds(c, annotations.KindPlan, annotations.KindHibernatePlan, annotations.KindPolicy, annotations.KindRun), completion.Likely(c, completion.Maintained)),
	}
	cmd.Flags().StringVar(&o.text, "for", "", "what to wait for; see above")
	cmd.Flags().StringVar(&o.requestor, "requestor", "", "of a node's request; default cli.<you>")
	cmd.Flags().DurationVar(&o.timeout, "timeout", 0, "how long to wait (exit code 124); 0 means for ever")
	cmd.Flags().StringVarP(&o.selector, "selector", "l", "", "the plans that have these labels now, HibernatePlans too, one after another")
	cmd.Flags().BoolVarP(&o.everywhere, "all-namespaces", "A", false, "with -l: of all namespaces")
	o.out.AddFlags(cmd)
	_ = cmd.RegisterFlagCompletionFunc("for", completion.About(c, wordsFor, kinds()...))
	return cmd
}

// Complete takes the name and what to wait for.
func (o *options) Complete(_ *cobra.Command, args []string) error {
	switch {
	case o.everywhere && o.selector == "":
		o.faults.Add("-A needs -l")
	case o.selector == "":
		o.name = factory.OneName(args, "RUN, PLAN, POLICY or NODE", &o.faults)
	case len(args) > 0:
		o.faults.Add("-l and a name exclude each other")
	}
	o.what, o.value, _ = strings.Cut(o.text, "=")
	return nil
}

// Validate checks the flags.
func (o *options) Validate() error {
	o.out.Check(&o.faults)
	switch o.what {
	case "", forEnded, forPermitted, forReady, forReleased:
		if o.value != "" {
			o.faults.Add("--for=%s takes no value, is %q", o.what, o.text)
		}
	case forPhase, forCondition:
		if o.value == "" || strings.HasPrefix(o.value, "=") {
			o.faults.Add("--for=%s lacks its value: write %s", o.what, map[string]string{forPhase: "--for=phase=Idle", forCondition: "--for=condition=Ready"}[o.what])
		}
	default:
		o.faults.Add("--for must be ended, permitted, ready, released, phase=PHASE or condition=TYPE[=STATUS], is %q", o.text)
	}
	if o.timeout < 0 {
		o.faults.Add("--timeout must not be negative")
	}
	return o.faults.Err()
}

// Run waits.
func (o *options) Run(ctx context.Context) (err error) {
	ctx, done := watch.WithTimeout(ctx, o.timeout)
	defer done(&err)
	k, err := o.Connect()
	if err != nil {
		return err
	}
	if o.selector != "" {
		return o.many(ctx, k)
	}
	return o.one(ctx, k)
}

// many waits for each of the plans that have the labels, as kubectl wait does.
func (o *options) many(ctx context.Context, k *factory.Cluster) error {
	plans, err := choice.Plans(ctx, o.Factory, k, k.Whole(o.everywhere).Namespace, o.selector)
	if err != nil {
		return err
	}
	for _, cm := range plans { // before hours are spent on the others
		if o.what != "" {
			o.faults.Check(o.refused(cm.Labels[annotations.LabelKind], choice.Name(cm, o.everywhere)))
		}
	}
	if err := o.faults.Err(); err != nil {
		return err
	}
	return choice.Each(ctx, o.Factory, choice.Chosen{Everywhere: o.everywhere}, plans, choice.Object, func(cm *corev1.ConfigMap) error {
		single := *o
		single.name = cm.Labels[annotations.LabelKind] + "/" + cm.Name
		return single.one(ctx, k.In(cm.Namespace))
	})
}

// refused says of --for what does not fit something of a kind.
func (o *options) refused(kind, name string) error {
	known := phasesOf(kind)
	switch {
	case !slices.Contains(takes()[kind], o.what):
		return fmt.Errorf("%s: %w", name, o.notTaken(kind))
	case o.what == forPhase && !slices.ContainsFunc(known, func(p string) bool { return strings.EqualFold(p, o.value) }):
		return o.neverHas(name, known)
	}
	return nil
}

// neverHas refuses a phase that nothing of a kind has.
func (o *options) neverHas(name string, known []string) error {
	return exit.Errorf(exit.CodeUsage, "--for=phase=%s: %s never has that phase; its phases are %s", o.value, name, strings.Join(known, ", "))
}

// notTaken refuses what a kind is not waited for with.
func (o *options) notTaken(kind string) error {
	return exit.Errorf(exit.CodeUsage, "a %s is not waited for with --for=%s: it takes %s", view.KindWord(kind), o.what, strings.Join(takes()[kind], ", "))
}

func (o *options) one(ctx context.Context, k *factory.Cluster) error {
	found, err := o.find(ctx, k)
	var asked *factory.AskedRunError
	var gone *factory.GoneRunError
	switch toEnd := o.what == "" || o.what == forEnded; {
	case errors.As(err, &asked) && toEnd:
		return o.finish(annotations.KindRun, found, o.begun(ctx, k, asked))
	case errors.As(err, &gone) && (toEnd || o.what == forPhase || o.what == forCondition):
		return o.finish(annotations.KindRun, found, o.gone(gone))
	case err != nil:
		return err
	}
	kind := kindOf(found)
	if o.what == "" {
		o.what, o.value, _ = strings.Cut(usual()[kind], "=")
	}
	if !slices.Contains(takes()[kind], o.what) {
		return o.notTaken(kind)
	}
	return o.finish(kind, found, o.await(ctx, k, kind, found))
}

// find finds what is waited for. Nodes alone are ready or released: one that is not there is no node.
func (o *options) find(ctx context.Context, k *factory.Cluster) (factory.Resource, error) {
	found, err := k.Find(ctx, o.name, kinds()...)
	kind, _ := factory.SplitKind(o.name)
	if kind == "" && (o.what == forReady || o.what == forReleased) && errors.As(err, new(factory.NotFoundError)) {
		return k.Find(ctx, factory.KindNode+"/"+o.name)
	}
	return found, err
}

// finish adds the result for scripts to how the wait ended.
func (o *options) finish(kind string, found factory.Resource, err error) error {
	if o.out.Lines() {
		return err
	}
	return errors.Join(o.printResult(kind, found, err), err)
}

// triggered waits for the run of a trigger that waits, unless only somebody can let it begin.
func (o *options) triggered(ctx context.Context, k *factory.Cluster, cm *corev1.ConfigMap) error {
	asked := &factory.AskedRunError{Name: view.AskedRun(cm), Plan: cm}
	agent, err := o.Agent(ctx, k)
	if err != nil || agent.Missing != "" {
		return o.begun(ctx, k, asked) // which says so
	}
	if why := o.neverBegins(ctx, k, agent, cm); why != "" {
		o.ran = &metav1.ObjectMeta{Namespace: cm.Namespace, Name: asked.Name}
		return exit.Errorf(exit.CodeNotNow, "the trigger of plan %s waits, and its run %s does not begin: %s; see %s", cm.Name, asked.Name, why, o.Suggest().Why(cm.Name))
	}
	fmt.Fprintf(o.ErrOut, "run %s is asked for by the trigger of plan %s\n", asked.Name, cm.Name)
	return o.begun(ctx, k, asked)
}

// neverBegins says why no run of a plan begins until somebody does something; empty: one may. A pause with
// an end passes by itself.
func (o *options) neverBegins(ctx context.Context, k *factory.Cluster, agent factory.AgentState, cm *corev1.ConfigMap) string {
	above := source.ReadPauses(ctx, k, agent.Namespace, cm.Namespace)
	if goes := above.Goes(cm); goes != "" {
		return goes
	}
	if fault := view.Invalid(cm); fault != "" {
		return "the plan is invalid: " + fault
	}
	pause := schedule.LongestPause(append(above.AbovePlan(o.Factory, cm), annotations.Intent(cm.Annotations).Pause)...)
	if pause.Holds(o.Now()) && pause.Until == nil {
		return pause.Said()
	}
	return ""
}

// begun waits for the end of a run that the agent has not created yet.
func (o *options) begun(ctx context.Context, k *factory.Cluster, asked *factory.AskedRunError) error {
	o.what, o.ran = forEnded, &metav1.ObjectMeta{Namespace: asked.Plan.Namespace, Name: asked.Name}
	if err := o.NeedAgent(ctx, k, o.name+" is not waited for"); err != nil {
		return err
	}
	return watch.FollowRun(ctx, o.shown(), k, asked.Plan, asked.Name)
}

// gone is how a run ended that is no longer kept, by the ledger of its plan: whether that is the phase
// or the condition that is waited for, if one is.
func (o *options) gone(gone *factory.GoneRunError) error {
	o.ran = &metav1.ObjectMeta{Namespace: gone.Namespace, Name: gone.Entry.Run}
	o.WarnOfLedger(gone.Namespace, gone.Plan, view.Ledger{Doubt: gone.Doubt})
	end := gone.Entry.Outcome
	if o.what == "" {
		o.what = forEnded
	}
	if o.what == forEnded || gone.Entry.Result != run.Ran || end == nil || end.Phase == "" {
		return watch.Remembered(o.shown().Env, gone.Plan, gone.Entry)
	}
	so, stands, err := o.ledgerHas(gone.Entry.Run, end)
	o.stands = stands
	if so && o.out.Lines() {
		fmt.Fprintf(o.Out, "run/%s: %s\n", gone.Entry.Run, stands)
	}
	return err
}

// ledgerHas says whether a run ended with the phase or the condition, of which a ledger knows Succeeded.
func (o *options) ledgerHas(name string, end *ledger.Outcome) (bool, string, error) {
	if o.what == forPhase {
		return o.reached(annotations.KindRun, name, string(end.Phase), end.Message)
	}
	succeeded := metav1.Condition{Type: "Succeeded", Status: metav1.ConditionFalse, Message: end.Message}
	if end.Phase == run.Succeeded {
		succeeded.Status = metav1.ConditionTrue
	}
	return o.had(name, end.Phase, []metav1.Condition{succeeded})
}

// shown is where a run is shown: beside what is printed for scripts.
func (o *options) shown() *factory.Factory {
	if o.out.Lines() {
		return o.Factory
	}
	return o.ToErrOut()
}

func (o *options) await(ctx context.Context, k *factory.Cluster, kind string, found factory.Resource) error {
	switch {
	case o.what == forEnded:
		return o.ended(ctx, k, found.Document)
	case o.what == forPermitted:
		return o.permitted(ctx, k, kind, found)
	case found.Node != nil:
		return o.node(ctx, k, found.Node)
	}
	return o.document(ctx, k, found.Document)
}

// result is the result of a wait for scripts, see docs/cli.md.
type result struct {
	Metadata print.Identity `json:"metadata"`
	Subject  string         `json:"subject"` // run, plan, hibernate-plan, policy or node
	For      string         `json:"for"`
	Met      bool           `json:"met"`
	Message  string         `json:"message,omitempty"`
}

// printResult prints the result for scripts. A run that failed has ended.
func (o *options) printResult(kind string, found factory.Resource, err error) error {
	object := objectOf(found)
	if o.ran != nil {
		kind, object = annotations.KindRun, o.ran
	}
	body := result{Metadata: print.Identity{Namespace: object.GetNamespace(), Name: object.GetName(), UID: string(object.GetUID())}, Subject: kind, For: o.forWords(), Message: o.stands}
	body.Met = err == nil || o.what == forEnded && exit.CodeOf(err) == exit.CodeRunFailed
	if err != nil {
		body.Message = err.Error()
	}
	return o.out.Print(o.Out, print.Value{Kind: "WaitResult", Name: kind + "/" + body.Metadata.Name, Body: body})
}

func objectOf(found factory.Resource) metav1.Object {
	if found.Document != nil {
		return found.Document
	}
	return found.Node
}

// kinds are those of the documents that are waited for.
func kinds() []string {
	return []string{annotations.KindRun, annotations.KindPlan, annotations.KindHibernatePlan, annotations.KindPolicy}
}

func kindOf(found factory.Resource) string {
	if found.Document != nil {
		return found.Document.Labels[annotations.LabelKind]
	}
	return factory.KindNode
}

// wordsFor are the values of --for that fit what was found, or all, where nothing was.
func wordsFor(found factory.Resource) []string {
	if found.Document == nil && found.Node == nil {
		return []string{forEnded, forPermitted, forReady, forReleased, forPhase + "=", forCondition + "="}
	}
	kind := kindOf(found)
	var out []string
	for _, what := range takes()[kind] {
		switch what {
		case forPhase:
			for _, phase := range phasesOf(kind) {
				out = append(out, what+"="+phase)
			}
		case forCondition:
			out = append(out, what+"=")
		default:
			out = append(out, what)
		}
	}
	return out
}

// usual is the default of --for.
func usual() map[string]string {
	return map[string]string{
		annotations.KindRun: forEnded, annotations.KindPlan: forEnded, annotations.KindPolicy: forPermitted,
		annotations.KindHibernatePlan: forPhase + "=Active", factory.KindNode: forReady,
	}
}

// takes are the values of --for for each kind.
func takes() map[string][]string {
	return map[string][]string{
		annotations.KindRun:           {forEnded, forPhase, forCondition},
		annotations.KindPlan:          {forEnded, forPermitted, forPhase, forCondition},
		annotations.KindPolicy:        {forPermitted, forCondition},
		annotations.KindHibernatePlan: {forPhase, forCondition},
		factory.KindNode:              {forReady, forReleased, forPermitted, forCondition},
	}
}

// ended waits for the end of a run, or of a plan's newest: the one that its trigger asks for, where that
// waits.
func (o *options) ended(ctx context.Context, k *factory.Cluster, cm *corev1.ConfigMap) error {
	if watch.TriggerWaits(ctx, k, cm) {
		return o.triggered(ctx, k, cm)
	}
	r, err := o.RunOf(ctx, k, cm.Name)
	var gone *factory.GoneRunError
	switch {
	case errors.As(err, &gone):
		return o.gone(gone)
	case err != nil:
		return err
	}
	if !r.Journal.Phase.Ended() {
		if err := o.NeedAgent(ctx, k, o.name+" is not waited for"); err != nil {
			return err
		}
	}
	owner := cm
	if cm.Labels[annotations.LabelKind] == annotations.KindRun {
		owner = cm.DeepCopy() // its plan may be gone; following a run needs only its name
		owner.Name, owner.UID = r.Run.Plan, ""
		if p, err := k.Plan(ctx, r.Run.Plan); err == nil {
			owner = p
		}
	}
	o.ran = &metav1.ObjectMeta{Namespace: r.Run.Namespace, Name: r.Run.Name}
	return watch.FollowRun(ctx, o.shown(), k, owner, r.Run.Name)
}

// look says whether the state is reached, and describes the present one; an error means that it
// never will be.
type look func() (so bool, stands string, err error)

// until looks at every change, and every second for what time changes, until the state is reached.
func (o *options) until(ctx context.Context, k *factory.Cluster, changed <-chan struct{}, name string, f look) error {
	if o.everywhere {
		name = strings.Replace(name, "/", "/"+k.Namespace+"/", 1)
	}
	agent := o.WatchAgent(k)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	asked, said := false, ""
	var since time.Time // when the agent was first seen to ignore it
	for {
		o.ignored = ""
		so, stands, err := f()
		o.stands = stands
		if so || err != nil {
			if err == nil && !asked {
				o.warnSilent(ctx, k)
			}
			if err == nil && o.out.Lines() {
				fmt.Fprintf(o.Out, "%s: %s\n", name, stands)
			}
			return err
		}
		if !asked { // a state that is reached already needs no agent
			if err := o.NeedAgent(ctx, k, o.name+" is not waited for"); err != nil {
				return err
			}
			asked = true
		}
		if stands != said {
			said = stands
			fmt.Fprintf(o.ErrOut, "waiting %s: %s\n", o.awaited(name), stands)
		}
		switch {
		case o.ignored == "":
			since = time.Time{}
		case since.IsZero():
			since = time.Now()
		case time.Since(since) >= factory.AgentTimeout && !agent.IsLate(ctx):
			return exit.Errorf(exit.CodeNoAgent, "%s; %s", o.ignored, watch.UpgradeAgent(ctx, o.Factory, k))
		}
		select {
		case <-ctx.Done():
			return watch.EndedEarly(ctx, name+": "+stands)
		case <-changed:
		case <-tick.C:
			if err := agent.Check(ctx, name+": "+stands); err != nil {
				return err
			}
		}
	}
}

// warnSilent warns that what the agent published may be old: a state that is reached at once needs no
// agent.
func (o *options) warnSilent(ctx context.Context, k *factory.Cluster) {
	if s, err := o.Agent(ctx, k); err == nil {
		o.WarnSilent(s)
	}
}

// awaited is what is waited for, in a sentence.
func (o *options) awaited(name string) string {
	if o.what == forPermitted {
		return "until " + name + " permits change"
	}
	return "for " + o.forWords() + " of " + name
}

func (o *options) forWords() string {
	if o.value == "" {
		return o.what
	}
	return o.what + "=" + o.value
}
