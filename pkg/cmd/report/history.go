package report

import (
	"cmp"
	"context"
	"fmt"
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
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/trigger"
)

type historyOptions struct {
	*factory.Factory
	out        *print.Output
	name       string // empty: of all plans of the namespace
	everywhere bool
	selector   string
	since      string
	from       time.Time
	results    []string
	limit      int
	faults     exit.Faults
}

// NewHistory shows how each slot of a plan ended.
func NewHistory(c *factory.Factory) *cobra.Command {
	o := &historyOptions{Factory: c, out: print.NewOutput()}
	cmd := &cobra.Command{
		Use:   "history [PLAN]",
		Short: "How each slot and each run ended, and why",
		Long: `Show how each slot of a plan ended, and each run without a slot. Results are kept after
the run's object is deleted. Consecutive slots with the same result and reason share a
line. For a HibernatePlan, show each off-window and what slept in it. Without a name, show
all plans of the namespace, or with -A of the cluster.`,
		Example:           "  kubectl maint history orders-weekly\n  kubectl maint history -A --since 24h --result Failed,Missed",
		RunE:              factory.RunE(o),
		ValidArgsFunction: completion.AllPlans(c, nil),
	}
	o.out.AddFlags(cmd)
	flags := cmd.Flags()
	flags.BoolVarP(&o.everywhere, "all-namespaces", "A", false, "of all namespaces")
	flags.StringVarP(&o.selector, "selector", "l", "", "of plans with these labels")
	flags.StringVar(&o.since, "since", "", "show nothing older: a duration back from now, like 24h or 30d, or an instant; \"sat 02:00\" is the last one")
	flags.StringSliceVar(&o.results, "result", nil, "only these: "+strings.Join(results(), ", "))
	flags.IntVar(&o.limit, "limit", 0, "how many of the newest to show; 0 means all")
	_ = cmd.RegisterFlagCompletionFunc("result", cobra.FixedCompletions(results(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// results are the values of --result: ends of entries, and of runs.
func results() []string {
	return []string{
		string(run.Ran), string(run.Skipped), string(run.Missed), string(run.Open),
		string(run.Succeeded), string(run.Failed), string(run.Aborted), string(run.Replaced),
	}
}

// Complete takes the plan's name and the time.
func (o *historyOptions) Complete(_ *cobra.Command, args []string) error {
	switch {
	case len(args) > 1:
		o.faults.Add("give one PLAN, not %d", len(args))
	case len(args) == 1:
		o.name = args[0]
	}
	if o.since != "" {
		o.from = o.ago("--since", o.since)
	}
	return nil
}

// ago is an instant in the past: a duration before now, or the last one of that time.
func (o *historyOptions) ago(flag, text string) time.Time {
	at, err := instant.Past(text, o.Now(), o.Zone)
	switch {
	case err != nil:
		o.faults.Add("%s: %v", flag, err)
	case at.After(o.Now()):
		o.faults.Add("%s %s is in the future", flag, instant.Both(at, o.Zone))
	}
	return at
}

// Validate checks the flags.
func (o *historyOptions) Validate() error {
	o.out.Check(&o.faults)
	if o.limit < 0 {
		o.faults.Add("--limit must be 0 or more, is %d", o.limit)
	}
	if o.name != "" && (o.everywhere || o.selector != "") {
		o.faults.Add("a PLAN excludes -A and -l: it is looked for in one namespace")
	}
	for i, given := range o.results {
		at := slices.IndexFunc(results(), func(r string) bool { return strings.EqualFold(r, given) })
		if at < 0 {
			o.faults.Add("--result must be one of %s, is %q", strings.Join(results(), ", "), given)
			continue
		}
		o.results[i] = results()[at]
	}
	return o.faults.Err()
}

// line is an entry of a plan's ledger, with the end of its run as far as that is known.
type line struct {
	plan  *corev1.ConfigMap
	entry ledger.Entry
	begun *time.Time // when the ledger was begun in place of one that is lost; nil: none was
}

// item is the entry for scripts.
func (l line) item() view.LedgerItem {
	item := view.NewLedgerItem(l.plan.Namespace, l.plan.Name, l.entry)
	item.LedgerBegunAnew = l.begun
	return item
}

// Run prints the ledgers, newest last.
func (o *historyOptions) Run(ctx context.Context) error {
	k, err := o.Connect()
	if err != nil {
		return err
	}
	if o.since != "" {
		fmt.Fprintf(o.ErrOut, "since %s\n", instant.Both(o.from, o.Zone))
	}
	agent := o.AgentBeside(ctx, k.Whole(o.everywhere))
	all, runs, err := o.read(ctx, k)
	_, _ = agent() // whoever may not look for it does without
	if err != nil {
		return err
	}
	o.begunAnew(all)
	lines := o.chosen(all, runs)
	empty := len(lines) == 0 && o.out.Table()
	if empty {
		print.Empty(o.ErrOut, k.Whole(o.everywhere).Namespace)
	}
	if o.name != "" && all[0].Head == nil {
		o.noLedger(all[0].object, runs)
	}
	if empty {
		o.nothing(all)
		return nil
	}
	err = o.out.Print(o.Out, o.table(lines), "LedgerList", func() ([]print.Value, error) { return ledgerValues(lines), nil })
	if err == nil && o.name != "" && o.out.Table() && !o.filtered() {
		o.totals(all[0].Head)
	}
	return err
}

func (o *historyOptions) filtered() bool {
	return o.limit > 0 || len(o.results) > 0 || o.since != ""
}

// noLedger says why a plan has none. Of a plan that never ran, the agent makes it when it first looks.
func (o *historyOptions) noLedger(cm *corev1.ConfigMap, runs []view.Run) {
	switch notes := cm.Annotations; {
	case len(runs) == 0 && notes[annotations.StatusObserved] == "":
		fmt.Fprintf(o.ErrOut, "plan %s has no ledger yet: the agent has not looked at it\n", cm.Name)
		return
	case len(runs) == 0 && notes[annotations.StatusPhase] == string(trigger.PhaseInvalid):
		fmt.Fprintf(o.ErrOut, "plan %s has no ledger: the agent calls it invalid; %s says why\n", cm.Name, o.Suggest().StatusOf(cm.Name))
		return
	}
	fmt.Fprintf(o.ErrOut, "plan %s has no ledger, though the agent has looked at it: somebody deleted it, or the agent could not write it; what was before is not known\n", cm.Name)
}

// begunAnew says of ledgers that were begun in place of lost ones that they do not tell all there was.
func (o *historyOptions) begunAnew(all []remembered) {
	for _, one := range all {
		if one.Head == nil || one.Head.BegunAnew == nil || !one.Head.BegunAnew.After(o.from) {
			continue
		}
		fmt.Fprintf(o.ErrOut, "the ledger of plan %s begins anew at %s: what was before is not known\n", o.planName(one.object), instant.Both(*one.Head.BegunAnew, o.Zone))
	}
}

// nothing says why the output is empty, where more is known.
func (o *historyOptions) nothing(all []remembered) {
	switch {
	case o.name != "" && (all[0].Head == nil || all[0].Head.BegunAnew != nil && !o.filtered()): // reported already
	case o.filtered():
		fmt.Fprintln(o.ErrOut, "nothing of that kind is in the history")
	case o.name != "":
		fmt.Fprintf(o.ErrOut, "plan %s has no history yet: no slot has ended, and nothing ran\n", all[0].object.Name)
	}
}

// read reads one plan's ledger with its runs, or those of many plans with their live runs.
func (o *historyOptions) read(ctx context.Context, k *factory.Cluster) ([]remembered, []view.Run, error) {
	if o.name != "" {
		cm, err := k.Document(ctx, o.name, annotations.KindPlan, annotations.KindHibernatePlan)
		if err != nil {
			return nil, nil, err
		}
		kept, err := k.Ledger(ctx, cm)
		if err != nil {
			return nil, nil, err
		}
		o.WarnOfLedger(cm.Namespace, cm.Name, kept)
		runs, err := k.RunsOf(ctx, cm)
		return []remembered{{cm, kept}}, runs, err
	}
	namespace := k.Whole(o.everywhere).Namespace
	plans, err := allPlans(ctx, k, namespace, o.selector)
	if err != nil {
		return nil, nil, err
	}
	all, err := rememberedBy(ctx, o.Factory, k, namespace, plans)
	if err != nil {
		return nil, nil, err
	}
	runs, err := k.Runs(ctx, namespace, "", factory.ActiveOnly)
	return all, runs, err
}

// chosen are the entries that were asked for; those of several plans ordered by time.
func (o *historyOptions) chosen(all []remembered, runs []view.Run) []line {
	var lines []line
	for _, one := range all {
		entries, begun := one.Closed, (*time.Time)(nil)
		if one.Head != nil {
			begun = one.Head.BegunAnew
			entries = slices.Concat(entries, one.Head.Open)
		}
		for _, e := range entries {
			e.Outcome = endOf(e, runs)
			if !view.EntryUntil(e).Before(o.from) && o.wants(e) {
				lines = append(lines, line{plan: one.object, entry: e, begun: begun})
			}
		}
	}
	if len(all) > 1 {
		slices.SortStableFunc(lines, func(a, b line) int { return view.EntryAt(a.entry).Compare(view.EntryAt(b.entry)) })
	}
	if o.limit > 0 {
		lines = lines[max(len(lines)-o.limit, 0):]
	}
	return lines
}

func (o *historyOptions) wants(e ledger.Entry) bool {
	return len(o.results) == 0 || slices.Contains(o.results, string(e.Result)) ||
		e.Outcome != nil && e.Result != run.Open && slices.Contains(o.results, string(e.Outcome.Phase))
}

// totals counts the ends of everything that a plan ever had.
func (o *historyOptions) totals(l *ledger.Ledger) {
	if text := print.Totals(l); text != "" {
		fmt.Fprintf(o.ErrOut, "in all: %s\n", text)
	}
}

func (o *historyOptions) table(lines []line) *metav1.Table {
	columns := []print.Column{{Name: "When"}, {Name: "Result"}, {Name: "Reason"}, {Name: "Run"}, {Name: "Outcome"}, {Name: "UTC", Wide: true}, {Name: "Actor", Wide: true}, {Name: "Message", Wide: true}}
	if o.name == "" {
		columns = slices.Insert(columns, 0, print.Column{Name: "Plan"})
	}
	t := print.NewTable(columns...)
	for _, l := range lines {
		e := l.entry
		message, end := "", outcome(e)
		if e.Outcome != nil {
			message = instant.InText(e.Outcome.Message, view.DocumentZone(l.plan, o.Zone))
		}
		if o.out.Format() != "wide" {
			end += because(e)
		}
		cells := []string{print.EntryWhen(e, view.DocumentZone(l.plan, o.Zone)), string(e.Result) + print.DryMark(e), e.Reason, e.Run, instant.InText(end, view.DocumentZone(l.plan, o.Zone)), instant.Local(view.EntryAt(e), time.UTC.String()), e.Who(), message}
		if o.name == "" {
			cells = slices.Insert(cells, 0, o.planName(l.plan))
		}
		print.AddRow(t, nil, cells...)
	}
	return t
}

func (o *historyOptions) planName(cm *corev1.ConfigMap) string {
	if o.everywhere {
		return cm.Namespace + "/" + cm.Name
	}
	return cm.Name
}

// endAborted is the reason of a run that somebody aborted.
const endAborted = "Aborted"

// saysWho says whether the message of an outcome is who ended the run, and why.
func saysWho(out ledger.Outcome) bool {
	return out.Reason == run.ReasonRejected || out.Reason == endAborted && out.Message != ""
}

// maxCell is how long a message is in the table, in bytes: a guess at what a screen shows beside the
// other columns. The wide table has all of it in a column of its own.
const maxCell = 120

// because is why the run of an entry did not succeed, or what others did while one ran that did, beside
// its outcome.
func because(e ledger.Entry) string {
	out := e.Outcome
	if out == nil || !out.Phase.Ended() || saysWho(*out) {
		return ""
	}
	return view.Colon(document.Cut(strings.ReplaceAll(out.Message, "\n", "; "), maxCell))
}

// outcome is how the run of an entry ended, in one line.
func outcome(e ledger.Entry) string {
	out := e.Outcome
	if out == nil {
		return cmp.Or(e.Said, slept(e))
	}
	text := string(out.Phase)
	if out.Phase.Ended() && out.Duration.Duration > 0 {
		text += " after " + instant.Approximate(out.Duration.Duration)
	}
	if out.Step != "" && out.Phase != run.Succeeded {
		text += ", step " + out.Step
	}
	for _, d := range out.Overrides {
		switch {
		case d.What == ledger.OverrideResumed:
			text += ", " + d.Said("resumed"+view.Prefix(" in step ", d.Step))
		case d.Step != "":
		case d.What == ledger.OverrideApproved:
			text += ", " + d.Said("approved")
		case d.What == ledger.OverrideBypass || d.What == ledger.OverrideOutsideWindow || d.What == ledger.OverrideAllowed:
			text += ", " + d.Said(d.What)
		}
	}
	if out.MoreOverrides > 0 {
		text += ", and " + view.Counted(int(out.MoreOverrides), "more decision")
	}
	if saysWho(*out) {
		text += ", " + out.Message
	}
	return text
}

// slept says what slept in a past off-window.
func slept(e ledger.Entry) string {
	if e.EndedAt != nil && len(e.Slept) == 0 {
		return "nothing slept"
	}
	var out []string
	for _, s := range e.Slept {
		out = append(out, fmt.Sprintf("%s: %d of kind %s slept, together %s", s.Target, s.Resources, s.Kind, instant.Approximate(time.Duration(s.Hours*float64(time.Hour)))))
	}
	return strings.Join(out, "; ")
}

// ledgerValues are entries for scripts. Their names are those of the runs: nothing else in a ledger
// has a name.
func ledgerValues(lines []line) []print.Value {
	items := make([]print.Value, len(lines))
	for i, l := range lines {
		e := l.entry
		items[i] = print.Value{Kind: "Ledger", Name: view.Prefix("configmap/", e.Run), Body: l.item()}
	}
	return items
}
