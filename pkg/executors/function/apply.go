package function

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/function/fnv1"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/api"
	"github.com/kubectl-maint/kubectl-maint/pkg/expr"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// desired is an object as the function wants it.
type desired struct {
	name   string // desired.resources.<name>
	object api.Object
	fields *unstructured.Unstructured
}

// wanted reads all desired objects, in the order of their names, before anything is written: an
// answer with any fault changes nothing.
func (c *conversation) wanted(s *fnv1.State) ([]desired, error) {
	var out []desired
	for _, name := range slices.Sorted(maps.Keys(s.GetResources())) {
		d, err := c.wantedObject(name, s.GetResources()[name])
		if err != nil {
			return nil, err
		}
		for _, other := range out {
			if other.object.Resource == d.object.Resource && other.fields.GetNamespace() == d.fields.GetNamespace() && other.object.Name == d.object.Name {
				return nil, api.Refuse(executors.ReasonInvalid, "desired.resources: %q and %q are both %s; the second would undo the first", other.name, d.name, d.object)
			}
		}
		out = append(out, d)
	}
	return out, nil
}

func (c *conversation) wantedObject(name string, r *fnv1.Resource) (desired, error) {
	fields, _ := expr.Whole(r.GetResource().AsMap()).(map[string]any)
	u := &unstructured.Unstructured{Object: fields}
	for _, has := range []struct{ field, value string }{{"apiVersion", u.GetAPIVersion()}, {"kind", u.GetKind()}, {"metadata.name", u.GetName()}} {
		if has.value == "" {
			return desired{}, api.Refuse(executors.ReasonInvalid, "desired.resources.%s: has no %s; the %s has to name what it desires", name, has.field, c)
		}
	}
	if u.GetManagedFields() != nil {
		return desired{}, api.Refuse(executors.ReasonInvalid, "desired.resources.%s: holds metadata.managedFields, so it is a copy of a whole object; the %s has to desire only the fields that it means", name, c)
	}
	o, err := api.Resolve(c.call, plan.ResourceRef{APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Name: u.GetName(), Namespace: u.GetNamespace()})
	if err != nil {
		return desired{}, err
	}
	u.SetNamespace(o.Namespace)
	return desired{name: name, object: o, fields: u}, nil
}

// apply writes the desired objects and lists the changes. The list counts even when apply fails
// half-way: the next pass finds those objects unchanged, and does not list them again.
func (l chain) apply(ctx context.Context, c *conversation, wanted []desired, a answer) executors.Outcome {
	out := executors.Outcome{State: executors.Done}
	var changed, unchanged []string
	for _, d := range wanted {
		what, err := c.applyOne(ctx, d, l.force)
		if err != nil {
			failed := api.Outcome(ctx, c.call, err)
			failed.Changed, failed.Outputs = out.Changed, a.outputs
			return failed
		}
		if what == "" {
			unchanged = append(unchanged, d.object.String())
			continue
		}
		changed = append(changed, what+" "+d.object.String())
		out.Changed = append(out.Changed, d.object.Change(what))
	}
	out.Outputs = a.outputs
	out.Message = l.told(changed, unchanged, a)
	return out
}

func (l chain) told(changed, unchanged []string, a answer) string {
	message := l.String() + " succeeded"
	if len(changed) > 0 {
		message += "; " + strings.Join(changed, ", ")
	}
	if len(unchanged) > 0 {
		message += "; as desired already: " + strings.Join(unchanged, ", ")
	}
	for _, note := range a.notes {
		message += "; " + note
	}
	return message
}

// applyOne applies one object and describes the change: none when the resourceVersion stays the
// same.
func (c *conversation) applyOne(ctx context.Context, d desired, force bool) (string, error) {
	before, err := d.object.Get(ctx, "")
	absent := api.IsMissing(err)
	if err != nil && !absent {
		return "", err
	}
	// Without the version that was read: with a controller at work on the object, each conflict
	// would mean another call of the function.
	after, err := d.object.Apply(ctx, nil, api.Apply{Body: d.fields.Object, Force: force})
	switch {
	case err != nil:
		return "", c.notApplied(ctx, d, absent, err)
	case absent:
		return "created", nil
	case before.GetUID() == after.GetUID() && before.GetResourceVersion() == after.GetResourceVersion():
		return "", nil
	}
	return "applied", nil
}

// notApplied is the outcome of a refused write. Conflicts over fields of other owners do not go
// away by retrying; and for an object that does not exist, the missing right is another one than
// the verb of the request.
func (c *conversation) notApplied(ctx context.Context, d desired, absent bool, err error) error {
	if owned := api.OwnersOf(err); owned != "" {
		return api.Refuse("FieldConflict", "desired.resources.%s: somebody else owns what this would change of %s: %s; the function has to leave these fields out, or the step takes them with force: true", d.name, d.object, owned)
	}
	if apierrors.IsConflict(err) {
		// Only an object that sets a uid or a resourceVersion can conflict. Calling the function
		// again at once might repeat that forever.
		return &api.Refused{Outcome: executors.Fail(executors.ReasonConflict, "desired.resources.%s: the function desires another %s than the one that is there: %s", d.name, d.object, err)}
	}
	if !absent || !apierrors.IsForbidden(err) {
		return err
	}
	create := d.object.Action("create", "")
	if may, asked := api.May(ctx, c.call, create); asked == nil && !may {
		return api.Failed(create, errors.Unwrap(err))
	}
	return err
}
