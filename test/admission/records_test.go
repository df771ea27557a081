package admission_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

const (
	liveRun  = "maint-run-orders-aaaaaaaaaa"
	endedRun = "maint-run-orders-bbbbbbbbbb"
	ledgerOf = "maint-ledger-orders-aaaaaaaaaa"
	gateOf   = "maint-gate-weekends-aaaaaaaaaa"
)

// The agent's own records are written by the agent alone.
func TestWhoWritesRecords(t *testing.T) {
	l := newLab(t)
	orders := l.given(document(annotations.KindPlan, "orders"))
	of := labelled(annotations.LabelPlan, "orders")
	l.given(document(annotations.KindRun, liveRun, of, alive))
	l.given(document(annotations.KindRun, endedRun, of, owned("orders", orders.UID)))
	l.given(document(annotations.KindLedger, ledgerOf, of, owned("orders", orders.UID)))
	l.given(document(annotations.KindGate, gateOf))
	l.given(plain("maint-ledger-mine"))
	l.given(plain("app"))
	const theirs = "it is the agent's own record"
	forged := document(annotations.KindRun, "maint-run-orders-cccccccccc", of)
	signed := forged.DeepCopy()
	signed.Annotations = map[string]string{annotations.StatusSignature: "x"}
	collector := func(name string) person { return account("kube-system", name) }

	l.table([]row{
		{name: "nobody writes a run by hand: not a tenant", who: tenant(), asks: creates(forged), denied: theirs},
		{name: "nor who is bound to admin", who: nsAdmin(), asks: creates(forged), denied: theirs},
		{name: "nor an admin of the cluster", who: admin(), asks: creates(forged), denied: theirs},
		{name: "nor a plan in one of its steps", who: withMasters(runOf(l.ns)), asks: creates(forged), denied: theirs},
		{name: "nor by another name", who: tenant(), asks: creates(document(annotations.KindRun, "mine", of)), denied: theirs},
		{name: "nor by a name that is made up for it", who: editor(), asks: createsAs("maint-run-orders-"), denied: theirs},
		{name: "nor something that is none under such a name, where the agent's would stand", who: tenant(), asks: creates(plain("maint-ledger-orders-dddddddddd")), denied: theirs},
		{name: "nor a heartbeat", who: tenant(), asks: creates(document(annotations.KindHeartbeat, "alive")), denied: theirs},
		{name: "nor a run of what is a plan now", who: editor(), asks: patches("orders", `{"metadata":{"labels":{"maint.dev/kind":"run"}}}`), denied: theirs},
		{name: "nor of an ordinary ConfigMap", who: tenant(), asks: patches("app", `{"metadata":{"labels":{"maint.dev/kind":"ledger"}}}`), denied: theirs},
		{name: "nobody changes a journal", who: admin(), asks: patches(liveRun, `{"data":{"journal.json":"{}"}}`), denied: theirs},
		{name: "nor what of it is compressed", who: tenant(), asks: patches(liveRun, `{"binaryData":{"steps.json.gz":"eA=="}}`), denied: theirs},
		{name: "nor keeps the agent from writing it", who: tenant(), asks: patches(liveRun, `{"immutable":true}`), denied: theirs},
		{name: "nor says that it has ended", who: tenant(), asks: patches(liveRun, `{"metadata":{"labels":{"maint.dev/phase":"Succeeded"}}}`), denied: theirs},
		{name: "nor whose it is", who: tenant(), asks: patches(liveRun, `{"metadata":{"labels":{"maint.dev/plan":"other"}}}`), denied: theirs},
		{name: "nor unlabels it, to change it then", who: tenant(), asks: patches(liveRun, `{"metadata":{"labels":{"maint.dev/kind":null}},"data":{"journal.json":"{}"}}`), denied: theirs},
		{name: "nor makes a plan of it", who: editor(), asks: patches(liveRun, `{"metadata":{"labels":{"maint.dev/kind":"plan"}}}`), denied: theirs},
		{name: "nor takes off what keeps it until its cleanup ran", who: editor(), asks: patches(liveRun, `{"metadata":{"finalizers":null}}`), denied: theirs},
		{name: "nor gives it an owner", who: tenant(), asks: patches(liveRun, `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"gone","uid":"1"}]}}`), denied: theirs},
		{name: "nor changes a ledger", who: nsAdmin(), asks: patches(ledgerOf, `{"data":{"ledger.json":"{}"}}`), denied: theirs},
		{name: "others' labels and annotations are free", who: tenant(), asks: patches(liveRun, `{"metadata":{"labels":{"team":"shop"},"annotations":{"example.org/note":"x"}}}`)},
		{name: "what bore such a name before is its owner's", who: tenant(), asks: patches("maint-ledger-mine", `{"data":{"a":"c"}}`)},
		{name: "and may go", who: tenant(), asks: deletes("maint-ledger-mine")},
		{name: "the agent writes all of it", who: withMasters(agent()), asks: patches(liveRun, `{"metadata":{"finalizers":null,"labels":{"maint.dev/phase":"Succeeded"}},"data":{"journal.json":"{}"}}`)},

		{name: "a tenant deletes no live run", who: tenant(), asks: deletes(liveRun), denied: "verb abort on plans.maint.dev/orders"},
		{name: "who may abort does, which aborts it", who: aborter(), asks: deletes(liveRun)},
		{name: "but not an ended run: that is the plan's history", who: aborter(), asks: deletes(endedRun), denied: "verb write on plans.maint.dev/orders"},
		{name: "who is bound to edit deletes both", who: editor(), asks: deletes(endedRun)},
		{name: "by no name, too", who: editor(), asks: deletesAll("maint.dev/kind=run")},
		{name: "a ledger is not theirs to delete", who: nsAdmin(), asks: deletes(ledgerOf), denied: "verb restore on plans.maint.dev"},
		{name: "by no name neither", who: nsAdmin(), asks: deletesAll("maint.dev/kind=ledger"), denied: "verb restore"},
		{name: "nor the record of a gate", who: nsAdmin(), asks: deletes(gateOf), denied: "verb restore on policies.maint.dev"},
		{name: "who may restore deletes a ledger", who: restorer(), asks: deletes(ledgerOf)},
		{name: "and the record of a gate", who: restorer(), asks: deletes(gateOf)},
		{name: "brings that back from a backup", who: restorer(), asks: creates(document(annotations.KindGate, "maint-gate-weekends-bbbbbbbbbb", annotated("status.maint.dev/signature", "x")))},
		{name: "and restore data", who: restorer(), asks: creates(document(annotations.KindRestore, "maint-restore-nights-bbbbbbbbbb"))},
		{name: "mends what it says", who: restorer(), asks: patches(gateOf, `{"data":{"gate.json":"{}"}}`)},
		{name: "a run that the agent signed", who: restorer(), asks: creates(signed)},
		{name: "and none that it did not", who: restorer(), asks: creates(forged), denied: theirs},
		{name: "while a signature alone brings none back", who: nsAdmin(), asks: creates(signed), denied: "nora may not write"},
		{name: "nor changes a journal", who: restorer(), asks: patches(liveRun, `{"data":{"journal.json":"{}"}}`), denied: theirs},
		{name: "but lets a run go that no agent will end", who: restorer(), asks: patches(liveRun, `{"metadata":{"finalizers":null}}`)},
		{name: "as an admin does", who: admin(), asks: patches(liveRun, `{"metadata":{"finalizers":null}}`)},

		{name: "the garbage collector deletes", who: collector("generic-garbage-collector"), asks: deletes(ledgerOf)},
		{name: "and unties", who: collector("generic-garbage-collector"), asks: patches(ledgerOf, `{"metadata":{"ownerReferences":null,"finalizers":["orphan"]}}`)},
		{name: "and writes nothing else", who: collector("generic-garbage-collector"), asks: patches(ledgerOf, `{"data":{"ledger.json":"{}"}}`), denied: theirs},
		{name: "the namespace controller deletes", who: collector("namespace-controller"), asks: deletesAll("maint.dev/kind")},
	})
}

// Restore data says how many replicas wake, and whether something wakes at all: nobody changes it,
// takes it away or unties it who has not the verb restore, whatever else they may do in the namespace.
func TestWhoWritesRestoreData(t *testing.T) {
	l := newLab(t)
	const restoreOf, theirs = "maint-restore-nights-aaaaaaaaaa", "it is the agent's own record"
	ties := func(cm *corev1.ConfigMap) { cm.Finalizers = []string{annotations.RestoreFinalizer} }
	l.given(document(annotations.KindHibernatePlan, "nights"))
	l.given(document(annotations.KindRestore, restoreOf, labelled(annotations.LabelPlan, "nights"), ties))
	changed := patches(restoreOf, `{"data":{"restore.json":"{}"}}`)
	untied := patches(restoreOf, `{"metadata":{"finalizers":null}}`)

	var rows []row
	for name, who := range map[string]person{"a tenant": tenant(), "who is bound to edit": editor(), "who is bound to admin": nsAdmin(), "a plan in one of its steps": runOf(l.ns)} {
		rows = append(rows,
			row{name: name + " makes none", who: who, asks: creates(document(annotations.KindRestore, "maint-restore-nights-bbbbbbbbbb")), denied: theirs},
			row{name: name + " makes none by another name", who: who, asks: creates(document(annotations.KindRestore, "mine")), denied: theirs},
			row{name: name + " does not change it", who: who, asks: changed, denied: theirs},
			row{name: name + " does not add to it", who: who, asks: patches(restoreOf, `{"binaryData":{"restore.json.gz":"eA=="}}`), denied: theirs},
			row{name: name + " does not keep the agent from changing it", who: who, asks: patches(restoreOf, `{"immutable":true}`), denied: theirs},
			row{name: name + " does not give it to another plan", who: who, asks: patches(restoreOf, `{"metadata":{"labels":{"maint.dev/plan":"other"}}}`), denied: theirs},
			row{name: name + " does not unlabel it, to change it then", who: who, asks: patches(restoreOf, `{"metadata":{"labels":{"maint.dev/kind":null}}}`), denied: theirs},
			row{name: name + " does not give it an owner that takes it along", who: who, asks: patches(restoreOf, `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"gone","uid":"1"}]}}`), denied: theirs},
			row{name: name + " does not take off what keeps it until all is awake", who: who, asks: untied, denied: theirs},
			row{name: name + " does not delete it", who: who, asks: deletes(restoreOf), denied: "verb restore on plans.maint.dev"},
			row{name: name + " does not delete all of it, by no name", who: who, asks: deletesAll("maint.dev/kind=restore"), denied: "verb restore on plans.maint.dev"},
		)
	}
	for name, who := range map[string]person{"who may restore": restorer(), "an admin of the cluster": admin()} {
		rows = append(rows,
			row{name: name + " mends it", who: who, asks: changed},
			row{name: name + " unties it", who: who, asks: untied},
			row{name: name + " deletes it", who: who, asks: deletes(restoreOf)},
		)
	}
	l.table(append(rows,
		row{name: "the agent changes it", who: withMasters(agent()), asks: changed},
		row{name: "and unties it", who: withMasters(agent()), asks: untied},
		row{name: "others' labels and annotations are free", who: tenant(), asks: patches(restoreOf, `{"metadata":{"labels":{"team":"shop"},"annotations":{"example.org/note":"x"}}}`)},
		row{name: "the namespace controller deletes it", who: account("kube-system", "namespace-controller"), asks: deletesAll("maint.dev/kind=restore")},
	))
}

// createsAs has the API server make the name.
func createsAs(prefix string) request {
	return func(l *lab, k kubernetes.Interface) (metav1.Object, error) {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: prefix}}
		return k.CoreV1().ConfigMaps(l.ns).Create(l.ctx, cm, metav1.CreateOptions{DryRun: dry})
	}
}
