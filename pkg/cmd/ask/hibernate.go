package ask

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

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
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

type holdOptions struct {
	*factory.Factory
	factory.DryRun
	factory.Consent
	watch.Waiting
	asleep bool // what the command asks for: asleep or awake
	plans  chosenPlans
	ends   holdEnd
	reason string
	faults exit.Faults
}

// chosenPlans are the HibernatePlans that are meant, by name or otherwise.
type chosenPlans struct {
	names      []string
	all        bool
	selector   string
	everywhere bool
}

// holdEnd is when a hold ends: after a while, at a time, or now.
type holdEnd struct {
	forText   string
	untilText string
	timezone  string // of untilText
	release   bool
}

// NewHibernate holds HibernatePlans asleep.
func NewHibernate(c *factory.Factory) *cobra.Command {
	o := &holdOptions{Factory: c, asleep: true}
	cmd := &cobra.Command{
		Use:   "hibernate PLAN... | -l SELECTOR | --all",
		Short: "Put the targets of HibernatePlans to sleep",
		Long: `Put the targets of HibernatePlans to sleep and hold them there: for a while, until
a time, or until --release. Then the schedule decides again. A policy
or a pause can still delay it. The state of each target is recorded before it is
changed, and is restored when it wakes. --wait shows the progress; the exit code is 4
if a target failed, 3 if they cannot fall asleep now.`,
		Example: `  kubectl maint hibernate dev-nights --for 3h --reason "nobody is here"
  kubectl maint hibernate dev-nights --until "mon 06:00" --wait
  kubectl maint hibernate dev-nights --release`,
	}
	return o.command(cmd, func(m metav1.ObjectMeta) bool { return m.Annotations[annotations.HoldState] != "asleep" })
}

// NewWake holds HibernatePlans awake.
func NewWake(c *factory.Factory) *cobra.Command {
	o := &holdOptions{Factory: c}
	cmd := &cobra.Command{
		Use:   "wake PLAN... | -l SELECTOR | --all",
		Short: "Wake the targets of HibernatePlans",
		Long: `Wake the targets of HibernatePlans and hold them awake: for a while, until a time,
or until --release. Then the schedule decides again. A policy
does not delay it, but a pause does. --wait shows the progress; the exit code is 4 if a
target failed, 3 if they cannot wake now.`,
		Example: `  kubectl maint wake dev-nights --for 2h --reason "late release" --wait
  kubectl maint wake dev-nights --release`,
	}
	return o.command(cmd, func(m metav1.ObjectMeta) bool { return m.Annotations[annotations.HoldState] != "awake" })
}

func (o *holdOptions) command(cmd *cobra.Command, keep func(metav1.ObjectMeta) bool) *cobra.Command {
	cmd.RunE = factory.RunE(o)
	cmd.ValidArgsFunction = completion.Kind(o.Factory, annotations.KindHibernatePlan, keep)
	o.DryRun.AddFlag(cmd)
	o.Consent.AddFlag(cmd)
	o.Waiting.AddFlags(cmd, "the targets until all of them are there")
	f := cmd.Flags()
	f.BoolVar(&o.plans.all, "all", false, "all HibernatePlans that the namespace has now")
	f.StringVarP(&o.plans.selector, "selector", "l", "", "those of the namespace that have these labels")
	f.BoolVarP(&o.plans.everywhere, "all-namespaces", "A", false, "with -l: of all namespaces")
	f.StringVar(&o.ends.forText, "for", "", "how long: 2h, 3d")
	f.StringVar(&o.ends.untilText, "until", "", `until when: "mon 06:00", RFC 3339`)
	f.BoolVar(&o.ends.release, "release", false, "end the hold: the schedule decides again")
	f.StringVar(&o.ends.timezone, "timezone", "", "zone of --until; default: the plan's")
	f.StringVar(&o.reason, "reason", "", "why")
	return cmd
}

// Complete takes the names.
func (o *holdOptions) Complete(_ *cobra.Command, args []string) error {
	o.plans.names = args
	return nil
}

// Validate checks the flags.
func (o *holdOptions) Validate() error {
	f := &o.faults
	switch many := o.plans.all || o.plans.selector != ""; {
	case o.plans.everywhere && o.plans.selector == "":
		f.Add("-A needs -l")
	case o.plans.all && o.plans.selector != "":
		f.Add("--all and -l exclude each other")
	case many && len(o.plans.names) > 0:
		f.Add("names and --all or -l exclude each other")
	case !many && len(o.plans.names) == 0:
		f.Add("PLAN is missing; or give -l or --all")
	}
	given := 0
	for _, set := range []bool{o.ends.forText != "", o.ends.untilText != "", o.ends.release} {
		if set {
			given++
		}
	}
	switch {
	case given > 1:
		f.Add("give one of --for, --until and --release")
	case o.ends.release && o.reason != "":
		f.Add("--reason is for a hold, and --release ends the hold")
	case o.ends.untilText != "": // whether it has passed depends on the zone of each plan
		f.Check(instant.NotPassed("--until", o.ends.untilText, o.Now(), o.Zone))
	default:
		_, err := o.until(o.Zone)
		f.Check(err)
	}
	f.Check(instant.KnownZone(o.ends.timezone))
	if o.Wait && o.Mode != "none" {
		f.Add("--wait: a dry run changes nothing that could be waited for")
	}
	o.Waiting.Check(f)
	o.DryRun.Check(f)
	return f.Err()
}

// until is the end of the hold; nil: it has none.
func (o *holdOptions) until(zone string) (*time.Time, error) {
	switch {
	case o.ends.forText != "":
		d, err := document.ParseDuration(o.ends.forText)
		if err != nil {
			return nil, fmt.Errorf("--for: %w", err)
		}
		if d.Duration <= 0 {
			return nil, fmt.Errorf("--for: must be more than nothing, is %s", o.ends.forText)
		}
		return new(o.Now().Add(d.Duration).UTC().Truncate(time.Second)), nil
	case o.ends.untilText != "":
		at, err := instant.Future("--until", o.ends.untilText, o.Now(), cmp.Or(o.ends.timezone, zone))
		if err != nil {
			return nil, err
		}
		return new(at.UTC().Truncate(time.Second)), nil
	}
	return nil, nil
}

// hold is the hold to write on a plan.
func (o *holdOptions) hold(s view.Sleeper) (hibernate.Hold, error) {
	if o.ends.release {
		return hibernate.Hold{}, nil
	}
	until, err := o.until(s.Zone())
	return hibernate.Hold{On: true, Asleep: o.asleep, Until: until}, err
}

// Run writes the holds, says what follows, and waits if asked.
func (o *holdOptions) Run(ctx context.Context) (err error) {
	ctx, done := watch.WithTimeout(ctx, o.Timeout)
	defer done(&err)
	k, err := o.Connect()
	if err != nil {
		return err
	}
	plans, err := o.find(ctx, k)
	if err != nil {
		return err
	}
	if err := o.attended(ctx, k.Whole(o.plans.everywhere), plans); err != nil {
		return err
	}
	refused, fine := map[types.UID]error{}, []view.Sleeper(nil)
	err = o.each(ctx, plans, func(s view.Sleeper) error { // before anything is written
		if refused[s.Object.UID] = o.checkOne(s); refused[s.Object.UID] == nil {
			fine = append(fine, s)
		}
		_, err := o.hold(s) // of a time that no clock takes nothing is asked
		return err
	})
	if err != nil {
		return err
	}
	if o.asleep && !o.ends.release && len(o.plans.names) == 0 && len(fine) > 0 && o.Kept() {
		if err := o.Confirm(ctx, o.Consent, "put "+o.namesOf(fine)+o.where(k)+" to sleep"); err != nil {
			return err
		}
	}
	actor := k.Actor(ctx)
	var awaited []watch.Awaited
	err = o.each(ctx, plans, func(s view.Sleeper) error {
		if err := refused[s.Object.UID]; err != nil {
			return err
		}
		hold, err := o.write(ctx, k, s, actor)
		awaited = append(awaited, o.awaited(s, hold))
		return err
	})
	if err != nil || !o.Wait {
		return err
	}
	return watch.FollowSleep(ctx, o.BesideOutput(&o.DryRun), k.Whole(o.plans.everywhere), awaited)
}

// each does something with each plan; one that fails does not keep the others from it.
func (o *holdOptions) each(ctx context.Context, plans []view.Sleeper, do func(view.Sleeper) error) error {
	by := choice.Chosen{ByName: len(o.plans.names) > 0, Everywhere: o.plans.everywhere}
	return choice.Each(ctx, o.Factory, by, plans, func(s view.Sleeper) metav1.Object { return s.Object }, do)
}

func (o *holdOptions) namesOf(plans []view.Sleeper) string {
	names := make([]string, len(plans))
	for i, s := range plans {
		names[i] = choice.Name(s.Object, o.plans.everywhere)
	}
	return strings.Join(names, ", ")
}

// where is where plans are looked for, in a sentence; empty: their names say it.
func (o *holdOptions) where(k *factory.Cluster) string {
	if o.plans.everywhere {
		return ""
	}
	return " in namespace " + k.Namespace
}

// find finds all plans that are named. If one name is wrong, nothing is written for the others
// either.
func (o *holdOptions) find(ctx context.Context, k *factory.Cluster) ([]view.Sleeper, error) {
	var objects []*corev1.ConfigMap
	for _, name := range o.plans.names {
		cm, err := k.Document(ctx, name, annotations.KindHibernatePlan)
		if err != nil {
			return nil, err
		}
		objects = append(objects, cm)
	}
	if len(o.plans.names) == 0 {
		var err error
		if objects, err = k.HibernatePlans(ctx, k.Whole(o.plans.everywhere).Namespace, o.plans.selector); err != nil {
			return nil, err
		}
		if len(objects) == 0 {
			return nil, fmt.Errorf("no HibernatePlans found%s", o.where(k))
		}
	}
	agent, _ := o.Agent(ctx, k.Whole(o.plans.everywhere))
	return source.ReadSleepers(ctx, o.Factory, k, agent, objects), nil
}

// attended warns where no agent acts on the plans, of each namespace once; a wait is refused.
func (o *holdOptions) attended(ctx context.Context, k *factory.Cluster, plans []view.Sleeper) error {
	if o.Wait {
		if err := o.NeedAgent(ctx, k, factory.NothingAsked); err != nil {
			return err
		}
	}
	agent, _ := o.Agent(ctx, k) // whoever may not look for it does without
	said := map[string]bool{"": true}
	for _, s := range plans {
		a := agent.In(s.Namespace)
		switch {
		case said[a.Missing]:
			continue
		case o.Wait:
			return exit.Errorf(exit.CodeNoAgent, "%s; %s", a.Missing, factory.NothingAsked)
		}
		said[a.Missing] = true
		when := "one is back"
		if a.Elsewhere {
			when = "it does"
		}
		fmt.Fprintf(o.ErrOut, "warning: %s; what is asked here is done when %s\n", a.Missing, when)
	}
	return nil
}

// checkOne refuses what is impossible, and says what delays the hold.
func (o *holdOptions) checkOne(s view.Sleeper) error {
	name := choice.Name(s.Object, o.plans.everywhere)
	if s.Table == nil && o.asleep && !o.ends.release {
		return fmt.Errorf("plan %s is not valid, so it puts nothing to sleep:\n%w", name, s.Faults)
	}
	if o.ends.release {
		return nil
	}
	why := o.kept(s)
	switch {
	case why == "":
		return nil
	case o.Wait:
		return exit.Errorf(exit.CodeNotNow, "plan %s: %s; nothing was asked (without --wait the request is kept, and is carried out as soon as it can be)", name, why)
	}
	fmt.Fprintf(o.ErrOut, "plan %s: %s\n", name, why)
	return nil
}

// pausedBy names the pause, its author and reason, and how it ends.
func (o *holdOptions) pausedBy(s view.Sleeper, p schedule.Pause) string {
	v := print.New(o.Env, s.Zone())
	what, hand := strings.TrimPrefix(v.Paused(p), "is "), o.Suggest().Resume(s.Name)
	if p.Of != "" {
		for _, n := range v.PauseNeeds(p) {
			what, hand = n.About+" "+n.What, n.Remedy
		}
	}
	return what + "; it keeps its present state meanwhile: " + hand + " ends that"
}

// kept says what keeps a hold from taking effect at once; empty: nothing.
func (o *holdOptions) kept(s view.Sleeper) string {
	pause := s.Pause(o.Now())
	switch {
	case pause.On:
		return o.pausedBy(s, pause)
	case !o.asleep || s.Asleep():
		return ""
	case s.Spec.DryRun:
		return s.OnlyDry()
	}
	if v := s.Gate.Verdict(o.Now()); !v.Permitted {
		until := ""
		if v.Until != nil {
			until = ", until " + instant.Both(*v.Until, s.Zone())
		}
		return "no sleep may begin now: " + instant.InText(v.Why(), s.Zone()) + until
	}
	return ""
}

// write writes the hold on a plan, and says what follows.
func (o *holdOptions) write(ctx context.Context, k *factory.Cluster, s view.Sleeper, actor string) (hibernate.Hold, error) {
	hold, err := o.hold(s)
	if err != nil {
		return hold, err
	}
	was, unchanged := s.Hold, false
	err = k.Annotate(ctx, s.Object, &o.DryRun, func(cm *corev1.ConfigMap) (factory.Change, error) {
		was, _ = annotations.ReadHold(cm.Annotations)
		c := o.change(cm, hold, actor)
		unchanged = len(c) == 0
		return c, nil
	})
	if err != nil {
		return hold, err
	}
	s.Hold = hold
	return hold, o.say(s, was, unchanged)
}

// change is the change of the annotations; nothing where the hold is there already.
func (o *holdOptions) change(cm *corev1.ConfigMap, hold hibernate.Hold, actor string) factory.Change {
	_, state := cm.Annotations[annotations.HoldState]
	_, until := cm.Annotations[annotations.HoldUntil]
	if o.ends.release {
		if !state && !until {
			return nil
		}
		return factory.Change{annotations.HoldState: nil, annotations.HoldUntil: nil}.Signed(annotations.HoldState, "", "")
	}
	have, _ := annotations.ReadHold(cm.Annotations)
	if annotations.FormatHold(have) == annotations.FormatHold(hold) && (o.reason == "" || o.reason == cm.Annotations[annotations.Reason(annotations.HoldState)]) {
		return nil
	}
	c := factory.Change{annotations.HoldState: factory.Value("awake"), annotations.HoldUntil: nil}
	if hold.Asleep {
		c[annotations.HoldState] = factory.Value("asleep")
	}
	if hold.Until != nil {
		c[annotations.HoldUntil] = factory.Value(hold.Until.Format(time.RFC3339))
	}
	return c.Signed(annotations.HoldState, actor, o.reason)
}

func (o *holdOptions) say(s view.Sleeper, was hibernate.Hold, unchanged bool) error {
	v := print.New(o.Env, cmp.Or(o.ends.timezone, s.Zone()))
	words := v.HoldWords(s.Name, s.Hold)
	switch {
	case o.ends.release && unchanged:
		words = "was not held"
	case o.ends.release:
		words = "released" + map[bool]string{true: ", was " + view.HoldWords(was, v.Both)}[was.Holds(o.Now())]
	case unchanged:
		words = "unchanged: " + words
	}
	if err := o.Report(o.IOStreams, false, "hibernate-plan/%s %s%s", choice.Name(s.Object, o.plans.everywhere), words, o.Mark()); err != nil {
		return err
	}
	switch {
	case s.Table == nil:
		fmt.Fprintf(o.ErrOut, "plan %s is not valid: when it sleeps next is not known (%s)\n", choice.Name(s.Object, o.plans.everywhere), s.Faults[0])
	case o.Format() == "":
		fmt.Fprintf(o.Out, "  %s\n", v.Then(s))
	}
	return nil
}

// awaited is what to wait for of a plan.
func (o *holdOptions) awaited(s view.Sleeper, hold hibernate.Hold) watch.Awaited {
	a := watch.Awaited{Object: s.Object, Key: annotations.StatusHold, Value: annotations.FormatHold(hold), Phases: []hibernate.Phase{hibernate.Active, hibernate.Suspended}}
	asleep := o.asleep
	if s.Hold = hold; o.ends.release && s.Table != nil {
		asleep = s.Table.DesiredState(o.Now(), s.Overrides()).Asleep
	}
	if asleep {
		a.Phases = []hibernate.Phase{hibernate.Hibernated}
	}
	return a
}
