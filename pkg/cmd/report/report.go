package report

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/instant"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/print"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/source"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/summary"
)

// Formats of a report besides those of kubectl get.
const (
	formatTable    = "table"
	formatMarkdown = "md"
	formatCSV      = "csv"
	formatHTML     = "html"
)

type reportOptions struct {
	*factory.Factory
	out        *print.Values
	everywhere bool
	selector   string
	asked      period
	start, end time.Time
	faults     exit.Faults
}

// NewReport reports what ran in an interval, and how it ended.
func NewReport(c *factory.Factory) *cobra.Command {
	o := &reportOptions{Factory: c, out: print.NewValues(formatTable, formatMarkdown, formatCSV, formatHTML)}
	cmd := &cobra.Command{
		Use:   "report",
		Short: "What ran in a period, how it ended, and what was missed and why",
		Long: `A digest of the plans' ledgers: runs and how they ended, how late they began, slots
that were missed or skipped and why, windows that were used, nodes that rollouts
finished, and who approved, overrode or aborted what. A ledger keeps the newest 200 entries
of its plan; where the time asked for begins earlier, the report says so. Windows are those
of the plans' policies as they stand now. -o csv has one line for each entry.`,
		Example: "  kubectl maint report --last 7d\n  kubectl maint report -A --from 2026-11-01 --to 2026-12-01 -o md",
		Args:    factory.NoNames,
		RunE:    factory.RunE(o),
	}
	flags := cmd.Flags()
	o.out.AddFlags(cmd)
	flags.BoolVarP(&o.everywhere, "all-namespaces", "A", false, "of all namespaces")
	flags.StringVarP(&o.selector, "selector", "l", "", "of plans with these labels")
	o.asked.addFlags(flags)
	return cmd
}

// Complete resolves the times.
func (o *reportOptions) Complete(cmd *cobra.Command, _ []string) error {
	o.start, o.end = o.asked.span(o.Env, cmd.Flags().Changed("last"), &o.faults)
	return nil
}

// Validate checks the flags.
func (o *reportOptions) Validate() error {
	o.out.Check(&o.faults)
	return o.faults.Err()
}

// Run prints the report.
func (o *reportOptions) Run(ctx context.Context) error {
	k, err := o.Connect()
	if err != nil {
		return err
	}
	namespace := k.Whole(o.everywhere).Namespace
	agent := o.AgentBeside(ctx, k.Whole(o.everywhere))
	plans, err := allPlans(ctx, k, namespace, o.selector)
	seen, unknown := agent()
	if err != nil {
		return err
	}
	all, err := rememberedBy(ctx, o.Factory, k, namespace, plans)
	if err != nil {
		return err
	}
	r := summary.Of(o.plans(o.policies(ctx, k, seen, unknown, all), all), o.start, o.end)
	if o.out.Format() != "" && o.out.Format() != formatTable {
		o.asked.echo(o.Env, o.start, o.end)
	}
	switch o.out.Format() {
	case formatMarkdown:
		_, err = fmt.Fprint(o.Out, r.Markdown())
	case formatCSV:
		_, err = fmt.Fprint(o.Out, r.CSV())
	case formatHTML:
		_, err = fmt.Fprint(o.Out, r.HTML())
	case "", formatTable:
		err = o.tables(r, namespace)
	case "name": // the plans in it
		var names []print.Value
		for _, row := range r.Rows {
			_, plan, _ := strings.Cut(row.Plan, "/")
			names = append(names, print.Value{Name: "configmap/" + plan})
		}
		err = o.out.PrintList(o.Out, "", names)
	default:
		err = o.out.Print(o.Out, print.Value{Kind: "Report", Body: &r})
	}
	return err
}

// tables print the report for a terminal.
func (o *reportOptions) tables(r summary.Report, namespace string) error {
	if len(r.Rows) == 0 {
		print.Empty(o.ErrOut, namespace)
		fmt.Fprintf(o.ErrOut, "no plan has anything in its ledger from %s to %s\n", instant.Both(o.start, o.Zone), instant.Both(o.end, o.Zone))
		return nil
	}
	bold := print.New(o.Env, o.Zone).Bold
	local := func(t time.Time) string { return instant.Local(t, o.Zone) }
	for i, s := range r.Sections(local) {
		if i > 0 {
			fmt.Fprintf(o.Out, "\n%s\n", bold(s.Title))
		}
		columns := make([]print.Column, len(s.Header))
		for j, name := range s.Header {
			columns[j].Name = name
		}
		t := print.NewTable(columns...)
		for _, row := range s.Rows {
			print.AddRow(t, nil, row...)
		}
		if err := print.NewOutput().PrintTable(o.Out, t); err != nil {
			return err
		}
	}
	fmt.Fprintf(o.ErrOut, "%s, from %s to %s\n", r.Sentence(), instant.Both(o.start, o.Zone), instant.Both(o.end, o.Zone))
	return nil
}

// plans are what the report is made of.
func (o *reportOptions) plans(resolver *policy.Resolver, all []remembered) []summary.Plan {
	out := make([]summary.Plan, 0, len(all))
	for _, one := range all {
		p := summary.Plan{Namespace: one.object.Namespace, Name: one.object.Name, Created: one.object.CreationTimestamp.Time, Entries: one.Closed, LedgerFault: one.Fault(), Hidden: one.Hidden()}
		if one.Head != nil {
			p.BegunAnew = one.Head.BegunAnew
		}
		if one.forgot() {
			p.Since = new(view.EntryAt(one.Closed[0]))
		}
		if policies := policiesOf(one.object); len(policies) > 0 && !one.Hidden() { // else none would seem to be used
			in := annotations.Intent(one.object.Annotations)
			p.Windows, p.MoreWindows = windowsIn(resolver, in.Query(one.object.Namespace, policies), one.object.CreationTimestamp.Time, o.start, o.end)
		}
		out = append(out, p)
	}
	return out
}

// forgot says whether the ledger has dropped entries beyond its limit.
func (r remembered) forgot() bool {
	if r.Head == nil || len(r.Closed) == 0 {
		return false
	}
	var counted, kept int64
	for _, n := range r.Head.Totals {
		counted += n
	}
	for _, e := range r.Closed {
		if !e.DryRun {
			kept += max(e.Count, 1)
		}
	}
	return counted > kept
}

func policiesOf(cm *corev1.ConfigMap) []policy.PolicyRef {
	if cm.Labels[annotations.LabelKind] != annotations.KindPlan {
		return nil
	}
	spec, _ := annotations.Plan(cm)
	return spec.Policies
}

// policies are read if a plan names one. unknown is why the agent's state is not known.
func (o *reportOptions) policies(ctx context.Context, k *factory.Cluster, agent factory.AgentState, unknown error, all []remembered) *policy.Resolver {
	var namespaces []string
	for _, one := range all {
		if len(policiesOf(one.object)) > 0 {
			namespaces = append(namespaces, one.object.Namespace)
		}
	}
	if len(namespaces) == 0 {
		return nil
	}
	if unknown != nil {
		fmt.Fprintf(o.ErrOut, "warning: %v\n", unknown)
	}
	resolver := source.ReadResolver(ctx, k, agent.Namespace, namespaces...)
	for _, one := range all {
		if refs := policiesOf(one.object); len(refs) > 0 {
			resolver.WarnHidden(o.Factory, annotations.Intent(one.object.Annotations).Query(one.object.Namespace, refs), "how many windows were used is not known for sure")
		}
	}
	return resolver.Resolver
}

// maxWindows limits the windows of one plan: one every five minutes for a month.
const maxWindows = 10_000

// windowsIn are the windows of a plan's policies in an interval, from the plan's creation on, and
// whether there are more; what never opened or never closes is no window.
func windowsIn(b *policy.Resolver, q policy.Query, created, from, to time.Time) (out []summary.Window, more bool) {
	if created.After(from) {
		from = created
	}
	if !from.Before(to) {
		return nil, false
	}
	for i := range b.GateIfAny(q).Intervals(from) {
		if i.Start != nil && !i.Start.Before(to) {
			break
		}
		if len(out) == maxWindows {
			return out, true
		}
		if i.Start == nil && i.End == nil {
			continue
		}
		out = append(out, summary.Window{Start: i.Start, End: i.End})
	}
	return out, false
}
