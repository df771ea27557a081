package look

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/completion"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/instant"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/print"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/source"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/connector"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

type describeOptions struct {
	*factory.Factory
	out    *print.Values
	names  []string
	agent  func() (factory.AgentState, error)
	faults exit.Faults
}

// NewDescribe tells everything about runs or plans.
func NewDescribe(c *factory.Factory) *cobra.Command {
	o := &describeOptions{Factory: c, out: print.NewValues()}
	cmd := &cobra.Command{
		Use:   "describe RUN|PLAN|POLICY...",
		Short: "Show everything about a run, a plan or a policy",
		Long: `Show everything about a run, a plan or a policy. Of a plan, that includes its newest run
that was no dry run, with its steps.`,
		Example:           "  kubectl maint describe maint-run-orders-weekly-k2x7abcdef",
		RunE:              factory.RunE(o),
		ValidArgsFunction: completion.Kinds(c, annotations.KindPlan, annotations.KindHibernatePlan, annotations.KindPolicy, annotations.KindRun),
	}
	o.out.AddFlags(cmd)
	return cmd
}

// Complete takes the names.
func (o *describeOptions) Complete(_ *cobra.Command, args []string) error {
	o.names = args
	return nil
}

// Validate wants at least one.
func (o *describeOptions) Validate() error {
	o.out.Check(&o.faults)
	if len(o.names) == 0 {
		o.faults.Add("name a RUN or a PLAN; 'kubectl maint list' shows the plans, 'kubectl maint history PLAN' their runs")
	}
	return o.faults.Err()
}

// Run prints each of them.
func (o *describeOptions) Run(ctx context.Context) error {
	k, err := o.Connect()
	if err != nil {
		return err
	}
	o.agent = o.AgentBeside(ctx, k)
	if !o.out.Lines() {
		return o.printValues(ctx, k)
	}
	for i, name := range o.names {
		lines, err := o.named(ctx, k, name)
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

// named is everything about what a name means. Of a run that is no longer kept that is what the
// ledger remembers.
func (o *describeOptions) named(ctx context.Context, k *factory.Cluster, name string) ([]string, error) {
	cm, err := o.find(ctx, k, name)
	agent, _ := o.agent()
	if gone := (*factory.GoneRunError)(nil); errors.As(err, &gone) {
		o.WarnOfLedger(gone.Namespace, gone.Plan, view.Ledger{Doubt: gone.Doubt})
		v := print.New(o.Env, o.Zone)
		return []string{
			fmt.Sprintf("run %s of plan %s is no longer kept; its history (all of it: %s):", gone.Entry.Run, gone.Plan, o.Suggest().History(gone.Plan)),
			entryLine(gone.Entry, v),
		}, nil
	}
	if err != nil {
		return nil, err
	}
	return o.lines(ctx, k, agent, cm)
}

func (o *describeOptions) lines(ctx context.Context, k *factory.Cluster, agent factory.AgentState, cm *corev1.ConfigMap) ([]string, error) {
	if cm.Labels[annotations.LabelKind] == annotations.KindRun {
		r, err := k.ReadRun(ctx, cm)
		if err != nil {
			return nil, err
		}
		return append(o.runLines(k.Answered(ctx, r)), eventLines(ctx, k, cm, print.New(o.Env, o.Zone))...), nil
	}
	if cm.Labels[annotations.LabelKind] == annotations.KindPolicy {
		return o.describePolicy(ctx, k, agent, cm), nil
	}
	if cm.Labels[annotations.LabelKind] == annotations.KindHibernatePlan {
		return o.sleeperLines(ctx, k, source.ReadSleeper(ctx, o.Factory, k, agent, cm))
	}
	p, err := source.ReadPlan(ctx, o.Factory, k, agent, cm)
	if err != nil {
		return nil, err
	}
	source.LookForNeeded(ctx, k, &p)
	v := print.New(o.Env, view.PlanZone(p.Spec, o.Zone))
	lines := append(v.PlanLines(p, true), faultLines(p.Faults)...)
	lines = append(lines, o.recent(p.Object.Name, p.Ledger, v)...)
	lines = append(lines, eventLines(ctx, k, cm, v)...)
	lines = append(lines, "", "Document:", print.IndentText(cm.Data[annotations.DataPlan]))
	newest, err := newestRun(ctx, k, cm)
	if err != nil || newest == nil || !newest.Journal.Phase.Ended() { // one that lives is shown with the plan
		return lines, err
	}
	return append(append(lines, ""), o.runLines(*newest)...), nil
}

// newestRun is the run that a plan stands for: its newest that was no dry run, or else its newest;
// nil: none is kept.
func newestRun(ctx context.Context, k *factory.Cluster, cm *corev1.ConfigMap) (*view.Run, error) {
	runs, err := k.RunsOf(ctx, cm)
	if err != nil || len(runs) == 0 {
		return nil, err
	}
	newest := runs[len(runs)-1]
	for _, r := range slices.Backward(runs) {
		if !r.Run.Request.DryRun {
			newest = r
			break
		}
	}
	return new(k.Answered(ctx, newest)), nil
}

// sleeperLines are everything about a HibernatePlan.
func (o *describeOptions) sleeperLines(ctx context.Context, k *factory.Cluster, s view.Sleeper) ([]string, error) {
	kept, err := k.Ledger(ctx, s.Object)
	if err != nil {
		return nil, err
	}
	restores, err := k.RestoresOf(ctx, s.Namespace, s.Name)
	if err != nil {
		return nil, err
	}
	o.WarnOfLedger(s.Namespace, s.Name, kept)
	v := print.New(o.Env, s.Zone())
	lines := append(v.SleeperLines(s, true), faultLines(s.Faults)...)
	lines = append(lines, v.SleptLines(source.ReadSlept(ctx, k, s.Object, o.Now()))...)
	lines = append(lines, restoreLines(restores)...)
	lines = append(lines, o.recent(s.Name, kept.Head, v)...)
	lines = append(lines, eventLines(ctx, k, s.Object, v)...)
	return append(lines, "", "Document:", print.IndentText(s.Object.Data[annotations.DataPlan])), nil
}

func faultLines(faults document.Faults) []string {
	if len(faults) == 0 {
		return nil
	}
	lines := []string{"", "Faults:"}
	for _, f := range faults {
		lines = append(lines, "  "+f.String())
	}
	return lines
}

// recent are the newest ends of the ledger.
func (o *describeOptions) recent(name string, l *ledger.Ledger, v print.Printer) []string {
	if l == nil || len(l.Recent) == 0 {
		return nil
	}
	lines := []string{"", fmt.Sprintf("History (all of it: %s):", o.Suggest().History(name))}
	if totals := print.Totals(l); totals != "" {
		lines = append(lines, "  in all: "+totals)
	}
	for _, e := range l.Recent[max(len(l.Recent)-5, 0):] {
		lines = append(lines, entryLine(e, v))
	}
	return lines
}

func entryLine(e ledger.Entry, v print.Printer) string {
	return strings.TrimRight(fmt.Sprintf("  %s  %s  %s  %s  %s", print.EntryWhen(e, v.Zone), v.Phase(string(e.Result))+print.DryMark(e), e.Reason, e.Run, v.AgentText(print.EntryEnd(e))), " ")
}

// eventsOf are the newest Events of an object.
func eventsOf(ctx context.Context, k *factory.Cluster, cm *corev1.ConfigMap) ([]corev1.Event, error) {
	list, err := k.Kube.CoreV1().Events(cm.Namespace).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.uid=" + string(cm.UID)})
	if err != nil {
		return nil, k.Explain("read Events in namespace "+cm.Namespace, err)
	}
	events := list.Items
	// Times are whole seconds; a name ends with the nanosecond.
	slices.SortFunc(events, func(a, b corev1.Event) int {
		return cmp.Or(eventAt(a).Compare(eventAt(b)), strings.Compare(a.Name, b.Name))
	})
	return events[max(len(events)-10, 0):], nil
}

func eventLines(ctx context.Context, k *factory.Cluster, cm *corev1.ConfigMap, v print.Printer) []string {
	events, err := eventsOf(ctx, k, cm)
	if err != nil {
		return []string{"", "Events: not known: " + strings.Join(strings.Fields(err.Error()), " ")}
	}
	if len(events) == 0 {
		return nil
	}
	lines := []string{"", "Events:"}
	for _, e := range events {
		lines = append(lines, fmt.Sprintf("  %s ago  %s  %s: %s", instant.Approximate(v.Now.Sub(eventAt(e))), e.Type, e.Reason, v.AgentText(e.Message)))
	}
	return lines
}

func eventAt(e corev1.Event) time.Time {
	if !e.LastTimestamp.IsZero() {
		return e.LastTimestamp.Time
	}
	return e.CreationTimestamp.Time
}

func (o *describeOptions) runLines(r view.Run) []string {
	v := print.New(o.Env, view.PlanZone(r.Run.Spec, o.Zone))
	q := r.Run.Request
	pairs := []string{
		"Run", v.Bold(r.Run.Name) + " in namespace " + r.Run.Namespace, "Plan", r.Run.Plan, "Phase", v.RunHead(r),
		"Asked by", q.AskedBy(), "Asked for", v.Both(q.ScheduledAt()), "Runs as", "ServiceAccount " + plan.Account(r.Run.Spec),
	}
	pairs = append(pairs, "Parameters", strings.Join(parametersOf(r.Run), ", "))
	if by := r.Journal.Approved; by != nil {
		pairs = append(pairs, "Approved", v.Both(by.At)+by.Said(""))
	}
	if by := r.Journal.Passed; by != nil {
		pairs = append(pairs, "Gate", by.SaidOrUnknown("closed; let through"))
	}
	if by := r.Journal.Allowed; by != nil {
		pairs = append(pairs, "Gate", by.SaidOrUnknown("opened for a time"))
	}
	if r.Journal.StartedAt != nil {
		pairs = append(pairs, "Started", v.Both(*r.Journal.StartedAt))
	}
	if r.Journal.FinishedAt != nil {
		pairs = append(pairs, "Ended", v.Both(*r.Journal.FinishedAt))
	}
	if n := r.Journal.Retries; n > 0 {
		pairs = append(pairs, "Retries", fmt.Sprintf("%d of %d", n, r.Run.Spec.RetryLimit))
	}
	if end := r.Journal.End; end != nil && end.Reason != "" {
		pairs = append(pairs, "Reason", end.Reason+view.Prefix(" in step ", end.Step))
	}
	if q.DryRun {
		pairs = append(pairs, "Dry run", "nothing outside the run itself was changed")
	}
	lines := append(v.Labelled(pairs...), "", "Steps:")
	lines = append(lines, print.Indent(v.StepLines(r))...)
	lines = append(lines, print.DifferenceLines(r)...)
	return append(lines, changedLines(r)...)
}

// parametersOf are a run's parameters, including the plan's defaults.
func parametersOf(r run.Run) []string {
	var out []string
	for _, p := range r.Spec.Parameters {
		value, given := r.Request.Parameters[p.Name]
		if !given && p.Default != nil {
			value, given = *p.Default, true
		}
		if given {
			out = append(out, p.Name+"="+document.OneLine(value))
		}
	}
	return out
}

// changedLines list what the run changed, without duplicates.
func changedLines(r view.Run) []string {
	var lines []string
	for _, s := range r.Journal.Steps {
		for _, c := range s.Changed {
			where := ""
			if c.Cluster != "" {
				where = " on " + connector.K8SCluster + " " + c.Cluster
			}
			lines = append(lines, fmt.Sprintf("  %s/%s%s: %s (step %s)", c.Kind, c.Name, where, c.What, s.Path))
		}
	}
	if len(lines) == 0 {
		return nil
	}
	return append([]string{"", "Changed:"}, lines...)
}

// find is what a name means: a policy, too. Of the name of a node it says what shows that.
func (o *describeOptions) find(ctx context.Context, k *factory.Cluster, name string) (*corev1.ConfigMap, error) {
	cm, err := k.Document(ctx, name, annotations.KindPlan, annotations.KindHibernatePlan, annotations.KindPolicy, annotations.KindRun)
	if !errors.As(err, new(factory.NotFoundError)) || errors.As(err, new(*factory.GoneRunError)) || strings.Contains(name, "/") {
		return cm, err
	}
	if _, noNode := k.Kube.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{}); noNode != nil {
		return nil, err
	}
	return k.Document(ctx, factory.KindNode+"/"+name) // which refuses it, with the commands for nodes
}
