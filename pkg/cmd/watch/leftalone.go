package watch

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/print"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/stuck"
)

// LivePlan is the plan of a run, on which something is asked of the run. It may be gone, and the agent
// may leave the run alone: then nothing would come of it.
func LivePlan(ctx context.Context, c *factory.Factory, k *factory.Cluster, r view.Run) (*corev1.ConfigMap, error) {
	cm, err := k.ConfigMaps(r.Run.Namespace).Get(ctx, r.Run.Plan, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && string(cm.UID) != r.Run.PlanUID {
		return nil, fmt.Errorf("the plan of run %s is gone: the agent is ending the run; if it does not, delete the ConfigMap %s", r.Run.Name, r.Run.Name)
	}
	if err != nil {
		return nil, k.Explain("read plan "+r.Run.Plan, err)
	}
	return cm, LeftAlone(ctx, c, k, cm, r.Run.Name)
}

// LeftAlone is an error where the agent leaves a run of a plan alone: what is asked of it is not heard,
// and it does not end. Of a plan that is nil that is not known.
func LeftAlone(ctx context.Context, c *factory.Factory, k *factory.Cluster, plan *corev1.ConfigMap, name string) error {
	if plan == nil {
		return nil
	}
	why := view.LeftAlone(plan, name)
	if why == "" {
		return nil
	}
	cm, err := k.ConfigMaps(plan.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil || run.Phase(cm.Labels[annotations.LabelPhase]).Ended() {
		return nil //nolint:nilerr // it is gone, which others say, or cannot be read now
	}
	if agent, err := c.Agent(ctx, k); err == nil && view.Adopted(cm, why, agent.Key) {
		return nil
	}
	if stuck.ToAdopt(why) {
		why += ", which needs the right to read the agent's key"
	}
	return exit.Errorf(exit.CodeNotNow, "%s", print.New(c.Env, c.Zone).AgentText(why))
}
