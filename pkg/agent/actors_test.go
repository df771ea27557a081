package agent

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/yaml"
)

// actorPolicyFile is the policy and its binding as they are shipped.
func actorPolicyFile(t *testing.T) (*admissionv1.ValidatingAdmissionPolicy, *admissionv1.ValidatingAdmissionPolicyBinding) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "manifests", "admission", "actor-check.yaml"))
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
			policy, binding := actorPolicyFile(t)
			c.change(both{&policy.Spec, &binding.Spec})
			if got := refusesActors(policy.Spec) && bindsAll(binding.Spec); got != c.want {
				t.Errorf("it refuses every false actor: %t, want %t", got, c.want)
			}
		})
	}
}

// held is an informer that holds what a test puts there.
type held struct {
	cache.SharedIndexInformer
	store cache.Store
}

func (h held) GetStore() cache.Store { return h.store }

func TestActorsAreCertainOnceThePolicyHasStood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var certain bool
		p := &actorPolicy{
			policies: held{store: cache.NewStore(cache.MetaNamespaceKeyFunc)}, bindings: held{store: cache.NewStore(cache.MetaNamespaceKeyFunc)},
			certain: func(is bool) { certain = is }, stop: func() {},
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
		policy, binding := actorPolicyFile(t)
		must := func(err error) {
			if err != nil {
				t.Fatal(err)
			}
		}
		must(p.policies.GetStore().Add(policy))
		p.look(t.Context())
		after(time.Hour, false) // nothing binds it
		must(p.bindings.GetStore().Add(binding))
		p.look(t.Context())
		after(59*time.Second, false)
		after(2*time.Second, true)
		p.look(t.Context()) // it was heard of again
		after(0, true)
		changed := policy.DeepCopy()
		changed.ResourceVersion = "2"
		must(p.policies.GetStore().Update(changed))
		p.look(t.Context())
		after(30*time.Second, false)
		must(p.bindings.GetStore().Delete(binding))
		p.look(t.Context())
		after(time.Hour, false) // what had begun to count was stopped
		must(p.bindings.GetStore().Add(binding))
		p.look(t.Context())
		after(61*time.Second, true)
		must(p.policies.GetStore().Delete(changed))
		p.look(t.Context())
		after(0, false)
	})
}
