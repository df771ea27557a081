package backup

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/api"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// velero has Velero make a Backup of the plan's namespace, or of what a selector
// picks there, and waits for its end. Velero itself deletes it after retain. It
// needs get, list, watch and create on backups.velero.io in Velero's namespace.
func velero(ctx context.Context, call executors.Call, p *plan.BackupProperties) (executors.Outcome, error) {
	ref := plan.ResourceRef{APIVersion: "velero.io/v1", Kind: "Backup", Namespace: p.VeleroNamespace}
	if ref.Namespace == "" {
		ref.Namespace = "velero"
	}
	ref.Name = api.DerivedName(call.Plan.Name, identity(call, call.Plan.Namespace))
	o, err := api.Resolve(call, ref)
	if err != nil {
		return executors.Outcome{}, err
	}
	live, err := o.Get(ctx, "")
	if err != nil && !api.IsMissing(err) {
		return executors.Outcome{}, err
	}
	if call.DryRun {
		return api.Done("dry run: would have Velero back up namespace %s", call.Plan.Namespace), nil
	}
	if api.IsMissing(err) {
		if live, err = create(ctx, call, o, p); err != nil {
			return executors.Outcome{}, err
		}
	}
	if err := ours(call, o, live, call.Plan.Namespace); err != nil {
		return executors.Outcome{}, err
	}
	return veleroStanding(o, live), nil
}

func create(ctx context.Context, call executors.Call, o api.Object, p *plan.BackupProperties) (*unstructured.Unstructured, error) {
	if err := api.MayWatch(ctx, call, o.Action("watch", "")); err != nil {
		return nil, err
	}
	made, err := o.Create(ctx, marked(call, veleroBackup(call, o, p), call.Plan.Namespace))
	if apierrors.IsAlreadyExists(err) {
		return o.Get(ctx, "") // that of an earlier pass whose reply was lost, or another's: its labels decide
	}
	return made, err
}

func veleroBackup(call executors.Call, o api.Object, p *plan.BackupProperties) *unstructured.Unstructured {
	spec := map[string]any{"includedNamespaces": []any{call.Plan.Namespace}}
	if p.Selector != nil {
		spec["labelSelector"] = selectorOf(*p.Selector)
	}
	if p.Retain != nil {
		spec["ttl"] = p.Retain.Duration.String()
	}
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetGroupVersionKind(o.Kind)
	u.SetNamespace(o.Namespace)
	u.SetName(o.Name)
	return u
}

// veleroStanding reads the phase. Phases that are not named here are on the way.
func veleroStanding(o api.Object, live *unstructured.Unstructured) executors.Outcome {
	phase, _, _ := unstructured.NestedString(live.Object, "status", "phase")
	outputs := map[string]any{"backup": o.Name, "namespace": o.Namespace}
	changed := []run.Change{o.Change("created")}
	switch {
	case phase == "Completed":
		out := api.Done("%s in namespace %s is complete", o, o.Namespace)
		out.Outputs, out.Changed = outputs, changed
		return out
	case phase == "PartiallyFailed" || phase == "Failed" || phase == "FailedValidation":
		out := executors.Fail("Backup"+phase, "%s in namespace %s: %s%s", o, o.Namespace, phase, whyFailed(live))
		out.Outputs, out.Changed = outputs, changed
		return out
	case phase == "Deleting" || live.GetDeletionTimestamp() != nil:
		return executors.Fail("Deleted", "%s in namespace %s is being deleted before its end", o, o.Namespace)
	case phase == "":
		phase = "New"
	}
	return api.Waiting(o.Watch(""), "%s in namespace %s is %s%s", o, o.Namespace, phase, stays)
}

// whyFailed is what Velero says of a failure.
func whyFailed(live *unstructured.Unstructured) string {
	var said []string
	if reason, _, _ := unstructured.NestedString(live.Object, "status", "failureReason"); reason != "" {
		said = append(said, reason)
	}
	faults, _, _ := unstructured.NestedStringSlice(live.Object, "status", "validationErrors")
	said = append(said, faults...)
	if n, _, _ := unstructured.NestedInt64(live.Object, "status", "errors"); n > 0 {
		said = append(said, fmt.Sprintf("%d errors; see velero backup logs %s", n, live.GetName()))
	}
	if len(said) == 0 {
		return ""
	}
	return ": " + strings.Join(said, "; ")
}
