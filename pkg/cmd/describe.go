package cmd

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

type describeOptions struct {
	*cli
	names  []string
	faults faults
}

func newDescribe(c *cli) *cobra.Command {
	o := &describeOptions{cli: c}
	return &cobra.Command{
		Use:               "describe RUN|PLAN...",
		Short:             "Everything about a run, or a plan",
		Example:           "  kubectl maint describe maint-run-orders-weekly-k2x7abcdef",
		RunE:              run(o),
		ValidArgsFunction: c.complete(annotations.LabelKind+" in (plan,run)", nil),
	}
}

// Complete takes the names.
func (o *describeOptions) Complete(_ *cobra.Command, args []string) error {
	o.names = args
	return nil
}

// Validate wants at least one.
func (o *describeOptions) Validate() error {
	if len(o.names) == 0 {
		o.faults.add("name a RUN or a PLAN; 'kubectl maint list' shows the plans, 'kubectl maint history PLAN' their runs")
	}
	return o.faults.err()
}

// Run prints each of them.
func (o *describeOptions) Run(ctx context.Context) error {
	k, err := o.connect()
	if err != nil {
		return err
	}
	for i, name := range o.names {
		cm, err := k.document(ctx, name, annotations.KindPlan, annotations.KindRun)
		if err != nil {
			return err
		}
		lines, err := o.lines(ctx, k, cm)
		if err != nil {
			return err
		}
		if i > 0 {
			lines = append([]string{""}, lines...)
		}
		if _, err := io.WriteString(o.Out, strings.Join(lines, "\n")+"\n"); err != nil {
			return err
		}
	}
	return nil
}

func (o *describeOptions) lines(ctx context.Context, k *cluster, cm *corev1.ConfigMap) ([]string, error) {
	if cm.Labels[annotations.LabelKind] == annotations.KindRun {
		r, err := readRun(cm)
		if err != nil {
			return nil, err
		}
		return o.runLines(r), nil
	}
	agent, _ := o.agent(ctx, k)
	p, err := o.know(ctx, k, agent, cm)
	if err != nil {
		return nil, err
	}
	v := o.view(o.zoneOf(p.spec))
	lines := v.planLines(p)
	if len(p.faults) > 0 {
		lines = append(lines, "", "Faults:")
		for _, f := range p.faults {
			lines = append(lines, "  "+f.String())
		}
	}
	lines = append(lines, "", "Conditions:")
	lines = append(lines, indent(v.conditions(p))...)
	return append(lines, "", "Document:", indentText(cm.Data[annotations.DataPlan])), nil
}

func indentText(s string) string {
	return "  " + strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n  ")
}

func (o *describeOptions) runLines(r aRun) []string {
	v := o.view(o.zoneOf(r.run.Spec))
	q := r.run.Request
	pairs := []string{
		"Run", v.bold(r.run.Name) + " in namespace " + r.run.Namespace, "Plan", r.run.Plan, "Phase", v.runHead(r),
		"Asked by", q.Why() + said(" of ", q.Actor), "Asked for", v.both(q.ScheduledAt()), "Runs as", "ServiceAccount " + plan.Account(r.run.Spec),
	}
	if r.journal.StartedAt != nil {
		pairs = append(pairs, "Started", v.both(*r.journal.StartedAt))
	}
	if r.journal.FinishedAt != nil {
		pairs = append(pairs, "Ended", v.both(*r.journal.FinishedAt))
	}
	if end := r.journal.End; end != nil && end.Reason != "" {
		pairs = append(pairs, "Reason", end.Reason+colon(end.Message))
	}
	if q.DryRun {
		pairs = append(pairs, "Dry run", "nothing outside the run itself was changed")
	}
	lines := append(v.labelled(pairs...), "", "Steps:")
	lines = append(lines, indent(v.stepLines(r))...)
	return append(lines, changedLines(r)...)
}

func said(before, s string) string {
	if s == "" {
		return ""
	}
	return before + s
}

// changedLines list what the run changed, once each.
func changedLines(r aRun) []string {
	var lines []string
	for _, s := range r.journal.Steps {
		for _, c := range s.Changed {
			lines = append(lines, fmt.Sprintf("  %s/%s: %s (step %s)", c.Kind, c.Name, c.What, s.Path))
		}
	}
	if len(lines) == 0 {
		return nil
	}
	return append([]string{"", "Changed:"}, lines...)
}
