package ask

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/completion"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/instant"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/source"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/watch"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/trigger"
)

type rollbackOptions struct{ triggerOptions }

// NewRollback asks for a run that repeats an earlier run.
func NewRollback(c *factory.Factory) *cobra.Command {
	o := &rollbackOptions{triggerOptions: triggerOptions{Factory: c}}
	cmd := &cobra.Command{
		Use:   "rollback PLAN [--to RUN]",
		Short: "Run the steps of an earlier run again",
		Long: `Ask for a run that does what an earlier run of the plan did: its steps, its
templates and its parameters, whatever the plan says now. Without --to it is the
newest run that succeeded before the plan's newest run.

The plan itself is not changed: its next slot runs the plan as it stands. When
change is permitted, who approves, the account and the target are those of the plan
as it stands. A run that names another account or target is refused.

--dry-run, or --dry-run=client, shows what would differ and sends nothing;
--dry-run=server has the API server try what would be written, too; --dry-run=run
asks for a run that changes nothing.`,
		Example: `  kubectl maint rollback orders-weekly --dry-run
  kubectl maint rollback orders-weekly --reason "CHG-1234 broke login" --wait
  kubectl maint rollback orders-weekly --to maint-run-orders-weekly-k2x7a`,
		RunE:              factory.RunE(o),
		ValidArgsFunction: completion.Plans(c, nil),
	}
	f := cmd.Flags()
	f.StringVar(&o.asOf, "to", "", "the run to go back to; default: the newest that succeeded before the newest run")
	f.StringVar(&o.reason, "reason", "", "why; it is kept with the run")
	f.BoolVar(&o.outsideWindow, "outside-window", false, "do not wait for the maintenance window, unless the namespace is restrictive; needs --reason")
	o.AddRunMode(cmd, "client")
	o.AddOutput(cmd)
	o.Waiting.AddFlags(cmd, "the run until it ends")
	_ = cmd.RegisterFlagCompletionFunc("to", completion.RunsOfPlan(c, run.Succeeded, run.Failed, run.Aborted))
	return cmd
}

// Run finds the earlier run, shows it and the difference, and asks for the rollback.
func (o *rollbackOptions) Run(ctx context.Context) (err error) {
	ctx, done := watch.WithTimeout(ctx, o.Timeout)
	defer done(&err)
	k, err := o.Connect()
	if err != nil {
		return err
	}
	cm, err := k.Plan(ctx, o.name)
	if err != nil {
		return err
	}
	spec, err := validSpec(cm)
	if err != nil {
		return err
	}
	earlier, err := o.earlier(ctx, k, cm)
	if err != nil {
		return err
	}
	if err := o.mayRunAgain(ctx, k, cm, spec, earlier); err != nil {
		return err
	}
	o.asOf = earlier.Run.Name
	if !o.Kept() && o.Format() == "" {
		if err := o.showDifference(ctx, k, cm, spec, earlier.Run); err != nil {
			return err
		}
	}
	if !o.Client() {
		if err := o.willBeSeen(ctx, k, cm); err != nil {
			return err
		}
	}
	return o.ask(ctx, k, cm)
}

// earlier is the run of --to, or the newest successful one before the newest.
func (o *rollbackOptions) earlier(ctx context.Context, k *factory.Cluster, cm *corev1.ConfigMap) (view.Run, error) {
	if o.asOf != "" {
		return k.Run(ctx, o.asOf)
	}
	runs, err := k.RunsOf(ctx, cm)
	if err != nil {
		return view.Run{}, err
	}
	runs = slices.DeleteFunc(runs, func(r view.Run) bool { return r.Run.Request.DryRun })
	if len(runs) == 0 {
		return view.Run{}, factory.NotFoundError(fmt.Sprintf("plan %s has no run to go back to", cm.Name))
	}
	newest := runs[len(runs)-1]
	for _, r := range slices.Backward(runs[:len(runs)-1]) {
		if r.Journal.Phase == run.Succeeded {
			fmt.Fprintf(o.ErrOut, "back to run %s of %s, the newest that succeeded before %s (%s)\n", r.Run.Name, instant.Both(r.Run.Request.At, o.Zone), newest.Run.Name, newest.Journal.Phase)
			return r, nil
		}
	}
	return view.Run{}, factory.NotFoundError(fmt.Sprintf("plan %s has no run that succeeded before its newest, %s (%s): name one with --to, see %s", cm.Name, newest.Run.Name, newest.Journal.Phase, o.Suggest().History(cm.Name)))
}

// mayRunAgain refuses what the agent would refuse, as far as that is known here: the agent also
// checks its signature and its configuration.
func (o *rollbackOptions) mayRunAgain(ctx context.Context, k *factory.Cluster, cm *corev1.ConfigMap, spec plan.Spec, earlier view.Run) error {
	f := trigger.Facts{Plan: trigger.Plan{Name: cm.Name, UID: string(cm.UID), Spec: spec, Templates: source.TemplatesOf(ctx, o.Factory, k, cm.Namespace, spec)}}
	if why := f.CheckEarlier(earlier.Run, earlier.Journal); why != "" {
		return errors.New(why)
	}
	if faults := plan.CheckSnapshot(earlier.Run.Spec, earlier.Run.Templates); len(faults) > 0 {
		return fmt.Errorf("what run %s did is not valid by the rules of this version:\n%w", earlier.Run.Name, faults)
	}
	return nil
}

// snapshot is what a run does, in the form in which it is compared.
type snapshot struct {
	Parameters map[string]string            `json:"parameters,omitempty"`
	Spec       plan.Spec                    `json:"spec"`
	Templates  map[string]plan.TemplateSpec `json:"templates,omitempty"`
}

// showDifference shows the difference between the present plan and the rollback.
func (o *rollbackOptions) showDifference(ctx context.Context, k *factory.Cluster, cm *corev1.ConfigMap, spec plan.Spec, earlier run.Run) error {
	now := snapshot{Templates: source.TemplatesOf(ctx, o.Factory, k, cm.Namespace, spec)}
	now.Spec = plan.Tree{Spec: spec, Templates: now.Templates}.Defaulted()
	then := snapshot{Parameters: earlier.Request.Parameters, Spec: trigger.SpecAsOf(now.Spec, earlier.Spec), Templates: earlier.Templates}
	before, err := yaml.Marshal(now)
	if err != nil {
		return fmt.Errorf("show plan %s: %w", cm.Name, err)
	}
	after, err := yaml.Marshal(then)
	if err != nil {
		return fmt.Errorf("show run %s: %w", earlier.Name, err)
	}
	text, err := view.Difference("plan/"+cm.Name, string(before), "run/"+earlier.Name, string(after))
	if err != nil {
		return err
	}
	if text == "" {
		fmt.Fprintf(o.ErrOut, "nothing differs: plan %s does what run %s did\n", cm.Name, earlier.Name)
	}
	fmt.Fprint(o.Out, text)
	return nil
}
