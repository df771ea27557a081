package object

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/api"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// Patcher executes the step type patch-object. It needs get and patch on the object's kind.
//
// The API server decides what a patch changes: its dry run is compared with the live object. That
// covers all three kinds of patches, defaults and admission, and shows when a patch has nothing
// left to change.
type Patcher struct{ memory }

// Pass applies the patch, unless it would change nothing.
func (Patcher) Pass(ctx context.Context, call executors.Call) executors.Outcome {
	p, err := api.PropertiesAs[plan.PatchProperties](call)
	if err != nil {
		return api.Outcome(ctx, call, err)
	}
	patch, err := patchOf(p)
	if err != nil {
		return api.Outcome(ctx, call, err)
	}
	o, err := api.Resolve(call, p.Resource)
	if err != nil {
		return api.Outcome(ctx, call, err)
	}
	live, err := o.Get(ctx, "")
	if err != nil {
		return api.Outcome(ctx, call, err)
	}
	w := write{object: o, live: live, patch: patch, restoreAfter: p.RestoreAfter, once: countsTwice(p.Patch)}
	return w.compared(ctx, call)
}

// Restore restores each field that still has the value that the patch set.
func (Patcher) Restore(ctx context.Context, call executors.Call) executors.Outcome {
	p, err := api.PropertiesAs[plan.PatchProperties](call)
	if err != nil {
		return api.Outcome(ctx, call, err)
	}
	if !p.RestoreAfter {
		return api.Done("the step asks for no restore")
	}
	return restore(ctx, call, p.Resource, "")
}

// compared learns from a dry run what the patch changes, then continues the pass. A patch that is
// not idempotent is searched for in the object first: after it was applied, its dry run would fail
// or show a second change.
func (w write) compared(ctx context.Context, call executors.Call) executors.Outcome {
	rec, _, err := w.record(ctx, call)
	if err != nil {
		return api.Outcome(ctx, call, err)
	}
	if rec != nil && rec.UID == string(w.live.GetUID()) && standingOf(w.live.Object, rec.Changes).applied {
		return w.written(rec.Changes)
	}
	if movesSecrets(w.object.Kind.GroupKind(), w.patch.Body) {
		return w.notKept()
	}
	dry := w.patch
	dry.DryRun = true
	after, err := w.object.Patch(ctx, w.live, dry)
	if apierrors.IsUnsupportedMediaType(err) {
		return executors.Refuse(executors.ReasonInvalid, "%s: its kind has no strategic merge patch, as all custom resources; write patchType: merge or json", w.object)
	}
	if apierrors.IsInvalid(err) {
		if why := w.failingOperation(); why != "" {
			return executors.Refuse(executors.ReasonInvalid, "%s: %s", w.object, why)
		}
	}
	if err != nil {
		return api.Outcome(ctx, call, err)
	}
	w.changes = changesBetween(w.live.Object, after.Object)
	if call.DryRun && len(w.changes) > 0 {
		return wouldChange("change", w.object, w.changes, holdsSecrets(w.object.Kind.GroupKind(), w.changes))
	}
	return w.pass(ctx, call)
}

// Bounds of what is looked for in a patch that the API server refused: each operation is done to the
// whole object, and a copy may double it.
const (
	maxOperations = 100
	maxPatched    = 3 << 20 // as much as an API server takes
)

// failingOperation says which operation of a JSON patch cannot be applied, and
// why: the API server's own answer does not.
func (w write) failingOperation() string {
	ops, _ := w.patch.Body.([]any)
	doc := raw(w.live.Object, true)
	for i, op := range ops {
		if i >= maxOperations || len(doc) > maxPatched {
			return ""
		}
		patch, err := jsonpatch.DecodePatch(raw([]any{op}, true))
		if err == nil {
			doc, err = patch.Apply(doc)
		}
		if err != nil {
			return fmt.Sprintf("patch[%d] cannot be applied: %s", i, err)
		}
	}
	return ""
}

func patchOf(p *plan.PatchProperties) (api.Patch, error) {
	patch := api.Patch{Body: p.Patch}
	_, isList := p.Patch.([]any)
	switch p.PatchType {
	case "", "strategic":
		patch.Type = types.StrategicMergePatchType
	case "merge":
		patch.Type = types.MergePatchType
	case "json":
		patch.Type = types.JSONPatchType
	default:
		return patch, api.Refuse(executors.ReasonInvalid, "patchType must be strategic, merge or json, is %q", p.PatchType)
	}
	if isList != (patch.Type == types.JSONPatchType) {
		return patch, api.Refuse(executors.ReasonInvalid, "patch: a list of operations goes with patchType: json, an object with strategic and merge")
	}
	return patch, nil
}

// countsTwice says that a JSON patch may not be idempotent: it has an operation other than setting
// a field by its name.
func countsTwice(patch any) bool {
	ops, _ := patch.([]any)
	return slices.ContainsFunc(ops, func(item any) bool {
		op, _ := item.(map[string]any)
		path, _ := op["path"].(string)
		last := path[strings.LastIndex(path, "/")+1:]
		_, notNumber := strconv.Atoi(last)
		switch op["op"] {
		case "replace":
			return false
		case "add":
			return last == "-" || notNumber == nil
		}
		return true
	})
}

// holdsSecrets says that the changes contain data of a Secret.
func holdsSecrets(kind schema.GroupKind, changes []change) bool {
	return isSecret(kind) && slices.ContainsFunc(changes, func(c change) bool {
		return c.Path[0].Key != "metadata" || slices.ContainsFunc(c.Path, func(s segment) bool { return run.CopiesObject(s.Key) })
	})
}

// isSecret takes any letters: earlier versions recorded a kind as the plan spelt it.
func isSecret(kind schema.GroupKind) bool {
	return kind.Group == "" && strings.EqualFold(kind.Kind, "Secret")
}

// movesSecrets says that a JSON patch copies or moves data of a Secret to a place where it is not
// protected: the value of a label is shown to people, and by the API server's refusals, too.
func movesSecrets(kind schema.GroupKind, patch any) bool {
	ops, _ := patch.([]any)
	return isSecret(kind) && slices.ContainsFunc(ops, func(item any) bool {
		op, _ := item.(map[string]any)
		from, takes := op["from"].(string)
		at := strings.Split(from, "/") // "", metadata, annotations, key
		if !takes || len(at) < 4 || at[1] != "metadata" {
			return takes
		}
		return run.CopiesObject(strings.NewReplacer("~1", "/", "~0", "~").Replace(at[3]))
	})
}
