package annotations_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

func documentOf(kind, name, key, text string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{annotations.LabelKind: kind}}, Data: map[string]string{key: text}}
}

const permissive = "{apiVersion: maint.dev/v1alpha1, kind: Policy, spec: {strategy: Permissive}}"

// Nobody can name a policy or a calendar whose ConfigMap is called otherwise than documents are.
func TestNamesOfPoliciesAndCalendars(t *testing.T) {
	const ofPolicy, ofCalendar = `metadata.name: "prod.weekends" cannot name a policy: at most 63 characters of a-z, 0-9 and '-'`, `metadata.name: "de.holidays" cannot name a calendar: at most 63 characters of a-z, 0-9 and '-'`
	for name, want := range map[string]string{"weekends": "", "prod.weekends": ofPolicy} {
		got := ""
		if faults := annotations.Policy(documentOf("policy", name, "policy.yaml", permissive)).Faults; len(faults) > 0 {
			got = faults.Error()
		}
		if got != want {
			t.Errorf("policy %s: %q", name, got)
		}
	}
	for name, want := range map[string]string{"holidays": "", "de.holidays": ofCalendar} {
		calendar, faults := annotations.Calendar(documentOf("calendar", name, "calendar.yaml", "[{from: 2026-12-24}]"))
		got := ""
		if len(faults) > 0 {
			got = faults.Error()
		}
		if got != want || calendar == nil {
			t.Errorf("calendar %s: %q, %v", name, got, calendar)
		}
	}
}

// A status speaks of the text that there is, under either key of a calendar.
func TestObservedFollowsTheText(t *testing.T) {
	for _, c := range []struct{ kind, key string }{{"policy", "policy.yaml"}, {"calendar", "calendar.ics"}, {"calendar", "calendar.yaml"}} {
		one, other := documentOf(c.kind, "a", c.key, "[]"), documentOf(c.kind, "a", c.key, "[{from: 2026-12-24}]")
		if annotations.Observed(one) == annotations.Observed(other) || annotations.Observed(one) != annotations.Hash10("[]") {
			t.Errorf("%s: %s and %s", c.key, annotations.Observed(one), annotations.Observed(other))
		}
	}
}
