package object

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/api"
	"github.com/kubectl-maint/kubectl-maint/pkg/knob"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// OwnerHolder executes the step type hold-owners: it suspends the Flux Kustomization or
// HelmRelease, or the Argo CD Application, that reconciles an object with Git, waits until the
// reconciliation in progress has ended, and resumes the owner at the end of the run. It needs get
// on the object, and get and patch on its owner.
type OwnerHolder struct{ memory }

// owner is the owner of an object, and its state.
type owner struct {
	object api.Object
	live   *unstructured.Unstructured
	knob.Owner
}

// Pass suspends the owner, if there is one.
func (h OwnerHolder) Pass(ctx context.Context, call executors.Call) executors.Outcome {
	out, err := h.pass(ctx, call)
	return api.Finish(ctx, call, out, err)
}

func (OwnerHolder) pass(ctx context.Context, call executors.Call) (executors.Outcome, error) {
	rec, err := recorded(call)
	if err != nil {
		return executors.Outcome{}, err
	}
	var o *owner
	of := ""
	if rec != nil && rec.Object != nil {
		o, err = recordedOwner(ctx, call, *rec.Object)
	} else {
		o, of, err = ownerOf(ctx, call)
	}
	if err != nil {
		return executors.Outcome{}, err
	}
	if o == nil {
		return api.Done("no GitOps owner of %s was found", of), nil
	}
	out := o.suspension().pass(ctx, call)
	if out.State != executors.Done || call.DryRun {
		return out, nil
	}
	now, err := o.object.Get(ctx, "")
	if err != nil {
		return executors.Outcome{}, err
	}
	if at := o.Busy(now.Object); at != "" {
		return api.Waiting(o.object.Watch(""), "%s %s/%s is suspended; waits: %s", o.Kind, o.object.Namespace, o.object.Name, at), nil
	}
	if o.RefreshPending(now.Object) {
		return o.unanswered(call, out), nil
	}
	return out, nil
}

// lookTimeout is how long a controller gets to look at an owner that was suspended (a guess: Argo
// CD's limit for rendering a repository). A controller that is down never looks, and will start
// from the suspended owner.
const lookTimeout = time.Minute

// unanswered waits for the controller to look: until then it may act on what it read before the
// suspension.
func (o *owner) unanswered(call executors.Call, suspended executors.Outcome) executors.Outcome {
	var until time.Time
	known := json.Unmarshal(call.Recorded.Memory, &until) == nil
	if !known {
		until = call.Now.Add(lookTimeout)
	}
	if !call.Now.Before(until) {
		suspended.Message = fmt.Sprintf("%s; its controller has not looked at it within %s", suspended.Message, lookTimeout)
		return suspended
	}
	out := api.Waiting(o.object.Watch(""), "%s %s/%s is suspended; waits: its controller has not looked at it since", o.Kind, o.object.Namespace, o.object.Name)
	out.WakeAt = until
	if !known {
		out.Memory = raw(until, true)
	}
	return out
}

// suspension is the write that suspends the owner. An owner that is suspended already is recorded,
// too: it stays suspended.
func (o *owner) suspension() write {
	path := keys(o.Knob.Path)
	is, found, _ := lookup(o.live.Object, path)
	held := change{Path: path, Before: raw(is, found), After: raw(o.Knob.Closed.V, !o.Knob.Closed.Absent())}
	if o.Knob.ClosedOn(o.live.Object) {
		held.After = held.Before
	}
	written := path
	if held.After == nil {
		written = keys(o.Knob.RemovedPath(o.live.Object))
	}
	wanted := set(o.live.Object, written, held.After, 0)
	if key, value := o.RefreshRequest(); key != "" && !equalRaw(held.Before, held.After) {
		wanted = set(wanted, fieldPath{{Key: "metadata"}, {Key: "annotations"}, {Key: key}}, raw(value, true), 0)
	}
	body := mergePatch(o.live.Object, wanted.(map[string]any))
	return write{object: o.object, live: o.live, restoreAfter: true, changes: []change{held}, patch: api.Patch{Type: types.MergePatchType, Body: body}}
}

func keys(names []string) fieldPath {
	path := make(fieldPath, len(names))
	for i, name := range names {
		path[i] = segment{Key: name}
	}
	return path
}

// Restore gives the owner its previous state.
func (OwnerHolder) Restore(ctx context.Context, call executors.Call) executors.Outcome {
	rec, err := recorded(call)
	if err != nil {
		return api.Outcome(ctx, call, err)
	}
	if rec == nil || rec.Object == nil {
		return api.Done("nothing was suspended")
	}
	return restore(ctx, call, *rec.Object, "")
}

// recordedOwner is the owner that an earlier pass recorded.
func recordedOwner(ctx context.Context, call executors.Call, ref plan.ResourceRef) (*owner, error) {
	o, err := api.Resolve(call, ref)
	if err != nil {
		return nil, err
	}
	live, err := o.Get(ctx, "")
	if err != nil {
		return nil, err
	}
	out := &owner{object: o, live: live, Owner: knob.Owner{APIVersion: ref.APIVersion, Kind: ref.Kind, Name: ref.Name}}
	name := knob.Flux
	if o.Kind.Group == "argoproj.io" {
		name = knob.ArgoCD
	}
	var faults []knob.Fault
	if out.Knob, faults = knob.Parse(name, ref.APIVersion, ref.Kind); len(faults) > 0 {
		return nil, api.Refuse(executors.ReasonInvalid, "step %s: what it recorded is no owner: %s", call.Path, faults[0].Message)
	}
	return out, nil
}

// ownedObject is the object of the step.
func ownedObject(ctx context.Context, call executors.Call) (api.Object, *unstructured.Unstructured, error) {
	p, err := api.PropertiesAs[plan.HoldOwnersProperties](call)
	if err != nil {
		return api.Object{}, nil, err
	}
	var ref plan.ResourceRef
	uid := ""
	switch {
	case p.Object != nil:
		ref = *p.Object
	case call.Target.Object != nil:
		ref, uid = plan.ResourceRef{APIVersion: call.Target.Object.APIVersion, Kind: call.Target.Object.Kind, Name: call.Target.Object.Name}, call.Target.UID
	default:
		return api.Object{}, nil, api.Refuse(executors.ReasonInvalid, "object is missing, and the plan has no target to default to")
	}
	o, err := api.Resolve(call, ref)
	if err != nil {
		return o, nil, err
	}
	live, err := o.Get(ctx, "")
	if err != nil {
		return o, nil, err
	}
	return o, live, sameObject(o, live, uid)
}

// ownerOf is the owner of the step's object, and that object; nil: it has none.
func ownerOf(ctx context.Context, call executors.Call) (*owner, string, error) {
	o, live, err := ownedObject(ctx, call)
	if err != nil {
		return nil, "", err
	}
	of := knob.Object{Group: o.Kind.Group, Kind: o.Kind.Kind, Namespace: o.Namespace, Name: o.Name}
	var found []*owner
	var names []string
	for _, candidate := range knob.Owners(of, live.GetLabels(), live.GetAnnotations()) {
		is, err := present(ctx, call, candidate)
		if err != nil {
			return nil, "", err
		}
		if is != nil && (!candidate.Doubtful || candidate.Owns(is.live.Object, of)) {
			found = append(found, is)
			names = append(names, fmt.Sprintf("%s %s/%s", is.Kind, is.object.Namespace, is.object.Name))
		}
	}
	switch len(found) {
	case 0:
		return nil, o.String(), nil
	case 1:
		return found[0], o.String(), nil
	}
	return nil, "", api.Refuse(executors.ReasonConflict, "%s bears the marks of %s: which of them keeps it cannot be told; take away the mark of the other", o, strings.Join(names, " and "))
}

// present is the state of an owner; nil: it does not exist, and reconciles nothing. Where one of
// several possible namespaces may not be read, there is no answer.
func present(ctx context.Context, call executors.Call, candidate knob.Owner) (*owner, error) {
	var closed error
	var o api.Object
	for _, namespace := range candidate.Namespaces {
		var err error
		o, err = api.Resolve(call, plan.ResourceRef{APIVersion: candidate.APIVersion, Kind: candidate.Kind, Namespace: namespace, Name: candidate.Name})
		if api.IsUnknownKind(err) {
			return nil, nil //nolint:nilnil // not found is an answer
		}
		if err != nil {
			return nil, err
		}
		live, err := o.Get(ctx, "")
		switch {
		case apierrors.IsForbidden(err):
			closed = cmp.Or(closed, err)
		case api.IsMissing(err):
		case err != nil:
			return nil, err
		default:
			return &owner{object: o, live: live, Owner: candidate}, nil
		}
	}
	if !candidate.Anywhere {
		return nil, closed
	}
	found, err := o.AllNamespaces(call).ListNamed(ctx)
	switch {
	case apierrors.IsForbidden(err):
		return nil, cmp.Or(closed, err)
	case err != nil:
		return nil, err
	case len(found) == 0:
		return nil, nil //nolint:nilnil // not found is an answer
	case len(found) > 1:
		return nil, api.Refuse(executors.ReasonConflict, "%s is in %d namespaces: which of them is meant cannot be told", candidate, len(found))
	}
	at, err := api.Resolve(call, plan.ResourceRef{APIVersion: candidate.APIVersion, Kind: candidate.Kind, Namespace: found[0].GetNamespace(), Name: candidate.Name})
	if err != nil {
		return nil, err
	}
	return &owner{object: at, live: &found[0], Owner: candidate}, nil
}
