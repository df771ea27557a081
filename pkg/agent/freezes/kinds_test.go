package freezes

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/status"
)

func TestNoMoreKindsAreWatchedThanThereIsABound(t *testing.T) {
	var rules []admissionv1.NamedRuleWithOperations
	for i := range maxKinds + 3 {
		rules = append(rules, admissionv1.NamedRuleWithOperations{RuleWithOperations: admissionv1.RuleWithOperations{Rule: admissionv1.Rule{
			APIGroups: []string{"example.org"}, APIVersions: []string{"v1"}, Resources: []string{fmt.Sprintf("kind%03d", i)},
		}}})
	}
	policy := func(rules []admissionv1.NamedRuleWithOperations) []any {
		return []any{&admissionv1.ValidatingAdmissionPolicy{Spec: admissionv1.ValidatingAdmissionPolicySpec{MatchConstraints: &admissionv1.MatchResources{ResourceRules: rules}}}}
	}
	first, more := wantedKinds(policy(rules))
	if len(first) != maxKinds || len(more) != 3 {
		t.Fatalf("%d kinds, and %v", len(first), more)
	}
	if again, _ := wantedKinds(policy(rules)); !maps.Equal(first, again) {
		t.Error("other ones at the second look")
	}
	if some, more := wantedKinds(policy(rules[:2])); len(some) != 2 || len(more) != 0 {
		t.Errorf("%v, and %v", some, more)
	}
}

func TestKindsThatAreNotWatchedAreNamed(t *testing.T) {
	left := schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "kind052"}
	c := &Controller{}
	if got := c.Condition(); got != nil {
		t.Errorf("of none it says %v", got)
	}
	c.unwatched = []schema.GroupVersionResource{left}
	got := c.Condition()
	const want = "the admission policy maint-freeze names more than the 50 kinds that are watched, so the label maint.dev/freeze freezes no object of these 1: kind052.example.org"
	if len(got) != 1 || got[0].Type != status.ConditionFreezes || got[0].Status != metav1.ConditionFalse || got[0].Message != want {
		t.Errorf("%+v", got)
	}
	if !c.enforced(left.GroupResource()) || c.enforced(schema.GroupResource{Resource: "services"}) {
		t.Error("a run's target is frozen by its name, whether its kind is watched or not")
	}
}

func TestAKindThatCannotBeWatchedIsToldOnce(t *testing.T) {
	var log bytes.Buffer
	c := &Controller{Config: Config{Log: slog.New(slog.NewTextHandler(&log, nil))}}
	known := false
	told := c.sayUnwatched(schema.GroupVersionResource{Version: "v1", Resource: "services"}, func() bool { return known })
	for _, err := range []error{nil, errors.New("forbidden"), errors.New("forbidden"), errors.New("away"), nil} {
		told(err)
	}
	known = true
	told(errors.New("away"))
	if got := log.String(); strings.Count(got, "no freeze of them is published until they can") != 2 || strings.Count(got, "changes of their labels are not seen until they can") != 1 {
		t.Errorf("it says:\n%s", got)
	}
	if got := log.String(); strings.Count(got, "\n") != 3 || strings.Count(got, "forbidden") != 1 || strings.Count(got, "away") != 2 {
		t.Errorf("it says:\n%s", got)
	}
}
