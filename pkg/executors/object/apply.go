package object

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/api"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// Applier executes the step type apply-object: a server-side apply as the plan's single field
// manager, then the removal of fields that should not be there. It needs get and patch on the
// object's kind, and create where the object does not exist.
//
// As with a patch, the API server decides what an apply changes: its dry run is compared with the
// live object, and an apply that changes nothing is not sent.
type Applier struct{}

// Pass applies the object and removes fields, unless nothing would change.
func (Applier) Pass(ctx context.Context, call executors.Call) executors.Outcome {
	out, err := applyPass(ctx, call)
	return api.Finish(ctx, call, out, err)
}

func applyPass(ctx context.Context, call executors.Call) (executors.Outcome, error) {
	a, err := applicationOf(call)
	if err != nil {
		return executors.Outcome{}, err
	}
	a.live, err = a.object.Get(ctx, "")
	if err != nil && !api.IsMissing(err) {
		return executors.Outcome{}, err
	}
	if api.IsMissing(err) {
		a.live = nil
	}
	want, err := a.apply(ctx, call, true)
	if err != nil {
		return executors.Outcome{}, err
	}
	if err := fieldsAlone(want.Object, a.remove); err != nil {
		return executors.Outcome{}, err
	}
	if call.DryRun {
		return a.rehearse(ctx, want)
	}
	return a.perform(ctx, call, want)
}

// application is one apply-object step and its live object.
type application struct {
	object api.Object
	body   map[string]any
	force  bool
	remove []pointer
	live   *unstructured.Unstructured // nil: it does not exist
}

// absence is what a step records that will create its object, so that after a crash its own object
// is not taken for one that existed before.
type absence struct {
	Absent bool `json:"absent"`
}

func applicationOf(call executors.Call) (application, error) {
	p, err := api.PropertiesAs[plan.ApplyProperties](call)
	if err != nil {
		return application{}, err
	}
	a := application{force: p.Force}
	given := &unstructured.Unstructured{Object: p.Object}
	ref := plan.ResourceRef{APIVersion: given.GetAPIVersion(), Kind: given.GetKind(), Name: given.GetName(), Namespace: given.GetNamespace()}
	if ref.APIVersion == "" || ref.Kind == "" || ref.Name == "" {
		return a, api.Refuse(executors.ReasonInvalid, "object: needs apiVersion, kind and metadata.name, has %q, %q and %q", ref.APIVersion, ref.Kind, ref.Name)
	}
	if err := appliable(p.Object); err != nil {
		return a, err
	}
	if a.object, err = api.Resolve(call, ref); err != nil {
		return a, err
	}
	if a.remove, err = pointers(p.Remove, p.Object); err != nil {
		return a, err
	}
	a.body = placed(p.Object, a.object.Namespace)
	return a, nil
}

// appliable refuses what lint cannot see before templates are expanded.
func appliable(object map[string]any) error {
	if where := nullAt("object", object); where != "" {
		return api.Refuse(executors.ReasonInvalid, "%s is null, which removes nothing under server-side apply: name the field in remove", where)
	}
	meta, _ := object["metadata"].(map[string]any)
	for _, field := range []string{"managedFields", "resourceVersion", "uid", "generation", "creationTimestamp"} {
		if _, given := meta[field]; given {
			return api.Refuse(executors.ReasonInvalid, "object.metadata.%s is the API server's and cannot be applied", field)
		}
	}
	return nil
}

// nullAt is the path of a null, if the object has one.
func nullAt(path string, v any) string {
	switch v := v.(type) {
	case nil:
		return path
	case map[string]any:
		for _, key := range sortedKeys(v) {
			if where := nullAt(path+"."+key, v[key]); where != "" {
				return where
			}
		}
	case []any:
		for i, item := range v {
			if where := nullAt(fmt.Sprintf("%s[%d]", path, i), item); where != "" {
				return where
			}
		}
	}
	return ""
}

// placed is the object with its namespace, without one if it is cluster-scoped.
func placed(object map[string]any, namespace string) map[string]any {
	out := maps.Clone(object)
	meta := maps.Clone(object["metadata"].(map[string]any))
	delete(meta, "namespace")
	if namespace != "" {
		meta["namespace"] = namespace
	}
	out["metadata"] = meta
	return out
}

func (a application) apply(ctx context.Context, call executors.Call, dryRun bool) (*unstructured.Unstructured, error) {
	after, err := a.object.Apply(ctx, a.live, api.Apply{Body: a.body, Force: a.force, DryRun: dryRun})
	if owners := api.OwnersOf(err); owners != "" {
		return nil, api.Refuse("FieldConflict", "%s: somebody else owns what this step would change: %s; leave these fields out of object, or take them with force: true", a.object, owners)
	}
	if apierrors.IsForbidden(err) && a.live == nil {
		// An apply that creates needs two rights, and the refusal is the same for both.
		if may, asked := api.May(ctx, call, a.object.Action("patch", "")); asked == nil && may {
			err = api.Failed(a.object.Action("create", ""), errors.Unwrap(err))
		}
	}
	return after, err
}

// rehearse is the outcome of a dry run. Removals are tried on the live object.
func (a application) rehearse(ctx context.Context, want *unstructured.Unstructured) (executors.Outcome, error) {
	before := map[string]any{}
	if a.live != nil {
		before = a.live.Object
		if _, err := a.without(ctx, a.live, true); err != nil {
			return executors.Outcome{}, err
		}
	}
	_, after := removals(want.Object, a.remove)
	changes := changesBetween(before, after)
	if len(changes) == 0 {
		return api.Done("dry run: %s is so already", a.object), nil
	}
	verb := "change"
	if a.live == nil {
		verb = "create"
	}
	return wouldChange(verb, a.object, changes, holdsSecrets(a.object.Kind.GroupKind(), changes)), nil
}

// perform applies, then removes fields; each only if it changes something.
func (a application) perform(ctx context.Context, call executors.Call, want *unstructured.Unstructured) (executors.Outcome, error) {
	now, err := a.live, error(nil)
	if a.live == nil && len(call.Recorded.Before) == 0 {
		return executors.Outcome{State: executors.Record, Before: raw(absence{Absent: true}, true), Message: a.object.String() + " is not there yet"}, nil
	}
	if a.live == nil || moves(a.live, want) {
		if now, err = a.apply(ctx, call, false); err != nil {
			return executors.Outcome{}, err
		}
	}
	if now, err = a.without(ctx, now, false); err != nil {
		return executors.Outcome{}, err
	}
	return a.ended(now, foundAbsent(call)), nil
}

func foundAbsent(call executors.Call) bool {
	var found absence
	return len(call.Recorded.Before) > 0 && json.Unmarshal(call.Recorded.Before, &found) == nil && found.Absent
}

// moves says that an apply would change the object or its field owners.
func moves(live, want *unstructured.Unstructured) bool {
	return len(changesBetween(live.Object, want.Object)) > 0 || !equal(ownership(live), ownership(want))
}

// ownership is the field owners without times: those of a dry run differ.
func ownership(u *unstructured.Unstructured) []any {
	var out []any
	for _, entry := range u.GetManagedFields() {
		entry.Time = nil
		out = append(out, entry)
	}
	return out
}

// without removes the fields that should not be there. A field that the API server sets again by
// default counts as removed.
func (a application) without(ctx context.Context, now *unstructured.Unstructured, dryRun bool) (*unstructured.Unstructured, error) {
	ops, _ := removals(now.Object, a.remove)
	if len(ops) == 0 {
		return now, nil
	}
	patch := api.Patch{Type: types.JSONPatchType, Body: ops, DryRun: true}
	after, err := a.object.Patch(ctx, now, patch)
	if err != nil || dryRun || len(changesBetween(now.Object, after.Object)) == 0 {
		return now, err
	}
	patch.DryRun = false
	return a.object.Patch(ctx, now, patch)
}

func (a application) ended(now *unstructured.Unstructured, created bool) executors.Outcome {
	out := api.Done("%s is so already", a.object)
	switch {
	case created:
		out = changed(a.object, "created", "created %s", a.object)
	case now.GetResourceVersion() != a.live.GetResourceVersion():
		out = a.applied(changesBetween(a.live.Object, now.Object))
	}
	out.Outputs = map[string]any{
		"name": now.GetName(), "namespace": now.GetNamespace(), "uid": string(now.GetUID()), "resourceVersion": now.GetResourceVersion(), "created": created,
	}
	return out
}

func (a application) applied(changes []change) executors.Outcome {
	if len(changes) == 0 {
		return changed(a.object, "field owners", "%s is so already; its fields belong to this plan now", a.object)
	}
	return changed(a.object, paths(touched(changes)), "changed %s: %s", a.object, difference(changes, holdsSecrets(a.object.Kind.GroupKind(), changes)))
}
