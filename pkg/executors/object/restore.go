package object

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/api"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// restore restores the fields of a record that still have the values that the step wrote, in the
// object or one of its subresources. It reads first: a restore that was interrupted after its write
// is done without another.
func restore(ctx context.Context, call executors.Call, ref plan.ResourceRef, subresource string) executors.Outcome {
	rec, err := recorded(call)
	if err != nil {
		return api.Outcome(ctx, call, err)
	}
	if rec == nil || call.DryRun {
		return api.Done("nothing was recorded, nothing to put back")
	}
	o, err := api.ResolveRecorded(call, ref)
	if err != nil {
		return api.Outcome(ctx, call, err)
	}
	live, err := read(ctx, o, subresource)
	if api.IsMissing(err) && call.Now.Before(call.Recorded.RecoveredAt.Add(executors.RestoreTimeout)) {
		out := api.Waiting(o.Watch(""), "%s is not there yet; the run came out of a backup, and it may still follow", o)
		out.WakeAt = call.Recorded.RecoveredAt.Add(executors.RestoreTimeout)
		return out
	}
	if api.IsMissing(err) {
		return gone(o)
	}
	if err != nil {
		return api.Outcome(ctx, call, err)
	}
	if string(live.GetUID()) != rec.UID && !follows(call, live, rec) {
		return replaced(o)
	}
	return writeBack(ctx, call, o, live, rec, subresource)
}

// follows says whether an object was restored from a backup together with its run: it is as the
// step left it, or restored since.
func follows(call executors.Call, live *unstructured.Unstructured, rec *record) bool {
	s := standingOf(live.Object, rec.Changes)
	return !call.Recorded.RecoveredAt.IsZero() && (s.applied || s.untouched)
}

func read(ctx context.Context, o api.Object, subresource string) (*unstructured.Unstructured, error) {
	if subresource == scaleSubresource {
		return readScale(ctx, o)
	}
	return o.Get(ctx, subresource)
}

func writeBack(ctx context.Context, call executors.Call, o api.Object, live *unstructured.Unstructured, rec *record, subresource string) executors.Outcome {
	changes, others := effectiveChanges(call, rec)
	restored, put, left := putBack(live.Object, changes)
	if out, waits := mayArrive(call, o); waits && len(put)+len(left)+len(others) == 0 {
		return out
	}
	out := api.Done("%s is as it was before", o)
	if len(put) > 0 {
		patch := api.Patch{Type: types.MergePatchType, Body: mergePatch(live.Object, restored), Subresource: subresource}
		_, err := o.Patch(ctx, live, patch)
		if api.IsMissing(err) {
			return gone(o)
		}
		if err != nil {
			return api.Outcome(ctx, call, err)
		}
		out = changed(o, "put back "+paths(put), "put back %s of %s", paths(put), o)
	}
	if len(others) > 0 {
		out.Reason = executors.ReasonHanded
		out.Message = handed(out.Message, len(put) > 0, o, others)
	}
	if len(left) > 0 {
		out.Reason = executors.ReasonChangedMeanwhile
		stays := fmt.Sprintf("somebody changed %s of %s meanwhile, which stays", paths(left), o)
		if len(put)+len(others) > 0 {
			stays += "; " + out.Message
		}
		out.Message = document.Cut(stays, document.MaxMessage)
	}
	return out
}

// mayArrive waits for a write that nobody saw answered, of an object that is as it was before the step.
// The version that it carries does not refuse it: nothing else was written since.
func mayArrive(call executors.Call, o api.Object) (executors.Outcome, bool) {
	late := executors.Late(call.Recorded.InterruptedAt, call.Now)
	if late == nil {
		return executors.Outcome{}, false
	}
	out := api.Waiting(o.Watch(""), "%s is as it was before; the step ended in the middle of a write, which may still arrive until %s", o, late.Until.UTC().Format(time.RFC3339))
	out.WakeAt = late.Until
	return out, true
}

// handed describes the fields that are left to runs above this one.
func handed(message string, put bool, o api.Object, left map[string]string) string {
	var parts []string
	for _, path := range slices.Sorted(maps.Keys(left)) {
		parts = append(parts, fmt.Sprintf("%s of %s is left to run %s, which set it since and puts it back", path, o, left[path]))
	}
	text := strings.Join(parts, "; ")
	if put {
		text = message + "; " + text
	}
	return document.Cut(text, document.MaxMessage)
}

// memory says what the executors of this package recorded.
type memory struct{}

// Found describes for people what would be restored: spec.replicas: 7 of Deployment shop/orders.
func (memory) Found(before json.RawMessage) string {
	var rec record
	if json.Unmarshal(before, &rec) != nil || rec.Object == nil || len(rec.Changes) == 0 {
		return ""
	}
	hide := holdsSecrets(schema.FromAPIVersionAndKind(rec.Object.APIVersion, rec.Object.Kind).GroupKind(), rec.Changes)
	var parts []string
	for _, c := range rec.Changes {
		if !c.Made && len(parts) < 3 { // a guess: for more, people look at the run
			parts = append(parts, fmt.Sprintf("%s: %s", c.Path, shown(c.Before, hide)))
		}
	}
	object := rec.Object.String()
	if rec.Object.Namespace != "" {
		object = fmt.Sprintf("%s %s/%s", rec.Object.Kind, rec.Object.Namespace, rec.Object.Name)
	}
	return document.Cut(strings.Join(parts, ", ")+" of "+object, document.MaxMessage/2)
}

// IsRestored says whether everything is restored, or there is nothing left to restore. It writes
// nothing.
func (memory) IsRestored(ctx context.Context, call executors.Call) (bool, error) {
	rec, err := recorded(call)
	if err != nil || rec == nil || rec.Object == nil {
		return false, err
	}
	o, err := api.ResolveRecorded(call, *rec.Object)
	if err != nil {
		return false, err
	}
	live, err := read(ctx, o, rec.Subresource)
	if api.IsMissing(err) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return string(live.GetUID()) != rec.UID || standingOf(live.Object, rec.Changes).untouched, nil
}
