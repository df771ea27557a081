package cmd

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
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
	runs, err := k.runsOf(ctx, cm.Namespace, cm.Name)
	if err != nil {
		return err
	}
	if o.out.name() {
		return o.names(entries)
	}
	return o.out.print(o.Out, o.table(cm, entries, runs), func() (runtime.Object, error) { return ledgerList(cm, entries) })
}

// names prints the runs alone: nothing else of a ledger has a name.
func (o *historyOptions) names(entries []plan.Entry) error {
	for _, e := range entries {
		if e.Run != "" {
			fmt.Fprintf(o.Out, "configmap/%s\n", e.Run)
		}
	}
	return nil
}

func (o *historyOptions) table(cm *corev1.ConfigMap, entries []plan.Entry, runs []aRun) *metav1.Table {
	spec, _ := annotations.Plan(cm)
	zone := zoneOf(spec, o.Zone)
	t := newTable(column{name: "When"}, column{name: "Result"}, column{name: "Reason"}, column{name: "Run"}, column{name: "Outcome"}, column{name: "UTC", wide: true}, column{name: "Actor", wide: true})
	for _, e := range entries {
		addRow(t, nil, entryWhen(e, zone), string(e.Result)+dryMark(e), e.Reason, e.Run, outcome(e, runs), entryAt(e).UTC().Format(time.RFC3339), e.Actor)
	}
	return t
}

// outcome is how the run of an entry ended, as long as the run is kept.
func outcome(e plan.Entry, runs []aRun) string {
	i := slices.IndexFunc(runs, func(r aRun) bool { return r.run.Name == e.Run })
	if i < 0 {
		return ""
	}
	j := runs[i].journal
	text := string(j.Phase)
	if j.StartedAt != nil && j.FinishedAt != nil {
		text += " after " + roughly(j.FinishedAt.Sub(*j.StartedAt))
	}
	switch {
	case j.Approved != nil:
		text += ", " + j.Approved.Said("approved")
	case j.End != nil && j.End.Reason == plan.ReasonRejected: // its message says by whom
		text += ", " + j.End.Message
	}
	return text
}

// ledgerItem is one entry in the machine's shape, see docs/cli.md.
type ledgerItem struct {
	Plan      string     `json:"plan"`
	Slot      *time.Time `json:"slot,omitempty"`
	Result    string     `json:"result"`
	Reason    string     `json:"reason,omitempty"`
	Run       string     `json:"run,omitempty"`
	Actor     string     `json:"actor,omitempty"`
	DryRun    bool       `json:"dryRun,omitempty"`
	StartedAt *time.Time `json:"startedAt,omitempty"`
	At        time.Time  `json:"at"`
	First     *time.Time `json:"first,omitempty"`
	Last      *time.Time `json:"last,omitempty"`
	Count     int64      `json:"count,omitempty"`
}

func ledgerList(cm *corev1.ConfigMap, entries []plan.Entry) (runtime.Object, error) {
	items := make([]ledgerItem, len(entries))
	for i, e := range entries {
		items[i] = ledgerItem{
			Plan: cm.Namespace + "/" + cm.Name, Slot: e.Slot, Result: string(e.Result), Reason: e.Reason, Run: e.Run, Actor: e.Actor,
			DryRun: e.DryRun, StartedAt: e.StartedAt, At: e.At, First: e.First, Last: e.Last, Count: e.Count,
		}
	}
	return plainList("LedgerList", items)
}

// entryAt is the instant that an entry is about.
func entryAt(e plan.Entry) time.Time {
	switch {
	case e.Slot != nil:
		return *e.Slot
	case e.StartedAt != nil:
		return *e.StartedAt
	}
	return e.At
}

func entryWhen(e plan.Entry, zone string) string {
	if e.Count > 1 {
		return fmt.Sprintf("%s to %s, %d slots", localTime(*e.First, zone), localTime(*e.Last, zone), e.Count)
	}
	return localTime(entryAt(e), zone)
}

func dryMark(e plan.Entry) string {
	if e.DryRun {
		return " (dry run)"
	}
	return ""
}
