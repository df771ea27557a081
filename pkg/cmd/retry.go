package cmd

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

type retryOptions struct {
	*cli
	dryRun
	name    string
	reason  string
	wait    bool
	timeout time.Duration
	faults  faults
}

func newRetry(c *cli) *cobra.Command {
	o := &retryOptions{cli: c}
	cmd := &cobra.Command{
		Use:   "retry RUN",
		Short: "Run again what failed or was aborted",
		Long: `Ask for a new run of what a failed or aborted run was to do. It is for the
newest run of a plan, when none lives.`,
		Example:           `  kubectl maint retry maint-run-orders-weekly-k2x7a --wait`,
		RunE:              run(o),
		ValidArgsFunction: c.completeRuns(plan.RunFailed, plan.RunAborted),
	}
	o.dryRun.addFlag(cmd)
	cmd.Flags().StringVar(&o.reason, "reason", "", "why")
	cmd.Flags().BoolVar(&o.wait, "wait", false, "show the run until it ends")
	cmd.Flags().DurationVar(&o.timeout, "timeout", 0, "how long to wait (exit code 124); 0 means for ever")
	return cmd
}

func (o *retryOptions) Complete(_ *cobra.Command, args []string) error {
	o.name = oneName(args, "RUN", &o.faults)
	return nil
}

func (o *retryOptions) Validate() error {
	o.dryRun.check(&o.faults)
	return o.faults.err()
}

func (o *retryOptions) Run(ctx context.Context) error {
	ctx, cancel := withTimeout(ctx, o.timeout)
	defer cancel()
	k, err := o.connect()
	if err != nil {
		return err
	}
	r, err := k.run(ctx, o.name)
	if err != nil {
		return err
	}
	if err := o.possible(ctx, k, r); err != nil {
		return err
	}
	if err := o.askRun(ctx, k, r, annotations.Retry, r.run.Name, o.reason, &o.dryRun); err != nil {
		return err
	}
	name := annotations.RetryName(r.run.Plan, r.run.PlanUID, r.run.Name)
	if !o.wait || o.mark() != "" {
		fmt.Fprintf(o.Out, "run/%s requested%s\n", name, o.mark())
		return nil
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.run.Namespace, Name: r.run.Plan, UID: uidOf(r.run.PlanUID)}}
	return o.followRun(ctx, k, cm, name)
}

// possible refuses what the agent would not do.
func (o *retryOptions) possible(ctx context.Context, k *cluster, r aRun) error {
	if p := r.journal.Phase; p != plan.RunFailed && p != plan.RunAborted {
		return fmt.Errorf("run %s is %s: only a Failed or Aborted run can be retried", r.run.Name, p)
	}
	if r.journal.StartedAt == nil {
		return fmt.Errorf("run %s never started: ask for a new one with '%s trigger %s'", r.run.Name, o.Name, r.run.Plan)
	}
	live, err := k.runsOf(ctx, r.run.Namespace, r.run.Plan, liveOnly)
	if err != nil {
		return err
	}
	if len(live) > 0 {
		return exit(CodeNotNow, "run %s of the plan lives: wait for its end", live[0].run.Name)
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.run.Namespace, Name: r.run.Plan, UID: uidOf(r.run.PlanUID)}}
	ledger, _, err := k.ledger(ctx, cm)
	if err != nil {
		return err
	}
	if ledger != nil && ledger.Last != nil && ledger.Last.Name != r.run.Name {
		return fmt.Errorf("run %s is not the newest of its plan: that is %s (%s)", r.run.Name, ledger.Last.Name, ledger.Last.Phase)
	}
	if o.client() {
		return nil
	}
	return o.needAgent(ctx, k)
}

func uidOf(s string) types.UID { return types.UID(s) }
