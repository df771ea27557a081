package look_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
)

// gateRecord is what the agent wrote down of the gates of a policy.
func gateRecord(name string, edits ...func(*corev1.ConfigMap)) *corev1.ConfigMap {
	api := policy.GateEntry{GateRule: policy.GateRule{APIVersion: "apps/v1", Kind: "Deployment", Name: "api", Knob: "deployment"}, Account: "maint-runner"}
	cm, err := annotations.GateObject("shop", policy.GateRecord{Policy: name, Entries: []policy.GateEntry{api}})
	if err != nil {
		panic(err)
	}
	cm = cmdtest.Signed(cm)
	for _, edit := range edits {
		edit(cm)
	}
	return cm
}

// A policy is asked for by the same commands as a plan.
func TestAPolicyIsShown(t *testing.T) {
	const refused = "the ServiceAccount maint-runner may not list deployments.apps"
	const document = "\nDocument:\n  {apiVersion: maint.dev/v1alpha1, kind: Policy, spec: {strategy: Restrictive}}\n"
	shop, open := cmdtest.Namespace("shop"), cmdtest.Policy("open", "{strategy: Permissive}")
	const odd = "line 1: spec.strategy: \"Sometimes\" is no strategy of a policy; write Permissive, Restrictive or MaintenanceSchedule"
	const storm = "the whole cluster is paused by jane (unverified): storm"
	stopped := func(o *cmdtest.Cluster) {
		o.Stores("namespaces", cmdtest.Namespace("maint-system", paused("jane", "storm")...))
	}
	blind := func(o *cmdtest.Cluster) { stopped(o); o.Forbids("get", "namespaces", "maint-system") }
	unlisted := func(o *cmdtest.Cluster) { o.Forbids("list", "configmaps", "shop") }
	const listed = "warning: read the policies of namespace shop: configmaps is forbidden: not for you; "
	told := func() *corev1.ConfigMap {
		cm := cmdtest.Policy("open", "{strategy: Permissive}")
		return noted(cm, annotations.StatusObserved, annotations.Observed(cm), annotations.StatusBehavior, `{"current":{"state":"ChangesUnpaused","reason":"Permissive"}}`)
	}
	const unknown = "whether the whole cluster is paused cannot be read"
	const warned = "warning: read namespace maint-system: namespaces is forbidden: not for you; whether the whole cluster is paused is not known, so nothing is permitted\n"
	runRows(t, []row{
		{name: "its gates hold", line: "status shut", world: objects(shop, gates("shut", "True", "2 objects: 1 closed, 1 open (closed: Deployment shop/api)")), out: "Policy:  shut in namespace shop\nChange:  change is not permitted (Restrictive)\n         until somebody changes it\nGates:   hold: 2 objects: 1 closed, 1 open (closed: Deployment shop/api)\n"},
		{name: "they do not", line: "status policy/shut", world: objects(shop, gates("shut", "False", refused)), out: "Needs somebody:\n  policy shut  has gates that do not hold, so objects that they should close may be open: " + refused + "\n    'kubectl maint why policy/shut'\n\nPolicy:  shut in namespace shop\nChange:  change is not permitted (Restrictive)\n         until somebody changes it\nGates:   do not hold: " + refused + "\n"},
		{name: "it is paused", line: "status shut", world: objects(shop, noted(cmdtest.Policy("shut", "{strategy: Permissive}"), paused("jane", "audit")...)), out: "Needs somebody:\n  policy shut  is paused until resumed, by jane (unverified): audit\n    'kubectl maint resume policy/shut'\n\nPolicy:  shut in namespace shop\nChange:  change is not permitted (paused by jane (unverified): audit)\n         until somebody changes it\nPause:   until resumed, by jane (unverified): audit\n"},
		{name: "it is not ready", line: "status odd", world: objects(shop, cmdtest.Policy("odd", "{strategy: Sometimes}")), out: "Needs somebody:\n  policy odd  is not ready, so that nothing begins that waits for it: " + odd + "\n    'kubectl maint why policy/odd'\n\nPolicy:  odd in namespace shop\nChange:  change is not permitted (not ready: " + odd + ")\n         until that is mended\n"},
		{name: "the whole cluster is paused", line: "status open", world: objects(shop, open), before: stopped, out: "Policy:  open in namespace shop\nChange:  change is not permitted (" + storm + ")\n         until somebody changes it\nPause:   the whole cluster is paused until resumed, by jane (unverified): storm\n"},
		{name: "the whole cluster is paused: check", line: "check open", world: objects(shop, open), before: stopped, code: 3, out: "policy/open: change is not permitted (" + storm + ")\nuntil somebody changes it\n"},
		{name: "the whole cluster is paused: why", line: "why open", world: objects(shop, open), before: stopped, code: 3, out: "policy/open: change is not permitted (" + storm + ")\nuntil somebody changes it\nto end the pause: 'kubectl maint resume --all -A'\n"},
		{name: "whether it is may not be read", line: "status open", world: objects(shop, open), before: blind, out: "Policy:  open in namespace shop\nChange:  whether change is permitted is not known (" + unknown + ")\n         until that can be read, or the agent says it\n", err: warned},
		{name: "whether it is may not be read: check", line: "check open", world: objects(shop, open), before: blind, code: 3, out: "policy/open: whether change is permitted is not known (" + unknown + ")\nuntil that can be read, or the agent says it\n", err: warned},
		{name: "whether it is may not be read: check for a script that wants no words", line: "check open -q", world: objects(shop, open), before: blind, code: 3},
		{name: "whether it is may not be read: why", line: "why open", world: objects(shop, open), before: blind, code: 3, out: "policy/open: whether change is permitted is not known (" + unknown + ")\nuntil that can be read, or the agent says it\nwho may read it sees more: ask for the right that the warning names\n", err: warned},
		{name: "whether it is may not be read: what is closed says why", line: "check shut", world: objects(shop, gates("shut", "True", "")), before: blind, code: 3, out: "policy/shut: change is not permitted (Restrictive)\nuntil somebody changes it\n", err: warned},
		{name: "whether it is may not be read: a plan that the agent has seen", line: "check orders", world: objects(shop, seen("orders", "")), before: blind, out: "plan/orders: change is permitted (no strategy is set)\nuntil somebody changes it\n"},
		{name: "whether it is may not be read: a plan that it has not", line: "check orders", world: objects(shop, cmdtest.Plan("orders", "")), before: blind, code: 3, out: "plan/orders: whether change is permitted is not known (" + unknown + ")\nuntil that can be read, or the agent says it\n", err: warned},
		{name: "the policies of its namespace may not be listed", line: "check open", world: objects(shop, open), before: unlisted, code: 3, out: "policy/open: whether change is permitted is not known (the policies of namespace shop cannot be read)\nuntil that can be read, or the agent says it\n", err: listed + "its policies count as not ready\n"},
		{name: "the policies of its namespace may not be listed, and the agent has said what it permits", line: "check open", world: objects(shop, told()), before: unlisted, out: "policy/open: change is permitted (Permissive, says the agent)\nuntil somebody changes it\n", err: listed + "the answer that the agent published is used\n"},
		{name: "nor may whether the whole cluster is paused be read, which the agent has said", line: "check open", world: objects(shop, told()), before: func(o *cmdtest.Cluster) { unlisted(o); blind(o) }, out: "policy/open: change is permitted (Permissive, says the agent)\nuntil somebody changes it\n", err: listed + "the answer that the agent published is used\n"},
		{name: "for scripts", line: "status shut -o jsonpath={.kind}:{.permission.permitted}:{.needs[0].what}", world: objects(shop, gates("shut", "False", refused)), out: "PolicyStatus:false:has gates that do not hold, so objects that they should close may be open: " + refused},
		{name: "all of it", line: "describe shut", world: objects(shop, gates("shut", "False", refused)), out: "Policy:      shut in namespace shop\nChange:      change is not permitted (Restrictive)\n             until somebody changes it\nGates:       do not hold: " + refused + "\nConditions:  Gates=False " + refused + "\n" + document},
		{name: "all of it, for scripts", line: "describe shut -o jsonpath={.spec.strategy}", world: objects(shop, gates("shut", "False", refused)), out: "Restrictive"},
		{name: "one that is broken", line: "describe odd", world: objects(shop, cmdtest.Policy("odd", "{strategy: Sometimes}")), out: "Policy:  odd in namespace shop\nChange:  change is not permitted (not ready: line 1: spec.strategy: \"Sometimes\" is no strategy of a policy; write Permissive, Restrictive or MaintenanceSchedule)\n         until that is mended\n\nFaults:\n  line 1: spec.strategy: \"Sometimes\" is no strategy of a policy; write Permissive, Restrictive or MaintenanceSchedule\n\nDocument:\n  {apiVersion: maint.dev/v1alpha1, kind: Policy, spec: {strategy: Sometimes}}\n"},
	})
}

// Of a node, the agent may have published that change is permitted before it has found until when.
func TestAWindowClosesWhenIsNotKnownYet(t *testing.T) {
	open := func(start string, edits ...func(*corev1.Node)) []runtime.Object {
		said := `{"current":{"state":"ChangesUnpaused",` + start + `"reason":"policy night: in a window; when that changes is not known yet"}}`
		return objects(cmdtest.Node("a", append(edits, cmdtest.Asked("gpu", ""), cmdtest.Noted(annotations.StatusBehavior, said))...))
	}
	const began = `"startTime":"2026-11-20T22:00:00Z",`
	blind := func(o *cmdtest.Cluster) { o.Forbids("get", "namespaces", "maint-system") }
	const warned = "warning: read namespace maint-system: namespaces is forbidden: not for you; the answer that the agent published is used\n"
	runRows(t, []row{
		{name: "for people", line: "next node/a", world: open(began), before: blind, out: "OPENS                      CLOSES          UTC                             NOTE\nFri 2026-11-20 23:00 CET   not known yet   Fri 2026-11-20 22:00 UTC to …   -\n", err: warned},
		{name: "for a machine", line: "next node/a -o json", world: open(began), before: blind, out: cmdtest.JSON(`{"apiVersion":"maint.dev/v1alpha1","items":[{"start":"2026-11-20T22:00:00Z","note":"when it closes is not known yet"}],"kind":"WindowList"}`), err: warned},
		{name: "nor is its start", line: "next node/a", world: open(""), before: blind, out: "OPENS          CLOSES          UTC   NOTE\nalready open   not known yet   -     -\n", err: warned},
		{name: "on a node that is paused", line: "next node/a", world: open("", cmdtest.Noted(annotations.Pause, "true")), before: blind, out: "OPENS          CLOSES          UTC   NOTE\nalready open   not known yet   -     paused\n", err: warned},
	})
}

// What the gates of a policy hold that was deleted stays closed until an agent opens it.
func TestAPolicyThatIsGoneWhileItsGatesAreNotOpen(t *testing.T) {
	shop, orders := cmdtest.Namespace("shop"), seen("orders", "")
	unsigned := func(cm *corev1.ConfigMap) { delete(cm.Annotations, annotations.StatusSignature) }
	const held = "is deleted, and its gates may still hold Deployment/api closed: "
	opens, stays := held+"the agent opens them, as it found them", held+"nothing opens them, since ConfigMap "+annotations.GateName("shut")+" does not count: it carries no signature of the agent's"
	sign := "'kubectl maint adopt " + annotations.GateName("shut") + "'"
	stale := cmdtest.Agent()
	stale.Data["heartbeat"] = "2026-11-20T23:00:00Z"
	runRows(t, []row{
		{name: "status", line: "status", world: objects(shop, orders, gateRecord("shut")), out: "Needs somebody:\n  policy shut  " + opens + "\n    'kubectl maint why policy/shut'\n\n" + idle},
		{name: "status, of all namespaces", line: "status -A", world: objects(shop, orders, gateRecord("shut")), out: "Needs somebody:\n  policy shop/shut  " + opens + "\n    'kubectl maint -n shop why policy/shut'\n\nNAMESPACE   PLAN     PHASE   NEXT   LAST   MESSAGE\nshop        orders   Idle    -      -      -\n"},
		{name: "for scripts", line: "status -o jsonpath={.items[1].kind}:{.items[1].metadata.name}:{.items[1].needs[0].what}", world: objects(shop, orders, gateRecord("shut")), out: "PolicyStatus:shut:" + opens},
		{name: "its record does not count", line: "status", world: objects(shop, orders, gateRecord("shut", unsigned)), out: "Needs somebody:\n  policy shut  " + stays + "\n    " + sign + "\n\n" + idle},
		{name: "a policy that is there", line: "status", world: objects(shop, orders, gates("shut", "True", "1 object"), gateRecord("shut")), out: idle},
		{name: "why", line: "why shut", world: objects(shop, gateRecord("shut")), code: 3, err: "error: policy shut " + opens + "\n"},
		{name: "why, with its kind", line: "why policy/shut", world: objects(shop, gateRecord("shut")), code: 3, err: "error: policy shut " + opens + "\n"},
		{name: "why, without an agent", line: "why shut", world: objects(shop, gateRecord("shut")), before: func(o *cmdtest.Cluster) { o.Stores("configmaps", stale) }, code: 3, err: "warning: the agent in namespace maint-system was last seen 1h0m0s ago (Sat 2026-11-21 00:00 CET): see 'kubectl -n maint-system get pods'\nerror: policy shut " + opens + "; no agent is at work: the agent in namespace maint-system was last seen 1h0m0s ago (Sat 2026-11-21 00:00 CET): see 'kubectl -n maint-system get pods'\n"},
		{name: "why, where its record does not count", line: "why shut", world: objects(shop, gateRecord("shut", unsigned)), code: 3, err: "error: policy shut " + stays + "; if it is the agent's own, sign it with " + sign + "\n"},
	})
}

// In a namespace that is being deleted nothing begins, and nothing is advised that cannot work.
func TestANamespaceThatIsBeingDeleted(t *testing.T) {
	going := cmdtest.Namespace("shop")
	going.DeletionTimestamp, going.Finalizers = new(metav1.NewTime(cmdtest.Now().Add(-time.Second))), []string{"kubernetes"}
	const what = "the namespace is being deleted"
	const need = "Needs somebody:\n  namespace shop  is being deleted: nothing begins in it, and changes by its runs are not put back\n    'kubectl describe namespace shop'\n\n"
	runRows(t, []row{
		{name: "status", line: "status", world: objects(going, seen("orders", "")), out: need + idle},
		{name: "status without plans", line: "status", world: objects(going), out: need + "no plans in namespace shop, which is being deleted\n"},
		{name: "status of a plan", line: "status orders", world: objects(going, seen("orders", "")), out: "Needs somebody:\n  orders  can begin no run: the namespace is being deleted\n    'kubectl describe namespace shop'\n\nPlan:        orders in namespace shop\nPhase:       Idle\nCannot run:  " + what + "\n"},
		{name: "why", line: "why orders", world: objects(going, seen("orders", daily)), code: 3, out: "1. " + what + ": nothing begins in it, and changes by runs are not put back\n   'kubectl describe namespace shop' tells what it still waits for\n"},
		{name: "trigger", line: "trigger orders", world: objects(going, seen("orders", "")), code: 3, err: "error: " + what + ", so nothing begins in it; nothing was asked\n"},
	})
	// Who may not read the namespace has the agent's word, on each plan, also of an earlier version.
	told := seen("orders", daily, conditions(annotations.NamespaceDeleting, "True", what+": nothing begins in it")...)
	nights := cmdtest.Sleeper("nights", "schedule: {offHours: [{start: '20:00', end: '06:00'}]}", cmdtest.Noting(conditions(annotations.NamespaceDeleting, "True", what)...))
	forbidden := func(o *cmdtest.Cluster) { o.Forbids("get", "namespaces", "") }
	const hidden = "warning: read namespace shop: namespaces is forbidden: not for you; the answer that the agent published is used\n"
	runRows(t, []row{
		{name: "told: status", line: "status", world: objects(cmdtest.Namespace("shop"), told), before: forbidden, out: need + idle, err: hidden},
		{name: "told: status of a plan", line: "status orders -o jsonpath={.needs[0].what}", world: objects(cmdtest.Namespace("shop"), told), before: forbidden, out: "can begin no run: " + what, err: hidden},
		{name: "told: why", line: "why orders", world: objects(cmdtest.Namespace("shop"), told), before: forbidden, code: 3, out: "1. " + what + ": nothing begins in it, and changes by runs are not put back\n   'kubectl describe namespace shop' tells what it still waits for\n", err: hidden},
		{name: "told: trigger", line: "trigger orders", world: objects(cmdtest.Namespace("shop"), told), before: forbidden, code: 3, err: "error: " + what + ", says the agent, so nothing begins in it; nothing was asked\n"},
		{name: "told: next", line: "next orders -o jsonpath={.items[0].note}", world: objects(cmdtest.Namespace("shop"), told), before: forbidden, out: what, err: hidden + "warning: " + what + ", so nothing begins in it; apart from that, this is the answer for plan/orders\n"},
		{name: "told: next of a sleep", line: "next nights --count 1 -o jsonpath={.items[0].note}", world: objects(cmdtest.Namespace("shop"), nights), before: forbidden, out: what, err: hidden},
		{name: "what is read counts", line: "why orders -o jsonpath={.inTheWay}", world: objects(cmdtest.Namespace("shop"), told), out: "[]"},
	})
}
