package runs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/queue"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/targets"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/trigger"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

// endLabel takes a run's trigger label away, as the plan's account, in one write
// with the number of the request, on the state of the target that was read. It
// says whether the request is done with; a run does not end before.
func (c *Controller) endLabel(ctx context.Context, l *store.CachedRun) (bool, error) {
	if l.Run.Request.Kind != run.ByLabel || l.Run.Spec.Target == nil {
		return false, nil
	}
	for range 3 {
		object, err := c.readTarget(ctx, l)
		var gone targets.GoneError
		if errors.As(err, &gone) || client.UnknownKind(err) {
			return true, nil
		}
		if err != nil {
			return false, fmt.Errorf("take the label %s away: %w", l.Run.Request.Label, err)
		}
		others, err := c.labelSharers(ctx, l, object)
		if err != nil {
			return false, err
		}
		end := trigger.EndLabel(l.Run, object.Facts([]string{l.Run.Request.Label}), others)
		if !end.Write {
			return !others.Need, nil
		}
		err = c.patchLabel(ctx, l, object, end)
		if !apierrors.IsConflict(err) {
			return err == nil, err
		}
	}
	return false, queue.ErrConflict
}

// labelStays says, on the run and on its plan, that the API server does not let the
// label be taken away: for want of a right, by an admission policy, because the
// object would be too large, or because its cluster, which is another one, cannot be reached.
// It is tried again without end, but for an account that is missing: see leavesLabel.
func (c *Controller) labelStays(ctx context.Context, l *store.CachedRun, refusal error) error {
	elsewhere := l.Run.Spec.ConnectorRef != nil && !apierrors.IsConflict(refusal) && !errors.Is(refusal, client.ErrFenced)
	kind := executors.RefusalOf(refusal, l.Account().User())
	if !elsewhere && (kind == executors.NotRefused && !client.IsRejectedForGood(refusal) || kind == executors.RefusedAgent) {
		return refusal
	}
	waits := document.Cut(fmt.Sprintf("the label %s cannot be taken away: %s", l.Run.Request.Label, refusal), document.MaxMessage)
	if l.Journal.Waits == waits {
		return refusal
	}
	j := l.Journal
	j.Waits = waits
	if _, err := c.write(ctx, l, j); err != nil {
		return err
	}
	c.Telemetry.Events.Eventf(c.aboutRun(l), corev1.EventTypeWarning, "LabelStays", "Run %s cannot end: %s", l.Run.Name, waits)
	return refusal
}

// leavesLabel says whether a run ends without its label taken away: its account is missing for as long
// as a cleanup waits for one. The ledger keeps that the claim's label stays, so it asks for no other run.
func (c *Controller) leavesLabel(l *store.CachedRun, refusal error, now time.Time) bool {
	var elsewhere *client.NotReachedError
	missing := executors.RefusalOf(refusal, l.Account().User()) == executors.RefusedNoAccount ||
		errors.As(refusal, &elsewhere) && elsewhere.Outcome.Reason == executors.ReasonNoAccount
	return missing && l.Journal.Waits != "" && !now.Before(workflow.CleanupEnds(l.Journal, "", c.Scope.LeadingSince()))
}

// labelSharers says what other plans have to do with a run's request, about its target: by their live
// runs, and by their ledgers, which know a claim whose run is still to be made, the number of one whose
// run has ended, and whether the label still asks for one.
func (c *Controller) labelSharers(ctx context.Context, l *store.CachedRun, object *targets.Object) (trigger.LabelSharers, error) {
	var out trigger.LabelSharers
	request := l.Run.Request
	target := object.Facts([]string{request.Label})
	stands := target.UID == request.TargetUID && target.Labels[request.Label].Value == request.Value
	for _, o := range c.Stores.Runs.Filter(func(o *store.LiveRun) bool {
		return o.Head.PlanUID != l.Run.PlanUID && o.Head.Request.SameLabel(request)
	}) {
		out.Need = out.Need || o.Journal.Section != plan.SectionClosing
		out.Highest = max(out.Highest, o.Head.Request.Ordinal)
	}
	for _, other := range c.Stores.Documents.LabelPlans(object.Namespace, request.Label, *l.Run.Spec.Target, l.Run.PlanUID) {
		k := types.NamespacedName{Namespace: other.Object.Namespace, Name: other.Object.Name}
		led, err := c.Stores.Ledgers.Get(ctx, k, string(other.Object.UID))
		if errors.Is(err, annotations.ErrForeign) || errors.Is(err, annotations.ErrNewer) { // its plan decides nothing
			continue
		}
		if err != nil {
			return out, err
		}
		if led == nil {
			continue
		}
		unmade := func(e ledger.Entry) bool {
			one := types.NamespacedName{Namespace: k.Namespace, Name: e.Run}
			return e.Refused == "" && c.Stores.Runs.Live(one) == nil && !c.Stores.Runs.IsOrphan(one)
		}
		asks := stands && meets(other, *led, l.Run) && trigger.AsksByLabel(*led, request.Label, target)
		out.Need = out.Need || other.Valid && (asks || slices.ContainsFunc(led.OpenFor(request), unmade))
		out.Highest = max(out.Highest, led.NumberOf(request))
	}
	return out, nil
}

// meets says whether another plan comes to claim what a label on the target of a run asks for, sooner or
// later: it was ready with that object, or, where that was made anew, with the one of its name. One that
// never was may never be, and the label would stay for ever; so may one that the agent calls invalid.
func meets(other store.LabelPlan, led ledger.Ledger, r run.Run) bool {
	group := func(o *plan.ObjectRef) string { return schema.FromAPIVersionAndKind(o.APIVersion, o.Kind).Group }
	switch {
	case led.TargetReady == "", other.Object.Annotations[annotations.StatusPhase] == string(trigger.PhaseInvalid):
		return false
	case led.TargetReady == r.Request.TargetUID:
		return true
	}
	return other.Spec.ConnectorRef == nil && r.Spec.ConnectorRef == nil && group(other.Spec.Target) == group(r.Spec.Target)
}

func (c *Controller) patchLabel(ctx context.Context, l *store.CachedRun, object *targets.Object, end trigger.LabelEnd) error {
	metadata := map[string]any{
		"uid": object.UID, "resourceVersion": object.ResourceVersion,
		"annotations": map[string]any{annotations.Handled(l.Run.Request.Label): strconv.FormatInt(end.Number, 10)},
	}
	if end.Remove {
		metadata["labels"] = map[string]any{l.Run.Request.Label: nil}
	}
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return err
	}
	got, err := onTarget(ctx, c, l, true, func(ctx context.Context, from client.ClusterAccess) (*targets.Object, error) {
		to, err := from.Resource(*l.Run.Spec.Target)
		if err != nil {
			return nil, err
		}
		options := client.PatchOptions()
		options.FieldManager = annotations.PlanManager(l.Run.Namespace, l.Run.Plan)
		got, err := to.Patch(ctx, object.Name, types.MergePatchType, patch, options)
		if err != nil {
			return nil, err
		}
		return targets.Slim(got, from.Where()), nil
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err == nil {
		c.Stores.Expected.Expect(got.ObjectID(), got.ResourceVersion)
	}
	return err
}
