package object

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/api"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// Pauses between two looks at an object that changes all the time (guesses: a second is short, but
// an apply needs a dry run).
const (
	lookEvery  = time.Second
	applyEvery = 5 * time.Second
)

// Drift checks the fields that the step changed and will restore, also where somebody deleted the
// object and created it again: the next steps would meet that one.
func (memory) Drift(ctx context.Context, call executors.Call) (executors.Drifted, *executors.Watch, error) {
	rec, err := recorded(call)
	if err != nil || rec == nil || rec.Object == nil {
		return executors.Drifted{}, nil, err
	}
	o, err := api.Resolve(call, *rec.Object)
	if err != nil {
		return executors.Drifted{}, nil, err
	}
	l := looked{object: o, every: lookEvery, hide: holdsSecrets(o.Kind.GroupKind(), rec.Changes)}
	live, err := read(ctx, o, rec.Subresource)
	if api.IsMissing(err) { // it has no value that the next steps could meet: the restore reports it
		return l.found(nil)
	}
	if err != nil {
		return executors.Drifted{}, nil, err
	}
	changes, _ := effectiveChanges(call, rec)
	for _, c := range changes {
		v, found, _ := lookup(live.Object, c.Path)
		if c.Made || c.isOurs(v, found) {
			continue
		}
		if err := l.field(ctx, call, live, c.Path, c.After, raw(v, found), rec.Subresource); err != nil {
			return executors.Drifted{}, nil, err
		}
	}
	return l.found(run.DriftOf(l.changed))
}

// Drift checks the replicas only.
func (s Scaler) Drift(ctx context.Context, call executors.Call) (executors.Drifted, *executors.Watch, error) {
	p, err := api.PropertiesAs[plan.ScaleProperties](call)
	if err != nil {
		return executors.Drifted{}, nil, err
	}
	if p.RestoreAfter {
		return s.memory.Drift(ctx, call)
	}
	o, err := api.Resolve(call, p.Resource)
	if err != nil {
		return executors.Drifted{}, nil, err
	}
	l := looked{object: o, every: lookEvery}
	live, err := readScale(ctx, o)
	if api.IsMissing(err) {
		return l.found(nil)
	}
	if err != nil {
		return executors.Drifted{}, nil, err
	}
	v, found, _ := lookup(live.Object, replicasPath())
	if want := raw(*p.Replicas, true); !equalRaw(raw(v, found), want) {
		if err := l.field(ctx, call, live, replicasPath(), want, raw(v, found), scaleSubresource); err != nil {
			return executors.Drifted{}, nil, err
		}
	}
	return l.found(run.DriftOf(l.changed))
}

// Drift makes a dry run of the apply: what it would change, somebody has changed.
func (Applier) Drift(ctx context.Context, call executors.Call) (executors.Drifted, *executors.Watch, error) {
	a, err := applicationOf(call)
	if err != nil {
		return executors.Drifted{}, nil, err
	}
	l := looked{object: a.object, every: applyEvery}
	if a.live, err = a.object.Get(ctx, ""); api.IsMissing(err) {
		gone := run.Drift{Object: a.object.String()}
		if call.Recorded.Drift.Accepts(gone) {
			return l.found(nil)
		}
		return l.found(&gone)
	}
	if err != nil {
		return executors.Drifted{}, nil, err
	}
	a.force = true // only to learn the values
	want, err := a.apply(ctx, call, true)
	if err != nil {
		return executors.Drifted{}, nil, err
	}
	_, after := removals(want.Object, a.remove)
	changes := changesBetween(a.live.Object, after)
	l.hide = holdsSecrets(a.object.Kind.GroupKind(), changes)
	for _, c := range changes {
		if c.Made {
			continue
		}
		if err := l.field(ctx, call, a.live, c.Path, c.After, c.Before, ""); err != nil {
			return executors.Drifted{}, nil, err
		}
	}
	return l.found(run.DriftOf(l.changed))
}

// looked is a look at one object.
type looked struct {
	object api.Object
	every  time.Duration
	hide   bool // values are secret

	changed []run.Drift
	whole   *unstructured.Unstructured // with its field managers, once it was read
}

func (l looked) found(d *run.Drift) (executors.Drifted, *executors.Watch, error) {
	w := l.object.Watch("")
	w.Every = l.every
	return executors.Drifted{Kind: l.object.Kind.Kind, Name: l.object.Name, Drift: d}, w, nil
}

// field notes a field that is not as the step left it, unless the plan itself wrote it, in a later
// step or another run, or somebody has accepted the change.
func (l *looked) field(ctx context.Context, call executors.Call, live *unstructured.Unstructured, path fieldPath, want, is json.RawMessage, subresource string) error {
	if len(l.changed) == run.MaxFields {
		return nil
	}
	if subresource != "" { // without its field managers
		if err := l.readWhole(ctx); err != nil {
			return err
		}
		live = l.whole
	}
	manager, at := writer(live.GetManagedFields(), path)
	if manager == call.Plan.Manager && manager != "" {
		return nil
	}
	d := run.Drift{Object: l.object.String(), Field: path.String(), Want: shown(want, l.hide), Value: shown(is, l.hide), Manager: manager}
	if call.Recorded.Drift.Accepts(d) {
		return nil
	}
	if !at.IsZero() {
		d.At = &at
	}
	l.changed = append(l.changed, d)
	return nil
}

// readWhole reads the object itself beside a subresource. An account that may read only that learns
// no name.
func (l *looked) readWhole(ctx context.Context) error {
	if l.whole != nil {
		return nil
	}
	whole, err := l.object.Get(ctx, "")
	switch {
	case apierrors.IsForbidden(err), api.IsMissing(err):
		whole = &unstructured.Unstructured{}
	case err != nil:
		return err
	}
	l.whole = whole
	return nil
}

// writer is the manager that wrote a field last, as far as that is known: the API server tracks who
// set a field, not who removed it.
func writer(entries []metav1.ManagedFieldsEntry, path fieldPath) (manager string, at time.Time) {
	for _, e := range ownersOf(entries, path) {
		var when time.Time
		if e.Time != nil {
			when = e.Time.UTC()
		}
		if manager == "" || when.After(at) {
			manager, at = e.Manager, when
		}
	}
	return manager, at
}

// ownersOf are the entries of those that own a field itself. Who owns a map or a list above it may
// have made that alone, or have changed another field of one that is owned as a whole.
func ownersOf(entries []metav1.ManagedFieldsEntry, path fieldPath) []metav1.ManagedFieldsEntry {
	var out []metav1.ManagedFieldsEntry
	for _, e := range entries {
		if e.FieldsV1 != nil && owns(e.FieldsV1.GetRawBytes(), path) {
			out = append(out, e)
		}
	}
	return out
}

// owns says whether a field set in the format of FieldsV1 contains a path.
func owns(fields []byte, path fieldPath) bool {
	if len(path) == 0 {
		return true
	}
	var here map[string]json.RawMessage
	if json.Unmarshal(fields, &here) != nil {
		return false
	}
	for key, below := range here {
		if path[0].in(key) {
			return owns(below, path[1:])
		}
	}
	return false
}

// in says whether a key of FieldsV1 is that of the segment: f:spec, or k:{"name":"app"}, perhaps with
// other keys, of an item of a list.
func (s segment) in(key string) bool {
	if s.Item == "" {
		return key == "f:"+s.Key
	}
	var keys map[string]any
	text, is := strings.CutPrefix(key, "k:")
	return is && json.Unmarshal([]byte(text), &keys) == nil && keys["name"] == s.Item
}
