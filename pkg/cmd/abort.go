package cmd

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// askRun writes an intent about a run on its plan, where a Role can allow it by
// name. An intent of the same kind that waits to be handled is not overwritten,
// and nothing is asked beside an opposite that stands for the same run.
func (c *cli) askRun(ctx context.Context, k *cluster, r aRun, intent, wanted, reason string, dry *dryRun, opposites ...string) error {
	cm, err := k.maps(r.run.Namespace).Get(ctx, r.run.Plan, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && string(cm.UID) != r.run.PlanUID {
		return fmt.Errorf("the plan of run %s is gone: the agent is ending the run; if it does not, delete the ConfigMap %s", r.run.Name, r.run.Name)
	}
	if err != nil {
		return plain("read plan "+r.run.Plan, err)
	}
	actor := k.actor(ctx)
	return k.annotate(ctx, cm, dry, func(cm *corev1.ConfigMap) (change, error) {
		if other := cm.Annotations[intent]; other != "" && other != wanted {
			return nil, unhandled(cm, intent)
		}
		for _, key := range opposites {
			if name, _, _ := strings.Cut(cm.Annotations[key], "/"); name == r.run.Name {
				return nil, unhandled(cm, key)
			}
		}
		return change{intent: value(wanted)}.signed(intent, actor, reason), nil
	})
}

// unhandled says that an intent stands in the way, and by whom it does.
func unhandled(cm *corev1.ConfigMap, intent string) error {
	by := ""
	if who := cm.Annotations[annotations.Actor(intent)]; who != "" {
		by = " by " + who
	}
	return exit(CodeNotNow, "plan %s still has %s: %s%s, which the agent has not handled: try again in a moment, or remove that annotation", cm.Name, intent, cm.Annotations[intent], by)
}

type abortOptions struct {
	*cli
	dryRun
	consent
	name    string
	reason  string
	wait    bool
	timeout time.Duration
	faults  faults
}

func newAbort(c *cli) *cobra.Command {
	o := &abortOptions{cli: c}
	cmd := &cobra.Command{
		Use:   "abort RUN",
		Short: "End a run through its finally",
		Long: `End a run. The step at work is stopped, the ones after it are skipped, what
restoreAfter promises is put back and finally runs. A run that has not started
ends without a step.`,
		Example:           `  kubectl maint abort maint-run-orders-weekly-k2x7a --reason "wrong week" --yes`,
		RunE:              run(o),
		ValidArgsFunction: c.completeRuns(plan.RunPending, plan.RunRunning),
	}
	o.dryRun.addFlag(cmd)
	o.consent.addFlag(cmd)
	cmd.Flags().StringVar(&o.reason, "reason", "", "why; it is kept with the run")
	cmd.Flags().BoolVar(&o.wait, "wait", false, "show the run until it has ended")
	cmd.Flags().DurationVar(&o.timeout, "timeout", 0, "how long to wait (exit code 124); 0 means for ever")
	return cmd
}

func (o *abortOptions) Complete(_ *cobra.Command, args []string) error {
	o.name = oneName(args, "RUN", &o.faults)
	return nil
}

func (o *abortOptions) Validate() error {
	o.dryRun.check(&o.faults)
	return o.faults.err()
}

func (o *abortOptions) Run(ctx context.Context) error {
	k, err := o.connect()
	if err != nil {
		return err
	}
	r, err := k.run(ctx, o.name)
	if err != nil {
		return err
	}
	if r.journal.Phase.Ended() {
		return fmt.Errorf("run %s has ended already: %s", r.run.Name, r.journal.Phase)
	}
	if !o.client() {
		if err := o.needAgent(ctx, k); err != nil {
			return err
		}
		if err := o.ask(ctx, o.consent, "abort run "+r.run.Name); err != nil {
			return err
		}
	}
	if err := o.askRun(ctx, k, r, annotations.Abort, r.run.Name, o.reason, &o.dryRun); err != nil {
		return err
	}
	if !o.wait || o.mark() != "" {
		fmt.Fprintf(o.Out, "run/%s is being aborted%s\n", r.run.Name, o.mark())
		return nil
	}
	return o.waitForEnd(ctx, k, r)
}

// waitForEnd shows the run until it has ended. That it ended Aborted is what was
// asked for, unless it left something behind.
func (o *abortOptions) waitForEnd(ctx context.Context, k *cluster, r aRun) error {
	ctx, cancel := withTimeout(ctx, o.timeout)
	defer cancel()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.run.Namespace, Name: r.run.Plan, UID: uidOf(r.run.PlanUID)}}
	err := o.followRun(ctx, k, cm, r.run.Name)
	end, readErr := k.run(ctx, r.run.Name)
	if readErr == nil && end.journal.Phase == plan.RunAborted && len(notPutBack(end)) == 0 {
		return nil
	}
	return err
}
