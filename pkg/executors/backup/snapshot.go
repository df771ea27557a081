package backup

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/api"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// round is one pass over the snapshots of a step.
type round struct {
	kind   api.Object // VolumeSnapshots of the plan's namespace
	claims []string
	there  map[string]unstructured.Unstructured // all that this plan's step made, by name
}

// snapshots takes a VolumeSnapshot of each claim and waits for all of them. It needs list, watch
// and create on volumesnapshots.snapshot.storage.k8s.io, and delete with retain; list on claims;
// for a component also get on claims, StatefulSets and Deployments.
func snapshots(ctx context.Context, call executors.Call, p *plan.BackupProperties) (executors.Outcome, error) {
	kind, err := api.Resolve(call, plan.ResourceRef{APIVersion: "snapshot.storage.k8s.io/v1", Kind: "VolumeSnapshot"})
	if err != nil {
		return executors.Outcome{}, err
	}
	claims, err := claimsOf(ctx, call, p)
	if err != nil {
		return executors.Outcome{}, err
	}
	found, err := kind.List(ctx, ofStep(call))
	if err != nil {
		return executors.Outcome{}, err
	}
	if call.DryRun {
		return api.Done("dry run: would snapshot %s", strings.Join(claims, ", ")), nil
	}
	r := round{kind: kind, claims: claims, there: map[string]unstructured.Unstructured{}}
	for _, u := range found {
		r.there[u.GetName()] = u
	}
	if err := r.take(ctx, call, p); err != nil {
		return executors.Outcome{}, err
	}
	return r.judged(ctx, call, p)
}

func snapshotName(call executors.Call, claim string) string {
	return api.DerivedName(claim, identity(call, claim))
}

// take creates the missing snapshots. Before the first, it asks for every right that the step will
// need.
func (r round) take(ctx context.Context, call executors.Call, p *plan.BackupProperties) error {
	asked := false
	for _, claim := range r.claims {
		o := r.kind.Named(snapshotName(call, claim))
		if _, there := r.there[o.Name]; there {
			continue
		}
		if !asked {
			if err := r.mayAll(ctx, call, p); err != nil {
				return err
			}
			asked = true
		}
		made, err := o.Create(ctx, marked(call, snapshotOf(o, claim, p.VolumeSnapshotClass), claim))
		if apierrors.IsAlreadyExists(err) {
			return notOurs(o) // our own would have been listed
		}
		if err != nil {
			return err
		}
		r.there[o.Name] = *made
	}
	return nil
}

func (r round) mayAll(ctx context.Context, call executors.Call, p *plan.BackupProperties) error {
	if err := api.MayWatch(ctx, call, r.kind.Action("watch", "")); err != nil {
		return err
	}
	if p.Retain == nil {
		return api.Need(ctx, call, r.kind.Action("create", ""))
	}
	return api.Need(ctx, call, r.kind.Action("create", ""), r.kind.Action("delete", ""))
}

func snapshotOf(o api.Object, claim, class string) *unstructured.Unstructured {
	spec := map[string]any{"source": map[string]any{"persistentVolumeClaimName": claim}}
	if class != "" {
		spec["volumeSnapshotClassName"] = class
	}
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetGroupVersionKind(o.Kind)
	u.SetNamespace(o.Namespace)
	u.SetName(o.Name)
	return u
}

// judged waits for the snapshots, then deletes old ones.
func (r round) judged(ctx context.Context, call executors.Call, p *plan.BackupProperties) (executors.Outcome, error) {
	var waiting []string
	for _, claim := range r.claims {
		o := r.kind.Named(snapshotName(call, claim))
		u := r.there[o.Name]
		if err := ours(call, o, &u, claim); err != nil {
			return executors.Outcome{}, err
		}
		ready, _, _ := unstructured.NestedBool(u.Object, "status", "readyToUse")
		message, failed, _ := unstructured.NestedString(u.Object, "status", "error", "message")
		switch {
		case u.GetDeletionTimestamp() != nil:
			return executors.Fail("Deleted", "%s of claim %s is being deleted", o, claim), nil
		case !ready && failed:
			return executors.Fail("SnapshotFailed", "%s of claim %s: %s", o, claim, message), nil
		case !ready:
			waiting = append(waiting, fmt.Sprintf("%s of claim %s", o, claim))
		}
	}
	if len(waiting) > 0 {
		return api.Waiting(r.kind.Watch(ofStep(call)), "%d of %d snapshots are not usable yet: %s%s", len(waiting), len(r.claims), first(waiting), stays), nil
	}
	gone, err := r.retain(ctx, call, p)
	return r.done(call, gone), err
}

// first are the first few names, for a message.
func first(items []string) string {
	const few = 3
	if len(items) > few {
		return strings.Join(items[:few], ", ") + ", …"
	}
	return strings.Join(items, ", ")
}

// retain deletes what this step of this plan made longer ago than retain: never what this attempt
// made, and never what has our labels under another name.
func (r round) retain(ctx context.Context, call executors.Call, p *plan.BackupProperties) ([]api.Object, error) {
	if p.Retain == nil {
		return nil, nil
	}
	mine := map[string]bool{}
	for _, claim := range r.claims {
		mine[snapshotName(call, claim)] = true
	}
	var gone []api.Object
	limit := call.Now.Add(-p.Retain.Duration)
	for name, u := range r.there {
		old := u.GetCreationTimestamp().Time.Before(limit)
		if mine[name] || !old || u.GetDeletionTimestamp() != nil || u.GetAnnotations()[annotations.BackupStep] != stepOf(call) {
			continue
		}
		o, uid := r.kind.Named(name), u.GetUID()
		err := o.Delete(ctx, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
		if err != nil && !api.IsMissing(err) {
			return nil, err
		}
		gone = append(gone, o)
	}
	return gone, nil
}

func (r round) done(call executors.Call, gone []api.Object) executors.Outcome {
	names := make([]any, len(r.claims))
	out := api.Done("%s can be restored from", strings.Join(r.claims, ", "))
	for i, claim := range r.claims {
		o := r.kind.Named(snapshotName(call, claim))
		names[i] = o.Name
		out.Changed = append(out.Changed, o.Change("created"))
	}
	for _, o := range gone {
		out.Changed = append(out.Changed, o.Change("deleted"))
	}
	if len(gone) > 0 {
		out.Message = document.Cut(fmt.Sprintf("%s; %d older snapshots were deleted", out.Message, len(gone)), document.MaxMessage)
	}
	out.Outputs = map[string]any{"snapshots": names}
	return out
}
