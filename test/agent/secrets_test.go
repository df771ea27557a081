package agent_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// Whoever may read ConfigMaps and Events and no Secret reads nothing of one, whatever the plans
// and policies of an account that may read it attempt.
func TestPlansAndPoliciesTellNothingOfASecret(t *testing.T) {
	l := newLab(t)
	l.runner(rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "list", "watch", "patch"}})
	const data = "hidden-treasure"
	_, err := l.admin.CoreV1().Secrets(l.ns).Create(l.ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "topsec"}, StringData: map[string]string{"pw": data}}, metav1.CreateOptions{})
	l.must(err)

	unknown := func(apiVersion, kind string) string { return "serves no kind " + kind + " in " + apiVersion }
	patch := func(apiVersion, kind, more string) string {
		return fmt.Sprintf("steps: [{name: leak, type: patch-object, properties: {resource: {apiVersion: %q, kind: %s, name: topsec}, %s}}]\n", apiVersion, kind, more)
	}
	const misspelt = `"${'secret'}"` // an expression gets past the check of the document
	const copies = `patchType: json, patch: [{op: copy, from: /data/pw, path: /metadata/annotations}]`
	const malformed = "patchType: merge, patch: {metadata: {annotations: x}}"
	attempts := []struct{ name, spec, want string }{
		{"malformed", patch("v1", "Secret", malformed), `patch secrets "topsec" in namespace ` + l.ns + ": Invalid (the API server's text is not shown"},
		{"labels", patch("v1", "Secret", `patchType: json, patch: [{op: add, path: /metadata/labels, value: {a: {b: c}}}]`), "(the API server's text is not shown"},
		{"lower", patch("v1", misspelt, "restoreAfter: true, patchType: merge, patch: {data: {pw: bmV3}}"), unknown("v1", "secret")},
		{"copies", patch("v1", misspelt, copies), unknown("v1", "secret")},
	}
	for _, a := range attempts {
		l.plan(a.name, a.spec)
	}
	l.plan("each", "steps: [{name: leak, type: for-each, properties: {apiVersion: v1, kind: "+misspelt+", steps: [{name: say, type: webhook, properties: {url: \"HOOK/${each.data.pw}\"}}]}}]\n")
	l.plan("dry", "dryRun: true\n"+patch("v1", misspelt, "patchType: merge, patch: {data: {pw: bmV3}}"))
	l.plan("version", patch("/v1", "Secret", malformed))
	l.plan("plain", patch("v1", "secret", copies))
	for _, name := range []string{"malformed", "labels", "lower", "copies", "each", "dry"} {
		l.seen(name)
		l.trigger(name, "1")
	}
	l.policy("gate-lower", "{strategy: Restrictive, gates: [{apiVersion: v1, kind: secret, knob: {path: /data/pw, closed: bmV3, open: b2xk}}]}")
	l.policy("gate-version", "{strategy: Restrictive, gates: [{apiVersion: /v1, kind: Secret, knob: {path: /data/pw, closed: bmV3, open: b2xk}}]}")
	l.policy("gate-label", "{strategy: Restrictive, gates: [{apiVersion: v1, kind: Secret, name: topsec, knob: {path: /metadata/labels/hold, closed: 'no label!', open: null}}]}")

	for _, a := range attempts {
		end := l.ended(a.name, 1)[0]
		if end.journal.Phase != run.Failed || !strings.Contains(end.journal.Message, a.want) {
			t.Errorf("%s: %s: %s", a.name, end.journal.Phase, end.journal.Message)
		}
	}
	for _, name := range []string{"each", "dry"} {
		if end := l.ended(name, 1)[0]; end.journal.Phase != run.Failed {
			t.Errorf("%s: %s: %s", name, end.journal.Phase, end.journal.Message)
		}
	}
	l.says("version", "is no apiVersion")
	l.says("plain", `"secret" is no kind of v1; did you mean "Secret"?`)
	for _, name := range []string{"gate-lower", "gate-label"} {
		l.says(name, "a Secret cannot be gated")
	}

	maps, err := l.admin.CoreV1().ConfigMaps(l.ns).List(l.ctx, metav1.ListOptions{})
	l.must(err)
	events, err := l.admin.CoreV1().Events(l.ns).List(l.ctx, metav1.ListOptions{})
	l.must(err)
	secret, err := l.admin.CoreV1().Secrets(l.ns).Get(l.ctx, "topsec", metav1.GetOptions{})
	l.must(err)
	for _, all := range []any{maps, events, secret.ObjectMeta} {
		text, err := json.Marshal(all)
		l.must(err)
		for _, told := range []string{data, base64.StdEncoding.EncodeToString([]byte(data))} {
			if at := strings.Index(string(text), told); at >= 0 {
				t.Errorf("the data of the Secret is told: %.500s", text[max(0, at-300):])
			}
		}
	}
	if string(secret.Data["pw"]) != data {
		t.Error("the data of the Secret was changed")
	}
}

// Whoever may only trigger runs what the plan does now without an approval, and nothing else.
func TestARollbackDoesNotGetAroundAnApprovalStep(t *testing.T) {
	l := newLab(t)
	l.runner()
	l.plan("orders", quick)
	l.seen("orders")
	l.trigger("orders", "1")
	first := l.ended("orders", 1)[0].run.Name
	text := strings.Replace(l.seen("orders").Data[annotations.DataPlan], "steps:\n", "steps:\n  - {name: ask, type: approval}\n", 1)
	_, err := l.admin.CoreV1().ConfigMaps(l.ns).Patch(l.ctx, "orders", types.MergePatchType, fmt.Appendf(nil, `{"data":{%q:%q}}`, annotations.DataPlan, text), metav1.PatchOptions{})
	l.must(err)
	l.seen("orders")
	const why = "the steps of the plan now ask for approval (step ask)"
	l.expect(l.maint("rollback", "orders", "--to", first), 1, why, "set requiresApproval: true")
	l.annotate("orders", map[string]string{annotations.Trigger: "2", annotations.TriggerOptions: fmt.Sprintf(`{"token":"2","asOf":%q}`, first)})
	l.eventually("the agent refuses it", func() (bool, string) {
		s := l.maint("why", "orders")
		return strings.Contains(s.out, why), s.out + s.err
	})
	if n := len(l.runs("orders")); n != 1 {
		t.Errorf("there are %d runs", n)
	}
}
