package ask

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/completion"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/watch"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// askRun writes an intent about a run on its plan, where a Role can allow it by name. An intent of
// the same kind that the agent has not handled is not overwritten, and an intent is not written
// beside its opposite for the same run.
func askRun(ctx context.Context, c *factory.Factory, k *factory.Cluster, r view.Run, intent, wanted, reason string, dry *factory.DryRun, opposites ...string) error {
	cm, err := watch.LivePlan(ctx, c, k, r)
	if err != nil {
		return err
	}
	actor := k.Actor(ctx)
	return k.Annotate(ctx, cm, dry, func(cm *corev1.ConfigMap) (factory.Change, error) {
		if other := cm.Annotations[intent]; other != "" && other != wanted {
			return nil, unhandled(cm, intent)
		}
		for _, key := range opposites {
			if name, _, _ := strings.Cut(cm.Annotations[key], "/"); name == r.Run.Name {
				return nil, unhandled(cm, key)
			}
		}
		return factory.Change{intent: factory.Value(wanted)}.Signed(intent, actor, reason), nil
	})
}

// planOf is the minimal description of a run's plan.
func planOf(r view.Run) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.Run.Namespace, Name: r.Run.Plan, UID: types.UID(r.Run.PlanUID)}}
}

// unhandled names the earlier intent that stands in the way, and its author.
func unhandled(cm *corev1.ConfigMap, intent string) error {
	by := ""
	if who := annotations.ActorOf(cm.Annotations, intent).Name; who != "" {
		by = " by " + who
	}
	return exit.Errorf(exit.CodeNotNow, "plan %s still has %s: %s%s, which the agent has not handled: try again in a moment, or remove that annotation", cm.Name, intent, cm.Annotations[intent], by)
}

type abortOptions struct {
	*factory.Factory
	factory.DryRun
	factory.Consent
	watch.Waiting
	name   string
	reason string
	faults exit.Faults
}

// NewAbort ends a run through its finally.
func NewAbort(c *factory.Factory) *cobra.Command {
	o := &abortOptions{Factory: c}
	cmd := &cobra.Command{
		Use:   "abort RUN|PLAN",
		Short: "End a run with its restore and finally",
		Long: `End a run. The step that is running is stopped, and the steps after it are skipped.
What restoreAfter covers is put back, and the steps under finally run. A run that has
not started ends without running a step. PLAN stands for its newest run. A trigger that
still waits, because its plan is paused or busy, is taken back.`,
		Example:           `  kubectl maint abort maint-run-orders-weekly-k2x7a --reason "wrong week" --yes`,
		RunE:              factory.RunE(o),
		ValidArgsFunction: completion.Both(completion.Runs(c, run.Pending, run.Running), completion.Kind(c, annotations.KindPlan, triggerWaits)),
	}
	o.DryRun.AddFlag(cmd)
	o.Consent.AddFlag(cmd)
	cmd.Flags().StringVar(&o.reason, "reason", "", "why; it is kept with the run")
	o.Waiting.AddFlags(cmd, "the run until it has ended")
	return cmd
}

func (o *abortOptions) Complete(_ *cobra.Command, args []string) error {
	o.name = factory.OneName(args, "RUN", &o.faults)
	return nil
}

// triggerWaits says whether the trigger of a plan waits, as far as its object shows.
func triggerWaits(m metav1.ObjectMeta) bool {
	return m.Annotations[annotations.Trigger] != "" && m.Annotations[annotations.Trigger] != m.Annotations[annotations.StatusTrigger]
}

func (o *abortOptions) Validate() error {
	o.DryRun.Check(&o.faults)
	o.Waiting.Check(&o.faults)
	return o.faults.Err()
}

func (o *abortOptions) Run(ctx context.Context) (err error) {
	ctx, done := watch.WithTimeout(ctx, o.Timeout)
	defer done(&err)
	k, err := o.Connect()
	if err != nil {
		return err
	}
	w, err := o.waiting(ctx, k)
	if err != nil {
		return err
	}
	if w != nil {
		return o.takeBack(ctx, k, w)
	}
	r, err := o.LiveRunOf(ctx, k, o.name)
	if err != nil {
		return err
	}
	if r.Journal.Phase.Ended() {
		return fmt.Errorf("run %s has ended already: %s", r.Run.Name, r.Journal.Phase)
	}
	if _, err := watch.LivePlan(ctx, o.Factory, k, r); err != nil { // before somebody is asked to confirm
		return err
	}
	if !o.Client() {
		if err := o.NeedAgent(ctx, k, factory.NothingAsked); err != nil {
			return err
		}
	}
	if o.Kept() {
		if err := o.Confirm(ctx, o.Consent, "abort run "+r.Run.Name); err != nil {
			return err
		}
	}
	if err := askRun(ctx, o.Factory, k, r, annotations.Abort, r.Run.Name, o.reason, &o.DryRun); err != nil {
		return err
	}
	if !o.Wait || !o.Kept() {
		return o.Report(o.IOStreams, false, "run/%s is being aborted%s", r.Run.Name, o.Mark())
	}
	if err := o.Report(o.IOStreams, true, "run/%s is being aborted", r.Run.Name); err != nil {
		return err
	}
	return waitForEnd(ctx, o.BesideOutput(&o.DryRun), k, r, func(j run.Journal) bool { return j.Phase == run.Aborted })
}

// waitForEnd shows a run until it has ended. An end that was asked for is the expected one, unless
// the run left something behind.
func waitForEnd(ctx context.Context, c *factory.Factory, k *factory.Cluster, r view.Run, asked func(run.Journal) bool) error {
	err := watch.FollowRun(ctx, c, k, planOf(r), r.Run.Name)
	end, readErr := k.Run(ctx, r.Run.Name)
	if readErr == nil && asked(end.Journal) && !end.Journal.CleanupFailed() {
		return nil
	}
	return err
}
