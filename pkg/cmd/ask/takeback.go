package ask

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
)

// waitingTrigger is a trigger that the agent has not handled, and the run that it asks for.
type waitingTrigger struct {
	plan       *corev1.ConfigMap
	token, run string
}

// waitingTriggerOf is the waiting trigger of a plan; nil: none.
func waitingTriggerOf(cm *corev1.ConfigMap) *waitingTrigger {
	if !view.TokenPending(cm, nil) {
		return nil
	}
	return &waitingTrigger{plan: cm, token: cm.Annotations[annotations.Trigger], run: view.AskedRun(cm)}
}

// waiting is the trigger that a name means: that of a plan without an active run, or the one that
// asks for a run of that name. nil: the name means a run, or nothing.
func (o *abortOptions) waiting(ctx context.Context, k *factory.Cluster) (*waitingTrigger, error) {
	cm, err := k.Document(ctx, o.name, annotations.KindRun, annotations.KindPlan)
	if asked := (*factory.AskedRunError)(nil); errors.As(err, &asked) {
		return o.notTakenUp(ctx, k, waitingTriggerOf(asked.Plan))
	}
	if err != nil || cm.Labels[annotations.LabelKind] == annotations.KindRun {
		return nil, nil //nolint:nilerr // looking for the run reports it
	}
	w, err := o.notTakenUp(ctx, k, waitingTriggerOf(cm))
	if w == nil || err != nil {
		return nil, err
	}
	active, err := k.RunsOf(ctx, cm, factory.ActiveOnly)
	if err != nil || len(active) == 0 {
		return w, err
	}
	fmt.Fprintf(o.ErrOut, "a trigger of plan %s waits, too: %s takes it back\n", cm.Name, o.Suggest().Abort(w.run))
	return nil, nil
}

// notTakenUp is the trigger, if the ledger does not know it either: the agent writes the ledger
// first.
func (o *abortOptions) notTakenUp(ctx context.Context, k *factory.Cluster, w *waitingTrigger) (*waitingTrigger, error) {
	if w == nil {
		return nil, nil
	}
	kept, err := k.Ledger(ctx, w.plan)
	if err != nil || view.TokenHandled(w.plan, kept.Head) {
		return nil, err
	}
	return w, nil
}

// takeBack removes a trigger that the agent has not handled. It needs no agent.
func (o *abortOptions) takeBack(ctx context.Context, k *factory.Cluster, w *waitingTrigger) error {
	if o.Kept() {
		if err := o.Confirm(ctx, o.Consent, "take back the trigger of plan "+w.plan.Name); err != nil {
			return err
		}
	}
	err := k.Annotate(ctx, w.plan, &o.DryRun, func(cm *corev1.ConfigMap) (factory.Change, error) {
		now := waitingTriggerOf(cm)
		switch {
		case now == nil:
			return nil, o.takenUp(w)
		case now.token != w.token:
			return nil, exit.Errorf(exit.CodeNotNow, "plan %s was triggered again meanwhile: %s takes that back", cm.Name, o.Suggest().Abort(now.run))
		}
		return factory.Change{annotations.Trigger: nil, annotations.TriggerOptions: nil}.Signed(annotations.Trigger, "", ""), nil
	})
	if err != nil {
		return err
	}
	if o.Kept() { // the agent may have claimed it at the same moment
		if now, err := o.notTakenUp(ctx, k, w); err == nil && now == nil {
			return o.takenUp(w)
		}
	}
	if o.reason != "" {
		fmt.Fprintln(o.ErrOut, "the reason is kept nowhere, since there is no run")
	}
	return o.Report(o.IOStreams, false, "the trigger of plan/%s is taken back%s", w.plan.Name, o.Mark())
}

func (o *abortOptions) takenUp(w *waitingTrigger) error {
	return exit.Errorf(exit.CodeNotNow, "the agent took up the trigger of plan %s meanwhile: %s ends its run", w.plan.Name, o.Suggest().Abort(w.run))
}
