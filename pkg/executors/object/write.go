package object

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/api"
)

// write is a patch of one object that has been read, and its changes.
type write struct {
	object       api.Object
	live         *unstructured.Unstructured
	patch        api.Patch
	changes      []change // none: nothing is left to change
	uid          string   // the object that the run holds, if this is it
	restoreAfter bool
	once         bool // the patch is not idempotent
	hide         bool // values are secret
}

// pass moves the write forward by one piece: end, record what is there, or write. A pass after a
// crash finds its effect in the object, and keeps what was recorded.
func (w write) pass(ctx context.Context, call executors.Call) executors.Outcome {
	rec, outdated, err := w.record(ctx, call)
	if err != nil {
		return api.Outcome(ctx, call, err)
	}
	out := w.next(ctx, call, rec)
	out.Anew = out.Anew || outdated
	return out
}

// next moves the write forward, by what was recorded.
func (w write) next(ctx context.Context, call executors.Call, rec *record) executors.Outcome {
	w.hide = holdsSecrets(w.object.Kind.GroupKind(), w.changes)
	if rec == nil && w.restoreAfter && !call.DryRun && !w.hide {
		w.changes = overlapping(call, w)
	}
	if out, ends := w.already(rec); ends {
		return out
	}
	if err := w.same(rec); err != nil {
		return api.Outcome(ctx, call, err)
	}
	if call.DryRun {
		return w.rehearse(ctx, call)
	}
	if rec == nil && (w.restoreAfter || w.once) {
		if w.hide {
			return w.notKept()
		}
		if err := w.mayHold(ctx, call); err != nil {
			return api.Outcome(ctx, call, err)
		}
		return toRecord(call, w)
	}
	if _, err := w.object.Patch(ctx, w.live, w.patch); err != nil {
		return w.refused(ctx, call, rec, err)
	}
	return w.written(w.changes)
}

// mayHold refuses to have other active steps leave a field to this one where its account may not
// write it: it could not restore the field, and a right to read would keep others from doing so.
func (w write) mayHold(ctx context.Context, call executors.Call) error {
	if !slices.ContainsFunc(w.changes, func(c change) bool { return len(c.Beneath) > 0 }) {
		return nil
	}
	return api.Need(ctx, call, w.object.Action("patch", w.patch.Subresource))
}

func (w write) notKept() executors.Outcome {
	return executors.Refuse("SecretNotKept", "%s: this step would have to write down what the Secret holds, which is never done; use a merge patch without restoreAfter", w.object)
}

// already is the outcome where nothing is left to write: the object is as wanted, or an earlier
// pass wrote it and its outcome was lost.
func (w write) already(rec *record) (executors.Outcome, bool) {
	if rec != nil && rec.UID == string(w.live.GetUID()) && standingOf(w.live.Object, rec.Changes).applied {
		return w.written(rec.Changes), true
	}
	if len(w.changes) == 0 {
		return api.Done("%s is so already", w.object), true
	}
	if rec != nil && w.once && !standingOf(w.live.Object, rec.Changes).untouched {
		return executors.Refuse(executors.ReasonChangedMeanwhile, "%s: somebody changed %s while this step was at work, and applying the patch twice would do more than once; look at it and trigger again", w.object, paths(touched(rec.Changes))), true
	}
	return executors.Outcome{}, false
}

func (w write) same(rec *record) error {
	if err := sameObject(w.object, w.live, w.uid); err != nil || rec == nil {
		return err
	}
	return sameObject(w.object, w.live, rec.UID)
}

func (w write) rehearse(ctx context.Context, call executors.Call) executors.Outcome {
	w.patch.DryRun = true
	if _, err := w.object.Patch(ctx, w.live, w.patch); err != nil {
		return api.Outcome(ctx, call, err)
	}
	return wouldChange("change", w.object, w.changes, w.hide)
}

func (w write) written(changes []change) executors.Outcome {
	changes = slices.DeleteFunc(slices.Clone(changes), func(c change) bool { return !c.Made && equalRaw(c.Before, c.After) })
	if len(changes) == 0 { // another active step had set the same value
		return api.Done("%s is so already", w.object)
	}
	return changed(w.object, paths(touched(changes)), "changed %s: %s", w.object, difference(changes, holdsSecrets(w.object.Kind.GroupKind(), changes)))
}
