package admission_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/kubernetes"
)

// bindings are all bindings of policies as they were found: a benchmark takes some
// away and puts them back.
type bindings struct {
	kube       kubernetes.Interface
	validating map[string]*admissionv1.ValidatingAdmissionPolicyBinding
	mutating   map[string]*admissionv1.MutatingAdmissionPolicyBinding
}

func readBindings(ctx context.Context, kube kubernetes.Interface) (*bindings, error) {
	b := &bindings{kube: kube, validating: map[string]*admissionv1.ValidatingAdmissionPolicyBinding{}, mutating: map[string]*admissionv1.MutatingAdmissionPolicyBinding{}}
	validating, err := kube.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, v := range validating.Items {
		b.validating[v.Name] = &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: v.Name}, Spec: v.Spec}
	}
	mutating, err := kube.AdmissionregistrationV1().MutatingAdmissionPolicyBindings().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, m := range mutating.Items {
		b.mutating[m.Name] = &admissionv1.MutatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: m.Name}, Spec: m.Spec}
	}
	return b, nil
}

// policies are the names of the bound policies, sorted.
func (b *bindings) policies() []string {
	names := map[string]bool{}
	for _, v := range b.validating {
		names[v.Spec.PolicyName] = true
	}
	for _, m := range b.mutating {
		names[m.Spec.PolicyName] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// keep leaves the bindings of some policies in force, and returns when the API server
// has taken that up.
func (b *bindings) keep(ctx context.Context, wanted func(policy string) bool) error {
	for name, binding := range b.validating {
		if err := b.keepValidating(ctx, binding, wanted(binding.Spec.PolicyName)); err != nil {
			return fmt.Errorf("binding %s: %w", name, err)
		}
	}
	for name, binding := range b.mutating {
		if err := b.keepMutating(ctx, binding, wanted(binding.Spec.PolicyName)); err != nil {
			return fmt.Errorf("binding %s: %w", name, err)
		}
	}
	if err := b.untilMarked(ctx); err != nil {
		return err
	}
	for _, p := range probes() { // what mutates is taken up by itself
		if p.stamps {
			if err := world.untilProbe(ctx, p, wanted(p.policy)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *bindings) keepValidating(ctx context.Context, binding *admissionv1.ValidatingAdmissionPolicyBinding, wanted bool) error {
	client := b.kube.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
	if !wanted {
		return ignore(client.Delete(ctx, binding.Name, metav1.DeleteOptions{}), apierrors.IsNotFound)
	}
	_, err := client.Create(ctx, binding, metav1.CreateOptions{})
	return ignore(err, apierrors.IsAlreadyExists)
}

func (b *bindings) keepMutating(ctx context.Context, binding *admissionv1.MutatingAdmissionPolicyBinding, wanted bool) error {
	client := b.kube.AdmissionregistrationV1().MutatingAdmissionPolicyBindings()
	if !wanted {
		return ignore(client.Delete(ctx, binding.Name, metav1.DeleteOptions{}), apierrors.IsNotFound)
	}
	_, err := client.Create(ctx, binding, metav1.CreateOptions{})
	return ignore(err, apierrors.IsAlreadyExists)
}

func ignore(err error, expected func(error) bool) error {
	if err != nil && expected(err) {
		return nil
	}
	return err
}

// untilMarked writes a policy of its own and waits until that refuses what it is there
// for: the API server takes up bindings in the order in which they were written.
func (b *bindings) untilMarked(ctx context.Context) error {
	name := "bench-marker-" + rand.String(6)
	fail := admissionv1.Fail
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionv1.ValidatingAdmissionPolicySpec{
		FailurePolicy: &fail,
		MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
			ResourceNames: []string{name},
			RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{admissionv1.Create},
				Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
			},
		}}},
		Validations: []admissionv1.Validation{{Expression: "false"}},
	}}
	client := b.kube.AdmissionregistrationV1()
	if _, err := client.ValidatingAdmissionPolicies().Create(ctx, policy, metav1.CreateOptions{}); err != nil {
		return err
	}
	defer func() {
		_ = client.ValidatingAdmissionPolicyBindings().Delete(ctx, name, metav1.DeleteOptions{})
		_ = client.ValidatingAdmissionPolicies().Delete(ctx, name, metav1.DeleteOptions{})
	}()
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
	}}
	if _, err := client.ValidatingAdmissionPolicyBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		return err
	}
	return eventuallyErr(ctx, func() error {
		_, err := b.kube.CoreV1().ConfigMaps(metav1.NamespaceDefault).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		switch {
		case err == nil:
			return errors.New("the marker is not in force yet")
		case !strings.Contains(err.Error(), "'"+name+"'"):
			return err
		}
		return nil
	})
}
