package agent

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/config"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/status"
	"github.com/kubectl-maint/kubectl-maint/pkg/agentconfig"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

// conditions say what is wrong with the agent itself, or with the cluster that it is in. They
// stand on its configuration.
func (a *Agent) conditions() []metav1.Condition {
	all := append(a.keys.Condition(), a.controllers.freezes.Condition()...)
	if why := a.conn.Clock.SkewReason(); why != "" {
		all = append(all, status.ClockDoubt(why))
	}
	if a.options.DryRun {
		all = append(all, metav1.Condition{
			Type: agentconfig.DryRun, Status: metav1.ConditionTrue, Reason: "DryRun",
			Message: "the agent runs with --dry-run: it decides and records, but changes nothing outside of its own ConfigMaps, and carries no request for a node out",
		})
	}
	if p := a.actors.Load(); p != nil && p.checks.policies.unserved.Load() {
		all = append(all, metav1.Condition{
			Type: config.ConditionConfined, Status: metav1.ConditionFalse, Reason: "NoAdmissionPolicies",
			Message: "this API server has no ValidatingAdmissionPolicy (Kubernetes 1.30 and later do): nothing but its own code confines the agent's token, and whoever may write ConfigMaps may name anybody as an actor; after an upgrade of the cluster, run 'kubectl maint install --apply'",
		})
	}
	return all
}

// conditionsPause is how often it is looked whether they changed, which asks nobody.
const conditionsPause = 5 * time.Second

// followConditions has the configuration say so when they change: nothing else tells.
func (a *Agent) followConditions(ctx context.Context) {
	ticks := time.NewTicker(conditionsPause)
	defer ticks.Stop()
	for was := fmt.Sprint(a.conditions()); ; {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
		if is := fmt.Sprint(a.conditions()); is != was {
			was = is
			a.enqueuePlan(types.NamespacedName{Namespace: a.options.Namespace, Name: annotations.AgentConfigName})
		}
	}
}
