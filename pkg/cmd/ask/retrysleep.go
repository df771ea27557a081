package ask

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/print"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/source"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/watch"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

// triggerable says whether a trigger of a HibernatePlan has an effect: it only retries failures.
func triggerable(m metav1.ObjectMeta) bool { return len(failedOf(m.Annotations)) > 0 }

// failedOf are the failed targets of a HibernatePlan; the plan itself if it is in Error without
// any.
func failedOf(notes map[string]string) []string {
	var out []string
	for _, t := range annotations.ReadTargets(notes[annotations.StatusTargets]) {
		waits := t.State == hibernate.Running && t.Attempts > 0
		if t.State == hibernate.Failed || t.State == hibernate.Aborted || waits {
			out = append(out, t.Target)
		}
	}
	if len(out) == 0 && notes[annotations.StatusPhase] == string(hibernate.InError) {
		out = append(out, "what it says of itself")
	}
	return out
}

// retrySleep retries at once what failed of a HibernatePlan.
func (o *triggerOptions) retrySleep(ctx context.Context, k *factory.Cluster, cm *corev1.ConfigMap) error {
	agent, _ := o.Agent(ctx, k)
	s := source.ReadSleeper(ctx, o.Factory, k, agent, cm)
	if err := o.checkSleep(ctx, k, s); err != nil {
		return err
	}
	token, actor := uuid.NewString(), k.Actor(ctx)
	var again []string
	err := k.Annotate(ctx, cm, &o.DryRun, func(cm *corev1.ConfigMap) (factory.Change, error) {
		again = failedOf(cm.Annotations)
		if len(again) == 0 {
			return nil, exit.Errorf(exit.CodeNotNow, "nothing of plan %s has failed (%s), so there is nothing to try again; %s or %s overrides its schedule", cm.Name, print.New(o.Env, s.Zone()).SleepHead(s), o.Suggest().Hibernate(cm.Name), o.Suggest().Wake(cm.Name))
		}
		return factory.Change{annotations.Trigger: factory.Value(token)}.Signed(annotations.Trigger, actor, o.reason), nil
	})
	if err != nil {
		return err
	}
	fmt.Fprint(o.ErrOut, o.words.waits)
	waits := o.Wait && o.Kept()
	if err := o.Report(o.IOStreams, waits, "hibernate-plan/%s is tried again: %s%s", cm.Name, strings.Join(again, ", "), o.Mark()); err != nil || !waits {
		return err
	}
	return watch.FollowSleep(ctx, o.BesideOutput(&o.DryRun), k, []watch.Awaited{{
		Object: cm, Key: annotations.StatusTrigger, Value: token, Phases: []hibernate.Phase{hibernate.Active, hibernate.Suspended, hibernate.Hibernated},
	}})
}

// checkSleep refuses options that make no sense for a HibernatePlan, and what the agent would
// refuse.
func (o *triggerOptions) checkSleep(ctx context.Context, k *factory.Cluster, s view.Sleeper) error {
	var f exit.Faults
	for flag, given := range map[string]bool{"--param": len(o.parameters.flags) > 0, "--outside-window": o.outsideWindow, "--dry-run": o.Mode == factory.RunMode} {
		if given {
			f.Add("%s is for the run of a plan; %s is a HibernatePlan: only its failed targets are tried again", flag, s.Name)
		}
	}
	slices.Sort(f)
	if err := f.Err(); err != nil {
		return err
	}
	if len(s.Faults) > 0 && s.Table == nil {
		return fmt.Errorf("plan %s is not valid, so that nothing would be tried:\n%w", s.Name, s.Faults)
	}
	if o.Client() {
		return nil
	}
	if err := o.NeedAgent(ctx, k, factory.NothingAsked); err != nil {
		return err
	}
	return o.notPaused(ctx, k, s.Object)
}
