package admission_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

// Writing a document takes write on it, and impersonate on the account it acts as:
// the tenant may write ConfigMaps, the editor is bound to edit, which holds both.
func TestWhoWritesDocuments(t *testing.T) {
	l := newLab(t)
	orders := l.given(document(annotations.KindPlan, "orders"))
	l.given(document(annotations.KindCalendar, "holidays"))
	l.given(document(annotations.KindAgentConfig, "maint-agent"))
	l.given(plain("app"))
	l.role(person{name: "will"}, rule("", "configmaps", nil, "*"), rule("maint.dev", "plans", []string{"orders"}, "write"))
	l.must(world.may(l.ctx, person{name: "will"}, l.ns, "write", "maint.dev", "plans", "orders"))
	l.role(person{name: "ruth"}, rule("", "configmaps", nil, "*"), rule("maint.dev", "plans", nil, "write"), rule("", "serviceaccounts", []string{"maint-runner"}, "impersonate"))
	l.must(world.may(l.ctx, person{name: "ruth"}, l.ns, "impersonate", "", "serviceaccounts", "maint-runner"))
	writer, runner := person{name: "will"}, person{name: "ruth"}
	const noWrite, noAccount = "verb write on plans.maint.dev", "impersonate on that account"

	l.table([]row{
		{name: "a tenant with ConfigMaps alone creates no plan", who: tenant(), asks: creates(document(annotations.KindPlan, "new")), denied: noWrite},
		{name: "nor a template, a connector or a document of a kind to come", who: tenant(), asks: creates(document("prices", "new")), denied: noWrite},
		{name: "nor a policy, which takes a verb on policies", who: tenant(), asks: creates(document(annotations.KindPolicy, "new")), denied: "verb write on policies.maint.dev"},
		{name: "nor changes a plan's text", who: tenant(), asks: patches("orders", `{"data":{"plan.yaml":"x"}}`), denied: noWrite},
		{name: "nor adds binary data", who: tenant(), asks: patches("orders", `{"binaryData":{"plan.yaml.gz":"eA=="}}`), denied: noWrite},
		{name: "nor makes it immutable", who: tenant(), asks: patches("orders", `{"immutable":true}`), denied: noWrite},
		{name: "nor has it act as another account", who: tenant(), asks: patches("orders", `{"metadata":{"labels":{"maint.dev/service-account":"root"}}}`), denied: noWrite},
		{name: "nor gives it an owner, whose end would delete it", who: tenant(), asks: patches("orders", `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"gone","uid":"1"}]}}`), denied: noWrite},
		{name: "nor deletes it", who: tenant(), asks: deletes("orders"), denied: noWrite},
		{name: "nor all of them, by no name", who: tenant(), asks: deletesAll("maint.dev/kind=plan"), denied: noWrite},
		{name: "nor takes the label away, which is deleting it", who: tenant(), asks: patches("orders", `{"metadata":{"labels":{"maint.dev/kind":null}}}`), denied: "may not take the document orders away"},
		{name: "nor makes a plan of a ConfigMap", who: tenant(), asks: patches("app", `{"metadata":{"labels":{"maint.dev/kind":"plan"}}}`), denied: noWrite},
		{name: "nor a calendar of a plan", who: tenant(), asks: patches("orders", `{"metadata":{"labels":{"maint.dev/kind":"calendar"}}}`), denied: "policies.maint.dev"},
		{name: "but writes other ConfigMaps as ever", who: tenant(), asks: patches("app", `{"data":{"a":"c"}}`)},
		{name: "and other people's labels and annotations on a plan", who: tenant(), asks: patches("orders", `{"metadata":{"labels":{"team":"shop"},"annotations":{"example.org/note":"x"}}}`)},

		{name: "who may write this plan does not without its account", who: writer, asks: patches("orders", `{"data":{"plan.yaml":"x"}}`), denied: noAccount},
		{name: "nor another plan", who: writer, asks: creates(document(annotations.KindPlan, "other")), denied: noWrite},
		{name: "but deletes it: that acts as nobody", who: writer, asks: deletes("orders")},
		{name: "who may act as maint-runner writes plans of it", who: runner, asks: creates(document(annotations.KindPlan, "new"))},
		{name: "and no plan that acts as another account", who: runner, asks: creates(document(annotations.KindPlan, "new", labelled(annotations.LabelServiceAccount, "root"))), denied: "ServiceAccount root"},
		{name: "nor a template of one", who: runner, asks: creates(document(annotations.KindStepTemplate, "new", labelled(annotations.LabelServiceAccount, "root"))), denied: "ServiceAccount root"},

		{name: "who is bound to edit creates plans", who: editor(), asks: creates(document(annotations.KindPlan, "new"))},
		{name: "changes them", who: editor(), asks: patches("orders", `{"data":{"plan.yaml":"x"}}`)},
		{name: "puts them", who: editor(), asks: puts(document(annotations.KindPlan, "orders"))},
		{name: "deletes them", who: editor(), asks: deletes("orders")},
		{name: "writes policies, calendars and templates", who: editor(), asks: creates(document(annotations.KindPolicy, "new"))},
		{name: "a calendar acts as nobody, and takes write on policies alone", who: editor(), asks: patches("holidays", `{"data":{"calendar.ics":"x"}}`)},
		{name: "but not the agent's own configuration, which limits them", who: editor(), asks: patches("maint-agent", `{"data":{"config.yaml":"x"}}`), denied: "verb override on plans.maint.dev"},
		{name: "nor takes it away", who: editor(), asks: deletes("maint-agent"), denied: "verb override on plans.maint.dev"},
		{name: "nor makes a plan of it", who: editor(), asks: patches("maint-agent", `{"metadata":{"labels":{"maint.dev/kind":"plan"}}}`), denied: "verb override on plans.maint.dev"},
		{name: "nor makes another", who: editor(), asks: creates(document(annotations.KindAgentConfig, "new")), denied: "verb override on plans.maint.dev"},
		{name: "who is bound to admin edits it", who: nsAdmin(), asks: patches("maint-agent", `{"data":{"config.yaml":"x"}}`)},
		{name: "an approver does not edit what may be patched for an approval", who: approver(), asks: patches("orders", `{"data":{"plan.yaml":"x"}}`), denied: noWrite},
		{name: "an admin does all of it", who: admin(), asks: puts(document(annotations.KindPlan, "orders", func(cm *corev1.ConfigMap) { cm.UID = orders.UID }))},
		{name: "these policies are not in the agent's way", who: withMasters(agent()), asks: annotates("orders", annotations.StatusPhase, "Idle", annotations.Skip, "")},
	})
}

// Each kind that has the agent act as an account takes impersonate on that account, as well as
// write: of whoever makes it, and of whoever has it act as another one.
func TestWhatActsAsAnAccountTakesImpersonate(t *testing.T) {
	l := newLab(t)
	writer, runner := person{name: "wendy"}, person{name: "rosa"}
	maps, write := rule("", "configmaps", nil, "*"), rule("maint.dev", "plans,policies", nil, "write")
	l.role(writer, maps, write)
	l.role(runner, maps, write, rule("", "serviceaccounts", []string{"maint-runner"}, "impersonate"))
	l.must(world.may(l.ctx, writer, l.ns, "write", "maint.dev", "plans", "x"))
	l.must(world.may(l.ctx, runner, l.ns, "impersonate", "", "serviceaccounts", "maint-runner"))
	root := labelled(annotations.LabelServiceAccount, "root")
	const turns = `{"metadata":{"labels":{"maint.dev/service-account":"root"}}}`

	var rows []row
	for _, kind := range []string{annotations.KindPlan, annotations.KindHibernatePlan, annotations.KindPolicy, annotations.KindStepTemplate, annotations.KindConnector} {
		l.given(document(kind, kind))
		rows = append(rows,
			row{name: kind + ": a tenant makes none of another account", who: tenant(), asks: creates(document(kind, "new", root)), denied: "verb write on"},
			row{name: kind + ": nor turns one to it", who: tenant(), asks: patches(kind, turns), denied: "verb write on"},
			row{name: kind + ": write alone makes none of maint-runner", who: writer, asks: creates(document(kind, "new")), denied: "ServiceAccount maint-runner: it takes the verb impersonate"},
			row{name: kind + ": nor changes one", who: writer, asks: patches(kind, `{"data":{"plan.yaml":"x"}}`), denied: "ServiceAccount maint-runner: it takes the verb impersonate"},
			row{name: kind + ": impersonate on maint-runner makes one of it", who: runner, asks: creates(document(kind, "new"))},
			row{name: kind + ": and none of another account", who: runner, asks: creates(document(kind, "new", root)), denied: "ServiceAccount root: it takes the verb impersonate"},
			row{name: kind + ": nor turns one to it", who: runner, asks: patches(kind, turns), denied: "ServiceAccount root: it takes the verb impersonate"},
			row{name: kind + ": who is bound to edit may impersonate each account of the namespace", who: editor(), asks: creates(document(kind, "new", root))},
		)
	}
	l.table(append(rows,
		row{name: "a calendar acts as nobody", who: writer, asks: creates(document(annotations.KindCalendar, "new", root))},
	))
}

// withMasters is somebody whom RBAC lets do everything, so that the policies decide.
func withMasters(p person) person {
	p.groups = append(p.groups, "system:masters")
	return p
}
