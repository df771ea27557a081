package offline

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubectl-maint/kubectl-maint/pkg/calendar"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/instant"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/print"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/source"
)

type calendarOptions struct {
	*factory.Factory
	files      []string
	everywhere bool
	from, to   string
	timezone   string
	selector   string
	out        *print.Values
	start, end time.Time
	now        time.Time
	namespace  string // that is read; empty: all, or files
	faults     exit.Faults
}

const (
	weeksShown   = 5 // a month needs parts of five weeks
	longestRange = 400 * 24 * time.Hour
)

// NewCalendar draws windows, freezes and slots.
func NewCalendar(c *factory.Factory) *cobra.Command {
	o := &calendarOptions{Factory: c, out: print.NewValues("table", "ics", "svg", "html")}
	cmd := &cobra.Command{
		Use:   "calendar [-f FILE|FOLDER|-]",
		Short: "Windows, freezes, slots and sleep as a list, a feed or a picture",
		Long: `The windows and freezes of policies, the slots of plans and the sleep of
HibernatePlans: as lines, as a feed that calendars subscribe to (ics), or as a picture to look at (svg, html).

With -f no cluster is asked; without it, the documents of the namespace are
read. The calendar covers five weeks from the start of this week, unless --from and
--to say otherwise. If the start of a freeze is not known, as with a pause, it is
shown from the start of the calendar.`,
		Example: "  kubectl maint calendar\n  kubectl maint calendar -A -o html > maintenance.html\n  kubectl maint calendar -f examples/ --from 2026-12-01 --to 2027-01-10 -o ics",
		Args:    factory.NoNames,
		RunE:    factory.RunE(o),
	}
	cmd.Flags().StringSliceVarP(&o.files, "filename", "f", nil, "file or folder, or - for standard input; no cluster is asked")
	cmd.Flags().BoolVarP(&o.everywhere, "all-namespaces", "A", false, "of all namespaces")
	cmd.Flags().StringVarP(&o.selector, "selector", "l", "", "of plans with these labels, beside the policies")
	cmd.Flags().StringVar(&o.from, "from", "", "the first instant; default the start of this week")
	cmd.Flags().StringVar(&o.to, "to", "", "the instant at which it ends; default five weeks later")
	cmd.Flags().StringVar(&o.timezone, "timezone", "", "the clocks beside UTC, like Europe/Berlin; default yours")
	o.out.AddFlags(cmd)
	return cmd
}

// Complete resolves the times.
func (o *calendarOptions) Complete(*cobra.Command, []string) error {
	o.now = o.Now()
	if err := instant.KnownZone(o.timezone); err != nil {
		o.faults.Check(err)
		return nil
	}
	if o.timezone == "" {
		o.timezone = o.Zone
	}
	if instant.UnknownZone(o.timezone) != "" { // your own, of which you were warned
		o.timezone = "UTC"
	}
	o.start, o.end = calendar.ThisWeek(o.now, o.timezone, weeksShown)
	if o.from != "" {
		at, err := instant.Parse(o.from, o.now, o.timezone)
		o.faults.Check(err)
		o.start, o.end = at, at.AddDate(0, 0, 7*weeksShown)
	}
	if o.to != "" {
		at, err := instant.Parse(o.to, o.now, o.timezone)
		o.faults.Check(err)
		o.end = at
	}
	return nil
}

// Validate checks the flags.
func (o *calendarOptions) Validate() error {
	o.out.Check(&o.faults)
	if o.everywhere && len(o.files) > 0 {
		o.faults.Add("give -A or -f, and not both: files are read whole")
	}
	if o.selector != "" && len(o.files) > 0 {
		o.faults.Add("give -l or -f, and not both: files are read whole")
	}
	if len(o.faults) > 0 {
		return o.faults.Err()
	}
	switch length := o.end.Sub(o.start); {
	case length <= 0:
		o.faults.Add("--to %s is not after --from %s", instant.Both(o.end, o.timezone), instant.Both(o.start, o.timezone))
	case length > longestRange:
		o.faults.Add("%d days are too long: at most %d", int(length.Hours()/24), int(longestRange.Hours()/24))
	}
	return o.faults.Err()
}

// Run prints the calendar.
func (o *calendarOptions) Run(ctx context.Context) error {
	w, err := o.world(ctx)
	if err != nil {
		return err
	}
	return o.show(w)
}

// table says whether the calendar is printed for people.
func (o *calendarOptions) table() bool { return o.out.Lines() || o.out.Format() == "table" }

func (o *calendarOptions) show(w source.Set) error {
	a := &source.Agenda{World: w, Now: o.now, From: o.start, To: o.end}
	if o.out.Lines() || o.out.Own() {
		a.Zone = o.timezone
	}
	if err := a.Gather(); err != nil {
		return err
	}
	for _, warning := range a.Warnings {
		fmt.Fprintln(o.ErrOut, "warning: "+warning)
	}
	page := calendar.Page{
		Title: "Maintenance calendar", From: o.start, To: o.end, Now: o.now, Zone: o.timezone,
		Owners: a.Owners, Entries: a.Entries,
	}
	if len(a.Entries) == 0 {
		if o.table() {
			print.Empty(o.ErrOut, o.namespace)
		}
		fmt.Fprintf(o.ErrOut, "nothing from %s to %s\n", instant.Both(o.start, o.timezone), instant.Both(o.end, o.timezone))
		if o.table() {
			return nil
		}
	} else if o.from != "" || o.to != "" {
		fmt.Fprintf(o.ErrOut, "from %s to %s\n", instant.Both(o.start, o.timezone), instant.Both(o.end, o.timezone))
	}
	if !o.out.Lines() && !o.out.Own() {
		return o.out.PrintList(o.Out, "CalendarEntryList", valuesOf(page))
	}
	text, short := draw(page, o.out.Format())
	if short != "" {
		fmt.Fprintln(o.ErrOut, "warning: "+short)
	}
	_, err := fmt.Fprint(o.Out, text)
	return err
}

// calendarEntry is a window, freeze, sleep or slot for scripts, see docs/cli.md.
type calendarEntry struct {
	Type     calendar.Kind `json:"type"`
	Owner    calendarOwner `json:"owner"`
	Start    time.Time     `json:"start"`
	End      *time.Time    `json:"end,omitempty"` // absent for a slot
	Unbegun  bool          `json:"unbegun,omitempty"`
	Unending bool          `json:"unending,omitempty"`
	Idle     bool          `json:"idle,omitempty"`
	Failed   bool          `json:"failed,omitempty"`
	Note     string        `json:"note,omitempty"`
}

type calendarOwner struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// valuesOf are the entries of a page for scripts. -o name prints each owner once.
func valuesOf(p calendar.Page) []print.Value {
	items, named := []print.Value{}, map[calendar.Owner]bool{}
	for _, e := range p.Sorted() {
		body := calendarEntry{
			Type: e.Kind, Owner: calendarOwner{e.Owner.Kind, e.Owner.Namespace, e.Owner.Name}, Start: e.Start.UTC(),
			Unbegun: e.Unbegun, Unending: e.Unending, Idle: e.Idle, Failed: e.Failed, Note: e.Note,
		}
		if e.Kind != calendar.Slot {
			body.End = new(e.End.UTC())
		}
		one := print.Value{Kind: "CalendarEntry", Body: body}
		if !named[e.Owner] {
			one.Name = e.Owner.Kind + "/" + e.Owner.Name
		}
		named[e.Owner] = true
		items = append(items, one)
	}
	return items
}

// draw is the page in a format; short says what of it is not there, where the text itself shows that to
// nobody.
func draw(p calendar.Page, format string) (text, short string) {
	switch format {
	case "ics":
		return p.ICS()
	case "svg":
		return p.SVG(), ""
	case "html":
		return p.HTML(), ""
	}
	return p.Table(), ""
}

func (o *calendarOptions) world(ctx context.Context) (source.Set, error) {
	if len(o.files) > 0 {
		return source.Read(o.Factory, o.files)
	}
	k, err := o.Connect()
	if err != nil {
		return source.Set{}, err
	}
	k = k.Whole(o.everywhere)
	o.namespace = k.Namespace
	return source.ReadCluster(ctx, o.Factory, k, o.selector)
}
