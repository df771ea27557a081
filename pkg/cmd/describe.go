package cmd

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
		return append(o.runLines(r), k.eventLines(ctx, cm, o.view(o.Zone))...), nil
	}
	agent, _ := o.agent(ctx, k)
	p, err := o.know(ctx, k, agent, cm)
	if err != nil {
		return nil, err
	}
	v := o.view(zoneOf(p.spec, o.Zone))
	lines := append(v.planLines(p, true), faultLines(p)...)
	lines = append(lines, o.recent(p, v)...)
	lines = append(lines, k.eventLines(ctx, cm, v)...)
	return append(lines, "", "Document:", indentText(cm.Data[annotations.DataPlan])), nil
}

func faultLines(p aPlan) []string {
	if len(p.faults) == 0 {
		return nil
	}
	lines := []string{"", "Faults:"}
	for _, f := range p.faults {
		lines = append(lines, "  "+f.String())
	}
	return lines
}

// recent are the newest ends of the ledger.
func (o *describeOptions) recent(p aPlan, v view) []string {
	if p.ledger == nil || len(p.ledger.Recent) == 0 {
		return nil
	}
	lines := []string{"", fmt.Sprintf("History (all of it: '%s history %s'):", o.Name, p.object.Name)}
	for _, e := range p.ledger.Recent[max(len(p.ledger.Recent)-5, 0):] {
		lines = append(lines, strings.TrimRight(fmt.Sprintf("  %s  %s%s  %s  %s", entryWhen(e, v.zone), v.phase(string(e.Result)), dryMark(e), e.Reason, e.Run), " "))
	}
	return lines
}

// eventLines are the Events of an object; who may not read them does without.
func (k *cluster) eventLines(ctx context.Context, cm *corev1.ConfigMap, v view) []string {
	list, err := k.kube.CoreV1().Events(cm.Namespace).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.uid=" + string(cm.UID)})
	if err != nil || len(list.Items) == 0 {
		return nil
	}
	events := list.Items
	slices.SortFunc(events, func(a, b corev1.Event) int { return eventAt(a).Compare(eventAt(b)) })
	lines := []string{"", "Events:"}
	for _, e := range events[max(len(events)-10, 0):] {
		lines = append(lines, fmt.Sprintf("  %s ago  %s  %s: %s", roughly(v.now.Sub(eventAt(e))), e.Type, e.Reason, strings.ReplaceAll(e.Message, "\n", "; ")))
	}
	return lines
}

func eventAt(e corev1.Event) time.Time {
	if !e.LastTimestamp.IsZero() {
		return e.LastTimestamp.Time
	}
	return e.CreationTimestamp.Time
}

func indentText(s string) string {
	return "  " + strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n  ")
}

func (o *describeOptions) runLines(r aRun) []string {
	v := o.view(zoneOf(r.run.Spec, o.Zone))
	q := r.run.Request
	pairs := []string{
		"Run", v.bold(r.run.Name) + " in namespace " + r.run.Namespace, "Plan", r.run.Plan, "Phase", v.runHead(r),
		"Asked by", q.Why() + said(" of ", q.Actor), "Asked for", v.both(q.ScheduledAt()), "Runs as", "ServiceAccount " + plan.Account(r.run.Spec),
	}
	pairs = append(pairs, "Parameters", strings.Join(parametersOf(r.run), ", "))
	if by := r.journal.Approved; by != nil {
		pairs = append(pairs, "Approved", v.both(by.At)+by.Said(""))
	}
	if by := r.journal.Passed; by != nil {
		pairs = append(pairs, "Gate", by.Said("let through although it was closed"))
	}
	if r.journal.StartedAt != nil {
		pairs = append(pairs, "Started", v.both(*r.journal.StartedAt))
	}
	if r.journal.FinishedAt != nil {
		pairs = append(pairs, "Ended", v.both(*r.journal.FinishedAt))
	}
	if n := r.journal.Retries; n > 0 {
		pairs = append(pairs, "Retries", fmt.Sprintf("%d of %d", n, r.run.Spec.RetryLimit))
	}
	if end := r.journal.End; end != nil && end.Reason != "" {
		pairs = append(pairs, "Reason", end.Reason+said(" in step ", end.Step))
	}
	if q.DryRun {
		pairs = append(pairs, "Dry run", "nothing outside the run itself was changed")
	}
	lines := append(v.labelled(pairs...), "", "Steps:")
	lines = append(lines, indent(v.stepLines(r))...)
	lines = append(lines, differenceLines(r)...)
	return append(lines, changedLines(r)...)
}

// parametersOf are a run's parameters, those of the plan's defaults with them.
func parametersOf(r plan.Run) []string {
	var out []string
	for _, p := range r.Spec.Parameters {
		value, given := r.Request.Parameters[p.Name]
		if !given && p.Default != nil {
			value, given = *p.Default, true
		}
		if given {
			out = append(out, p.Name+"="+value)
		}
	}
	return out
}

// differenceLines show what the steps of a dry run would have changed.
func differenceLines(r aRun) []string {
	var lines []string
	for _, s := range r.journal.Steps {
		if text, is := s.Outputs["difference"].(string); is && text != "" {
			lines = append(lines, "  step "+s.Path+":", indentText(indentText(text)))
		}
	}
	if len(lines) == 0 {
		return nil
	}
	return append([]string{"", "Would change:"}, lines...)
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
