package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/queue"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/trigger"
)

// endLabel takes a run's trigger label away, as the plan's account, in one write
// with the number of the request, on the state of the target that was read. It
// says whether the request is done with; a run does not end before.
func (a *Agent) endLabel(ctx context.Context, l *liveRun) (bool, error) {
	if l.run.Request.Kind != run.ByLabel || l.run.Spec.Target == nil {
		return false, nil
	}
	for range 3 {
		u, err := a.readTarget(ctx, a.account(l), *l.run.Spec.Target)
		var gone errGone
		if errors.As(err, &gone) || client.UnknownKind(err) {
			return true, nil
		}
		if err != nil {
			return false, fmt.Errorf("take the label %s away: %w", l.run.Request.Label, err)
		}
		object := slimTarget(u)
		shared := a.sharesLabel(l)
		end := trigger.EndLabel(l.run, object.facts([]string{l.run.Request.Label}), shared)
		if !end.Write {
			return !shared, nil
		}
		err = a.patchLabel(ctx, l, object, end)
		if !apierrors.IsConflict(err) {
			return err == nil, err
		}
	}
	return false, queue.ErrConflict
}

// labelStays says, on the run and on its plan, that the API server does not let the
// label be taken away: for want of a right, by an admission policy, or because the
// object would be too large. It is tried
// again without end, for a label that stays would ask for another run.
func (a *Agent) labelStays(ctx context.Context, l *liveRun, refusal error) error {
	kind := executors.RefusalOf(refusal, a.account(l).User())
	if kind == executors.NotRefused && !neverTaken(refusal) || kind == executors.RefusedAgent {
		return refusal
	}
	waits := document.Cut(fmt.Sprintf("the label %s cannot be taken away: %s", l.run.Request.Label, refusal), document.MaxMessage)
	if l.journal.Waits == waits {
		return refusal
	}
	j := l.journal
	j.Waits = waits
	if _, err := a.write(ctx, l, j); err != nil {
		return err
	}
	a.events.Eventf(a.aboutRun(l), corev1.EventTypeWarning, "LabelStays", "Run %s cannot end: %s", l.run.Name, waits)
	a.planQueue.AddAfter(l.planKey(), settle)
	return refusal
}

// sharesLabel says whether another plan's live run answers the same request.
func (a *Agent) sharesLabel(l *liveRun) bool {
	return len(a.runs.where(func(o *liveRun) bool {
		return o.run.PlanUID != l.run.PlanUID && o.run.Request.Kind == run.ByLabel && o.run.Request.Label == l.run.Request.Label &&
			o.run.Request.TargetUID == l.run.Request.TargetUID && o.run.Request.Ordinal == l.run.Request.Ordinal && o.journal.Section != plan.SectionClosing
	})) > 0
}

func (a *Agent) patchLabel(ctx context.Context, l *liveRun, object *targetObject, end trigger.LabelEnd) error {
	metadata := map[string]any{
		"uid": object.UID, "resourceVersion": object.ResourceVersion,
		"annotations": map[string]any{annotations.Handled(l.run.Request.Label): strconv.FormatInt(end.Number, 10)},
	}
	if end.Remove {
		metadata["labels"] = map[string]any{l.run.Request.Label: nil}
	}
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return err
	}
	to, err := a.accounts.Resource(a.account(l), l.run.Name, *l.run.Spec.Target)
	if err != nil {
		return err
	}
	options := client.PatchOptions()
	options.FieldManager = annotations.PlanManager(l.run.Namespace, l.run.Plan)
	got, err := to.Patch(ctx, object.Name, types.MergePatchType, patch, options)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err == nil {
		a.targets.wrote.patched(got.GetUID(), got.GetResourceVersion())
	}
	return err
}
