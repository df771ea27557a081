package look_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// frozen and paused are annotations as freeze and pause write them.
func frozen(until, by, why string) []string {
	return []string{annotations.ChangeStrategy, "RestrictiveUntil", annotations.RestrictiveUntil, until, annotations.Actor(annotations.ChangeStrategy), by, annotations.Reason(annotations.ChangeStrategy), why}
}

func paused(by, why string) []string {
	return []string{annotations.Pause, "true", annotations.Actor(annotations.Pause), by, annotations.Reason(annotations.Pause), why}
}

func policyWith(namespace, name string, pairs ...string) *corev1.ConfigMap {
	cm := cmdtest.Policy(name, nights)
	cm.Namespace = namespace
	return noted(cm, pairs...)
}

func noted(cm *corev1.ConfigMap, pairs ...string) *corev1.ConfigMap {
	cmdtest.Noting(pairs...)(cm)
	return cm
}

func labelled(cm *corev1.ConfigMap, key, value string) *corev1.ConfigMap {
	cm.Labels[key] = value
	return cm
}

func nodeWith(name string, pairs ...string) *corev1.Node {
	n := cmdtest.Node(name)
	for i := 0; i < len(pairs); i += 2 {
		n.Annotations[pairs[i]] = pairs[i+1]
	}
	return n
}

const (
	later     = "2026-11-22T00:00:00Z"
	laterHere = "Sun 2026-11-22 01:00 CET (2026-11-22T00:00:00Z), in 24h0m"
	laterUTC  = "Sun 2026-11-22 00:00 UTC (2026-11-22T00:00:00Z), in 24h0m"
	idle      = "PLAN     PHASE   NEXT   LAST   MESSAGE\norders   Idle    -      -      -\n"
)

func TestStatusBeginsWithWhatIsPausedAndFrozen(t *testing.T) {
	shop, orders := cmdtest.Namespace("shop"), seen("orders", "")
	need := func(lines string) string { return "Needs somebody:\n" + lines + "\n" }
	runRows(t, []row{
		{name: "a frozen namespace", line: "status", world: objects(cmdtest.Namespace("shop", frozen(later, "jane", "go-live")...), orders), out: need("  namespace shop  is frozen until "+laterHere+", by jane (unverified): go-live\n    'kubectl maint freeze namespace/shop --end'\n") + idle},
		{name: "one that is closed for good", line: "status", world: objects(cmdtest.Namespace("shop", annotations.ChangeStrategy, "Restrictive"), orders), out: need("  namespace shop  is frozen\n    'kubectl maint freeze namespace/shop --end'\n") + idle},
		{name: "a freeze that is over", line: "status", world: objects(cmdtest.Namespace("shop", frozen("2026-11-20T00:00:00Z", "jane", "go-live")...), orders), out: idle},
		{name: "a frozen namespace without plans", line: "status", world: objects(cmdtest.Namespace("shop", frozen(later, "jane", "go-live")...)), out: need("  namespace shop  is frozen until "+laterHere+", by jane (unverified): go-live\n    'kubectl maint freeze namespace/shop --end'\n") + "no plans in namespace shop; 'kubectl maint new' asks for what one needs, 'kubectl maint schedule' writes one\n"},
		{name: "a paused namespace", line: "status", world: objects(cmdtest.Namespace("shop", paused("jane", "launch")...), orders), out: need("  namespace shop  is paused until resumed, by jane (unverified): launch\n    'kubectl maint resume --all'\n") + idle},
		{name: "a frozen policy, told in its zone", line: "status", world: objects(shop, policyWith("shop", "night", frozen(later, "jane", "go-live")...), orders), out: need("  policy night  is frozen until "+laterUTC+", by jane (unverified): go-live\n    'kubectl maint freeze policy/night --end'\n") + idle},
		{name: "a paused policy", line: "status", world: objects(shop, policyWith("shop", "night", paused("jane", "")...), orders), out: need("  policy night  is paused until resumed, by jane (unverified)\n    'kubectl maint resume policy/night'\n") + idle},
		{name: "a run whose plan was deleted", line: "status", world: objects(shop, live(cmdtest.Record("call", "webhook", run.StepRunning))), out: need("  orders  is deleted: the agent ends its run maint-run-orders-a with its restore and finally; it is Running for 1h0m, 0 of 1 steps done\n    'kubectl maint status maint-run-orders-a'\n") + "no plans in namespace shop; 'kubectl maint new' asks for what one needs, 'kubectl maint schedule' writes one\n"},
		{name: "a broken policy", line: "status", world: objects(shop, cmdtest.Policy("odd", "{strategy: Sometimes}"), orders), out: need("  policy odd  is not ready, so that nothing begins that waits for it: line 1: spec.strategy: \"Sometimes\" is no strategy of a policy; write Permissive, Restrictive or MaintenanceSchedule\n    'kubectl maint why policy/odd'\n") + idle},
		{name: "a policy whose gates do not hold", line: "status", world: objects(shop, gates("shut", "False", "Deployment nonesuch is not there"), orders), out: need("  policy shut  has gates that do not hold, so objects that they should close may be open: Deployment nonesuch is not there\n    'kubectl maint why policy/shut'\n") + idle},
		{name: "a skip that is not understood", line: "status", world: objects(shop, seen("orders", "", annotations.Skip, "next tuesday")), out: need("  orders  annotation maint.dev/skip: \"next tuesday\" is not understood: write true, next, until:<instant> or RFC 3339 slots; all slots are skipped until it is mended\n    'kubectl maint unskip orders'\n") + "PLAN     PHASE   NEXT   LAST   MESSAGE\norders   Idle    -      -      skips all slots, until 'unskip'\n"},
		{name: "a pause that is not understood", line: "status", world: objects(shop, seen("orders", "", annotations.Pause, "garbage")), out: need("  orders  annotation maint.dev/pause: \"garbage\" is neither true nor an RFC 3339 instant like 2026-12-01T06:00:00Z; it pauses until it is removed\n    'kubectl maint resume orders'\n  orders  is paused until resumed (maint.dev/pause: \"garbage\" is not understood)\n    'kubectl maint resume orders'\n") + idle},
		{name: "pauses of a namespace, a policy and a node that are not understood", line: "status", world: objects(cmdtest.Namespace("shop", annotations.Pause, "maybe"), policyWith("shop", "night", annotations.Pause, "maybe"), nodeWith("a", annotations.Pause, "maybe"), orders), out: need("  namespace shop  is paused until resumed (maint.dev/pause: \"maybe\" is not understood)\n    'kubectl maint resume --all'\n  policy night  is paused until resumed (maint.dev/pause: \"maybe\" is not understood)\n    'kubectl maint resume policy/night'\n  node a  is paused until resumed (maint.dev/pause: \"maybe\" is not understood)\n    'kubectl maint resume node/a'\n") + idle},
		{name: "a label that a tool applied again", line: "status", world: objects(shop, seen("orders", "", conditions("TriggerLabelReturns", "True", "the label a.org/upgrade came back")...)), out: need("  orders  does not run by its label: the label a.org/upgrade came back\n    'kubectl maint describe orders'\n") + idle},
		{name: "a policy whose gates hold", line: "status", world: objects(shop, gates("shut", "True", "1 object: 1 closed, 0 open"), orders), out: idle},
		{name: "one whose calendar is not there, and which is paused", line: "status", world: objects(shop, noted(cmdtest.Policy("odd", "{strategy: MaintenanceSchedule, maintenanceSchedule: {exclude: [{calendar: {name: ghost}}]}}"), paused("jane", "")...), orders), out: need("  policy odd  is not ready, so that nothing begins that waits for it: maintenanceSchedule.exclude[0].calendar: \"ghost\": there is no such Calendar document\n    'kubectl maint why policy/odd'\n  policy odd  is paused until resumed, by jane (unverified)\n    'kubectl maint resume policy/odd'\n") + idle},
		{name: "one whose calendar may not be read", line: "status", world: objects(shop, cmdtest.Policy("odd", "{strategy: MaintenanceSchedule, maintenanceSchedule: {exclude: [{calendar: {name: ghost, namespace: maint-system}}]}}"), orders), before: func(o *cmdtest.Cluster) { o.Forbids("list", "configmaps", "maint-system") }, out: idle},
		{name: "policies of the agent's namespace, as far as they are used", line: "status", world: objects(shop, policyWith("maint-system", "free", frozen(later, "jane", "x")...), policyWith("maint-system", "used", frozen(later, "jane", "go-live")...), seen("orders", "policies: [{name: used, namespace: maint-system}]")), out: need("  policy maint-system/used  is frozen until "+laterUTC+", by jane (unverified): go-live\n    'kubectl maint -n maint-system freeze policy/used --end'\n") + idle},
		{name: "a policy that a node uses", line: "status", world: objects(shop, policyWith("maint-system", "used", frozen(later, "jane", "go-live")...), nodeWith("worker-1", annotations.ChangePolicy, "used"), orders), out: need("  policy maint-system/used  is frozen until "+laterUTC+", by jane (unverified): go-live\n    'kubectl maint -n maint-system freeze policy/used --end'\n") + idle},
		{name: "nodes", line: "status", world: objects(shop, nodeWith("a", frozen(later, "jane", "disks")...), nodeWith("b", paused("joe", "")...), orders), out: need("  node a  is frozen until "+laterHere+", by jane (unverified): disks\n    'kubectl maint freeze node/a --end'\n  node b  is paused until resumed, by joe (unverified)\n    'kubectl maint resume node/b'\n") + idle},
		{name: "a frozen HibernatePlan", line: "status", world: objects(shop, cmdtest.Sleeper("office", "schedule: {offHours: [{start: '20:00', end: '06:00', daysOfWeek: [MON]}]}", cmdtest.Noting(append(frozen(later, "jane", "demo"), annotations.StatusPhase, "Active")...))), out: need("  office  is frozen until "+laterUTC+", by jane (unverified): demo\n    'kubectl maint freeze office --end'\n") + "HIBERNATEPLAN   PHASE    ASLEEP   NEXT                                      MESSAGE\noffice          Active   -        sleeps Mon 2026-11-23 20:00 UTC (2d20h)   -\n"},
		{name: "all namespaces, each with its own command", line: "status -A", world: objects(cmdtest.Namespace("shop", append(paused("jane", ""), frozen(later, "joe", "x")...)...), policyWith("shop", "night", paused("jane", "")...), orders), out: need("  namespace shop  is paused until resumed, by jane (unverified)\n    'kubectl maint -n shop resume --all'\n  namespace shop  is frozen until "+laterHere+", by joe (unverified): x\n    'kubectl maint freeze namespace/shop --end'\n  policy shop/night  is paused until resumed, by jane (unverified)\n    'kubectl maint -n shop resume policy/night'\n") + "NAMESPACE   PLAN     PHASE   NEXT   LAST   MESSAGE\nshop        orders   Idle    -      -      -\n"},
		{name: "all namespaces, also one in which no plan lies", line: "status -A", world: objects(shop, cmdtest.Namespace("mall", frozen(later, "joe", "x")...), orders), out: need("  namespace mall  is frozen until "+laterHere+", by joe (unverified): x\n    'kubectl maint freeze namespace/mall --end'\n") + "NAMESPACE   PLAN     PHASE   NEXT   LAST   MESSAGE\nshop        orders   Idle    -      -      -\n"},
		{name: "all namespaces, plans by their labels: only what holds these", line: "status -A -l team=a", world: objects(cmdtest.Namespace("shop", frozen(later, "jane", "y")...), cmdtest.Namespace("mall", frozen(later, "joe", "x")...), policyWith("mall", "night", paused("jane", "")...), labelled(seen("orders", ""), "team", "a")), out: need("  namespace shop  is frozen until "+laterHere+", by jane (unverified): y\n    'kubectl maint freeze namespace/shop --end'\n") + "NAMESPACE   PLAN     PHASE   NEXT   LAST   MESSAGE\nshop        orders   Idle    -      -      -\n"},
		{name: "who may not list namespaces sees those that have plans", line: "status -A", world: objects(cmdtest.Namespace("shop", frozen(later, "jane", "y")...), cmdtest.Namespace("mall", frozen(later, "joe", "x")...), orders), before: func(o *cmdtest.Cluster) { o.Forbids("list", "namespaces", "") }, out: need("  namespace shop  is frozen until "+laterHere+", by jane (unverified): y\n    'kubectl maint freeze namespace/shop --end'\n") + "NAMESPACE   PLAN     PHASE   NEXT   LAST   MESSAGE\nshop        orders   Idle    -      -      -\n"},
		{name: "who may not read the namespace is warned of nothing", line: "status", world: objects(cmdtest.Namespace("shop", frozen(later, "jane", "go-live")...)), before: func(o *cmdtest.Cluster) { o.Forbids("get", "namespaces", "") }, err: "No resources found in shop namespace.\nno plans in namespace shop; 'kubectl maint new' asks for what one needs, 'kubectl maint schedule' writes one\n"},
	})
}

// Who may not read the namespace has the agent's word, which stands on each plan, also on one that waits
// for somebody.
func TestStatusOfWhoMayNotReadThatTheNamespaceIsFrozen(t *testing.T) {
	says := func(reason string) *corev1.ConfigMap {
		return seen("orders", "", annotations.StatusBehavior, `{"current":{"state":"ChangesPaused","reason":"`+reason+`"}}`)
	}
	unsaid := says("namespace: Restrictive")
	unsaid.Annotations[annotations.StatusObserved] = "another"
	forbidden := func(o *cmdtest.Cluster) { o.Forbids("get", "namespaces", "") }
	const used, hidden = "; the answer that the agent published is used\n", "warning: read namespace shop: namespaces is forbidden: not for you"
	need := func(what string) string {
		return "Needs somebody:\n  namespace shop  " + what + "\n    'kubectl maint freeze namespace/shop --end'\n\n" + idle
	}
	runRows(t, []row{
		{name: "until an instant", line: "status", world: objects(cmdtest.Namespace("shop"), says("namespace: RestrictiveUntil "+later+" by jane (unverified): go-live")), before: forbidden, out: need("is frozen until " + laterHere + ", by jane (unverified): go-live, says the agent"), err: hidden + used},
		{name: "with a reason alone", line: "status", world: objects(cmdtest.Namespace("shop"), says("namespace: RestrictiveUntil "+later+": go-live")), before: forbidden, out: need("is frozen until " + laterHere + ": go-live, says the agent"), err: hidden + used},
		{name: "for good", line: "status", world: objects(cmdtest.Namespace("shop"), says("namespace: Restrictive")), before: forbidden, out: need("is frozen, says the agent"), err: hidden + used},
		{name: "in all namespaces", line: "status -A -o jsonpath={.items[1].metadata.name}:{.items[1].needs[0].what}", world: objects(cmdtest.Namespace("shop"), says("namespace: Restrictive")), before: func(o *cmdtest.Cluster) {
			forbidden(o)
			o.Forbids("list", "namespaces", "")
		}, out: "shop:is frozen, says the agent", err: hidden + used},
		{name: "a freeze that is over", line: "status", world: objects(cmdtest.Namespace("shop"), says("namespace: RestrictiveUntil 2026-11-20T00:00:00Z by jane")), before: forbidden, out: idle, err: hidden + used},
		{name: "of an earlier version", line: "status", world: objects(cmdtest.Namespace("shop"), unsaid), before: forbidden, out: "PLAN     PHASE    NEXT   LAST   MESSAGE\norders   Unseen   -      -      the agent has not looked at this version of the plan yet\n", err: hidden + "; whether it is frozen is not known, so nothing is permitted\n"},
		{name: "another cause", line: "status", world: objects(cmdtest.Namespace("shop"), says("policy night: Restrictive")), before: forbidden, out: idle, err: hidden + used},
		{name: "what is read counts", line: "status", world: objects(cmdtest.Namespace("shop"), says("namespace: Restrictive")), out: idle},
	})
}

func TestStatusTellsThePauseOfTheClusterOnce(t *testing.T) {
	for line, want := range map[string]string{
		"status":    "Needs somebody:\n  the whole cluster  is paused until resumed, by jane (unverified): outage\n    'kubectl maint resume --all -A'\n\n" + idle,
		"status -A": "Needs somebody:\n  the whole cluster  is paused until resumed, by jane (unverified): outage\n    'kubectl maint resume --all -A'\n\nNAMESPACE   PLAN     PHASE   NEXT   LAST   MESSAGE\nshop        orders   Idle    -      -      -\n",
	} {
		t.Run(line, func(t *testing.T) {
			o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), cmdtest.Namespace("maint-system", paused("jane", "outage")...), cmdtest.Namespace("shop"), seen("orders", ""))
			o.Line(line).Is(t, cmdtest.Printed{Out: want})
		})
	}
}

func TestStatusForScriptsHasWhatIsPausedAndFrozen(t *testing.T) {
	world := func() []runtime.Object {
		return objects(cmdtest.Namespace("shop", frozen(later, "jane", "go-live")...), policyWith("shop", "night", paused("jane", "")...), nodeWith("a", paused("joe", "")...), cmdtest.Node("b"))
	}
	runRows(t, []row{
		{name: "with the commands that help", line: "status -o 'jsonpath={range .items[*]}{.kind} {.metadata.namespace}/{.metadata.name}: {.needs[0].what}: {.needs[0].remedy}\n{end}'", world: world(), out: "NamespaceStatus /shop: is frozen until " + laterHere + ", by jane (unverified): go-live: 'kubectl maint freeze namespace/shop --end'\nPolicyStatus shop/night: is paused until resumed, by jane (unverified): 'kubectl maint resume policy/night'\nNodeStatus /a: is paused until resumed, by joe (unverified): 'kubectl maint resume node/a'\n"},
		{name: "by name", line: "status -o name", world: world(), out: "namespace/shop\npolicy/night\nnode/a\n"},
		{name: "in full", line: "status -o json", world: objects(cmdtest.Namespace("shop"), policyWith("shop", "night", paused("jane", "")...)), out: cmdtest.JSON(`{"apiVersion":"maint.dev/v1alpha1","items":[{"apiVersion":"maint.dev/v1alpha1","kind":"PolicyStatus","metadata":{"name":"night","namespace":"shop"},"needs":[{"remedy":"'kubectl maint resume policy/night'","what":"is paused until resumed, by jane (unverified)"}]}],"kind":"StatusList"}`)},
	})
}
