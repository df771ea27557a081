package admission_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

// status.maint.dev/* is what the agent says.
func TestWhoWritesStatus(t *testing.T) {
	l := newLab(t)
	l.given(document(annotations.KindPlan, "orders", annotated(annotations.StatusPhase, "Idle", annotations.StatusTrigger, "1")))
	l.given(document(annotations.KindPlan, "fresh"))
	l.given(document(annotations.KindRun, liveRun, labelled(annotations.LabelPlan, "orders"), alive, annotated(annotations.StatusPhase, "Running")))
	l.given(plain("app", annotated(annotations.StatusPermitted, "true")))
	l.bind("edit", restorer())
	l.must(world.may(l.ctx, restorer(), l.ns, "impersonate", "", "serviceaccounts", "x"))
	l.publish("configmaps/settings=frozen")
	l.bind("edit", person{name: "wendy"})
	l.must(world.bindCluster(l.ctx, "test-owner", person{name: "wendy"}))
	l.must(world.may(l.ctx, person{name: "wendy"}, "", "patch", "", "namespaces", l.ns))
	const agents = "only the agent says"
	restored := document(annotations.KindPlan, "restored", annotated(annotations.StatusPhase, "Idle"))

	l.table([]row{
		{name: "a tenant changes no status", who: tenant(), asks: annotates("orders", annotations.StatusPhase, "Running"), denied: agents},
		{name: "nor who is bound to admin", who: nsAdmin(), asks: annotates("orders", annotations.StatusPhase, "Running"), denied: agents},
		{name: "nor an admin of the cluster", who: admin(), asks: annotates("orders", annotations.StatusPhase, "Running"), denied: agents},
		{name: "nor a plan in one of its steps", who: withMasters(runOf(l.ns)), asks: annotates("orders", annotations.StatusPhase, "Running"), denied: agents},
		{name: "nobody adds one", who: tenant(), asks: annotates("fresh", "status.maint.dev/made-up", "x"), denied: agents},
		{name: "nor one of another of our domains", who: tenant(), asks: annotates("fresh", "status.request.maint.dev/x", "x"), denied: agents},
		{name: "nor takes one away", who: editor(), asks: annotates("orders", annotations.StatusTrigger, ""), denied: agents},
		{name: "nor hides one under a change of the text", who: editor(), asks: patches("orders", `{"data":{"plan.yaml":"x"},"metadata":{"annotations":{"status.maint.dev/phase":"Running"}}}`), denied: agents},
		{name: "nor changes a run's", who: admin(), asks: annotates(liveRun, annotations.StatusPhase, "Succeeded"), denied: agents},
		{name: "nor brings one along in what is created", who: editor(), asks: creates(document(annotations.KindPlan, "new", annotated(annotations.StatusTrigger, "1"))), denied: agents},
		{name: "nor in what becomes a plan", who: editor(), asks: patches("app", `{"metadata":{"labels":{"maint.dev/kind":"plan"}}}`), denied: agents},
		{name: "nor on an ordinary ConfigMap", who: tenant(), asks: annotates("app", annotations.StatusPermitted, "false"), denied: agents},
		{name: "nor on a namespace", who: namespaceOwner(), asks: onNamespace("status.maint.dev/frozen", "x"), denied: agents},
		{name: "nor, on a namespace, as an account", who: withMasters(account("bots", "x")), asks: onNamespace("status.maint.dev/frozen", "x"), denied: agents},
		{name: "nor by its status", who: namespaceOwner(), asks: patchesNamespace(annotationPatch([]string{annotations.StatusFrozen, "x"}), "status"), denied: agents},
		{name: "nor by its end", who: namespaceOwner(), asks: finalizesNamespace(annotations.StatusFrozen, "x"), denied: agents},
		{name: "nor takes one away there", who: namespaceOwner(), asks: onNamespace(annotations.StatusFrozen, ""), denied: agents},
		{name: "nor by labelling it as a document", who: namespaceOwner(), asks: patchesNamespace(`{"metadata":{"labels":{"maint.dev/kind":"plan"},"annotations":{"status.maint.dev/frozen":null}}}`), denied: agents},
		{name: "nor who may write plans in it", who: person{name: "wendy"}, asks: patchesNamespace(`{"metadata":{"labels":{"maint.dev/kind":"policy"},"annotations":{"status.maint.dev/frozen":null}}}`), denied: agents},
		{name: "what bears a status is edited as ever", who: editor(), asks: patches("orders", `{"data":{"plan.yaml":"x"}}`)},
		{name: "a replace, which drops all of it, is not refused", who: editor(), asks: puts(document(annotations.KindPlan, "orders", func(cm *corev1.ConfigMap) { cm.Data["plan.yaml"] = "x" }))},
		{name: "a gate notes on an ordinary ConfigMap what it found, as the policy's account", who: account(l.ns, "maint-runner"), asks: annotates("app", annotations.StatusGate, "{}")},
		{name: "a run notes on its target what it handled", who: runOf(l.ns), asks: annotates("app", annotations.StatusHandled+"x", "1")},
		{name: "also where its target is a plan", who: runOf(l.ns), asks: annotates("orders", annotations.StatusHandled+"x", "1")},
		{name: "and nothing else there", who: runOf(l.ns), asks: annotates("orders", annotations.StatusHandled+"x", "1", annotations.StatusPhase, "Running"), denied: agents},
		{name: "nor takes what is there away", who: runOf(l.ns), asks: annotates("orders", annotations.StatusPhase, ""), denied: agents},
		{name: "nor on a run", who: runOf(l.ns), asks: annotates(liveRun, annotations.StatusHandled+"x", "1"), denied: agents},
		{name: "its account without a run does not", who: account(l.ns, "maint-runner"), asks: annotates("orders", annotations.StatusHandled+"x", "1"), denied: agents},
		{name: "nor a run of another namespace", who: withMasters(runOf("elsewhere")), asks: annotates("orders", annotations.StatusHandled+"x", "1"), denied: agents},
		{name: "who may restore brings a plan back with its status", who: restorer(), asks: creates(restored)},
		{name: "but changes none that stands there", who: restorer(), asks: annotates("orders", annotations.StatusPhase, "Running"), denied: agents},
		{name: "signs a run that came back without its signature, as adopt does", who: restorer(), asks: annotates(liveRun, annotations.StatusSignature, "x")},
		{name: "and changes nothing under it", who: restorer(), asks: annotates(liveRun, annotations.StatusSignature, "x", annotations.StatusPhase, "Succeeded"), denied: agents},
		{name: "nor signs a plan", who: restorer(), asks: annotates("orders", annotations.StatusSignature, "x"), denied: agents},
		{name: "who is bound to admin signs none", who: nsAdmin(), asks: annotates(liveRun, annotations.StatusSignature, "x"), denied: agents},
		{name: "the agent writes it", who: withMasters(agent()), asks: annotates("orders", annotations.StatusPhase, "Running")},
	})
}
