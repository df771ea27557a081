package agent_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

const story = `
target: {apiVersion: apps/v1, kind: Deployment, name: orders}
triggers: {labels: [maintenance.company.org/database-upgrade]}
steps:
- name: announce
  type: webhook
  properties: {url: "HOOK/start", body: {run: "${run.name}"}}
- name: mark-paused
  type: label
  properties: {operation: add, labels: {maintenance.company.org/paused: "true"}, restoreAfter: true}
- name: scale-down
  type: patch-object
  properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: orders}, patch: {spec: {replicas: 0}}, restoreAfter: true}
- name: hold
  type: suspend
- name: unmark
  type: label
  properties: {operation: remove, labels: [maintenance.company.org/paused]}
- name: report
  type: webhook
  properties: {url: "HOOK/end", body: {run: "${run.name}"}}
finally:
- name: tell
  type: webhook
  properties: {url: "HOOK/over", body: {outcome: "${run.phase}"}}
`

func TestTheStoryRunsOnceForALabelAndLeavesTheWorldAsItWas(t *testing.T) {
	l := newLab(t)
	l.runner()
	l.deployment("orders", 3)
	cm := l.plan("orders-weekly", story)
	l.seen("orders-weekly")
	l.setLabel("orders", `"now"`)
	r := l.running("orders-weekly", "hold")
	d, err := l.admin.AppsV1().Deployments(l.ns).Get(l.ctx, "orders", metav1.GetOptions{})
	l.must(err)
	if *d.Spec.Replicas != 0 || d.Labels["maintenance.company.org/paused"] != "true" {
		t.Fatalf("during the hold: replicas %d, labels %v", *d.Spec.Replicas, d.Labels)
	}
	l.annotate("orders-weekly", map[string]string{annotations.Resume: r.run.Name})
	end := l.ended("orders-weekly", 1)[0]
	if end.journal.Phase != run.Succeeded {
		t.Fatalf("ended %s: %s", end.journal.Phase, end.journal.Message)
	}
	l.asBefore("orders", 3)
	for _, path := range []string{"start", "end", "over"} {
		if keys := l.hooks.Keys("/" + l.ns + "/" + path); len(keys) != 1 {
			t.Errorf("webhook %s was sent with the keys %v, want one", path, keys)
		}
	}
	if ledger := l.ledger(cm); len(ledger.Open) != 0 || ledger.Totals[run.Ran] != 1 {
		t.Errorf("ledger: open %v, totals %v", ledger.Open, ledger.Totals)
	}
}

func (l *lab) setLabel(name, value string) {
	l.Helper()
	patch := `{"metadata":{"labels":{"maintenance.company.org/database-upgrade":` + value + `}}}`
	_, err := l.admin.AppsV1().Deployments(l.ns).Patch(l.ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	l.must(err)
}

// asBefore checks that a Deployment is as it was before any run.
func (l *lab) asBefore(name string, replicas int32) {
	l.Helper()
	d, err := l.admin.AppsV1().Deployments(l.ns).Get(l.ctx, name, metav1.GetOptions{})
	l.must(err)
	if *d.Spec.Replicas != replicas || len(d.Labels) != 0 {
		l.Errorf("afterwards: replicas %d, want %d; labels %v, want none", *d.Spec.Replicas, replicas, d.Labels)
	}
}
