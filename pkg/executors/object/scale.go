package object

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/api"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

const scaleSubresource = "scale"

// Scaler executes the step type scale, for every kind with a scale subresource. It needs get and
// patch on that subresource, and nothing on the object itself. It sets the number, and does not
// wait for pods.
type Scaler struct{ memory }

// Pass sets the replicas.
func (Scaler) Pass(ctx context.Context, call executors.Call) executors.Outcome {
	p, err := api.PropertiesAs[plan.ScaleProperties](call)
	if err != nil {
		return api.Outcome(ctx, call, err)
	}
	if p.Replicas == nil || *p.Replicas < 0 {
		return executors.Refuse(executors.ReasonInvalid, "replicas is missing or negative; write a whole number from 0")
	}
	o, err := api.Resolve(call, p.Resource)
	if err != nil {
		return api.Outcome(ctx, call, err)
	}
	live, err := readScale(ctx, o)
	if err != nil {
		return api.Outcome(ctx, call, err)
	}
	w := write{object: o, live: live, restoreAfter: p.RestoreAfter}
	w.patch = api.Patch{Type: types.MergePatchType, Subresource: scaleSubresource, Body: map[string]any{"spec": map[string]any{"replicas": *p.Replicas}}}
	w.changes = changesBetween(live.Object, set(live.Object, replicasPath(), raw(*p.Replicas, true), 0).(map[string]any))
	return w.pass(ctx, call)
}

// Restore restores the replicas if they are still what the step set.
func (Scaler) Restore(ctx context.Context, call executors.Call) executors.Outcome {
	p, err := api.PropertiesAs[plan.ScaleProperties](call)
	if err != nil {
		return api.Outcome(ctx, call, err)
	}
	if !p.RestoreAfter {
		return api.Done("the step asks for no restore")
	}
	return restore(ctx, call, p.Resource, scaleSubresource)
}

func replicasPath() fieldPath { return fieldPath{{Key: "spec"}, {Key: "replicas"}} }

// readScale reads the scale of an object. The API omits a zero, which counts here like any other
// number.
func readScale(ctx context.Context, o api.Object) (*unstructured.Unstructured, error) {
	live, err := o.Get(ctx, scaleSubresource)
	if api.IsUnserved(err) {
		return nil, api.Refuse(executors.ReasonInvalid, "%s: its kind has no scale subresource; use patch-object", o)
	}
	if err != nil {
		return nil, err
	}
	if _, found, _ := lookup(live.Object, replicasPath()); !found {
		live.Object = set(live.Object, replicasPath(), raw(int64(0), true), 0).(map[string]any)
	}
	return live, nil
}
