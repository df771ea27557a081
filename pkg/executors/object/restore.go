package object

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/api"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// restore puts back the fields of a record that are still as the step wrote
// them, in the object or one of its subresources. It looks first, so that a
// restore which was interrupted after its write is done without another.
func restore(ctx context.Context, call executors.Call, ref plan.ResourceRef, subresource string) executors.Outcome {
	rec, err := recorded(call)
	if err != nil {
		return api.Outcome(ctx, call, err)
	}
	if rec == nil || call.DryRun {
		return api.Done("nothing was recorded, nothing to put back")
	}
	o, err := api.Resolve(call, ref)
	if err != nil {
		return api.Outcome(ctx, call, err)
	}
	live, err := read(ctx, o, subresource)
	if api.IsMissing(err) {
		return gone(o)
	}
	if err != nil {
		return api.Outcome(ctx, call, err)
	}
	if string(live.GetUID()) != rec.UID {
		return gone(o)
	}
	return writeBack(ctx, call, o, live, rec, subresource)
}

func read(ctx context.Context, o api.Object, subresource string) (*unstructured.Unstructured, error) {
	if subresource == scaleSubresource {
		return readScale(ctx, o)
	}
	return o.Get(ctx, subresource)
}

func writeBack(ctx context.Context, call executors.Call, o api.Object, live *unstructured.Unstructured, rec *record, subresource string) executors.Outcome {
	restored, put, left := putBack(live.Object, rec.Changes)
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
	if len(left) > 0 {
		out.Reason = executors.ReasonChangedMeanwhile
		out.Message = plan.Cut(fmt.Sprintf("%s; somebody changed %s meanwhile, which stays", out.Message, paths(left)), plan.MaxMessage)
		if len(put) == 0 {
			out.Message = plan.Cut(fmt.Sprintf("somebody changed %s of %s meanwhile, which stays", paths(left), o), plan.MaxMessage)
		}
	}
	return out
}
