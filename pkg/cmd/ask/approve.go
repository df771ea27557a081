package ask

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/completion"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/print"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/watch"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// answerOptions are those of approve and of reject.
type answerOptions struct {
	*factory.Factory
	factory.DryRun
	watch.Waiting
	intent, other string // the annotations of this answer and of the opposite one
	word          string // approved, rejected
	name, step    string
	reason        string
	faults        exit.Faults
}

// NewApprove approves a run, or a step of it, that waits for approval.
func NewApprove(c *factory.Factory) *cobra.Command {
	o := &answerOptions{Factory: c, intent: annotations.Approve, other: annotations.Reject, word: "approved"}
	return o.command("approve", "Approve a run, or a step of it, that waits for approval", `Approve a run that waits for approval before it begins, or a step of it that asks.
RUN alone is enough where one thing waits. Who may do this is who may annotate
the plan.`)
}

// NewReject rejects a run, or a step of it, that waits for approval.
func NewReject(c *factory.Factory) *cobra.Command {
	o := &answerOptions{Factory: c, intent: annotations.Reject, other: annotations.Approve, word: "rejected"}
	return o.command("reject", "Reject a run, or a step of it, that waits for approval", `Reject a run that waits for approval: it ends without a step, and its slot is
Skipped. A step that is rejected fails, and is not tried again: the run goes on
with onFailure and finally. RUN alone is enough where one thing waits.`)
}

func (o *answerOptions) command(verb, short, long string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   verb + " RUN[/STEP]",
		Short: short,
		Long:  long,
		Example: fmt.Sprintf(`  kubectl maint %[1]s maint-run-orders-weekly-k2x7a --reason "CHG-1234"
  kubectl maint %[1]s maint-run-orders-weekly-k2x7a/before-switch`, verb),
		RunE:              factory.RunE(o),
		ValidArgsFunction: completion.Questions(o.Factory),
	}
	o.DryRun.AddFlag(cmd)
	cmd.Flags().StringVar(&o.reason, "reason", "", "why; it is kept with the run")
	o.Waiting.AddFlags(cmd, "the run until it ends")
	return cmd
}

// Complete splits RUN/STEP.
func (o *answerOptions) Complete(_ *cobra.Command, args []string) error {
	o.name, o.step = view.SplitStep(factory.OneName(args, "RUN", &o.faults))
	return nil
}

// Validate checks the flags.
func (o *answerOptions) Validate() error {
	o.DryRun.Check(&o.faults)
	o.Waiting.Check(&o.faults)
	return o.faults.Err()
}

// Run writes the answer on the run's plan.
func (o *answerOptions) Run(ctx context.Context) (err error) {
	ctx, done := watch.WithTimeout(ctx, o.Timeout)
	defer done(&err)
	k, err := o.Connect()
	if err != nil {
		return err
	}
	r, err := o.LiveRunOf(ctx, k, o.name)
	if err != nil {
		return err
	}
	wanted, err := o.asked(r)
	if err != nil {
		return err
	}
	if !o.Client() {
		if err := o.NeedAgent(ctx, k, factory.NothingAsked); err != nil {
			return err
		}
		if err := watch.Looked(ctx, o.Factory, k, r); err != nil {
			return err
		}
	}
	if err := askRun(ctx, o.Factory, k, r, o.intent, wanted, o.reason, &o.DryRun, o.other); err != nil {
		return err
	}
	if o.intent == annotations.Approve && o.Kept() {
		sayStillWaits(ctx, o.Factory, k, r)
	}
	if !o.Wait || !o.Kept() {
		return o.Report(o.IOStreams, false, "run/%s %s%s", wanted, o.word, o.Mark())
	}
	if err := o.Report(o.IOStreams, true, "run/%s %s", wanted, o.word); err != nil {
		return err
	}
	return waitForEnd(ctx, o.BesideOutput(&o.DryRun), k, r, func(j run.Journal) bool { return o.endedBy(wanted, j) })
}

// endedBy says whether it is by a rejection that a run ended: of the run, or of a step of it.
func (o *answerOptions) endedBy(wanted string, j run.Journal) bool {
	if o.intent == annotations.Approve {
		return false
	}
	if _, path, isStep := strings.Cut(wanted, "/"); isStep {
		rec := j.Record(path)
		return j.Phase == run.Failed && rec != nil && rec.Approval != nil && !rec.Approval.Approved
	}
	return j.End != nil && j.End.Reason == run.ReasonRejected
}

// asked is the question that is answered, as the annotation names it.
func (o *answerOptions) asked(r view.Run) (string, error) {
	if o.step != "" {
		return o.askedStep(r)
	}
	switch open := view.Questions(r); len(open) {
	case 0:
		return "", exit.Errorf(exit.CodeNotNow, "run %s does not wait for approval: it is %s", r.Run.Name, print.New(o.Env, view.PlanZone(r.Run.Spec, o.Zone)).RunHead(r))
	case 1:
		return open[0], nil
	default:
		return "", exit.Errorf(exit.CodeUsage, "run %s waits for %d approvals: name one of %s", r.Run.Name, len(open), strings.Join(open, ", "))
	}
}

// stepOf finds a step by its path, or by its name if that is unique.
func stepOf(r view.Run, step string) (*run.Record, error) {
	paths := view.StepsNamed(r, step)
	switch said := r.Said("aborted"); {
	case said != nil:
		return nil, exit.Errorf(exit.CodeNotNow, "run %s: %s", r.Run.Name, said)
	case len(paths) == 0:
		return nil, fmt.Errorf("run %s has no step %q; it has %s", r.Run.Name, step, strings.Join(view.Paths(r), ", "))
	case len(paths) > 1:
		return nil, exit.Errorf(exit.CodeUsage, "run %s has %d steps %q: name one of %s", r.Run.Name, len(paths), step, strings.Join(paths, ", "))
	}
	return r.Journal.Record(paths[0]), nil
}

func (o *answerOptions) askedStep(r view.Run) (string, error) {
	rec, err := stepOf(r, o.step)
	if err != nil {
		return "", err
	}
	if !view.WaitsForAnswer(*rec) || r.Journal.Phase != run.Running {
		return "", exit.Errorf(exit.CodeNotNow, "step %s of run %s does not wait for approval: it is %s (type %s)", rec.Path, r.Run.Name, rec.Phase, rec.Type)
	}
	return r.Run.Name + "/" + rec.Path, nil
}
