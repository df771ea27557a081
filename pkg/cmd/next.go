package cmd

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

type nextOptions struct {
	*cli
	name   string
	files  []string
	count  int
	from   string
	format string
	start  time.Time
	intent plan.Intent // of a plan in the cluster
	faults faults
}

func newNext(c *cli) *cobra.Command {
	o := &nextOptions{cli: c}
	cmd := &cobra.Command{
		Use:               "next PLAN | -f FILE",
		Short:             "The coming slots of a plan, local and UTC",
		Example:           "  kubectl maint next orders-weekly --count 3\n  kubectl maint next -f plan.yaml --from 2026-03-01T00:00:00Z -o json",
		RunE:              run(o),
		ValidArgsFunction: c.completePlans(nil),
	}
	cmd.Flags().StringSliceVarP(&o.files, "filename", "f", nil, "file with one plan, or - for standard input; no cluster is asked")
	cmd.Flags().IntVar(&o.count, "count", 5, "how many")
	cmd.Flags().StringVar(&o.from, "from", "", "the first instant that counts; default now")
	cmd.Flags().StringVarP(&o.format, "output", "o", "", "json, or nothing for a table")
	return cmd
}

// Complete takes the plan's name and resolves the time.
func (o *nextOptions) Complete(_ *cobra.Command, args []string) error {
	if len(o.files) == 0 {
		o.name = oneName(args, "PLAN", &o.faults)
	} else if len(args) > 0 {
		o.faults.add("give a PLAN or -f, and not both")
	}
	o.start = o.Now()
	if o.from != "" {
		at, err := parseInstant(o.from, o.Now(), o.Zone)
		o.faults.check(err)
		o.start = at
	}
	return nil
}

// Validate checks the flags.
func (o *nextOptions) Validate() error {
	if o.count < 1 || o.count > 10000 {
		o.faults.add("--count must be from 1 to 10000, is %d", o.count)
	}
	if o.format != "" && o.format != "json" {
		o.faults.add("-o must be json, is %q", o.format)
	}
	return o.faults.err()
}

// Run prints the slots.
func (o *nextOptions) Run(ctx context.Context) error {
	spec, err := o.spec(ctx)
	if err != nil {
		return err
	}
	set, err := plan.ParseSchedules(spec.Triggers.Schedules)
	if err != nil {
		return err
	}
	items := nextSlots(set, o.start, o.count)
	o.markSkipped(items)
	if o.format == "json" {
		b, err := json.Marshal(map[string]any{"kind": "SlotList", "items": items})
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(o.Out, string(b))
		return err
	}
	if len(items) == 0 {
		fmt.Fprintln(o.ErrOut, "no slot is to come: the plan has no schedule, or its last one is past")
		return nil
	}
	w := printers.GetNewTabWriter(o.Out)
	fmt.Fprintln(w, "LOCAL\tUTC\tSCHEDULE\tNOTE")
	for _, s := range items {
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\n", s.Local, s.UTC, s.Schedule, orDash(noteWords(s.Note)))
	}
	return w.Flush()
}

// slotItem is one slot in the machine's shape, see docs/cli.md.
type slotItem struct {
	UTC      string `json:"utc"`
	Local    string `json:"local"`
	Schedule int    `json:"schedule"`
	Note     string `json:"note"`
}

// nextSlots are the slots from an instant on, that instant included.
func nextSlots(set schedule.Set, from time.Time, count int) []slotItem {
	items := []slotItem{}
	from = from.Add(-time.Nanosecond)
	for range count {
		slot, ok := set.Next(from)
		if !ok {
			break
		}
		items = append(items, slotItem{UTC: slot.At.UTC().Format(time.RFC3339), Local: localStamp(slot), Schedule: slot.Index, Note: slot.Note})
		from = slot.At
	}
	return items
}

// localStamp is the slot's instant on its own zone's clock.
func localStamp(s schedule.Slot) string {
	loc, err := schedule.LoadZone(s.Zone)
	if err != nil { // a slot's zone was loaded to find it
		loc = time.UTC
	}
	return s.At.In(loc).Format(time.RFC3339)
}

// markSkipped notes the slots that a plan in the cluster leaves out.
func (o *nextOptions) markSkipped(items []slotItem) {
	skip, pause := o.intent.Skip, o.intent.Pause
	skip.Next = skip.Next && o.from == "" // it is for the very next slot from now
	for i, s := range items {
		at, err := time.Parse(time.RFC3339, s.UTC)
		if err != nil { // we wrote it
			continue
		}
		switch {
		case pause.Holds(at):
			items[i].Note = joinNote(s.Note, "paused")
		case skip.Covers(at):
			items[i].Note = joinNote(s.Note, "skipped")
			skip.Next = false
		}
	}
}

func joinNote(note, more string) string {
	if note == "" {
		return more
	}
	return note + ", " + more
}

func (o *nextOptions) spec(ctx context.Context) (plan.Spec, error) {
	if len(o.files) > 0 {
		_, spec, err := onePlan(o.files, o.In)
		return spec, err
	}
	k, err := o.connect()
	if err != nil {
		return plan.Spec{}, err
	}
	cm, err := k.plan(ctx, o.name)
	if err != nil {
		return plan.Spec{}, err
	}
	o.intent = annotations.Intent(cm.Annotations)
	spec, faults := annotations.Plan(cm)
	if len(faults) > 0 {
		return spec, faults
	}
	return spec, nil
}
