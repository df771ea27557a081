package ask

import (
	"context"
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
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// maxSkip limits the slots that are named one by one: an annotation must not grow without bound.
const maxSkip = 100

type skipOptions struct {
	*factory.Factory
	factory.DryRun
	picked
	asked    chosen
	timezone string
	reason   string
	before   []time.Time // coming slots that were skipped before and remain so
	faults   exit.Faults
}

// chosen are the slots that are left out: by exactly one of these.
type chosen struct {
	next  int
	slots []string
	until string
	all   bool
}

// picked are the plans that skip and unskip are about: one by its name, or those with some labels.
type picked struct {
	name, selector string
	everywhere     bool
}

func (p *picked) addFlag(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&p.selector, "selector", "l", "", "the plans of the namespace that have these labels, HibernatePlans too")
	cmd.Flags().BoolVarP(&p.everywhere, "all-namespaces", "A", false, "with -l: of all namespaces")
}

func (p *picked) complete(args []string, f *exit.Faults) {
	switch {
	case p.everywhere && p.selector == "":
		f.Add("-A needs -l")
	case p.selector == "":
		p.name = factory.OneName(args, "PLAN", f)
	case len(args) > 0:
		f.Add("-l and a name exclude each other")
	}
}

func (p *picked) find(ctx context.Context, c *factory.Factory, k *factory.Cluster) ([]*corev1.ConfigMap, error) {
	if p.selector != "" {
		return choice.Plans(ctx, c, k, k.Whole(p.everywhere).Namespace, p.selector)
	}
	cm, err := k.Document(ctx, p.name, annotations.KindPlan, annotations.KindHibernatePlan)
	return []*corev1.ConfigMap{cm}, err
}

// each does something with every plan that is meant; where one fails, the others go on.
func (p *picked) each(ctx context.Context, c *factory.Factory, k *factory.Cluster, do func(*corev1.ConfigMap) error) error {
	plans, err := p.find(ctx, c, k)
	if err != nil {
		return err
	}
	return choice.Each(ctx, c, choice.Chosen{ByName: p.selector == "", Everywhere: p.everywhere}, plans, choice.Object, do)
}

// nameOf is a plan's name, with its namespace where plans of all namespaces are meant.
func (p *picked) nameOf(cm *corev1.ConfigMap) string { return choice.Name(cm, p.everywhere) }

// NewSkip skips coming slots of a plan.
func NewSkip(c *factory.Factory) *cobra.Command {
	o := &skipOptions{Factory: c}
	cmd := &cobra.Command{
		Use:   "skip PLAN|-l SELECTOR --next N|--slot T|--until T|--all",
		Short: "Leave out coming slots of a plan",
		Long: `Leave out coming slots of a plan: the next ones, named ones, all before a time,
or all until 'unskip'. Each is recorded as Skipped. The command shows
each slot in the plan's zone and in UTC; with --until, how many they are and the first
ten of them. A manual trigger still runs. The slots of a
HibernatePlan are its off-windows, named by their start. If you skip one that has
begun, its targets wake.`,
		Example: `  kubectl maint skip orders-weekly --next 1 --reason "release week"
  kubectl maint skip orders-weekly --slot "sat 02:00"
  kubectl maint skip orders-weekly --until 2027-01-04T00:00:00Z
  kubectl maint skip -l team=orders --until 2027-01-04T00:00:00Z`,
		RunE:              factory.RunE(o),
		ValidArgsFunction: completion.AllPlans(c, nil),
	}
	o.DryRun.AddFlag(cmd)
	o.addFlag(cmd)
	f := cmd.Flags()
	f.IntVar(&o.asked.next, "next", 0, "the next N slots that are not skipped yet")
	f.StringArrayVar(&o.asked.slots, "slot", nil, "the slot at this time; may be repeated")
	f.StringVar(&o.asked.until, "until", "", "all slots before this time")
	f.BoolVar(&o.asked.all, "all", false, "all slots, until 'unskip'; labels wait too")
	f.StringVar(&o.timezone, "timezone", "", "zone of the times; default: the plan's, else yours")
	f.StringVar(&o.reason, "reason", "", "why")
	_ = cmd.RegisterFlagCompletionFunc("slot", completion.Of(c, o.offered)) // fails where there is no such flag: it was added above
	return cmd
}

// offered are the coming slots that are not skipped yet, each with its time in the plan's zone.
func (o *skipOptions) offered(cm *corev1.ConfigMap) []string {
	p, have := skippableOf(cm, o.Zone, o.Now(), o.Env), annotations.Intent(cm.Annotations).Skip
	if p.slots == nil || len(p.faults) > 0 {
		return nil
	}
	var out []string
	for from := p.begins; len(out) < view.SlotsOffered; {
		slot, ok := p.slots.Next(from)
		if !ok {
			break
		}
		if from = slot.At; !slices.ContainsFunc(have.Slots, slot.At.Equal) {
			out = append(out, view.SlotChoice(slot.At, p.zone))
		}
	}
	return out
}

func (o *skipOptions) Complete(cmd *cobra.Command, args []string) error {
	o.complete(args, &o.faults)
	if cmd.Flags().Changed("next") && (o.asked.next < 1 || o.asked.next > maxSkip) {
		o.faults.Add("--next must be from 1 to %d, is %d", maxSkip, o.asked.next)
		o.asked.next = max(o.asked.next, 1)
	}
	return nil
}

func (o *skipOptions) Validate() error {
	given := 0
	for _, is := range []bool{o.asked.next != 0, len(o.asked.slots) > 0, o.asked.until != "", o.asked.all} {
		if is {
			given++
		}
	}
	if given != 1 {
		o.faults.Add("give exactly one of --next, --slot, --until and --all")
	}
	for _, text := range append(slices.Clone(o.asked.slots), o.asked.until) {
		if text != "" {
			_, err := instant.Parse(text, o.Now(), time.UTC.String()) // the zone is that of the plan
			o.faults.Check(err)
		}
	}
	o.faults.Check(instant.KnownZone(o.timezone))
	o.DryRun.Check(&o.faults)
	return o.faults.Err()
}

func (o *skipOptions) zone(def string) string {
	if o.timezone != "" {
		return o.timezone
	}
	return def
}

func (o *skipOptions) Run(ctx context.Context) error {
	k, err := o.Connect()
	if err != nil {
		return err
	}
	actor := sync.OnceValue(func() string { return k.Actor(ctx) })
	return o.each(ctx, o.Factory, k, func(cm *corev1.ConfigMap) error { return o.skipOne(ctx, k, cm, actor) })
}

func (o *skipOptions) skipOne(ctx context.Context, k *factory.Cluster, cm *corev1.ConfigMap, actor func() string) error {
	p := skippableOf(cm, o.Zone, o.Now(), o.Env)
	if len(p.faults) > 0 {
		return fmt.Errorf("plan %s is not valid:\n%w", o.nameOf(cm), p.faults)
	}
	var wanted intent.Skip
	var said []string
	o.before = nil
	err := k.Annotate(ctx, cm, &o.DryRun, func(cm *corev1.ConfigMap) (factory.Change, error) {
		var err error
		if wanted, said, err = o.wanted(cm, p); err != nil {
			return nil, err
		}
		return factory.Change{annotations.Skip: factory.Value(annotations.FormatSkip(wanted))}.Signed(annotations.Skip, actor(), o.reason), nil
	})
	if err != nil {
		return err
	}
	for _, line := range said {
		line, below, _ := strings.Cut(line, "\n")
		if err := o.Report(o.IOStreams, false, "%s/%s skips %s%s%s", p.kind, o.nameOf(cm), line, o.Mark(), view.Prefix("\n", below)); err != nil {
			return err
		}
	}
	for _, at := range o.before {
		fmt.Fprintf(o.ErrOut, "%s/%s also skips %s, as was asked before; %s takes all of it back\n", p.kind, o.nameOf(cm), instant.Both(at, o.zone(p.zone)), o.Suggest().Unskip(cm.Name))
	}
	return nil
}

// wanted is the new skip, and the present one.
func (o *skipOptions) wanted(cm *corev1.ConfigMap, p skippable) (intent.Skip, []string, error) {
	have := annotations.Intent(cm.Annotations).Skip
	zone := o.zone(p.zone)
	if o.asked.all {
		return intent.Skip{All: true}, []string{"all " + p.what + "s until " + o.Suggest().Unskip(cm.Name)}, nil
	}
	if p.slots == nil {
		return have, nil, fmt.Errorf("plan %s has no schedule, so there are no slots to skip; --all makes its labels wait", o.nameOf(cm))
	}
	if have.All {
		return have, nil, o.already(cm, "plan %s skips all %ss already", o.nameOf(cm), p.what)
	}
	if pause := annotations.Intent(cm.Annotations).Pause; have.Next && pause.Holds(p.begins) {
		if pause.Until == nil {
			return have, nil, o.already(cm, "plan %s skips the first %s after its pause already", o.nameOf(cm), p.what)
		}
		p.begins = pause.Until.Add(-time.Nanosecond) // a paused one does not use up next
	}
	if o.asked.until != "" {
		return o.wantedUntil(cm, have, p, zone)
	}
	return o.wantedSlots(cm, have, p, zone)
}

// already refuses what would take back a skip that stands, and says whose it is.
func (o *skipOptions) already(cm *corev1.ConfigMap, format string, args ...any) error {
	return exit.Errorf(exit.CodeNotNow, "%s%s; %s takes that back first", fmt.Sprintf(format, args...), print.ByOf(cm, annotations.Skip), o.Suggest().Unskip(cm.Name))
}

// byName are the slots that are skipped one by one. A next that was written by hand is named.
func (p skippable) byName(have intent.Skip) []time.Time {
	if next, ok := p.slots.Next(p.begins); ok && have.Next {
		return append(slices.Clone(have.Slots), next.At)
	}
	return have.Slots
}

func (o *skipOptions) wantedUntil(cm *corev1.ConfigMap, have intent.Skip, p skippable, zone string) (intent.Skip, []string, error) {
	until, err := instant.Future("--until", o.asked.until, o.Now(), zone)
	if err != nil {
		return have, nil, err
	}
	for _, s := range p.byName(have) {
		if !s.Before(until) {
			return have, nil, o.already(cm, "the %s %s, later than --until, is skipped already", p.what, instant.Both(s, zone))
		}
	}
	if u := have.Until; u != nil && u.After(until) {
		return have, nil, o.already(cm, "all %ss before %s, later than --until, are skipped already", p.what, instant.Both(*u, zone))
	}
	return intent.Skip{Until: &until}, []string{o.skippedUntil(p, until, zone)}, nil
}

// How many of the slots before --until are named, and counted (guesses at what people read and wait for).
const slotsNamed, slotsCounted = 10, 10_000

// skippedUntil says which slots there are before an instant.
func (o *skipOptions) skippedUntil(p skippable, until time.Time, zone string) string {
	count, atLeast, named := 0, "", ""
	for from := p.begins; ; count++ {
		slot, ok := p.slots.Next(from)
		if !ok || !slot.At.Before(until) {
			break
		}
		if count == slotsCounted {
			atLeast = "more than "
			break
		}
		if from = slot.At; count < slotsNamed {
			named += "\n  " + o.named(p, slot, zone)
		}
	}
	if more := count - slotsNamed; more > 0 {
		named += fmt.Sprintf("\n  and %s%d more", atLeast, more)
	}
	return fmt.Sprintf("%s%s before %s%s", atLeast, view.Counted(count, p.what), instant.Both(until, zone), named)
}

// named is a slot that is skipped, with what is to be known of it.
func (o *skipOptions) named(p skippable, s schedule.Slot, zone string) string {
	note := p.begun(s, o.Now())
	if s.Note != "" {
		note += ", " + instant.NoteWords(s.Note)
	}
	return instant.Both(s.At, zone) + note
}

func (o *skipOptions) wantedSlots(cm *corev1.ConfigMap, have intent.Skip, p skippable, zone string) (intent.Skip, []string, error) {
	if u := have.Until; u != nil && u.After(o.Now()) {
		return have, nil, o.already(cm, "plan %s skips all %ss before %s already", o.nameOf(cm), p.what, instant.Both(*u, zone))
	}
	found, err := o.resolve(p, zone, have)
	if err != nil {
		return have, nil, err
	}
	want := intent.Skip{Slots: p.byName(have)}
	var said []string
	for _, s := range found {
		if !slices.ContainsFunc(want.Slots, s.At.Equal) {
			want.Slots = append(slices.Clone(want.Slots), s.At)
		}
		said = append(said, o.named(p, s, zone))
	}
	if len(want.Slots) > maxSkip {
		return have, nil, fmt.Errorf("%d %ss cannot be named one by one: use --until", len(want.Slots), p.what)
	}
	slices.SortFunc(want.Slots, time.Time.Compare)
	o.before = slices.DeleteFunc(slices.Clone(want.Slots), func(at time.Time) bool {
		asked := slices.ContainsFunc(found, func(s schedule.Slot) bool { return s.At.Equal(at) })
		return asked || !at.After(o.Now())
	})
	return want, said, nil
}

// resolve finds the slots that are meant. --next ignores those that are skipped already.
func (o *skipOptions) resolve(p skippable, zone string, have intent.Skip) ([]schedule.Slot, error) {
	var out []schedule.Slot
	from := p.begins
	for o.asked.next > len(out) {
		slot, ok := p.slots.Next(from)
		if !ok {
			break
		}
		from = slot.At
		if !slices.ContainsFunc(have.Slots, slot.At.Equal) {
			out = append(out, slot)
		}
	}
	var wrong exit.Faults
	for _, text := range o.asked.slots {
		at, err := instant.Parse(text, o.Now(), zone)
		if err != nil {
			wrong.Check(err)
			continue
		}
		slot, ok := p.slots.Next(at.Add(-time.Nanosecond))
		switch {
		case !at.After(p.begins):
			wrong.Add("--slot: %s has passed", instant.Both(at, zone))
		case !ok:
			wrong.Add("--slot: the plan has no %s at %s, nor after it", p.what, instant.Both(at, zone))
		case !slot.At.Equal(at):
			wrong.Add("--slot: the plan has no %s at %s; the next after it is %s", p.what, instant.Both(at, zone), instant.Both(slot.At, zone))
		default:
			out = append(out, slot)
		}
	}
	if len(wrong) == 0 && len(out) == 0 {
		wrong.Add("the plan has no coming %s%s", p.what, map[bool]string{true: " that is not skipped already"}[len(have.Slots) > 0])
	}
	return out, wrong.Err()
}

type unskipOptions struct {
	*factory.Factory
	factory.DryRun
	picked
	slots    []string
	timezone string
	faults   exit.Faults
}

// NewUnskip takes back a skip.
func NewUnskip(c *factory.Factory) *cobra.Command {
	o := &unskipOptions{Factory: c}
	cmd := &cobra.Command{
		Use:   "unskip PLAN | -l SELECTOR",
		Short: "Let skipped slots run again",
		Example: `  kubectl maint unskip orders-weekly
  kubectl maint unskip -l team=orders`,
		RunE: factory.RunE(o),
		ValidArgsFunction: completion.AllPlans(c, func(m metav1.ObjectMeta) bool {
			return m.Annotations[annotations.Skip] != ""
		}),
	}
	o.DryRun.AddFlag(cmd)
	o.addFlag(cmd)
	cmd.Flags().StringArrayVar(&o.slots, "slot", nil, "this slot alone; may be repeated")
	_ = cmd.RegisterFlagCompletionFunc("slot", completion.Of(c, func(cm *corev1.ConfigMap) []string {
		p := skippableOf(cm, c.Zone, c.Now(), c.Env)
		var out []string
		for _, at := range annotations.Intent(cm.Annotations).Skip.Slots {
			out = append(out, view.SlotChoice(at, p.zone))
		}
		return out
	}))
	cmd.Flags().StringVar(&o.timezone, "timezone", "", "zone of the times; default: the plan's, else yours")
	return cmd
}

func (o *unskipOptions) Complete(_ *cobra.Command, args []string) error {
	o.complete(args, &o.faults)
	return nil
}

func (o *unskipOptions) Validate() error {
	o.DryRun.Check(&o.faults)
	for _, text := range o.slots {
		_, err := instant.Parse(text, o.Now(), time.UTC.String()) // the zone is that of the plan
		o.faults.Check(err)
	}
	o.faults.Check(instant.KnownZone(o.timezone))
	return o.faults.Err()
}

func (o *unskipOptions) Run(ctx context.Context) error {
	k, err := o.Connect()
	if err != nil {
		return err
	}
	return o.each(ctx, o.Factory, k, func(cm *corev1.ConfigMap) error { return o.unskipOne(ctx, k, cm) })
}

func (o *unskipOptions) unskipOne(ctx context.Context, k *factory.Cluster, cm *corev1.ConfigMap) error {
	p := skippableOf(cm, o.Zone, o.Now(), o.Env)
	zone := p.zone
	if o.timezone != "" {
		zone = o.timezone
	}
	said := ""
	sayDeclared(o.Factory, cm.ObjectMeta, annotations.Skip)
	err := k.Annotate(ctx, cm, &o.DryRun, func(cm *corev1.ConfigMap) (c factory.Change, err error) {
		c, said, err = o.left(cm, p, zone)
		return c, err
	})
	if err != nil {
		return err
	}
	return o.Report(o.IOStreams, false, "%s/%s %s%s", p.kind, o.nameOf(cm), said, o.Mark())
}

// left is what remains of the skip.
func (o *unskipOptions) left(cm *corev1.ConfigMap, p skippable, zone string) (factory.Change, string, error) {
	if cm.Annotations[annotations.Skip] == "" {
		return nil, "skips nothing", nil
	}
	have := annotations.Intent(cm.Annotations).Skip
	gone := factory.Change{annotations.Skip: nil}.Signed(annotations.Skip, "", "")
	if len(o.slots) == 0 {
		words := print.New(o.Env, zone).Skip(have)
		switch {
		case have.All:
			words = "all " + p.what + "s"
		case words == "":
			words = "what has passed already"
		}
		return gone, "no longer skips " + strings.ReplaceAll(words, "\n", ", "), nil
	}
	var said []string
	for _, text := range o.slots {
		at, err := instant.Parse(text, o.Now(), zone)
		if err != nil {
			return nil, "", err
		}
		if !slices.ContainsFunc(have.Slots, at.Equal) {
			return nil, "", fmt.Errorf("the plan does not skip %s by name: its skip is %s, which %s takes back", instant.Both(at, zone), cm.Annotations[annotations.Skip], o.Suggest().Unskip(cm.Name))
		}
		have.Slots = slices.DeleteFunc(slices.Clone(have.Slots), at.Equal)
		said = append(said, instant.Both(at, zone))
	}
	words := "no longer skips " + strings.Join(said, ", ")
	if len(have.Slots) == 0 {
		return gone, words, nil
	}
	return factory.Change{annotations.Skip: factory.Value(annotations.FormatSkip(have))}, words, nil
}

// slots are what can be skipped: the slots of a plan, or the off-windows of a HibernatePlan by
// their starts.
type slots interface {
	Next(after time.Time) (schedule.Slot, bool)
}

// skippable is a plan of either kind, as skip and unskip see it.
type skippable struct {
	kind   string // written before the name
	what   string // what is skipped: slot, off-window
	zone   string // of the plan's times; empty: the user's zone
	slots  slots  // nil: it has no slots
	begins time.Time
	woken  string // what skipping an off-window that has begun means
	faults document.Faults
}

// skippableOf reads a plan of either kind. user is the user's zone.
func skippableOf(cm *corev1.ConfigMap, user string, now time.Time, env factory.Env) skippable {
	if cm.Labels[annotations.LabelKind] == annotations.KindHibernatePlan {
		return sleepSkippable(cm, now, env)
	}
	spec, faults := annotations.Plan(cm)
	p := skippable{kind: annotations.KindPlan, what: "slot", zone: view.PlanZone(spec, user), begins: now, faults: faults}
	if set, err := plan.ParseSchedules(spec.Triggers.Schedules); err == nil && len(spec.Triggers.Schedules) > 0 {
		p.slots = set
	}
	return p
}

// sleepSkippable counts the present off-window as a coming one: skipping it means waking.
func sleepSkippable(cm *corev1.ConfigMap, now time.Time, env factory.Env) skippable {
	s := view.NewSleeper(cm, nil, nil)
	p := skippable{kind: annotations.KindHibernatePlan, what: "off-window", zone: s.Zone(), begins: now, faults: s.Faults}
	if s.Table == nil {
		return p
	}
	p.faults, p.slots = nil, view.OffWindows{Table: s.Table}
	p.woken = ", which has begun: what sleeps wakes"
	switch {
	case s.Hold.Holds(now) && s.Hold.Asleep:
		p.woken = ", which has begun; it is held asleep all the same until " + env.Suggest().ReleaseHold(cm.Name)
	case s.Intent.Pause.Holds(now):
		p.woken = ", which has begun: what sleeps wakes after " + env.Suggest().Resume(cm.Name)
	}
	if l := s.Table.At(now); l.Asleep && !l.Since.IsZero() {
		p.begins = l.Since.Add(-time.Nanosecond)
	}
	return p
}

// begun says of an off-window that has begun whether skipping it wakes the plan, or why not.
func (p skippable) begun(s schedule.Slot, now time.Time) string {
	if s.At.After(now) {
		return ""
	}
	return p.woken
}
