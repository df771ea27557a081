package agent_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

func TestARunThatTheAPIServerDoesNotTakeAnyMoreIsToldOnItsPlan(t *testing.T) {
	for _, c := range []struct{ name, patch, says string }{
		{"immutable", `{"immutable":true}`, "cannot go on: the API server refuses what it writes"},
		{"unreadable", `{"data":{"journal.json":"garbage"}}`, "is left alone, and nothing of it is put back"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t)
			l.runner()
			l.plan("stuck", "\nsteps:\n- {name: hold, type: suspend}\n")
			l.seen("stuck")
			l.trigger("stuck", "t")
			r := l.running("stuck", "hold")
			_, err := l.admin.CoreV1().ConfigMaps(l.ns).Patch(l.ctx, r.run.Name, types.MergePatchType, []byte(c.patch), metav1.PatchOptions{})
			l.must(err)
			l.annotate("stuck", map[string]string{annotations.Abort: r.run.Name})
			l.says("stuck", "run "+r.run.Name+" "+c.says)
			l.expect(l.maint("why", "stuck"), 3, c.says)
		})
	}
}

func TestALedgerThatTheAPIServerDoesNotTakeAnyMoreIsToldOnItsPlan(t *testing.T) {
	l := newLab(t)
	l.runner()
	l.plan("stuck", "\nsteps:\n- {name: hold, type: suspend, properties: {duration: 1s}}\n")
	cm := l.seen("stuck")
	_, err := l.admin.CoreV1().ConfigMaps(l.ns).Patch(l.ctx, annotations.LedgerName("stuck", string(cm.UID)), types.MergePatchType, []byte(`{"immutable":true}`), metav1.PatchOptions{})
	l.must(err)
	l.trigger("stuck", "t")
	l.says("stuck", "its ledger cannot be written", "immutable")
	if n := len(l.runs("stuck")); n != 0 {
		t.Errorf("%d runs without a ledger", n)
	}
}

func TestANumberOnTheTargetThatNobodyCountedToIsNotTakenForOne(t *testing.T) {
	l := newLab(t)
	l.runner(deploymentRights())
	d := l.deployment("orders", 1)
	l.plan("overflow", "\ntarget: {apiVersion: apps/v1, kind: Deployment, name: orders}\ntriggers: {labels: [go]}\nsteps:\n- {name: hold, type: suspend, properties: {duration: 1s}}\n")
	l.seen("overflow")
	d, err := l.admin.AppsV1().Deployments(l.ns).Patch(l.ctx, d.Name, types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+annotations.Handled("go")+`":"9223372036854775807"}}}`), metav1.PatchOptions{})
	l.must(err)
	l.observed(d)
	l.set("orders", `{"metadata":{"labels":{"go":"1"}}}`)
	if r := l.ended("overflow", 1)[0]; r.journal.Phase != "Succeeded" || r.run.Request.Ordinal != 1 {
		t.Errorf("%s, request %d", r.journal.Phase, r.run.Request.Ordinal)
	}
}
