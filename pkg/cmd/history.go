package cmd

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

type historyOptions struct {
	*cli
	out    *output
	name   string
	limit  int
	faults faults
}

func newHistory(c *cli) *cobra.Command {
	o := &historyOptions{cli: c, out: newOutput()}
	cmd := &cobra.Command{
		Use:   "history PLAN",
		Short: "How each slot of a plan ended: Ran, Skipped or Missed, and why",
		Long: `The ledger of a plan: each slot, and each run without a slot, has exactly one
end. Neighbours that ended alike for the same reason are folded into one line.`,
		Example:           "  kubectl maint history orders-weekly",
		RunE:              run(o),
		ValidArgsFunction: c.completePlans(nil),
	}
	o.out.addFlags(cmd)
	cmd.Flags().IntVar(&o.limit, "limit", 0, "so many of the newest; 0 means all")
	return cmd
}

// Complete takes the plan's name.
func (o *historyOptions) Complete(_ *cobra.Command, args []string) error {
	o.name = oneName(args, "PLAN", &o.faults)
	return nil
}

// Validate checks the flags.
func (o *historyOptions) Validate() error {
	o.out.check(&o.faults)
	if o.limit < 0 {
		o.faults.add("--limit must be 0 or more, is %d", o.limit)
	}
	return o.faults.err()
}

// Run prints the ledger, newest last.
func (o *historyOptions) Run(ctx context.Context) error {
	k, err := o.connect()
	if err != nil {
		return err
	}
	cm, err := k.plan(ctx, o.name)
	if err != nil {
		return err
	}
	ledger, old, err := k.ledger(ctx, cm)
	if err != nil {
		return err
	}
	if ledger == nil {
		fmt.Fprintf(o.ErrOut, "plan %s has no ledger yet: the agent has not looked at it\n", cm.Name)
		ledger = &plan.Ledger{}
	}
	entries := slices.Concat(plan.AppendArchive(old, ledger.Recent), ledger.Open)
	if o.limit > 0 {
		entries = entries[max(len(entries)-o.limit, 0):]
	}
	t := newTable(column{name: "When"}, column{name: "Result"}, column{name: "Reason"}, column{name: "Run"}, column{name: "Ended"}, column{name: "Actor", wide: true})
	for _, e := range entries {
		addRow(t, nil, entryWhen(e), string(e.Result)+dryMark(e), e.Reason, e.Run, e.At.UTC().Format(time.RFC3339), e.Actor)
	}
	return o.out.print(o.Out, t, func() (runtime.Object, error) { return plainList("LedgerList", entries) })
}

func entryWhen(e plan.Entry) string {
	switch {
	case e.Count > 1:
		return fmt.Sprintf("%d slots, %s to %s", e.Count, e.First.UTC().Format(time.RFC3339), e.Last.UTC().Format(time.RFC3339))
	case e.Slot != nil:
		return e.Slot.UTC().Format(time.RFC3339)
	case e.StartedAt != nil:
		return e.StartedAt.UTC().Format(time.RFC3339)
	}
	return e.At.UTC().Format(time.RFC3339)
}

func dryMark(e plan.Entry) string {
	if e.DryRun {
		return " (dry run)"
	}
	return ""
}
