package watch

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/print"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/remedy"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
)

// ReadyForToken waits until the agent has looked at the plan and has handled an earlier token: a token that
// is there when the agent first sees a plan is only recorded, and one that is overwritten is lost.
func ReadyForToken(ctx context.Context, c *factory.Factory, k *factory.Cluster, cm *corev1.ConfigMap) (*corev1.ConfigMap, error) {
	return looked(ctx, c, k, cm, func(cm *corev1.ConfigMap) string { return TokenWaitsFor(ctx, c, k, cm) })
}

// Looked waits until the agent has looked at the plan of a run: one that never does takes up nothing that is
// asked on it.
func Looked(ctx context.Context, c *factory.Factory, k *factory.Cluster, r view.Run) error {
	cm, err := LivePlan(ctx, c, k, r)
	if err == nil {
		_, err = looked(ctx, c, k, cm, unseen)
	}
	return err
}

// looked waits until nothing is missing of a plan that the agent has to do before something can be asked.
func looked(ctx context.Context, c *factory.Factory, k *factory.Cluster, cm *corev1.ConfigMap, waitsFor func(*corev1.ConfigMap) string) (*corev1.ConfigMap, error) {
	if waitsFor(cm) == "" {
		return cm, nil
	}
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	w, err := ConfigMaps(inner, k, cm.Namespace, ByName(cm.Name))
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(c.ErrOut, "waiting for the agent: %s%s\n", waitsFor(cm), view.Prefix("; ", neededBefore(ctx, c.Env, k, cm)))
	agent, tick, late := c.WatchAgent(k), time.NewTicker(time.Second), time.NewTimer(factory.AgentTimeout)
	defer tick.Stop()
	defer late.Stop()
	for {
		now := w.ConfigMap(cm.Namespace, cm.Name)
		if now == nil || now.UID != cm.UID {
			return nil, fmt.Errorf("plan %s was deleted meanwhile", cm.Name)
		}
		missing := waitsFor(now)
		if missing == "" {
			return now, nil
		}
		select {
		case <-ctx.Done():
			return nil, EndedEarly(ctx, "nothing was asked: "+missing)
		case <-w.Changed:
		case <-tick.C:
			if err := agent.Check(ctx, "nothing was asked: "+missing); err != nil {
				return nil, err
			}
		case <-late.C:
			if !agent.IsLate(ctx) {
				return nil, notReadyForToken(ctx, c, k, now, missing)
			}
			late.Reset(factory.SilentEvery)
		}
	}
}

// TokenWaitsFor says what a new token has to wait for.
func TokenWaitsFor(ctx context.Context, c *factory.Factory, k *factory.Cluster, cm *corev1.ConfigMap) string {
	if missing := unseen(cm); missing != "" {
		return missing
	}
	if !view.TokenPending(cm, nil) {
		return ""
	}
	if kept, err := k.Ledger(ctx, cm); err == nil && view.TokenHandled(cm, kept.Head) {
		return ""
	}
	return "an earlier trigger of plan " + cm.Name + " is not handled yet" + view.Colon(c.AgentText(cm.Annotations[annotations.StatusMessage], c.Zone))
}

// neededBefore says what the active runs of a plan need from somebody before another can begin; empty: nothing
// that can be seen, or the agent has not looked at the plan.
func neededBefore(ctx context.Context, env factory.Env, k *factory.Cluster, cm *corev1.ConfigMap) string {
	if unseen(cm) != "" {
		return ""
	}
	runs, _ := k.RunsOf(ctx, cm, factory.ActiveOnly)
	for _, r := range runs {
		for _, need := range print.New(env, env.Zone).RunNeeds(view.Answered(r, cm)) {
			return need.What + ": " + need.Remedy
		}
	}
	return ""
}

// unseen says that the agent has not looked at a plan; empty: it has.
func unseen(cm *corev1.ConfigMap) string {
	if cm.Annotations[annotations.StatusObserved] != "" {
		return ""
	}
	return "it has not looked at plan " + cm.Name + " yet"
}

func notReadyForToken(ctx context.Context, c *factory.Factory, k *factory.Cluster, cm *corev1.ConfigMap, missing string) error {
	if cm.Annotations[annotations.StatusObserved] == "" {
		return exit.Errorf(exit.CodeNoAgent, "the agent does not look at plan %s, and nothing was asked: it is too old, or does not watch namespace %s; %s", cm.Name, cm.Namespace, UpgradeAgent(ctx, c, k))
	}
	return exit.Errorf(exit.CodeNotNow, "%s; nothing was asked", missing)
}

// UpgradeAgent says how to upgrade an agent that does not react; where it is not known, that of the default
// namespace.
func UpgradeAgent(ctx context.Context, c *factory.Factory, k *factory.Cluster) string {
	agent, _ := c.Agent(ctx, k)
	return remedy.Upgrade(c.Suggest(), agent.Namespace)
}
