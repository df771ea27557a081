package admission_test

import (
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

// Each intent takes its verb. The tenant may write ConfigMaps and has none; the
// others have what the table of roles in docs/admission.md gives them.
func TestWhoGivesIntents(t *testing.T) {
	l := newLab(t)
	l.given(document(annotations.KindPlan, "orders"))
	l.given(document(annotations.KindPlan, "other"))
	l.given(document(annotations.KindPolicy, "weekends"))
	l.given(document(annotations.KindPlan, "held", annotated("maint.dev/pause", "true", "actor.maint.dev/pause", "eddy", "reason.maint.dev/pause", "stock taking", "maint.dev/bypass", "now: x")))
	l.given(document(annotations.KindHibernatePlan, "nights"))
	l.given(document(annotations.KindHibernatePlan, "held-asleep", annotated("maint.dev/hold-state", "asleep", "maint.dev/hold-until", "2027-01-01T00:00:00Z")))
	l.given(plain("app", annotated("maint.dev/bypass", "2027-01-01T00:00:00Z: x")))
	on := func(verb string) string { return "verb " + verb + " on plans.maint.dev/orders" }
	outside := `{"token":"1","reason":"x","outsideWindow":true}`

	l.table([]row{
		{name: "a tenant does not pause", who: tenant(), asks: annotates("orders", "maint.dev/pause", "true"), denied: on("pause")},
		{name: "nor resume a run", who: tenant(), asks: annotates("orders", "maint.dev/resume", "r"), denied: on("pause")},
		{name: "nor take a pause away", who: tenant(), asks: annotates("held", "maint.dev/pause", ""), denied: "verb pause"},
		{name: "nor say another reason for it", who: tenant(), asks: annotates("held", "reason.maint.dev/pause", "none"), denied: "verb pause"},
		{name: "nor skip", who: tenant(), asks: annotates("orders", "maint.dev/skip", "next"), denied: on("skip")},
		{name: "nor trigger", who: tenant(), asks: annotates("orders", "maint.dev/trigger", "1"), denied: on("trigger")},
		{name: "nor retry", who: tenant(), asks: annotates("orders", "maint.dev/retry", "r"), denied: on("trigger")},
		{name: "nor abort", who: tenant(), asks: annotates("orders", "maint.dev/abort", "r"), denied: on("abort")},
		{name: "nor approve", who: tenant(), asks: annotates("orders", "maint.dev/approve", "r"), denied: on("approve")},
		{name: "nor reject", who: tenant(), asks: annotates("orders", "maint.dev/reject", "r"), denied: on("approve")},
		{name: "nor bypass", who: tenant(), asks: annotates("orders", "maint.dev/bypass", "2027-01-01T00:00:00Z: x"), denied: on("override")},
		{name: "nor permit change for a while", who: tenant(), asks: annotates("orders", "maint.dev/permissive-until", "2027-01-01T00:00:00Z"), denied: on("override")},
		{name: "nor restrict it for a while", who: tenant(), asks: annotates("orders", "maint.dev/restrictive-until", "2027-01-01T00:00:00Z"), denied: on("override")},
		{name: "nor hold what sleeps awake", who: tenant(), asks: annotates("orders", "maint.dev/hold-state", "awake"), denied: on("override")},
		{name: "nor say until when", who: tenant(), asks: annotates("orders", "maint.dev/hold-until", "2027-01-01T00:00:00Z"), denied: on("override")},
		{name: "nor name another policy", who: tenant(), asks: annotates("orders", "maint.dev/change-policy", "always"), denied: on("write")},
		{name: "nor widen a template's contexts", who: tenant(), asks: annotates("orders", "maint.dev/permitted-contexts", "interactive"), denied: on("write")},
		{name: "nor bring intents along in a ConfigMap that could become a plan", who: tenant(), asks: creates(plain("new", annotated("maint.dev/trigger", "1"))), denied: "verb trigger"},
		{name: "but annotates with what is not ours", who: tenant(), asks: annotates("orders", "example.org/maint.dev", "x", "notmaint.dev/pause", "true")},

		{name: "also with more than is looked at", who: tenant(), asks: creates(plain("new", annotated(many(600, "k")...)))},
		{name: "a plan may not hide intents among so many", who: editor(), asks: annotates("orders", append(many(600, "k"), "maint.dev/bypass", "r: x")...), denied: "500 annotations at most"},
		{name: "nor may a namespace", who: namespaceOwner(), asks: onNamespace(append(many(600, "k"), "maint.dev/pause", "true")...), denied: "500 annotations at most"},

		{name: "who may trigger one plan triggers it", who: starter(), asks: annotates("orders", "maint.dev/trigger", "1", "reason.maint.dev/trigger", "x", "maint.dev/trigger-options", `{"token":"1"}`)},
		{name: "and retries it", who: starter(), asks: annotates("orders", "maint.dev/retry", "r")},
		{name: "and not another", who: starter(), asks: annotates("other", "maint.dev/trigger", "1"), denied: "plans.maint.dev/other"},
		{name: "nor outside of its window", who: starter(), asks: annotates("orders", "maint.dev/trigger", "1", "maint.dev/trigger-options", outside), denied: on("override")},
		{name: "however that is written", who: starter(), asks: annotates("orders", "maint.dev/trigger-options", `{"outsidewindow" :true}`), denied: on("override")},
		{name: "or escaped", who: starter(), asks: annotates("orders", "maint.dev/trigger-options", `{"outsid\u0065Window":true}`), denied: on("override")},
		{name: "or by a letter that folds to one", who: starter(), asks: annotates("orders", "maint.dev/trigger-options", `{"token":"1","out\u017fideWindow":true}`), denied: on("override")},
		{name: "while false is no override", who: starter(), asks: annotates("orders", "maint.dev/trigger-options", `{"token":"1","reason":"a < b \u0026 \u003c","outsideWindow": false}`)},
		{name: "who may abort aborts", who: aborter(), asks: annotates("orders", "maint.dev/abort", "r")},

		{name: "an approver approves a run", who: approver(), asks: annotates("orders", "maint.dev/approve", "r", "actor.maint.dev/approve", "ann")},
		{name: "rejects one", who: approver(), asks: annotates("orders", "maint.dev/reject", "r", "reason.maint.dev/reject", "x")},
		{name: "and nothing else: no pause", who: approver(), asks: annotates("orders", "maint.dev/pause", "true"), denied: on("pause")},
		{name: "no approval under which something else travels", who: approver(), asks: annotates("orders", "maint.dev/approve", "r", "maint.dev/bypass", "r: x"), denied: on("override")},

		{name: "who is bound to edit asks, skips, pauses and aborts", who: editor(), asks: annotates("orders", "maint.dev/trigger", "1", "maint.dev/skip", "true", "maint.dev/pause", "true", "maint.dev/abort", "r")},
		{name: "writes strategy and policy as part of the document", who: editor(), asks: annotates("orders", "maint.dev/change-strategy", "ByPolicy", "maint.dev/change-policy", "weekends")},
		{name: "pauses a policy", who: editor(), asks: annotates("weekends", "maint.dev/pause", "true")},
		{name: "does not approve", who: editor(), asks: annotates("orders", "maint.dev/approve", "r"), denied: on("approve")},
		{name: "does not override a policy", who: editor(), asks: annotates("weekends", "maint.dev/permissive-until", "2027-01-01T00:00:00Z"), denied: "verb override on policies.maint.dev/weekends"},
		{name: "does not bypass", who: editor(), asks: annotates("orders", "maint.dev/bypass", "r: x"), denied: on("override")},
		{name: "nor has a plan stay awake or asleep", who: editor(), asks: annotates("nights", "maint.dev/hold-state", "asleep"), denied: "verb override on plans.maint.dev/nights"},
		{name: "nor for longer", who: editor(), asks: annotates("nights", "maint.dev/hold-until", "2027-01-01T00:00:00Z"), denied: "verb override on plans.maint.dev/nights"},
		{name: "nor ends that", who: editor(), asks: annotates("held-asleep", "maint.dev/hold-state", "", "maint.dev/hold-until", ""), denied: "verb override on plans.maint.dev/held-asleep"},
		{name: "nor permits change for a while", who: editor(), asks: annotates("orders", "maint.dev/permissive-until", "2027-01-01T00:00:00Z"), denied: on("override")},
		{name: "nor restricts it for a while", who: editor(), asks: annotates("orders", "maint.dev/restrictive-until", "2027-01-01T00:00:00Z"), denied: on("override")},
		{name: "nor brings a hold along in a plan that is new", who: editor(), asks: creates(document(annotations.KindHibernatePlan, "new", annotated("maint.dev/hold-state", "asleep"))), denied: "verb override on plans.maint.dev/new"},
		{name: "nor smuggles a bypass in by labelling what bears one", who: editor(), asks: patches("app", `{"metadata":{"labels":{"maint.dev/kind":"plan"}}}`), denied: "verb override"},
		{name: "nor by making another kind of it", who: editor(), asks: patches("held", `{"metadata":{"labels":{"maint.dev/kind":"policy"}}}`), denied: "verb override on policies"},
		{name: "changes the text of a plan that bears one: it was there", who: editor(), asks: patches("held", `{"data":{"plan.yaml":"x"}}`)},
		{name: "who is bound to admin approves and overrides", who: nsAdmin(), asks: annotates("orders", "maint.dev/approve", "r", "maint.dev/bypass", "r: x", "maint.dev/permissive-until", "2027-01-01T00:00:00Z")},
		{name: "and has a plan stay asleep", who: nsAdmin(), asks: annotates("nights", "maint.dev/hold-state", "asleep", "maint.dev/hold-until", "2027-01-01T00:00:00Z")},
		{name: "and ends that", who: nsAdmin(), asks: annotates("held-asleep", "maint.dev/hold-state", "", "maint.dev/hold-until", "")},
		{name: "an admin gives all of them", who: admin(), asks: annotates("orders", "maint.dev/approve", "r", "maint.dev/bypass", "r: x", "maint.dev/pause", "true", "maint.dev/hold-state", "awake")},
		{name: "the agent takes away what it handled", who: withMasters(agent()), asks: annotates("held", "maint.dev/pause", "", "actor.maint.dev/pause", "", "reason.maint.dev/pause", "")},

		{name: "who writes namespaces does not pause one", who: namespaceOwner(), asks: onNamespace("maint.dev/pause", "true"), denied: "verb pause on plans.maint.dev in namespace " + l.ns},
		{name: "nor restrict it", who: namespaceOwner(), asks: onNamespace("maint.dev/change-strategy", "Restrictive"), denied: "verb override on plans.maint.dev in namespace"},
		{name: "nor pause the cluster on the agent's", who: namespaceOwner(), asks: onAgents("maint.dev/pause", "true"), denied: "verb pause on plans.maint.dev in the whole cluster"},
		{name: "nor by its status", who: namespaceOwner(), asks: patchesNamespace(annotationPatch([]string{"maint.dev/pause", "true"}), "status"), denied: "verb pause on plans.maint.dev in namespace"},
		{name: "nor by its end", who: namespaceOwner(), asks: finalizesNamespace("maint.dev/pause", "true"), denied: "verb pause on plans.maint.dev in namespace"},
		{name: "nor by calling it a policy, on which the verb is held", who: namespaceOwner(), asks: patchesNamespace(`{"metadata":{"labels":{"maint.dev/kind":"policy"},"annotations":{"maint.dev/pause":"true"}}}`), denied: "verb pause on plans.maint.dev in namespace"},
		{name: "but labels and annotates namespaces as ever", who: namespaceOwner(), asks: onNamespace("example.org/owner", "owen")},
		{name: "who may pause all plans pauses a namespace", who: clusterOperator(), asks: onNamespace("maint.dev/pause", "true", "maint.dev/change-strategy", "Restrictive")},
		{name: "and the cluster", who: clusterOperator(), asks: onAgents("maint.dev/pause", "true")},
	})
}
