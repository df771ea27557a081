package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/source"
	"github.com/kubectl-maint/kubectl-maint/pkg/connector"
	"github.com/kubectl-maint/kubectl-maint/pkg/knob"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/rights"
)

// owners checks the rights on the owners in Git that steps suspend: which object that is, the
// documents do not say, and the marks on the live object do. It returns the needs that stay open.
func (o *options) owners(ctx context.Context, k *factory.Cluster, t plan.Tree, namespace, account string, open []string) []string {
	t.Spec = t.Spec.Defaulted() // with the step that holdOwners stands for
	t.WalkClusters(func(s plan.Step, on *connector.Reference) {
		if s.Type != plan.TypeHoldOwners || on != nil {
			return
		}
		if ref, in := heldObject(s, t.Spec.Target, namespace); o.ownersOf(ctx, k, s.Name, ref, in, namespace, account) {
			open = slices.DeleteFunc(open, func(text string) bool { return strings.HasPrefix(text, "step "+s.Name+": ") })
		}
	})
	return open
}

// heldObject is the object whose owner a step suspends, and its namespace.
func heldObject(s plan.Step, target *plan.ObjectRef, namespace string) (ref plan.ObjectRef, in string) {
	var named plan.ResourceRef
	if b, err := json.Marshal(s.Properties["object"]); err == nil {
		_ = json.Unmarshal(b, &named) // the validator has refused what does not fit
	}
	switch {
	case named.Kind != "":
		ref = plan.ObjectRef{APIVersion: named.APIVersion, Kind: named.Kind, Name: named.Name}
	case target != nil:
		ref = *target
	}
	if named.Namespace != "" {
		namespace = named.Namespace
	}
	return ref, namespace
}

// ownersOf checks the rights on the owners that one object bears the marks of; false: the object
// may not be read, is not there, or is named by an expression.
func (o *options) ownersOf(ctx context.Context, k *factory.Cluster, step string, ref plan.ObjectRef, in, namespace, account string) bool {
	object, err := k.Target(ctx, in, ref)
	if err != nil || object == nil {
		return false
	}
	of := knob.Object{Group: schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).Group, Kind: ref.Kind, Namespace: object.Namespace, Name: ref.Name}
	found := knob.Owners(of, object.Labels, object.Annotations)
	if len(found) == 0 {
		o.good("nothing that is known keeps %s as Git has it, which step %s would suspend", ref, step)
	}
	for _, owner := range found {
		o.ownerRights(ctx, k, step, ref, owner, "system:serviceaccount:"+namespace+":"+account)
	}
	return true
}

// ownerRights checks the rights on one owner, in the first namespace that it may be in.
func (o *options) ownerRights(ctx context.Context, k *factory.Cluster, step string, of plan.ObjectRef, owner knob.Owner, user string) {
	in := owner.Namespaces[0]
	said := fmt.Sprintf("%s of namespace %s, which keeps %s as Git has it", owner, in, of)
	if owner.Doubtful || owner.Anywhere {
		said = fmt.Sprintf("%s, if it is in namespace %s and keeps %s as Git has it", owner, in, of)
	}
	group, resource := source.ResourceOf(rights.Need{APIVersion: owner.APIVersion, Kind: owner.Kind})
	verbs := []string{"get", "list", "watch", "patch"}
	var missing []string
	for _, verb := range verbs {
		name := owner.Name
		if verb == "list" || verb == "watch" {
			name = ""
		}
		may, err := o.allowed(ctx, k, user, authorizationv1.ResourceAttributes{Namespace: in, Group: group, Resource: resource, Name: name, Verb: verb})
		if err != nil {
			o.unknown("the rights of step "+step+" on "+said, err)
			return
		}
		if !may {
			missing = append(missing, verb)
		}
	}
	if len(missing) == 0 {
		o.good("%s has the rights of step %s on %s", user, step, said)
		return
	}
	parts := strings.Split(user, ":")
	o.amiss(fmt.Sprintf("%s may not %s %s.%s, and step %s suspends %s", user, strings.Join(missing, ", "), resource, group, step, said),
		"grant it: "+o.Suggest().GrantIn(in, parts[2], parts[3], strings.Join(verbs, ","), resource+"."+group))
}
