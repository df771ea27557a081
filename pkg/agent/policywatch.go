package agent

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	typedadmissionv1 "k8s.io/client-go/kubernetes/typed/admissionregistration/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/admissionread"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/informer"
)

// policyWatch follows an admission policy of ours, and the binding of its name.
type policyWatch struct {
	name, condition    string // the condition is the one that the policy asks as it is shipped
	binds              func(admissionv1.ValidatingAdmissionPolicyBindingSpec) bool
	policies, bindings namedObjects
}

// namedObjects are what an informer shows of one name, while it may and can look.
type namedObjects struct {
	cache.SharedIndexInformer
	withheld, unserved atomic.Bool // they cannot be looked at; because the API server has no such kind
}

// watchPolicy prepares to follow one; changed hears of each change of what is there.
func watchPolicy(api typedadmissionv1.AdmissionregistrationV1Interface, name, condition string, binds func(admissionv1.ValidatingAdmissionPolicyBindingSpec) bool, now func() time.Time, changed func()) *policyWatch {
	w := &policyWatch{name: name, condition: condition, binds: binds}
	named := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String()}
	w.policies.follow(informer.ForMany(&admissionv1.ValidatingAdmissionPolicy{}, api.ValidatingAdmissionPolicies(), named, w.policies.heard(now, changed)), changed)
	w.bindings.follow(informer.ForMany(&admissionv1.ValidatingAdmissionPolicyBinding{}, api.ValidatingAdmissionPolicyBindings(), named, w.bindings.heard(now, changed)), changed)
	return w
}

func (n *namedObjects) follow(from *informer.ListWatch, changed func()) {
	whole := func(o any) (any, error) { return o, nil }
	n.SharedIndexInformer, _ = informer.New(from, whole, cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { changed() }, UpdateFunc: func(any, any) { changed() }, DeleteFunc: func(any) { changed() },
	})
}

// heard takes in each answer about them, and says when they can be looked at where they
// could not before, or the other way round.
func (n *namedObjects) heard(now func() time.Time, changed func()) func(error) {
	answers := admissionread.ReadAccess{Now: now}
	return func(err error) {
		if news := answers.Observe(err); news != admissionread.Unchanged {
			n.withheld.Store(news == admissionread.Denied)
			n.unserved.Store(apierrors.IsNotFound(err))
			changed()
		}
	}
}

// known says whether it is known what is there, which nothing is where nobody may look.
func (n *namedObjects) known() bool { return n.withheld.Load() || n.HasSynced() }

// one is what is there; nil where that is not one object, or it cannot be looked at.
func (n *namedObjects) one() any {
	if all := n.GetStore().List(); len(all) == 1 && !n.withheld.Load() {
		return all[0]
	}
	return nil
}

// run looks until ctx ends.
func (w *policyWatch) run(ctx context.Context) {
	var group sync.WaitGroup
	group.Go(func() { informer.Run(ctx, w.policies.SharedIndexInformer) })
	group.Go(func() { informer.Run(ctx, w.bindings.SharedIndexInformer) })
	group.Wait()
}

func (w *policyWatch) known() bool { return w.policies.known() && w.bindings.known() }

// version tells the policy and its binding from what they were; empty where they do not
// refuse what they are for.
func (w *policyWatch) version() string {
	policy, _ := w.policies.one().(*admissionv1.ValidatingAdmissionPolicy)
	binding, _ := w.bindings.one().(*admissionv1.ValidatingAdmissionPolicyBinding)
	if policy == nil || binding == nil || !refusesEvery(policy.Spec, w.condition) || !denies(binding.Spec, w.name) || !w.binds(binding.Spec) {
		return ""
	}
	return string(policy.UID) + policy.ResourceVersion + "/" + string(binding.UID) + binding.ResourceVersion
}

// refusesEvery says whether a policy looks at every document, and no condition but ours
// keeps it from that. What an admin changed in it is not certain.
func refusesEvery(p admissionv1.ValidatingAdmissionPolicySpec, condition string) bool {
	m := p.MatchConstraints
	return m != nil && (p.FailurePolicy == nil || *p.FailurePolicy == admissionv1.Fail) && p.ParamKind == nil &&
		selectsAll(m.NamespaceSelector) && selectsAll(m.ObjectSelector) && len(m.ExcludeResourceRules) == 0 &&
		slices.ContainsFunc(m.ResourceRules, rulesConfigMaps) &&
		len(p.MatchConditions) == 1 && p.MatchConditions[0].Name == condition && len(p.Validations) > 0
}

func rulesConfigMaps(r admissionv1.NamedRuleWithOperations) bool {
	return len(r.ResourceNames) == 0 && slices.Contains(r.APIGroups, "") && slices.Contains(r.Resources, "configmaps") &&
		slices.Contains(r.Operations, admissionv1.Create) && slices.Contains(r.Operations, admissionv1.Update)
}

// denies says whether what a policy refuses is denied, in every namespace.
func denies(b admissionv1.ValidatingAdmissionPolicyBindingSpec, policy string) bool {
	return b.PolicyName == policy && b.ParamRef == nil && slices.Contains(b.ValidationActions, admissionv1.Deny) &&
		(b.MatchResources == nil || selectsAll(b.MatchResources.NamespaceSelector) && len(b.MatchResources.ResourceRules)+len(b.MatchResources.ExcludeResourceRules) == 0)
}

// bindsAll says whether a binding is about every object.
func bindsAll(b admissionv1.ValidatingAdmissionPolicyBindingSpec) bool {
	return b.MatchResources == nil || selectsAll(b.MatchResources.ObjectSelector)
}

// bindsRecords says whether a binding is about everything that the agent records.
func bindsRecords(b admissionv1.ValidatingAdmissionPolicyBindingSpec) bool {
	if bindsAll(b) {
		return true
	}
	s := b.MatchResources.ObjectSelector
	if len(s.MatchLabels) > 0 || len(s.MatchExpressions) != 1 {
		return false
	}
	e := s.MatchExpressions[0]
	return e.Key == annotations.LabelKind && e.Operator == metav1.LabelSelectorOpIn && !slices.ContainsFunc(annotations.RecordKinds(), func(kind string) bool {
		return !slices.Contains(e.Values, kind)
	})
}

func selectsAll(s *metav1.LabelSelector) bool {
	return s == nil || len(s.MatchLabels)+len(s.MatchExpressions) == 0
}
