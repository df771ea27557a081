package offline

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubectl-maint/kubectl-maint/pkg/calendar"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/instant"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/source"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

type calendarOptions struct {
	*factory.Factory
	files      []string
	everywhere bool
	from, to   string
	timezone   string
	format     string
	start, end time.Time
	now        time.Time
	faults     exit.Faults
}

const (
	weeksShown   = 5 // a month and what is left of its weeks
	longestRange = 400 * 24 * time.Hour
)

// NewCalendar draws windows, freezes and slots.
func NewCalendar(c *factory.Factory) *cobra.Command {
	o := &calendarOptions{Factory: c}
	cmd := &cobra.Command{
		Use:   "calendar [-f FILE|FOLDER|-]",
		Short: "Windows, freezes, slots and sleep as a list, a feed or a picture",
		Long: `The windows and freezes of policies, the slots of plans and the sleep of
HibernatePlans: as lines, as a feed that calendars subscribe to (ics), or as a picture to look at (svg, html).

With -f no cluster is asked; without it, the documents of the namespace are
read. From the start of this week for five weeks, unless --from and --to say
otherwise. A freeze of which nobody knows when it began, such as a pause, is
shown from the start.`,
		Example: "  kubectl maint calendar\n  kubectl maint calendar -A -o html > maintenance.html\n  kubectl maint calendar -f examples/ --from 2026-12-01 --to 2027-01-10 -o ics",
		Args:    cobra.NoArgs,
		RunE:    factory.RunE(o),
	}
	cmd.Flags().StringSliceVarP(&o.files, "filename", "f", nil, "file or folder, or - for standard input; no cluster is asked")
	cmd.Flags().BoolVarP(&o.everywhere, "all-namespaces", "A", false, "of all namespaces")
	cmd.Flags().StringVar(&o.from, "from", "", "the first instant; default the start of this week")
	cmd.Flags().StringVar(&o.to, "to", "", "the instant at which it ends; default five weeks later")
	cmd.Flags().StringVar(&o.timezone, "timezone", "", "the clocks beside UTC, like Europe/Berlin; default yours")
	cmd.Flags().StringVarP(&o.format, "output", "o", "table", "table, ics, svg or html")
	return cmd
}

// Complete resolves the times.
func (o *calendarOptions) Complete(*cobra.Command, []string) error {
	o.now = o.Now()
	if o.timezone == "" {
		o.timezone = o.Zone
	}
	if _, err := schedule.LoadZone(o.timezone); err != nil {
		o.faults.Add("--timezone: %v", err)
		return nil
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
	if !slices.Contains([]string{"table", "ics", "svg", "html"}, o.format) {
		o.faults.Add("-o must be table, ics, svg or html, is %q", o.format)
	}
	if o.everywhere && len(o.files) > 0 {
		o.faults.Add("give -A or -f, and not both: files are read whole")
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

func (o *calendarOptions) show(w source.Set) error {
	a := &source.Agenda{World: w, Now: o.now, From: o.start, To: o.end}
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
		fmt.Fprintf(o.ErrOut, "nothing from %s to %s\n", instant.Both(o.start, o.timezone), instant.Both(o.end, o.timezone))
		if o.format == "table" {
			return nil
		}
	}
	_, err := fmt.Fprint(o.Out, draw(page, o.format))
	return err
}

func draw(p calendar.Page, format string) string {
	switch format {
	case "ics":
		return p.ICS()
	case "svg":
		return p.SVG()
	case "html":
		return p.HTML()
	}
	return p.Table()
}

func (o *calendarOptions) world(ctx context.Context) (source.Set, error) {
	if len(o.files) > 0 {
		return source.Read(o.Factory, o.files)
	}
	k, err := o.Connect()
	if err != nil {
		return source.Set{}, err
	}
	if o.everywhere {
		k.Namespace = ""
	}
	return source.ReadCluster(ctx, o.Factory, k)
}
