package object

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/api"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// Keys adds labels or annotations to an object, or removes them. It needs get
// and patch on the object's kind.
type Keys struct {
	memory
	field string
}

// Labels executes the step type label.
func Labels() Keys { return Keys{field: "labels"} }

// Annotations executes the step type annotate.
func Annotations() Keys { return Keys{field: "annotations"} }

// keysWanted are the keys of a step of either type.
type keysWanted struct {
	object       plan.ResourceRef
	keys         map[string]*string // nil: the key is to be removed
	restoreAfter bool
}

// Pass sets and removes keys in one merge patch.
func (k Keys) Pass(ctx context.Context, call executors.Call) executors.Outcome {
	want, err := k.wanted(call)
	if err != nil {
		return api.Outcome(ctx, call, err)
	}
	o, err := api.Resolve(call, want.object)
	if err != nil {
		return api.Outcome(ctx, call, err)
	}
	live, err := o.Get(ctx, "")
	if err != nil {
		return api.Outcome(ctx, call, err)
	}
	w := write{object: o, live: live, uid: want.uid(call), restoreAfter: want.restoreAfter, patch: api.Patch{Type: types.MergePatchType}}
	w.changes = changesBetween(live.Object, k.with(live.Object, want.keys))
	w.patch.Body = k.patch(want.keys)
	return w.pass(ctx, call)
}

// Restore restores the keys that still have the values that the step wrote.
func (k Keys) Restore(ctx context.Context, call executors.Call) executors.Outcome {
	want, err := k.wanted(call)
	if err != nil {
		return api.Outcome(ctx, call, err)
	}
	if !want.restoreAfter {
		return api.Done("the step asks for no restore")
	}
	return restore(ctx, call, want.object, "")
}

func (k Keys) wanted(call executors.Call) (keysWanted, error) {
	var w keysWanted
	var operation string
	var keys any
	var object *plan.ResourceRef
	if k.field == "labels" {
		p, err := api.PropertiesAs[plan.LabelProperties](call)
		if err != nil {
			return w, err
		}
		operation, keys, object, w.restoreAfter = p.Operation, p.Labels, p.Object, p.RestoreAfter
	} else {
		p, err := api.PropertiesAs[plan.AnnotateProperties](call)
		if err != nil {
			return w, err
		}
		operation, keys, object, w.restoreAfter = p.Operation, p.Annotations, p.Object, p.RestoreAfter
	}
	var ok bool
	if w.keys, ok = readKeys(operation, keys); !ok {
		return w, api.Refuse(executors.ReasonInvalid, "%s: write operation: add with a map, or operation: remove with a list of keys", k.field)
	}
	switch {
	case object != nil:
		w.object = *object
	case call.Target.Object != nil:
		w.object = plan.ResourceRef{APIVersion: call.Target.Object.APIVersion, Kind: call.Target.Object.Kind, Name: call.Target.Object.Name}
	default:
		return w, api.Refuse(executors.ReasonInvalid, "object is missing, and the plan has no target to default to")
	}
	return w, nil
}

// uid is the object that the run holds, if the step works on the target.
func (w keysWanted) uid(call executors.Call) string {
	t := call.Target.Object
	if t != nil && w.object == (plan.ResourceRef{APIVersion: t.APIVersion, Kind: t.Kind, Name: t.Name}) {
		return call.Target.UID
	}
	return ""
}

// readKeys reads a map of keys to add, or a list of keys to remove. A template may have produced a
// number or a boolean: it is written as text, as YAML would have it.
func readKeys(operation string, keys any) (map[string]*string, bool) {
	out := map[string]*string{}
	switch keys := keys.(type) {
	case map[string]any:
		for key, value := range keys {
			switch value.(type) {
			case string, bool, int64, float64, json.Number:
				text := fmt.Sprint(value)
				out[key] = &text
			default:
				return nil, false
			}
		}
		return out, operation == "add" && len(out) > 0
	case []any:
		for _, item := range keys {
			key, ok := item.(string)
			if !ok {
				return nil, false
			}
			out[key] = nil
		}
		return out, operation == "remove" && len(out) > 0
	}
	return nil, false
}

// with is the object with its keys as wanted.
func (k Keys) with(live map[string]any, want map[string]*string) map[string]any {
	var out any = live
	for key, value := range want {
		at := fieldPath{{Key: "metadata"}, {Key: k.field}, {Key: key}}
		if value != nil {
			out = set(out, at, raw(*value, true), 0)
		} else if _, found, _ := lookup(out, at); found {
			out = set(out, at, nil, 0)
		}
	}
	return out.(map[string]any)
}

func (k Keys) patch(want map[string]*string) map[string]any {
	keys := map[string]any{}
	for key, value := range want {
		keys[key] = nil
		if value != nil {
			keys[key] = *value
		}
	}
	return map[string]any{"metadata": map[string]any{k.field: keys}}
}
