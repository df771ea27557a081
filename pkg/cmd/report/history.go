package report

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/instant"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/print"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

type historyOptions struct {
	*factory.Factory
	out    *print.Output
	name   string
	limit  int
	faults exit.Faults
}

// NewHistory shows how each slot of a plan ended.
func NewHistory(c *factory.Factory) *cobra.Command {
	o := &historyOptions{Factory: c, out: print.NewOutput()}
	cmd := &cobra.Command{
		Use:   "history PLAN",
		Short: "How each slot of a plan ended: Ran, Skipped or Missed, and why",
		Long: `The ledger of a plan: each slot, and each run without a slot, has exactly one
end. Neighbours that ended alike for the same reason are folded into one line. Of a
HibernatePlan, each off-window, with what slept in it.`,
		Example:           "  kubectl maint history orders-weekly",
		RunE:              factory.RunE(o),
		ValidArgsFunction: c.CompleteAllPlans(nil),
	}
	o.out.AddFlags(cmd)
	cmd.Flags().IntVar(&o.limit, "limit", 0, "so many of the newest; 0 means all")
	return cmd
}

// Complete takes the plan's name.
func (o *historyOptions) Complete(_ *cobra.Command, args []string) error {
	o.name = factory.OneName(args, "PLAN", &o.faults)
	return nil
}

// Validate checks the flags.
func (o *historyOptions) Validate() error {
	o.out.Check(&o.faults)
	if o.limit < 0 {
		o.faults.Add("--limit must be 0 or more, is %d", o.limit)
	}
	return o.faults.Err()
}

// Run prints the ledger, newest last.
func (o *historyOptions) Run(ctx context.Context) error {
	k, err := o.Connect()
	if err != nil {
		return err
	}
	cm, err := k.Document(ctx, o.name, annotations.KindPlan, annotations.KindHibernatePlan)
	if err != nil {
		return err
	}
	l, old, err := k.Ledger(ctx, cm)
	if err != nil {
		return err
	}
	if l == nil {
		fmt.Fprintf(o.ErrOut, "plan %s has no ledger yet: the agent has not looked at it\n", cm.Name)
		l = &ledger.Ledger{}
	}
	entries := slices.Concat(ledger.AppendArchive(old, l.Recent), l.Open)
	if o.limit > 0 {
		entries = entries[max(len(entries)-o.limit, 0):]
	}
	runs, err := k.Runs(ctx, cm.Namespace, cm.Name)
	if err != nil {
		return err
	}
	if o.out.Name() {
		return o.names(entries)
	}
	return o.out.Print(o.Out, o.table(cm, entries, runs), func() (runtime.Object, error) { return ledgerList(cm, entries) })
}

// names prints the runs alone: nothing else of a ledger has a name.
func (o *historyOptions) names(entries []ledger.Entry) error {
	for _, e := range entries {
		if e.Run != "" {
			fmt.Fprintf(o.Out, "configmap/%s\n", e.Run)
		}
	}
	return nil
}

func (o *historyOptions) table(cm *corev1.ConfigMap, entries []ledger.Entry, runs []view.Run) *metav1.Table {
	zone := zoneOf(cm, o.Zone)
	t := print.NewTable(print.Column{Name: "When"}, print.Column{Name: "Result"}, print.Column{Name: "Reason"}, print.Column{Name: "Run"}, print.Column{Name: "Outcome"}, print.Column{Name: "UTC", Wide: true}, print.Column{Name: "Actor", Wide: true})
	for _, e := range entries {
		print.AddRow(t, nil, print.EntryWhen(e, zone), string(e.Result)+print.DryMark(e), e.Reason, e.Run, outcome(e, runs), view.EntryAt(e).UTC().Format(time.RFC3339), e.Actor)
	}
	return t
}

// outcome is how the run of an entry ended, as long as the run is kept.
func outcome(e ledger.Entry, runs []view.Run) string {
	i := slices.IndexFunc(runs, func(r view.Run) bool { return r.Run.Name == e.Run })
	if i < 0 {
		return slept(e)
	}
	j := runs[i].Journal
	text := string(j.Phase)
	if j.StartedAt != nil && j.FinishedAt != nil {
		text += " after " + instant.Roughly(j.FinishedAt.Sub(*j.StartedAt))
	}
	switch {
	case j.Approved != nil:
		text += ", " + j.Approved.Said("approved")
	case j.End != nil && j.End.Reason == run.ReasonRejected: // its message says by whom
		text += ", " + j.End.Message
	}
	return text
}

// slept is what slept in an off-window that is over.
func slept(e ledger.Entry) string {
	var out []string
	for _, s := range e.Slept {
		out = append(out, fmt.Sprintf("%s: %d of kind %s slept, together %s", s.Target, s.Resources, s.Kind, instant.Roughly(time.Duration(s.Hours*float64(time.Hour)))))
	}
	return strings.Join(out, "; ")
}

// zoneOf is the zone in which people think of a plan's times.
func zoneOf(cm *corev1.ConfigMap, user string) string {
	if cm.Labels[annotations.LabelKind] == annotations.KindHibernatePlan {
		return view.NewSleeper(cm, nil, nil).Zone()
	}
	spec, _ := annotations.Plan(cm)
	return view.PlanZone(spec, user)
}

func ledgerList(cm *corev1.ConfigMap, entries []ledger.Entry) (runtime.Object, error) {
	items := make([]view.LedgerItem, len(entries))
	for i, e := range entries {
		items[i] = view.LedgerItem{
			Plan: cm.Namespace + "/" + cm.Name, Slot: e.Slot, Result: string(e.Result), Reason: e.Reason, Run: e.Run, Actor: e.Actor,
			DryRun: e.DryRun, StartedAt: e.StartedAt, At: e.At, First: e.First, Last: e.Last, Count: e.Count, Slept: e.Slept,
		}
	}
	return print.List("LedgerList", items)
}
