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
	"github.com/kubectl-maint/kubectl-maint/pkg/connector"
	"github.com/kubectl-maint/kubectl-maint/pkg/knob"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
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
	looked := false
	for _, owner := range knob.Owners(of, object.Labels, object.Annotations) {
		as := plan.ObjectRef{APIVersion: owner.APIVersion, Kind: owner.Kind, Name: owner.Name}
		kind, err := k.Served(as)
		switch {
		case err != nil:
			o.unknown("whether "+owner.String()+" manages "+ref.String()+" from Git, which step "+step+" would suspend", err)
		case kind == nil: // for the agent, too, this is no owner
			continue
		default:
			user := "system:serviceaccount:" + namespace + ":" + account
			o.ownerRights(ctx, k, ownerNeed{Owner: owner, step: step, of: ref, user: user, resource: kind.Name})
		}
		looked = true
	}
	if !looked {
		o.good("no GitOps owner of %s was found, so step %s has none to suspend", ref, step)
	}
	return true
}

// ownerNeed is an owner that a step suspends, and who needs rights on it.
type ownerNeed struct {
	knob.Owner
	step, user string
	of         plan.ObjectRef
	resource   string // as the API server names those of the owner's kind
}

func (n ownerNeed) group() string { return schema.FromAPIVersionAndKind(n.APIVersion, n.Kind).Group }

// mayNot says what its user lacks on owners of the kind.
func (n ownerNeed) mayNot(verbs []string) string {
	return fmt.Sprintf("%s may not %s %s.%s", n.user, strings.Join(verbs, ", "), n.resource, n.group())
}

func ownerVerbs() []string { return []string{"get", "list", "watch", "patch"} }

// ownerRights checks the rights on one owner, where it is or may be.
func (o *options) ownerRights(ctx context.Context, k *factory.Cluster, n ownerNeed) {
	namespaces, found := seenIn(ctx, k, n.Owner)
	certain := !n.Doubtful && (found || !n.Anywhere)
	missing, blind := map[string][]string{}, true
	for _, in := range namespaces {
		verbs, err := o.missingOn(ctx, k, n, in)
		if err != nil {
			o.unknown(fmt.Sprintf("the rights of step %s on %s of namespace %s", n.step, n.Owner, in), err)
			return
		}
		missing[in], blind = verbs, blind && slices.Contains(verbs, "get") && (!n.Anywhere || slices.Contains(verbs, "list"))
	}
	if blind && !certain { // for the agent, no namespace that may be read is no answer: the step fails
		o.amiss(fmt.Sprintf("%s in namespace %s, where step %s looks whether %s manages %s from Git", n.mayNot([]string{"get"}), strings.Join(namespaces, " or "), n.step, n.Owner, n.of), o.grantOwner(n, namespaces[0]))
		return
	}
	for _, in := range namespaces {
		switch {
		case len(missing[in]) == 0 && certain:
			o.good("%s has the rights of step %s on %s of namespace %s, which manages %s from Git", n.user, n.step, n.Owner, in, n.of)
		case len(missing[in]) == 0:
			o.good("%s has the rights of step %s on %s, if it is in namespace %s and manages %s from Git", n.user, n.step, n.Owner, in, n.of)
		case certain:
			o.amiss(fmt.Sprintf("%s, and step %s suspends %s of namespace %s, which manages %s from Git", n.mayNot(missing[in]), n.step, n.Owner, in, n.of), o.grantOwner(n, in))
		default:
			o.unknown(fmt.Sprintf("whether step %s suspends %s of namespace %s, which may manage %s from Git", n.step, n.Owner, in, n.of), fmt.Errorf("%s there; if it does, %s", n.mayNot(missing[in]), o.grantOwner(n, in)))
		}
	}
}

// seenIn are the namespaces in which an owner is looked for: the one in which the user sees it, as
// far as that is known.
func seenIn(ctx context.Context, k *factory.Cluster, owner knob.Owner) (namespaces []string, found bool) {
	for _, in := range owner.Namespaces {
		live, err := k.Target(ctx, in, plan.ObjectRef{APIVersion: owner.APIVersion, Kind: owner.Kind, Name: owner.Name})
		if err == nil && live != nil {
			return []string{in}, true
		}
	}
	return owner.Namespaces, false
}

// missingOn are the verbs that a user lacks on an owner in a namespace.
func (o *options) missingOn(ctx context.Context, k *factory.Cluster, n ownerNeed, in string) (missing []string, err error) {
	for _, verb := range ownerVerbs() {
		name := n.Name
		if verb == "list" || verb == "watch" {
			name = ""
		}
		may, err := o.allowed(ctx, k, n.user, authorizationv1.ResourceAttributes{Namespace: in, Group: n.group(), Resource: n.resource, Name: name, Verb: verb})
		if err != nil {
			return nil, err
		}
		if !may {
			missing = append(missing, verb)
		}
	}
	return missing, nil
}

func (o *options) grantOwner(n ownerNeed, in string) string {
	of, account := accountOf(n.user)
	return "grant it: " + o.Suggest().GrantIn(in, of, account, strings.Join(ownerVerbs(), ","), n.resource+"."+n.group(), "")
}
