package agent

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

// shipped are a policy and the first of its bindings as a file of manifests/admission has them.
func shipped(t *testing.T, file string) (*admissionv1.ValidatingAdmissionPolicy, *admissionv1.ValidatingAdmissionPolicyBinding) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "manifests", "admission", file))
	if err != nil {
		t.Fatal(err)
	}
	docs := strings.Split(string(text), "\n---\n")
	policy, binding := &admissionv1.ValidatingAdmissionPolicy{}, &admissionv1.ValidatingAdmissionPolicyBinding{}
	if err := yaml.UnmarshalStrict([]byte(docs[0]), policy); err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict([]byte(docs[1]), binding); err != nil {
		t.Fatal(err)
	}
	return policy, binding
}

// policyOf is what is followed, as it stands where these are all there is.
func policyOf(objects ...any) *policyWatch {
	w := &policyWatch{}
	w.policies.SharedIndexInformer, w.bindings.SharedIndexInformer = newHeld(), newHeld()
	for _, o := range objects {
		switch o := o.(type) {
		case *admissionv1.ValidatingAdmissionPolicy:
			_ = w.policies.GetStore().Add(o)
		case *admissionv1.ValidatingAdmissionPolicyBinding:
			_ = w.bindings.GetStore().Add(o)
		}
	}
	return w
}

func checksOf(objects ...any) *policyWatch {
	w := policyOf(objects...)
	w.name, w.condition, w.binds = annotations.ActorPolicyName, annotations.ActorPolicyCondition, bindsAll
	return w
}

func recordsOf(objects ...any) *policyWatch {
	w := policyOf(objects...)
	w.name, w.condition, w.binds = annotations.RecordsPolicyName, annotations.RecordsPolicyCondition, bindsRecords
	return w
}

func TestWhichPolicyRefusesEveryFalseActor(t *testing.T) {
	type both struct {
		policy  *admissionv1.ValidatingAdmissionPolicySpec
		binding *admissionv1.ValidatingAdmissionPolicyBindingSpec
	}
	ignore := admissionv1.Ignore
	some := &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	for _, c := range []struct {
		name   string
		change func(both)
		want   bool
	}{
		{"as it is shipped", func(both) {}, true},
		{"with what the API server adds", func(b both) {
			b.policy.MatchConstraints.NamespaceSelector, b.policy.MatchConstraints.ObjectSelector = &metav1.LabelSelector{}, &metav1.LabelSelector{}
		}, true},
		{"one that warns as well", func(b both) { b.binding.ValidationActions = append(b.binding.ValidationActions, admissionv1.Audit) }, true},
		{"not one that only warns", func(b both) { b.binding.ValidationActions = []admissionv1.ValidationAction{admissionv1.Warn} }, false},
		{"nor one of which a fault lets pass", func(b both) { b.policy.FailurePolicy = &ignore }, false},
		{"nor one with another condition", func(b both) {
			b.policy.MatchConditions = append(b.policy.MatchConditions, admissionv1.MatchCondition{Name: "not-me", Expression: "false"})
		}, false},
		{"nor one of an earlier version", func(b both) { b.policy.MatchConditions[0].Name = "an-intent" }, false},
		{"nor one that selects namespaces", func(b both) { b.policy.MatchConstraints.NamespaceSelector = some }, false},
		{"nor one that selects objects", func(b both) { b.policy.MatchConstraints.ObjectSelector = some }, false},
		{"nor one that selects objects in two ways", func(b both) {
			b.policy.MatchConstraints.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}, MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "c", Operator: metav1.LabelSelectorOpExists}}}
		}, false},
		{"nor one with a parameter", func(b both) { b.policy.ParamKind = &admissionv1.ParamKind{Kind: "ConfigMap"} }, false},
		{"nor one that excludes", func(b both) {
			b.policy.MatchConstraints.ExcludeResourceRules = b.policy.MatchConstraints.ResourceRules
		}, false},
		{"nor one that looks at no updates", func(b both) {
			b.policy.MatchConstraints.ResourceRules[0].Operations = []admissionv1.OperationType{admissionv1.Create}
		}, false},
		{"nor one that looks at no ConfigMaps", func(b both) { b.policy.MatchConstraints.ResourceRules[0].Resources = []string{"namespaces"} }, false},
		{"nor one of some names", func(b both) { b.policy.MatchConstraints.ResourceRules[0].ResourceNames = []string{"a"} }, false},
		{"nor one that refuses nothing", func(b both) { b.policy.Validations = nil }, false},
		{"nor one that is bound to some namespaces", func(b both) { b.binding.MatchResources = &admissionv1.MatchResources{NamespaceSelector: some} }, false},
		{"one that is bound to what it is for", func(b both) { b.binding.MatchResources = &admissionv1.MatchResources{} }, true},
		{"nor one that is bound to some resources, but for some of them", func(b both) {
			b.binding.MatchResources = &admissionv1.MatchResources{ResourceRules: make([]admissionv1.NamedRuleWithOperations, 1), ExcludeResourceRules: make([]admissionv1.NamedRuleWithOperations, 1)}
		}, false},
		{"nor one that is bound with a parameter", func(b both) { b.binding.ParamRef = &admissionv1.ParamRef{Name: "a"} }, false},
		{"nor one whose binding is another's", func(b both) { b.binding.PolicyName = "other" }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			policy, binding := shipped(t, "actor-check.yaml")
			c.change(both{&policy.Spec, &binding.Spec})
			if got := checksOf(policy, binding).version() != ""; got != c.want {
				t.Errorf("it refuses every false actor: %t, want %t", got, c.want)
			}
		})
	}
}

func TestWhichPolicyLeavesRecordsToTheAgent(t *testing.T) {
	type selector = *metav1.LabelSelector
	for _, c := range []struct {
		name   string
		change func(policy *admissionv1.ValidatingAdmissionPolicySpec, binding *admissionv1.ValidatingAdmissionPolicyBindingSpec, kinds selector)
		want   bool
	}{
		{"as it is shipped", func(*admissionv1.ValidatingAdmissionPolicySpec, *admissionv1.ValidatingAdmissionPolicyBindingSpec, selector) {
		}, true},
		{"one that is bound to every object", func(_ *admissionv1.ValidatingAdmissionPolicySpec, b *admissionv1.ValidatingAdmissionPolicyBindingSpec, _ selector) {
			b.MatchResources = nil
		}, true},
		{"one that is bound to more kinds", func(_ *admissionv1.ValidatingAdmissionPolicySpec, _ *admissionv1.ValidatingAdmissionPolicyBindingSpec, kinds selector) {
			kinds.MatchExpressions[0].Values = append(kinds.MatchExpressions[0].Values, "other")
		}, true},
		{"not one that only tells", func(_ *admissionv1.ValidatingAdmissionPolicySpec, b *admissionv1.ValidatingAdmissionPolicyBindingSpec, _ selector) {
			b.ValidationActions = []admissionv1.ValidationAction{admissionv1.Audit}
		}, false},
		{"nor one that leaves runs out", func(_ *admissionv1.ValidatingAdmissionPolicySpec, _ *admissionv1.ValidatingAdmissionPolicyBindingSpec, kinds selector) {
			kinds.MatchExpressions[0].Values = kinds.MatchExpressions[0].Values[1:]
		}, false},
		{"nor one of all but these", func(_ *admissionv1.ValidatingAdmissionPolicySpec, _ *admissionv1.ValidatingAdmissionPolicyBindingSpec, kinds selector) {
			kinds.MatchExpressions[0].Operator = metav1.LabelSelectorOpNotIn
		}, false},
		{"nor one of another label", func(_ *admissionv1.ValidatingAdmissionPolicySpec, _ *admissionv1.ValidatingAdmissionPolicyBindingSpec, kinds selector) {
			kinds.MatchExpressions[0].Key = "kind"
		}, false},
		{"nor one that asks for more", func(_ *admissionv1.ValidatingAdmissionPolicySpec, _ *admissionv1.ValidatingAdmissionPolicyBindingSpec, kinds selector) {
			kinds.MatchLabels = map[string]string{"a": "b"}
		}, false},
		{"nor one that asks for more in the same way", func(_ *admissionv1.ValidatingAdmissionPolicySpec, _ *admissionv1.ValidatingAdmissionPolicyBindingSpec, kinds selector) {
			kinds.MatchExpressions = append(kinds.MatchExpressions, metav1.LabelSelectorRequirement{Key: "a", Operator: metav1.LabelSelectorOpExists})
		}, false},
		{"nor one of some namespaces", func(_ *admissionv1.ValidatingAdmissionPolicySpec, b *admissionv1.ValidatingAdmissionPolicyBindingSpec, kinds selector) {
			b.MatchResources.NamespaceSelector = kinds
		}, false},
		{"nor one with another condition", func(p *admissionv1.ValidatingAdmissionPolicySpec, _ *admissionv1.ValidatingAdmissionPolicyBindingSpec, _ selector) {
			p.MatchConditions[0].Name = "nobody"
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			policy, binding := shipped(t, "records.yaml")
			c.change(&policy.Spec, &binding.Spec, binding.Spec.MatchResources.ObjectSelector)
			if got := recordsOf(policy, binding).version() != ""; got != c.want {
				t.Errorf("it leaves records to the agent: %t, want %t", got, c.want)
			}
		})
	}
}

// What cannot be looked at is known to guard nothing, and is looked at again when it can be.
func TestAPolicyThatCannotBeLookedAt(t *testing.T) {
	policy, binding := shipped(t, "records.yaml")
	gone := apierrors.NewNotFound(admissionv1.Resource("validatingadmissionpolicies"), "")
	forbidden := apierrors.NewForbidden(admissionv1.Resource("validatingadmissionpolicies"), "", nil)
	for _, c := range []struct {
		name    string
		answers []error
		changes int
		guards  bool
	}{
		{"nothing was heard", nil, 0, true},
		{"it was seen", []error{nil, nil}, 0, true},
		{"nobody may look", []error{nil, forbidden, forbidden, forbidden}, 1, false},
		{"nobody may look for a while", []error{nil, forbidden, forbidden, nil}, 0, true},
		{"nobody may look, and then somebody may", []error{forbidden, forbidden, forbidden, nil}, 2, true},
		{"the API server has no such kind", []error{gone}, 1, false},
		{"nor may anybody look, where it has one", []error{gone, forbidden}, 1, false},
		{"the API server is away", []error{errors.New("connection refused")}, 0, true},
		{"and was away when nobody might look", []error{forbidden, errors.New("connection refused"), forbidden, errors.New("connection refused")}, 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, changes := recordsOf(policy, binding), 0
			now := time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)
			hears := w.bindings.heard(func() time.Time { return now }, func() { changes++ })
			for _, err := range c.answers {
				hears(err)
				now = now.Add(workflow.RefusalTimeout / 2)
			}
			if guards := w.version() != ""; guards != c.guards || changes != c.changes || !guards && !w.bindings.known() {
				t.Errorf("it guards %t, after %d changes, and is known %t; want %t, %d", guards, changes, w.bindings.known(), c.guards, c.changes)
			}
		})
	}
}

// held is an informer that holds what a test puts there.
type held struct {
	cache.SharedIndexInformer
	store cache.Store
}

func newHeld() held { return held{store: cache.NewStore(cache.MetaNamespaceKeyFunc)} }

func (h held) GetStore() cache.Store { return h.store }
func (held) HasSynced() bool         { return true }

func TestActorsAreCertainOnceThePoliciesHaveStood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var certain bool
		p := &actorPolicy{
			checks: checksOf(), records: recordsOf(), certain: func(is bool) { certain = is }, stop: func() {},
			await: func(ctx context.Context) error {
				select {
				case <-time.After(time.Minute):
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			},
		}
		after := func(passed time.Duration, want bool) {
			t.Helper()
			time.Sleep(passed)
			synctest.Wait()
			if p.mu.Lock(); certain != want {
				t.Errorf("certain: %t, want %t", certain, want)
			}
			p.mu.Unlock()
		}
		is := func(change func(any) error, o any) {
			t.Helper()
			if err := change(o); err != nil {
				t.Fatal(err)
			}
			p.look(t.Context())
		}
		policy, binding := shipped(t, "actor-check.yaml")
		closes, bindsThem := shipped(t, "records.yaml")
		policies, bindings := p.checks.policies.GetStore(), p.checks.bindings.GetStore()
		is(policies.Add, policy)
		after(time.Hour, false) // nothing binds it
		is(bindings.Add, binding)
		after(time.Hour, false) // and anybody writes what the agent records
		is(p.records.policies.GetStore().Add, closes)
		after(time.Hour, false)
		is(p.records.bindings.GetStore().Add, bindsThem)
		after(59*time.Second, false)
		after(2*time.Second, true)
		p.look(t.Context()) // they were heard of again
		after(0, true)
		changed := policy.DeepCopy()
		changed.ResourceVersion = "2"
		is(policies.Update, changed)
		after(30*time.Second, false)
		is(bindings.Delete, binding)
		after(time.Hour, false) // what had begun to count was stopped
		is(bindings.Add, binding)
		after(61*time.Second, true)
		is(p.records.bindings.GetStore().Delete, bindsThem)
		after(0, false)
		is(p.records.bindings.GetStore().Add, bindsThem)
		after(61*time.Second, true)
		is(policies.Delete, changed)
		after(0, false)
	})
}
