package ask

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/completion"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/watch"
)

type retryOptions struct {
	*factory.Factory
	factory.DryRun
	watch.Waiting
	name   string
	given  string // as for trigger
	reason string
	waits  string // as for trigger
	faults exit.Faults
}

// NewRetry repeats what failed or was aborted.
func NewRetry(c *factory.Factory) *cobra.Command {
	o := &retryOptions{Factory: c}
	cmd := &cobra.Command{
		Use:   "retry RUN",
		Short: "Run a failed or aborted run again, from its first step",
		Long: `Ask for a new run with the parameters of a failed or aborted run. It runs all steps of
the plan as it is now; the retry of a rollback goes back to the same run. The failed run
has to be the newest of its plan, and no run of the plan may be active.`,
		Example:           `  kubectl maint retry maint-run-orders-weekly-k2x7a --wait`,
		RunE:              factory.RunE(o),
		ValidArgsFunction: completion.Retryable(c),
	}
	o.DryRun.AddFlag(cmd)
	cmd.Flags().StringVar(&o.reason, "reason", "", "why")
	o.Waiting.AddFlags(cmd, "the run until it ends")
	return cmd
}

func (o *retryOptions) Complete(cmd *cobra.Command, args []string) error {
	o.name, o.given = factory.OneName(args, "RUN", &o.faults), factory.GivenFlags(cmd.LocalNonPersistentFlags(), "reason")
	return nil
}

func (o *retryOptions) Validate() error {
	o.DryRun.Check(&o.faults)
	o.Waiting.Check(&o.faults)
	return o.faults.Err()
}

func (o *retryOptions) Run(ctx context.Context) (err error) {
	ctx, done := watch.WithTimeout(ctx, o.Timeout)
	defer done(&err)
	k, err := o.Connect()
	if err != nil {
		return err
	}
	r, err := o.RunOf(ctx, k, o.name)
	if err != nil {
		return err
	}
	if err := o.possible(ctx, k, r); err != nil {
		return err
	}
	if err := askRun(ctx, o.Factory, k, r, annotations.Retry, r.Run.Name, o.reason, &o.DryRun); err != nil {
		return err
	}
	fmt.Fprint(o.ErrOut, o.waits)
	name := annotations.RetryName(r.Run.Plan, r.Run.PlanUID, r.Run.Name)
	if !o.Wait || !o.Kept() {
		return o.ReportRun(o.IOStreams, false, name)
	}
	if o.Format() != "" {
		if err := o.ReportRun(o.IOStreams, false, name); err != nil {
			return err
		}
	}
	return watch.FollowRun(ctx, o.BesideOutput(&o.DryRun), k, planOf(r), name)
}

// possible refuses what the agent would refuse.
func (o *retryOptions) possible(ctx context.Context, k *factory.Cluster, r view.Run) error {
	if no := o.NoRetry(r, nil); no != "" { // whatever else runs
		return errors.New(no)
	}
	cm := planOf(r)
	live, err := k.RunsOf(ctx, cm, factory.ActiveOnly)
	if err != nil {
		return err
	}
	if len(live) > 0 {
		if _, err := watch.LivePlan(ctx, o.Factory, k, live[0]); err != nil {
			return err
		}
		return exit.Errorf(exit.CodeNotNow, "run %s of the plan is active: %s shows how far it is, %s ends it", live[0].Run.Name, o.Suggest().StatusOf(live[0].Run.Name), o.Suggest().Abort(live[0].Run.Name))
	}
	kept, err := k.Ledger(ctx, cm)
	if err != nil {
		return err
	}
	if no := o.NoRetry(r, kept.Head); no != "" {
		return errors.New(no)
	}
	is, err := watch.LivePlan(ctx, o.Factory, k, r)
	if err != nil {
		return err
	}
	if watch.TriggerWaits(ctx, k, is) {
		asked := view.AskedRun(is)
		return exit.Errorf(exit.CodeNotNow, "run %s of the plan is asked for already, and has not begun: %s shows what it waits for, %s takes its trigger back; nothing was asked", asked, o.Suggest().Why(is.Name), o.Suggest().Abort(asked))
	}
	if _, err := validSpec(is); err != nil || o.Client() {
		return err
	}
	asked := r.Run.Request
	request := triggerOptions{Factory: o.Factory, Waiting: o.Waiting, reason: o.reason, asOf: asked.AsOf, words: words{given: o.given + factory.FlagsAsAsked(asked)}} // the agent takes it up as a trigger
	err = request.willBeSeen(ctx, k, is)
	if o.waits = request.words.waits; err != nil {
		return err
	}
	return watch.Looked(ctx, o.Factory, k, r)
}
