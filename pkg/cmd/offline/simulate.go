package offline

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/instant"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/print"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/source"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/simulate"
)

// simulatedDays is the default length of a simulation (a guess: what fits on a screen).
const simulatedDays = 7

type simulateOptions struct {
	*factory.Factory
	files    []string
	from, to string
	outages  []string
	out      *print.Values
	span     simulate.Span
	away     []simulate.Span
	faults   exit.Faults
}

// NewSimulate simulates the agent.
func NewSimulate(c *factory.Factory) *cobra.Command {
	o := &simulateOptions{Factory: c, out: print.NewValues()}
	cmd := &cobra.Command{
		Use:   "simulate -f FILE|FOLDER|-",
		Short: "Simulate what the agent would decide, without a cluster",
		Long: `Show what the agent would decide in a period, slot by slot: what would run, be skipped
or be missed, and why. The agent's own code decides, on documents from files, with a
simulated clock; no cluster is asked.

The plans are created at --from. Their steps end at once, except suspend, which takes
its time. Approvals are given at once, and targets exist. The targets of a
HibernatePlan fall asleep and wake at once, and each off-window is a slot. A for-each
finds no objects, and watch triggers start nothing. During an --outage no agent is
running. The period includes --from and excludes --to. A time without a date is the
next one after --from; as the end of an outage, the next one after its start.`,
		Example: "  kubectl maint simulate -f examples/ --to 30d\n  kubectl maint simulate -f examples/ --from 2026-03-01 --to 2026-04-01 \\\n    --outage 2026-03-07T22:00:00Z/12h -o json",
		Args:    factory.NoNames,
		RunE:    factory.RunE(o),
	}
	cmd.Flags().StringSliceVarP(&o.files, "filename", "f", nil, "file or folder, or - for standard input")
	cmd.Flags().StringVar(&o.from, "from", "", "the first instant; default now")
	cmd.Flags().StringVar(&o.to, "to", "", fmt.Sprintf("the instant at which it ends; default %d days later", simulatedDays))
	cmd.Flags().StringArrayVar(&o.outages, "outage", nil, "a time without an agent, as FROM/TO; may be given more than once")
	o.out.AddFlags(cmd)
	return cmd
}

// Complete resolves the times.
func (o *simulateOptions) Complete(*cobra.Command, []string) error {
	o.span.From = o.Now()
	if o.from != "" {
		o.span.From = o.instant("--from", o.from, o.span.From)
	}
	o.span.To = o.span.From.AddDate(0, 0, simulatedDays)
	if o.to != "" {
		o.span.To = o.instant("--to", o.to, o.span.From)
	}
	for _, text := range o.outages {
		first, second, two := strings.Cut(text, "/")
		if !two {
			o.faults.Add("--outage %q: write it FROM/TO", text)
			continue
		}
		from := o.instant("--outage", first, o.span.From)
		o.away = append(o.away, simulate.Span{From: from, To: o.instant("--outage", second, from)})
	}
	return nil
}

func (o *simulateOptions) instant(flag, text string, now time.Time) time.Time {
	at, err := instant.Parse(text, now, o.Zone)
	if err != nil {
		o.faults.Add("%s: %v", flag, err)
	}
	return at
}

// Validate checks the flags.
func (o *simulateOptions) Validate() error {
	if len(o.files) == 0 {
		o.faults.Add("-f is missing: name a file or folder, or - for standard input")
	}
	o.out.Check(&o.faults)
	if len(o.faults) > 0 {
		return o.faults.Err()
	}
	if !o.span.To.After(o.span.From) {
		o.faults.Add("--to %s is not after --from %s", instant.Both(o.span.To, o.Zone), instant.Both(o.span.From, o.Zone))
	}
	for _, a := range o.away {
		if !a.To.After(a.From) {
			o.faults.Add("--outage ends at %s, which is not after its beginning %s", instant.Both(a.To, o.Zone), instant.Both(a.From, o.Zone))
		}
	}
	return o.faults.Err()
}

// Run simulates and prints.
func (o *simulateOptions) Run(ctx context.Context) error {
	w, err := source.Read(o.Factory, o.files)
	if err != nil {
		return err
	}
	plans, err := o.plans(w)
	if err != nil {
		return err
	}
	sleepers, err := o.sleepers(w)
	if err != nil {
		return err
	}
	fmt.Fprintf(o.ErrOut, "from %s to %s\n", instant.Both(o.span.From, o.Zone), instant.Both(o.span.To, o.Zone))
	for _, a := range o.away {
		fmt.Fprintf(o.ErrOut, "no agent runs from %s to %s\n", instant.Both(a.From, o.Zone), instant.Both(a.To, o.Zone))
	}
	out, err := play(ctx, simulate.Scenario{Plans: plans, Sleepers: sleepers, Resolver: w.Resolver, Span: o.span, Outages: o.away, NameOf: annotations.RunName})
	if err != nil {
		return err
	}
	for _, n := range out.Notes {
		fmt.Fprintln(o.ErrOut, "note: "+n)
	}
	if !o.out.Lines() {
		return o.printValues(out.Entries)
	}
	return o.printTable(out.Entries)
}

// play can be interrupted, since the interval may be very long.
func play(ctx context.Context, s simulate.Scenario) (out simulate.Outcome, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		out, err = simulate.Run(s)
	}()
	select {
	case <-ctx.Done():
		return simulate.Outcome{}, ctx.Err()
	case <-done:
		return out, err
	}
}

// plans are the plans of files, with the pauses above them.
func (o *simulateOptions) plans(w source.Set) ([]simulate.Plan, error) {
	first := map[string]string{}
	var out []simulate.Plan
	for _, p := range w.Plans {
		key := p.Namespace + "/" + p.Name
		if file, twice := first[key]; twice {
			return nil, fmt.Errorf("plan %s stands in %s and in %s: a cluster can have only one", key, file, p.Source.File)
		}
		first[key] = p.Source.File
		out = append(out, simulate.Plan{
			Namespace: p.Namespace, Name: p.Name, Spec: p.Spec, Intent: p.Intent, Pauses: w.PausesAbove(p.Namespace), Templates: p.Used.Templates,
		})
		o.sayUnready(w, key, p.Query())
		for _, f := range p.Used.Missing {
			fmt.Fprintf(o.ErrOut, "warning: %s; its steps count as done at once\n", f)
		}
	}
	if len(out)+len(w.Sleepers) == 0 {
		fmt.Fprintln(o.ErrOut, "warning: no plan was found in "+strings.Join(o.files, ", "))
	}
	return out, nil
}

// sleepers are the HibernatePlans of files, with their own pauses and those above them.
func (o *simulateOptions) sleepers(w source.Set) ([]simulate.Sleeper, error) {
	first := map[string]string{}
	for _, p := range w.Plans {
		first[p.Namespace+"/"+p.Name] = p.Source.File
	}
	var out []simulate.Sleeper
	for _, p := range w.Sleepers {
		key := p.Namespace + "/" + p.Name
		if file, twice := first[key]; twice {
			return nil, fmt.Errorf("plan %s stands in %s and in %s: a cluster can have only one", key, file, p.Source.File)
		}
		first[key] = p.Source.File
		if p.Spec.DryRun {
			fmt.Fprintf(o.ErrOut, "note: plan %s is a dry run (spec.dryRun): nothing is put to sleep\n", key)
			continue
		}
		o.sayUnready(w, key, p.Intent.Query(p.Namespace, p.Spec.Policies))
		out = append(out, simulate.Sleeper{
			Namespace: p.Namespace, Name: p.Name, Spec: p.Spec, Intent: p.Intent, Hold: p.Hold, Pauses: append(w.PausesAbove(p.Namespace), p.Intent.Pause),
		})
	}
	return out, nil
}

// sayUnready names the policies of a plan that permit nothing, since they are not ready: the entries
// have only not-ready as their reason.
func (o *simulateOptions) sayUnready(w source.Set, plan string, q policy.Query) {
	for _, ref := range w.Resolver.Uses(q) {
		if v := w.Resolver.Policy(ref.Namespace, ref.Name).Verdict(o.span.From); !v.Ready {
			fmt.Fprintf(o.ErrOut, "warning: plan %s: %s\n", plan, instant.InText(v.Why(), o.Zone))
		}
	}
}

// simulated is one entry in the machine's shape, see docs/cli.md.
type simulated struct {
	Plan      string `json:"plan"`
	Slot      string `json:"slot,omitempty"`
	Result    string `json:"result"`
	Reason    string `json:"reason,omitempty"`
	Run       string `json:"run,omitempty"`
	StartedAt string `json:"startedAt,omitempty"`
	WokenAt   string `json:"wokenAt,omitempty"`
}

func simulatedOf(e simulate.Entry) simulated {
	return simulated{
		Plan: e.Namespace + "/" + e.Plan, Slot: instant.UTC(e.Slot), Result: string(e.Result), Reason: e.Reason, Run: e.Run, StartedAt: instant.UTC(e.StartedAt), WokenAt: instant.UTC(e.WokenAt),
	}
}

func (o *simulateOptions) printValues(entries []simulate.Entry) error {
	items := make([]simulated, len(entries))
	for i, e := range entries {
		items[i] = simulatedOf(e)
	}
	return print.Items(o.out, o.Out, "LedgerList", items, func(i simulated) string { return strings.TrimSuffix(i.Plan+"@"+i.Slot, "@") })
}

func (o *simulateOptions) printTable(entries []simulate.Entry) error {
	if len(entries) == 0 {
		fmt.Fprintln(o.ErrOut, "no slot lies between")
		return nil
	}
	w := printers.GetNewTabWriter(o.Out)
	woken := slices.ContainsFunc(entries, func(e simulate.Entry) bool { return e.WokenAt != nil })
	fmt.Fprintln(w, "PLAN\tLOCAL\tUTC\tRESULT\tREASON\tSTARTED"+map[bool]string{true: "\tWOKEN"}[woken])
	total, none := map[run.Result]int{}, view.OrDash("")
	for _, e := range entries {
		zone := e.Zone
		if e.Slot == nil { // not started by a schedule
			zone = o.Zone
		}
		row := []string{e.Namespace + "/" + e.Plan, instant.LocalOr(e.Slot, zone, none), instant.LocalOr(e.Slot, time.UTC.String(), none), string(e.Result), view.OrDash(e.Reason), instant.LocalOr(e.StartedAt, zone, none)}
		if woken {
			row = append(row, instant.LocalOr(e.WokenAt, zone, none))
		}
		fmt.Fprintln(w, strings.Join(row, "\t"))
		total[e.Result]++
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(o.ErrOut, "%d ran, %d skipped, %d missed\n", total[run.Ran], total[run.Skipped], total[run.Missed])
	return nil
}
