package report

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/instant"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/print"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/source"
	"github.com/kubectl-maint/kubectl-maint/pkg/savings"
)

type savingsOptions struct {
	*factory.Factory
	out        *print.Output
	everywhere bool
	selector   string
	asked      period
	start, end time.Time
	faults     exit.Faults
}

// NewSavings reports how long resources slept, and what that saved.
func NewSavings(c *factory.Factory) *cobra.Command {
	o := &savingsOptions{Factory: c, out: print.NewOutput(formatTable, formatHTML)}
	cmd := &cobra.Command{
		Use:   "savings",
		Short: "How long resources slept, and what that saved",
		Long: `The hours that the resources of HibernatePlans slept, those that sleep now
included. Money is shown where a ConfigMap with the label maint.dev/kind: prices,
in the plan's namespace or the agent's, says what an hour costs.`,
		Example: "  kubectl maint savings\n  kubectl maint savings -A --from 2026-11-01 --to 2026-12-01\n  kubectl maint savings -A -o html > savings.html",
		Args:    factory.NoNames,
		RunE:    factory.RunE(o),
	}
	o.out.AddFlags(cmd)
	cmd.Flags().BoolVarP(&o.everywhere, "all-namespaces", "A", false, "of all namespaces")
	cmd.Flags().StringVarP(&o.selector, "selector", "l", "", "of plans with these labels")
	o.asked.addFlags(cmd.Flags())
	return cmd
}

// Complete resolves the times.
func (o *savingsOptions) Complete(cmd *cobra.Command, _ []string) error {
	o.start, o.end = o.asked.span(o.Env, cmd.Flags().Changed("last"), &o.faults)
	if o.out.Format() == formatTable { // as without -o
		return cmd.Flags().Set("output", "")
	}
	return nil
}

// Validate checks the flags.
func (o *savingsOptions) Validate() error {
	o.out.Check(&o.faults)
	return o.faults.Err()
}

// Run prints the report.
func (o *savingsOptions) Run(ctx context.Context) error {
	k, err := o.Connect()
	if err != nil {
		return err
	}
	namespace := k.Whole(o.everywhere).Namespace
	sleeps, err := o.sleeps(ctx, k, namespace)
	if err != nil {
		return err
	}
	prices, err := o.prices(ctx, k, namespace)
	if err != nil {
		return err
	}
	if !o.out.Table() {
		o.asked.echo(o.Env, o.start, o.end)
	}
	rows := savings.Sum(sleeps, o.start, o.end, prices)
	if o.out.Own() {
		_, err := fmt.Fprint(o.Out, savings.Report{From: o.start, To: o.end, Rows: rows}.HTML())
		return err
	}
	if o.out.Table() && len(rows) == 0 {
		print.Empty(o.ErrOut, namespace)
		fmt.Fprintf(o.ErrOut, "nothing slept from %s to %s\n", instant.Both(o.start, o.Zone), instant.Both(o.end, o.Zone))
		return nil
	}
	if err := o.out.Print(o.Out, o.table(rows), "SavingsList", func() ([]print.Value, error) { return valuesOf(rows), nil }); err != nil {
		return err
	}
	for _, row := range rows {
		if len(row.Uncounted) > 0 {
			fmt.Fprintf(o.ErrOut, "warning: HibernatePlan %s/%s, target %s: not counted, since more hours are recorded than are possible: %s\n", row.Namespace, row.Plan, row.Target, strings.Join(row.Uncounted, ", "))
		}
	}
	if o.out.Table() {
		fmt.Fprintf(o.ErrOut, "%s from %s to %s\n", savings.TotalOf(rows), instant.Both(o.start, o.Zone), instant.Both(o.end, o.Zone))
		if slices.ContainsFunc(rows, func(r savings.Row) bool { return r.Currency == "" && len(r.Unpriced) > 0 }) {
			fmt.Fprintln(o.ErrOut, "some hours have no price: a ConfigMap with the label maint.dev/kind: prices says what an hour costs, in the plan's namespace or the agent's (docs/operations.md, \"Prices\")")
		}
	}
	return nil
}

func valuesOf(rows []savings.Row) []print.Value {
	items := make([]print.Value, len(rows))
	for i, row := range rows {
		items[i] = print.Value{Plain: true, Body: row} // its kind is that of the resources
		if i == 0 || rows[i-1].Plan != row.Plan || rows[i-1].Namespace != row.Namespace {
			items[i].Name = "configmap/" + row.Plan
		}
	}
	return items
}

func (o *savingsOptions) table(rows []savings.Row) *metav1.Table {
	t := print.NewTable(print.Column{Name: "Plan"}, print.Column{Name: "Target"}, print.Column{Name: "Kind"}, print.Column{Name: "Resources"}, print.Column{Name: "Sleeps"}, print.Column{Name: "Hours"}, print.Column{Name: "Saved"}, print.Column{Name: "Without a price", Wide: true})
	for _, row := range rows {
		plan := row.Plan
		if o.everywhere {
			plan = row.Namespace + "/" + plan
		}
		print.AddRow(t, nil, plan, row.Target, row.Kind, strconv.Itoa(row.Resources), strconv.Itoa(row.Sleeps), fmt.Sprintf("%.1f", row.Hours), row.Money(), strings.Join(row.Unpriced, ", "))
	}
	return t
}

// sleeps are the sleeps of all HibernatePlans of a namespace: those in their ledgers, and the
// present ones.
func (o *savingsOptions) sleeps(ctx context.Context, k *factory.Cluster, namespace string) ([]savings.Sleep, error) {
	plans, err := k.HibernatePlans(ctx, namespace, o.selector)
	if err != nil {
		return nil, err
	}
	all, err := rememberedBy(ctx, o.Factory, k, namespace, plans)
	if err != nil {
		return nil, err
	}
	var out []savings.Sleep
	for _, one := range all {
		out = append(out, savings.SleepsOf(one.object.Namespace, one.object.Name, one.Closed)...)
	}
	now, err := o.present(ctx, k, namespace, plans)
	return append(out, now...), err
}

// present are the present sleeps, also of deleted plans unless a selector was given.
func (o *savingsOptions) present(ctx context.Context, k *factory.Cluster, namespace string, plans []*corev1.ConfigMap) ([]savings.Sleep, error) {
	list, err := k.Restores(ctx, namespace, "")
	if err != nil {
		return nil, err
	}
	var out []savings.Sleep
	for _, one := range list {
		picked := func(cm *corev1.ConfigMap) bool { return cm.Namespace == one.Object.Namespace && cm.Name == one.Of() }
		if o.selector != "" && !slices.ContainsFunc(plans, picked) {
			continue
		}
		if one.Record.Plan == "" || one.Copy { // unreadable, or nothing sleeps; one that only lacks a signature counts
			fmt.Fprintf(o.ErrOut, "warning: %s/%s is not counted: %s\n", one.Object.Namespace, one.Object.Name, one.Fault)
			continue
		}
		out = append(out, source.SleepsNow(one, o.Now())...)
	}
	return out, nil
}

// prices are those of each namespace, or else the agent's.
func (o *savingsOptions) prices(ctx context.Context, k *factory.Cluster, namespace string) (func(string) *savings.Prices, error) {
	known := map[string]*savings.Prices{}
	places := []string{namespace}
	state, err := o.Agent(ctx, k.Whole(o.everywhere))
	if err != nil {
		fmt.Fprintf(o.ErrOut, "warning: %v\n", err)
	}
	o.WarnSilent(state)
	agent := state.Namespace
	if namespace != metav1.NamespaceAll && agent != namespace {
		places = append(places, agent)
	}
	for _, place := range places {
		list, err := k.Prices(ctx, place)
		if place != namespace && apierrors.IsForbidden(err) {
			fmt.Fprintf(o.ErrOut, "warning: prices of namespace %s are not read: %v\n", place, err)
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, cm := range list {
			if known[cm.Namespace] != nil {
				fmt.Fprintf(o.ErrOut, "warning: prices %s/%s are ignored: only the first prices of a namespace count\n", cm.Namespace, cm.Name)
				continue
			}
			p, err := pricesIn(cm)
			if err != nil {
				fmt.Fprintf(o.ErrOut, "warning: %v; they do not count\n", err)
				continue
			}
			known[cm.Namespace] = &p
		}
	}
	return func(namespace string) *savings.Prices {
		if p := known[namespace]; p != nil {
			return p
		}
		return known[agent]
	}, nil
}

func pricesIn(cm *corev1.ConfigMap) (savings.Prices, error) {
	text, fault := annotations.DocumentText(cm)
	if fault != nil {
		return savings.Prices{}, fmt.Errorf("prices %s/%s: %s", cm.Namespace, cm.Name, fault)
	}
	p, faults := savings.ParsePrices([]byte(text))
	if len(faults) > 0 {
		return p, fmt.Errorf("prices %s/%s: %w", cm.Namespace, cm.Name, errors.New(faults.Error()))
	}
	return p, nil
}
