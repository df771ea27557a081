package object

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/api"
)

// record is what an earlier pass recorded, nil where it is outdated: between the record and
// the write somebody changed the same field. To write on the old record would lose that change.
//
// The values do not tell whether our write happened before a crash. The API server does: it tracks
// which manager set a field. It says nothing of a field that was removed, nor of one in a map or list
// that is owned as a whole, nor where only the scale may be read. Then a value of ours counts as ours,
// and for any other the step fails.
func (w write) record(ctx context.Context, call executors.Call) (rec *record, outdated bool, err error) {
	rec, err = recorded(call)
	if err != nil || rec == nil || w.once || rec.UID != string(w.live.GetUID()) || standingOf(w.live.Object, rec.Changes).untouched {
		return rec, false, err
	}
	by, err := w.setBy(ctx, call, rec)
	switch {
	case err != nil:
		return rec, false, err
	case len(by.others) > 0 && by.us+by.unknown == 0:
		return nil, true, nil
	case len(by.odd) > 0:
		return rec, false, api.Refuse(executors.ReasonChangedMeanwhile, "%s: somebody changed %s while this step was at work, and it stays so; look at it and trigger again", w.object, paths(by.odd))
	}
	return rec, false, nil
}

// setBy counts who set the recorded fields that are not as they were found: the plan, others, or
// nobody knows.
type setBy struct {
	us, unknown int
	others      []fieldPath
	odd         []fieldPath // neither as they were found nor as the step sets them, and not set by the plan
}

func (w write) setBy(ctx context.Context, call executors.Call, rec *record) (setBy, error) {
	managers, err := w.managers(ctx)
	if err != nil {
		return setBy{}, err
	}
	var out setBy
	steps := holders(call, rec.UID)
	for _, c := range rec.Changes {
		v, found, _ := lookup(w.live.Object, c.Path)
		if c.Made || same(v, found, c.Before) || c.isBeneath(v, found) || setByRun(call, steps, c.Path, raw(v, found)) {
			continue
		}
		owners := ownersOf(managers, c.Path)
		switch {
		case slices.ContainsFunc(owners, func(e metav1.ManagedFieldsEntry) bool { return e.Manager == call.Plan.Manager }):
			out.us++
			continue
		case len(owners) > 0:
			out.others = append(out.others, c.Path)
		default:
			out.unknown++
		}
		if !same(v, found, c.After) {
			out.odd = append(out.odd, c.Path)
		}
	}
	return out, nil
}

// isBeneath says whether a value is that of a step beneath this one, before or after it: what was
// recorded covers them.
func (c change) isBeneath(v any, found bool) bool {
	return slices.ContainsFunc(c.Beneath, func(b beneath) bool { return same(v, found, b.Before) || same(v, found, b.After) })
}

// setByRun says whether a value is what another step of the run set and will restore: a group that
// is tried again comes to the earlier step again.
func setByRun(call executors.Call, others []holder, path fieldPath, value []byte) bool {
	return slices.ContainsFunc(others, func(h holder) bool {
		return h.Run == call.Run && slices.ContainsFunc(h.changes, func(c change) bool { return c.Path.String() == path.String() && equalRaw(c.After, value) })
	})
}

// managers are those of the object's fields; none where the account may not read it.
func (w write) managers(ctx context.Context) ([]metav1.ManagedFieldsEntry, error) {
	if w.patch.Subresource == "" {
		return w.live.GetManagedFields(), nil
	}
	whole, err := w.object.Get(ctx, "")
	switch {
	case apierrors.IsForbidden(err), api.IsMissing(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return whole.GetManagedFields(), nil
}

// refused is the outcome of a patch with an error. Where the API server refused it, what was
// recorded is over once somebody has changed it, and with an attempt that wrote nothing. The object is read again:
// a library may have repeated a request whose first answer was lost, and the refusal is of the second.
func (w write) refused(ctx context.Context, call executors.Call, rec *record, err error) executors.Outcome {
	out := api.Outcome(ctx, call, err)
	if rec == nil || !executors.NothingDone(err) && !apierrors.IsConflict(err) {
		return out
	}
	live, err := read(ctx, w.object, w.patch.Subresource)
	if err != nil || string(live.GetUID()) != rec.UID {
		return out
	}
	w.live = live
	by, err := w.setBy(ctx, call, rec)
	s := standingOf(live.Object, rec.Changes)
	changed := !s.applied && by.us == 0 && len(by.others)+by.unknown > 0
	out.Anew = err == nil && (changed || out.State == executors.Failed && s.untouched)
	return out
}
