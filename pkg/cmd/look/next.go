package look

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/completion"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/instant"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/print"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/source"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

type nextOptions struct {
	*factory.Factory
	name   string
	files  []string
	count  int
	from   string
	out    *print.Values
	start  time.Time
	faults exit.Faults
}

// NewNext shows coming slots or windows.
func NewNext(c *factory.Factory) *cobra.Command {
	o := &nextOptions{Factory: c, out: print.NewValues()}
	cmd := &cobra.Command{
		Use:   "next PLAN|POLICY | -f FILE [NAME]",
		Short: "Coming slots or sleep of a plan, or windows of a policy",
		Long: `The coming slots of a plan, the coming sleep of a HibernatePlan, or the windows of
a policy, on local clocks and in UTC, with notes: a clock change, what is skipped,
held or paused, what cuts a window short, an exception, a slot or a sleep whose
window is closed. A window that is open comes first, with its true start.`,
		Example:           "  kubectl maint next orders-weekly --count 3\n  kubectl maint next weekends\n  kubectl maint next -f plan.yaml --from 2026-03-01T00:00:00Z -o json",
		RunE:              factory.RunE(o),
		ValidArgsFunction: completion.Kinds(c, annotations.KindPlan, annotations.KindHibernatePlan, annotations.KindPolicy),
	}
	cmd.Flags().StringSliceVarP(&o.files, "filename", "f", nil, "file or folder, or - for standard input; no cluster is asked")
	cmd.Flags().IntVar(&o.count, "count", 5, "how many")
	cmd.Flags().StringVar(&o.from, "from", "", "the first instant that counts, on the clocks of what is shown; default now")
	o.out.AddFlags(cmd)
	return cmd
}

// Complete takes the plan's name.
func (o *nextOptions) Complete(_ *cobra.Command, args []string) error {
	switch {
	case len(o.files) == 0:
		o.name = factory.OneName(args, "PLAN or POLICY", &o.faults)
	case len(args) > 1:
		o.faults.Add("give one NAME, not %d", len(args))
	case len(args) == 1:
		o.name = args[0]
	}
	o.start = o.Now()
	return nil
}

// Validate checks the flags.
func (o *nextOptions) Validate() error {
	if o.from != "" {
		o.faults.Check(instant.Understood("--from", o.from, o.Now()))
	}
	if o.count < 1 || o.count > 10000 {
		o.faults.Add("--count must be from 1 to 10000, is %d", o.count)
	}
	o.out.Check(&o.faults)
	return o.faults.Err()
}

// begin resolves --from in the zone of what is shown, and says what was understood.
func (o *nextOptions) begin(found agenda) error {
	if o.from == "" {
		return nil
	}
	zone := found.subject.Zone
	if found.sleeper != nil {
		zone = found.sleeper.Zone()
	}
	at, err := instant.Parse(o.from, o.Now(), zone)
	if err != nil {
		return exit.Errorf(exit.CodeUsage, "--from: %w", err)
	}
	o.start = at
	fmt.Fprintf(o.ErrOut, "from %s\n", instant.Both(at, zone))
	return nil
}

// Run prints the slots, or the windows.
func (o *nextOptions) Run(ctx context.Context) error {
	found, err := o.find(ctx)
	if err == nil {
		err = o.begin(found)
	}
	switch {
	case err != nil:
		return err
	case found.sleeper != nil:
		return o.sleep(*found.sleeper)
	case found.subject.Kind != annotations.KindPlan:
		return o.windows(found.subject)
	}
	return o.slots(found)
}

// slots prints the slots of a plan.
func (o *nextOptions) slots(found agenda) error {
	s, spec := found.subject, found.spec
	set, err := plan.ParseSchedules(spec.Triggers.Schedules)
	if err != nil {
		return err
	}
	items := view.NextSlots(set, o.start, o.count)
	if stopped := s.Stopped(); stopped != "" {
		for i, item := range items {
			items[i].Note = view.JoinNote(item.Note, stopped)
		}
	} else {
		o.markSkipped(items, found)
		o.markClosed(items, s, spec)
	}
	for i := range items {
		if spec.DryRun {
			items[i].Note = view.JoinNote(items[i].Note, view.DryRun)
		}
	}
	if !o.out.Lines() {
		return print.Items(o.out, o.Out, "SlotList", items, view.Slot.Began)
	}
	if len(items) == 0 {
		fmt.Fprintln(o.ErrOut, "no slot is to come: the plan has no schedule, or its last one is past")
		return nil
	}
	w := printers.GetNewTabWriter(o.Out)
	fmt.Fprintln(w, "LOCAL\tUTC\tSCHEDULE\tNOTE")
	for _, s := range items {
		of := spec.Triggers.Schedules[s.Schedule]
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", clocksOf(s.UTC, of.Timezone), clocksOf(s.UTC, time.UTC.String()), view.OrDash(cmp.Or(of.Cron, of.RRule, "once")), view.OrDash(instant.NoteWords(instant.InText(s.Note, of.Timezone))))
	}
	return w.Flush()
}

// clocksOf converts an instant for scripts to one in a zone.
func clocksOf(utc, zone string) string {
	at, err := time.Parse(time.RFC3339, utc)
	if err != nil { // there is none
		return utc
	}
	return instant.Local(at, zone)
}

// markSkipped notes the slots that a plan in the cluster skips, with author and reason.
func (o *nextOptions) markSkipped(items []view.Slot, of agenda) {
	skip := of.intent.Skip
	skip.Next = skip.Next && o.from == "" // it is about the next slot from now
	for i, s := range items {
		at, err := time.Parse(time.RFC3339, s.UTC)
		if err != nil { // it is our own format
			continue
		}
		switch pause := of.subject.PauseAt(at); {
		case pause.On:
			items[i].Note = view.JoinNote(s.Note, view.PausedSaid(pause))
		case skip.Covers(at):
			items[i].Note = view.JoinNote(s.Note, of.intent.Actors["skip"].Said("skipped"))
			skip.Next = false
		case of.skipped != "":
			items[i].Note = view.JoinNote(s.Note, "skipped "+view.SkipSaid(of.skipped, of.spec))
		}
	}
}

// markClosed notes the slots that start outside of the window: their runs wait for it, or are
// Missed.
func (o *nextOptions) markClosed(items []view.Slot, s view.Subject, spec plan.Spec) {
	for i, item := range items {
		slot, err := time.Parse(time.RFC3339, item.UTC)
		if err != nil { // it is our own format
			continue
		}
		zone := spec.Triggers.Schedules[item.Schedule].Timezone
		start := view.StartOf(spec, s.Namespace, s.Name, slot, item.Schedule, s.Gate)
		switch v := start.Gate; {
		case v.Granted():
			items[i].Note = view.JoinNote(item.Note, "permitted: "+v.Reason)
		case v.Permitted:
		case v.Unknown():
			items[i].Note = view.JoinNote(item.Note, view.NotKnownThen)
		case !v.Ready:
			items[i].Note = view.JoinNote(item.Note, "policy not ready ("+v.Reason+")")
		case start.TooLate():
			items[i].Note = view.JoinNote(item.Note, "window closed until "+o.until(*v.Until, zone)+", "+run.TooLate+o.until(start.Deadline, zone)+" ("+v.Why()+")")
		case v.Until != nil:
			items[i].Note = view.JoinNote(item.Note, "window closed until "+o.until(*v.Until, zone)+" ("+v.Why()+")")
		case v.Later != "":
			items[i].Note = view.JoinNote(item.Note, "window closed ("+v.Why()+")")
		default:
			items[i].Note = view.JoinNote(item.Note, "window closed, does not open by itself ("+v.Reason+")")
		}
	}
}

// until formats an instant within a note: in the zone for people, in UTC for scripts.
func (o *nextOptions) until(at time.Time, zone string) string {
	if o.out.Lines() {
		return instant.Local(at, zone)
	}
	return instant.InUTC(at)
}

// agenda is the plan, policy or HibernatePlan to show.
type agenda struct {
	subject view.Subject
	spec    plan.Spec     // of a plan
	intent  intent.Intent // of a plan
	skipped string        // the annotation by which a plan's target skips it; empty: none
	sleeper *view.Sleeper // nil: not a HibernatePlan
}

// find finds the plan or policy.
func (o *nextOptions) find(ctx context.Context) (agenda, error) {
	if len(o.files) > 0 {
		return o.findInFiles()
	}
	k, err := o.Connect()
	if err != nil {
		return agenda{}, err
	}
	agent, _ := o.Agent(ctx, k)
	o.WarnSilent(agent)
	sleeper, err := source.FindSleeper(ctx, o.Factory, k, agent, o.name)
	if sleeper != nil || err != nil {
		return agenda{sleeper: sleeper}, err
	}
	s, err := source.SubjectOf(ctx, o.Factory, k, agent, o.name)
	if err != nil {
		return agenda{}, err
	}
	source.WarnDeleting(o.Factory, s)
	if s.Kind != annotations.KindPlan {
		return agenda{subject: s}, nil
	}
	cm, err := k.Plan(ctx, o.name)
	if err != nil {
		return agenda{}, err
	}
	spec, faults := annotations.Plan(cm)
	if len(faults) > 0 {
		return agenda{}, faults
	}
	source.WarnInvalid(o.Factory, s)
	return agenda{subject: s, spec: spec, intent: annotations.Intent(cm.Annotations), skipped: k.TargetSkip(ctx, cm, spec)}, nil
}

func (o *nextOptions) findInFiles() (agenda, error) {
	w, err := source.Read(o.Factory, o.files)
	if err != nil {
		return agenda{}, err
	}
	if sleeper, err := w.Sleeper(o.name); sleeper != nil || err != nil {
		return agenda{sleeper: sleeper}, err
	}
	s, err := w.Subject(o.name, o.Zone)
	if err != nil {
		return agenda{}, err
	}
	for _, p := range w.Plans {
		if s.Kind == annotations.KindPlan && p.Name == s.Name && p.Namespace == s.Namespace {
			return agenda{subject: s, spec: p.Spec, intent: p.Intent}, nil
		}
	}
	return agenda{subject: s}, nil
}

// windows prints the windows of a policy.
func (o *nextOptions) windows(s view.Subject) error {
	var list []schedule.Interval
	s.Intervals(o.start, func(i schedule.Interval) bool {
		list = append(list, i)
		return len(list) < o.count
	})
	items, asked, said := []view.Window{}, slices.MinFunc([]time.Time{o.start, o.Now()}, time.Time.Compare), make([]string, len(list))
	for at, i := range list {
		one := view.Window{Start: instant.UTC(i.Start), End: instant.UTC(i.End)}
		one.Note, said[at] = windowNotes(s.Bounded(i, asked))
		if endUnknown(s, i, o.start) {
			one.Note = view.JoinNote(one.Note, "when it closes is not known yet")
		}
		items = append(items, one)
	}
	if !o.out.Lines() {
		return print.Items(o.out, o.Out, "WindowList", items, view.Window.Began)
	}
	if v := s.Verdict(o.start); len(list) == 0 {
		fmt.Fprintf(o.ErrOut, "no window is to come: %s\n", instant.InText(v.Reason, s.Zone))
		return nil
	}
	w := printers.GetNewTabWriter(o.Out)
	fmt.Fprintln(w, "OPENS\tCLOSES\tUTC\tNOTE")
	for at, i := range list {
		opens, closes := "always open", "does not close"
		if endUnknown(s, i, o.start) {
			opens, closes = "already open", "not known yet"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", instant.LocalOr(i.Start, s.Zone, opens), instant.LocalOr(i.End, s.Zone, closes), spanUTC(i.Start, i.End), view.OrDash(instant.InText(said[at], s.Zone)))
	}
	return w.Flush()
}

// endUnknown says whether a window closes at a time that is not known yet; its start may be unknown, too.
func endUnknown(s view.Subject, i schedule.Interval, from time.Time) bool {
	if i.Start != nil && i.Start.After(from) {
		from = *i.Start
	}
	v := s.Verdict(from)
	if s.Gate != nil { // without the pauses, as the windows are
		v = s.Gate.Verdict(from)
	}
	return i.End == nil && v.Later != ""
}

// windowNotes are what people should know of a window; said is reworded where that could be misread as being
// about the whole window.
func windowNotes(i schedule.Interval, within string) (note, said string) {
	whole, sides := []string{map[bool]string{true: "clock change"}[i.ClockChange], within}, []string{view.Prefix("before it: ", i.Before), view.Prefix("after it: ", i.After)}
	if i.Before != "" && i.Before == i.After {
		sides = []string{"before and after it: " + i.Before}
	}
	join := func(of []string) string {
		return strings.Join(slices.Compact(slices.DeleteFunc(of, func(one string) bool { return one == "" })), "; ")
	}
	return join(slices.Concat(whole, []string{i.Before, i.After})), join(slices.Concat(whole, sides))
}

// spanUTC is from when to when, in UTC.
func spanUTC(start, end *time.Time) string {
	if start == nil && end == nil {
		return "-"
	}
	utc := time.UTC.String()
	return instant.LocalOr(start, utc, "…") + " to " + instant.LocalOr(end, utc, "…")
}
