package ask

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/completion"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/instant"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/source"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/watch"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

type triggerOptions struct {
	*factory.Factory
	factory.DryRun
	watch.Waiting
	name          string
	reason        string
	outsideWindow bool
	asOf          string // the earlier run that a rollback goes back to, first as it was given
	parameters    parameters
	words         words
	faults        exit.Faults
}

// words are what is said of a request.
type words struct {
	given string // its other flags, as a suggested command repeats them
	waits string // what its run will wait for, a line each, told when it is written
}

// parameters are those of the run.
type parameters struct {
	flags  []string // as they are given
	values map[string]string
}

// NewTrigger asks for one run of a plan.
func NewTrigger(c *factory.Factory) *cobra.Command {
	o := &triggerOptions{Factory: c}
	cmd := &cobra.Command{
		Use:   "trigger PLAN",
		Short: "Trigger one run of a plan",
		Long: `Trigger one run of a plan, now.

The agent takes the request up as soon as it can: a paused or busy plan runs
later. The run's name is printed; with -o name it alone is on standard output, also
with --wait. With --wait the run is shown until it ends; the exit code is 4 when it
failed, 3 when it did not start.

--dry-run, or --dry-run=run, asks for a run that changes nothing. --dry-run=client
sends nothing, --dry-run=server has the API server try what would be written.

For a HibernatePlan, trigger repeats at once what failed. 'hibernate' and 'wake' put it
to sleep and wake it, whatever its schedule says.`,
		Example: `  kubectl maint trigger orders-weekly --reason "CHG-1234" --wait
  kubectl maint trigger orders-weekly --param mode=full --dry-run`,
		RunE:              factory.RunE(o),
		ValidArgsFunction: completion.Both(completion.Plans(c, nil), completion.Kind(c, annotations.KindHibernatePlan, triggerable)),
	}
	f := cmd.Flags()
	f.StringVar(&o.reason, "reason", "", "why; it is kept with the run")
	f.StringArrayVar(&o.parameters.flags, "param", nil, "parameter of the run, name=value; may be repeated")
	_ = cmd.RegisterFlagCompletionFunc("param", completion.Parameters(c))
	f.BoolVar(&o.outsideWindow, "outside-window", false, "do not wait for the maintenance window, unless the namespace is restrictive; needs --reason")
	o.AddRunMode(cmd, factory.RunMode)
	o.AddOutput(cmd)
	o.Waiting.AddFlags(cmd, "the run until it ends")
	return cmd
}

func (o *triggerOptions) Complete(cmd *cobra.Command, args []string) error {
	o.name, o.words.given = factory.OneName(args, "PLAN", &o.faults), factory.GivenFlags(cmd.LocalNonPersistentFlags(), "reason", "outside-window", "to")
	o.parameters.values = map[string]string{}
	for _, p := range o.parameters.flags {
		key, val, ok := strings.Cut(p, "=")
		if !ok || key == "" {
			o.faults.Add("--param %q: write it name=value", p)
			continue
		}
		o.parameters.values[key] = val
	}
	return nil
}

func (o *triggerOptions) Validate() error {
	if o.outsideWindow && o.reason == "" {
		o.faults.Add("--outside-window needs a --reason")
	}
	o.DryRun.Check(&o.faults)
	o.Waiting.Check(&o.faults)
	return o.faults.Err()
}

func (o *triggerOptions) Run(ctx context.Context) (err error) {
	ctx, done := watch.WithTimeout(ctx, o.Timeout)
	defer done(&err)
	k, err := o.Connect()
	if err != nil {
		return err
	}
	cm, err := k.Document(ctx, o.name, annotations.KindPlan, annotations.KindHibernatePlan)
	if err != nil {
		return err
	}
	if cm.Labels[annotations.LabelKind] == annotations.KindHibernatePlan {
		return o.retrySleep(ctx, k, cm)
	}
	if err := o.check(ctx, k, cm); err != nil {
		return err
	}
	return o.ask(ctx, k, cm)
}

// ask writes the token once it would be handled, and shows its run.
func (o *triggerOptions) ask(ctx context.Context, k *factory.Cluster, cm *corev1.ConfigMap) (err error) {
	if !o.Client() {
		if cm, err = watch.ReadyForToken(ctx, o.Factory, k, cm); err != nil {
			return err
		}
	}
	token := uuid.NewString()
	if err := o.write(ctx, k, cm, token); err != nil {
		return err
	}
	fmt.Fprint(o.ErrOut, o.words.waits)
	name := annotations.RunName(cm.Name, string(cm.UID), run.Request{Kind: run.ByToken, Token: token})
	waits := o.Wait && o.Kept()
	if err := o.ReportRun(o.IOStreams, waits, name); err != nil || !waits {
		return err
	}
	return watch.FollowRun(ctx, o.BesideOutput(&o.DryRun), k, cm, name)
}

// check refuses what the agent would refuse, before anything is written.
func (o *triggerOptions) check(ctx context.Context, k *factory.Cluster, cm *corev1.ConfigMap) error {
	spec, err := validSpec(cm)
	if err != nil {
		return err
	}
	faults := exit.Faults(view.ParameterFaults(spec, o.parameters.values))
	if err := faults.Err(); err != nil {
		return err
	}
	if o.Client() {
		return nil
	}
	return o.willBeSeen(ctx, k, cm)
}

// validSpec is what a plan says, if its document has no fault.
func validSpec(cm *corev1.ConfigMap) (plan.Spec, error) {
	spec, found := annotations.Plan(cm)
	if len(found) > 0 {
		return plan.Spec{}, fmt.Errorf("plan %s is not valid, so that nothing would run:\n%w", cm.Name, found)
	}
	return spec, nil
}

// willBeSeen refuses where nobody would handle a request for a run, or where it would come to nothing, and
// finds what the run will wait for.
func (o *triggerOptions) willBeSeen(ctx context.Context, k *factory.Cluster, cm *corev1.ConfigMap) error {
	if err := o.NeedAgent(ctx, k, factory.NothingAsked); err != nil {
		return err
	}
	if err := watch.ValidPlan(ctx, o.Factory, k, cm); err != nil {
		return err
	}
	if err := o.notPaused(ctx, k, cm); err != nil {
		return err
	}
	o.findBusy(ctx, k, cm)
	return o.findGate(ctx, k, cm)
}

// findBusy names the run that has to end before the agent handles the request, or says that it cannot see it.
func (o *triggerOptions) findBusy(ctx context.Context, k *factory.Cluster, cm *corev1.ConfigMap) {
	live, err := k.RunsOf(ctx, cm, factory.ActiveOnly)
	if err == nil && len(live) == 0 {
		return
	}
	kept, unread := k.Ledger(ctx, cm)
	if err != nil || unread != nil {
		o.words.waits += fmt.Sprintf("cannot see whether another run has to end first: %v\n", cmp.Or(err, unread))
		return
	}
	asked := cm.DeepCopy()
	metav1.SetMetaDataAnnotation(&asked.ObjectMeta, annotations.Trigger, "asked now")
	p := view.NewPlan(asked, kept, live, view.Around{}, o.Now())
	status := p.Decision.Status
	if status.WaitsFor == "" || !kept.Claimed(status.WaitsFor) && !slices.ContainsFunc(live, func(r view.Run) bool { return r.Run.Name == status.WaitsFor }) { // it may claim one that the agent would not begin now
		return
	}
	hand := ""
	if status.WaitsForDry {
		hand = "; " + o.Suggest().Abort(status.WaitsFor) + " ends the dry run, which changes nothing"
	}
	o.words.waits += fmt.Sprintf("%s; %s shows how far it is, %s what waits%s\n", status.Waiting, o.Suggest().Describe(status.WaitsFor), o.Suggest().Why(cm.Name), hand)
}

// findGate says what the run will wait for: for what its plan lacks, or else while its gate is closed.
func (o *triggerOptions) findGate(ctx context.Context, k *factory.Cluster, cm *corev1.ConfigMap) error {
	s, err := source.FindSubject(ctx, o.Factory, k, annotations.KindPlan+"/"+cm.Name)
	if err != nil {
		return err
	}
	s.Pauses = nil // they are shown already
	v := s.Verdict(o.Now())
	if why, is := unready(cm); is && why != v.Reason { // else a policy alone is not ready, by which a run outside of its window is not held
		o.words.waits += fmt.Sprintf("plan %s is not ready, and the run waits until it is: %s; %s says what is in the way, %s checks all that it needs\n", cm.Name, o.AgentText(why, s.Zone), o.Suggest().Why(cm.Name), o.Suggest().Doctor(cm.Name))
		return nil
	}
	if o.outsideWindow {
		gate := o.outsideGate(ctx, k, cm)
		if gate == nil {
			return nil
		}
		v = gate.Verdict(o.Now())
	}
	ofNamespace := v.Cause.Namespace // a frozen namespace holds the run in any case
	if v.Permitted || o.outsideWindow && !ofNamespace {
		return nil
	}
	opens := run.StaysClosed
	switch {
	case v.Later != "":
		opens = "of which it is not known yet when it opens"
	case v.Next != nil && v.Next.Permitted:
		opens = "which opens " + instant.Both(v.Next.Start, s.Zone)
	}
	waits, hand := "the run waits for its window", "; "+o.Suggest().AskOutside(cm.Name, o.asOf, o.words.given, o.reason)+" asks for one that does not"
	if ofNamespace {
		hand = "; the annotation maint.dev/bypass on the plan lets one run start all the same"
	}
	if o.outsideWindow {
		waits += " all the same"
	}
	o.words.waits += fmt.Sprintf("%s, %s (%s)%s\n", waits, opens, instant.InText(v.Why(), s.Zone), hand)
	return nil
}

// unready is what a plan lacks, as the agent saw this version of it last.
func unready(cm *corev1.ConfigMap) (why string, is bool) {
	return view.FindCondition(view.Plan{Object: cm}.Conditions(), "Ready", metav1.ConditionFalse)
}

// outsideGate is the gate of a run that runs outside of its window; nil: nothing is known to restrict it.
func (o *triggerOptions) outsideGate(ctx context.Context, k *factory.Cluster, cm *corev1.ConfigMap) *schedule.Gate {
	agent, _ := o.Agent(ctx, k)
	quiet := source.Quiet(o.Factory) // what may not be read is told already
	return source.ReadResolver(ctx, k, agent.Namespace, cm.Namespace).RunGate(quiet, agent, cm, run.Run{Request: run.Request{OutsideWindow: true}}, false)
}

// notPaused says that a paused plan runs later.
func (o *triggerOptions) notPaused(ctx context.Context, k *factory.Cluster, cm *corev1.ConfigMap) error {
	agent, _ := o.Agent(ctx, k)
	above := source.ReadPauses(ctx, k, agent.Namespace, cm.Namespace)
	if goes := above.Goes(cm); goes != "" {
		return exit.Errorf(exit.CodeNotNow, "%s, so nothing begins in it; nothing was asked", goes)
	}
	var pauses []string
	for _, s := range append([]schedule.Pause{annotations.Intent(cm.Annotations).Pause}, above.AbovePlan(o.Factory, cm)...) {
		if s.Holds(o.Now()) {
			pauses = append(pauses, pauseSaid(o.Env, cm.Name, s))
		}
	}
	what, ends := "the run", "the pause ends"
	if len(pauses) > 1 {
		ends = "all that has ended"
	}
	if cm.Labels[annotations.LabelKind] == annotations.KindHibernatePlan {
		what = "what failed"
	}
	switch why := strings.Join(pauses, "; "); {
	case why == "":
	case o.Wait:
		return exit.Errorf(exit.CodeNotNow, "%s; nothing was asked (without --wait %s begins when %s)", why, what, ends)
	default:
		o.words.waits += fmt.Sprintf("%s; %s begins when %s\n", why, what, ends)
	}
	return nil
}

func (o *triggerOptions) write(ctx context.Context, k *factory.Cluster, cm *corev1.ConfigMap, token string) error {
	actor := k.Actor(ctx)
	options, err := json.Marshal(intent.TriggerOptions{Token: token, Reason: o.reason, DryRun: o.Mode == factory.RunMode, OutsideWindow: o.outsideWindow, Parameters: o.parameters.values, AsOf: o.asOf})
	if err != nil {
		return err
	}
	return k.Annotate(ctx, cm, &o.DryRun, func(cm *corev1.ConfigMap) (factory.Change, error) {
		if missing := watch.TokenWaitsFor(ctx, o.Factory, k, cm); missing != "" && !o.Client() {
			return nil, exit.Errorf(exit.CodeNotNow, "%s; nothing was asked", missing)
		}
		c := factory.Change{annotations.Trigger: factory.Value(token), annotations.TriggerOptions: factory.Value(string(options))}
		return c.Signed(annotations.Trigger, actor, o.reason), nil
	})
}
