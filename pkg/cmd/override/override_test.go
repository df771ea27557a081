package override_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
)

const nights = "{strategy: MaintenanceSchedule, maintenanceSchedule: {timezone: America/New_York, windows: [{start: '22:00', end: '02:00'}]}}"

const actor = "Jane@example.com"

// row is a command line, what it printed, and what it changed of the annotations of its object.
type row struct {
	name   string
	line   string   // as Words splits it
	spec   string   // of plan orders, beside its step
	notes  []string // of plan orders
	before func(*cmdtest.Cluster)
	code   int
	out    string
	err    string
	wrote  map[string]string // annotations that are new or another; empty: gone
}

// notesOf are the annotations of an object by its name as the lists print it.
func notesOf(o *cmdtest.Cluster, object string) map[string]string {
	var meta metav1.Object
	var err error
	switch object {
	case "node/worker-1":
		meta, err = o.Kube.CoreV1().Nodes().Get(o.Context(), "worker-1", metav1.GetOptions{})
	case "namespace/shop":
		meta, err = o.Kube.CoreV1().Namespaces().Get(o.Context(), "shop", metav1.GetOptions{})
	default:
		return o.Notes(object)
	}
	if err != nil {
		o.Fatal(err)
	}
	return meta.GetAnnotations()
}

func TestAllowAndFreeze(t *testing.T) {
	override := func(strategy, key, until, reason string) map[string]string {
		return map[string]string{
			annotations.ChangeStrategy: strategy, key: until,
			annotations.Actor(annotations.ChangeStrategy): actor, annotations.Reason(annotations.ChangeStrategy): reason,
		}
	}
	const late = "2026-11-21T02:00:00Z"
	allowed := override("PermissiveUntil", annotations.PermissiveUntil, late, "CHG-1")
	frozen := override("RestrictiveUntil", annotations.RestrictiveUntil, late, "CHG-1")
	stands := []string{annotations.ChangeStrategy, "RestrictiveUntil", annotations.RestrictiveUntil, "2026-12-01T00:00:00Z", annotations.Actor(annotations.ChangeStrategy), "joe", annotations.Reason(annotations.ChangeStrategy), "go-live"}
	held := []string{annotations.Pause, "true", annotations.Actor(annotations.Pause), "joe", annotations.Reason(annotations.Pause), "disks"}
	clusterPaused := func(o *cmdtest.Cluster) { o.Creates(cmdtest.Namespace("maint-system", held...)) }
	settings := func(o *cmdtest.Cluster) {
		o.Creates(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "settings", UID: "settings", Labels: map[string]string{"app": "web"}}})
	}
	gated := func(o *cmdtest.Cluster) {
		settings(o)
		o.Creates(cmdtest.Policy("gates", "{strategy: Restrictive, gates: [{apiVersion: v1, kind: ConfigMap, selector: {matchLabels: {app: web}}, knob: {path: /metadata/labels/closed, closed: \"true\", open: null}}]}"))
	}
	const butPaused = "but the whole cluster is paused until resumed, by joe (unverified): disks; 'allow' does not end that: run 'kubectl maint resume --all -A'\n"
	namespaceFrozen := func(o *cmdtest.Cluster) { o.Stores("namespaces", cmdtest.Namespace("shop", stands...)) }
	const binds = "namespace/shop is RestrictiveUntil Tue 2026-12-01 01:00 CET by joe (unverified): go-live, which binds everything in it; 'allow' does not end that: run 'kubectl maint freeze namespace/shop --end'\n"
	office := func(o *cmdtest.Cluster) { o.Creates(cmdtest.Sleeper("office", "policies: [{name: night}]")) }
	again := map[string]string{annotations.RestrictiveUntil: late, annotations.Actor(annotations.ChangeStrategy): actor, annotations.Reason(annotations.ChangeStrategy): "CHG-1"}
	const gone = "  this replaces what was there: it was frozen until Mon 2026-11-30 19:00 EST (2026-12-01T00:00:00Z), in 10d0h, by joe (unverified): go-live; that does not come back by itself: run 'kubectl maint freeze policy/night --until 2026-12-01T00:00:00Z --reason go-live'\n"
	none := map[string]string{}
	for _, key := range []string{annotations.ChangeStrategy, annotations.RestrictiveUntil, annotations.Actor(annotations.ChangeStrategy), annotations.Reason(annotations.ChangeStrategy)} {
		none[key] = ""
	}
	for _, c := range []struct {
		row    row
		object string // that is written
		notes  []string
	}{
		{object: "night", row: row{name: "a policy, for a while, told in its zone", line: "allow night --for 2h --reason CHG-1", out: "policy/night allowed until Fri 2026-11-20 21:00 EST (2026-11-21T02:00:00Z)\n", wrote: allowed}},
		{object: "night", row: row{name: "a policy, until a time of its zone", line: "allow policy/night --until 'fri 21:00' --reason CHG-1", out: "policy/night allowed until Fri 2026-11-20 21:00 EST (2026-11-21T02:00:00Z)\n", wrote: allowed}},
		{object: "night", row: row{name: "a policy, until a time of another zone", line: "allow night --until 'sat 03:00' --timezone Europe/Berlin --reason CHG-1", out: "policy/night allowed until Sat 2026-11-21 03:00 CET (2026-11-21T02:00:00Z)\n", wrote: allowed}},
		{object: "night", row: row{name: "a policy, closed", line: "freeze night --for 2h --reason CHG-1", out: "policy/night frozen until Fri 2026-11-20 21:00 EST (2026-11-21T02:00:00Z)\n", wrote: frozen}},
		{object: "night", notes: stands, row: row{name: "one takes the other's place, with all that was said of it", line: "allow night --for 2h --reason CHG-1", out: "policy/night allowed until Fri 2026-11-20 21:00 EST (2026-11-21T02:00:00Z)\n" + gone, wrote: map[string]string{
			annotations.ChangeStrategy: "PermissiveUntil", annotations.PermissiveUntil: late, annotations.RestrictiveUntil: "",
			annotations.Actor(annotations.ChangeStrategy): actor, annotations.Reason(annotations.ChangeStrategy): "CHG-1",
		}}},
		{object: "night", notes: stands, row: row{name: "a shorter freeze in place of a longer one", line: "freeze night --for 2h --reason CHG-1", out: "policy/night frozen until Fri 2026-11-20 21:00 EST (2026-11-21T02:00:00Z)\n" + gone, wrote: again}},
		{object: "night", notes: stands, row: row{name: "one that would take another's place, tried", line: "allow night --for 2h --reason CHG-1 --dry-run", out: "policy/night allowed until Fri 2026-11-20 21:00 EST (2026-11-21T02:00:00Z) (dry run)\n" + gone}},
		{object: "night", notes: []string{annotations.ChangeStrategy, "PermissiveUntil", annotations.PermissiveUntil, "2026-12-01T00:00:00Z", annotations.Actor(annotations.ChangeStrategy), "joe", annotations.Reason(annotations.ChangeStrategy), "$(id)"}, row: row{name: "a freeze in place of a permission, whose reason a shell would run", line: "freeze night --for 2h --reason CHG-1", out: "policy/night frozen until Fri 2026-11-20 21:00 EST (2026-11-21T02:00:00Z)\n  this replaces what was there: it was allowed until Mon 2026-11-30 19:00 EST (2026-12-01T00:00:00Z), in 10d0h, by joe (unverified): $(id); that does not come back by itself: run 'kubectl maint allow policy/night --until 2026-12-01T00:00:00Z --reason \\$\\(id\\)'\n", wrote: map[string]string{
			annotations.ChangeStrategy: "RestrictiveUntil", annotations.RestrictiveUntil: late, annotations.PermissiveUntil: "",
			annotations.Actor(annotations.ChangeStrategy): actor, annotations.Reason(annotations.ChangeStrategy): "CHG-1",
		}}},
		{object: "orders", row: row{name: "a plan behind which a policy stands, frozen before", notes: stands, spec: "policies: [{name: night}]", line: "freeze orders --for 2h --reason CHG-1", out: "plan/orders frozen until Sat 2026-11-21 03:00 CET (2026-11-21T02:00:00Z)\n  this replaces what was there: it was frozen until Tue 2026-12-01 01:00 CET (2026-12-01T00:00:00Z), in 10d0h, by joe (unverified): go-live; that does not come back by itself: run 'kubectl maint freeze plan/orders --until 2026-12-01T00:00:00Z --reason go-live'\n", wrote: again}},
		{object: "night", notes: []string{annotations.ChangeStrategy, "RestrictiveUntil", annotations.RestrictiveUntil, "2026-11-20T00:00:00Z", annotations.Actor(annotations.ChangeStrategy), "joe"}, row: row{name: "in place of a freeze that is over", line: "freeze night --for 2h --reason CHG-1", out: "policy/night frozen until Fri 2026-11-20 21:00 EST (2026-11-21T02:00:00Z)\n", wrote: again}},
		{object: "night", notes: stands, row: row{name: "its end", line: "freeze night --end", out: "policy/night no longer frozen or allowed: it was frozen until Mon 2026-11-30 19:00 EST (2026-12-01T00:00:00Z), in 10d0h, by joe (unverified): go-live\n", wrote: none}},
		{object: "night", notes: stands, row: row{name: "the end of what a colleague froze, by the other command", line: "allow night --end", out: "policy/night no longer frozen or allowed: it was frozen until Mon 2026-11-30 19:00 EST (2026-12-01T00:00:00Z), in 10d0h, by joe (unverified): go-live\n", wrote: none}},
		{object: "night", notes: []string{annotations.ChangeStrategy, "PermissiveUntil", annotations.PermissiveUntil, "2026-12-01T00:00:00Z", annotations.Actor(annotations.ChangeStrategy), "joe"}, row: row{name: "the end of a permission", line: "allow night --end", out: "policy/night no longer frozen or allowed: it was allowed until Mon 2026-11-30 19:00 EST (2026-12-01T00:00:00Z), in 10d0h, by joe (unverified)\n", wrote: map[string]string{annotations.ChangeStrategy: "", annotations.PermissiveUntil: "", annotations.Actor(annotations.ChangeStrategy): ""}}},
		{object: "night", notes: []string{annotations.ChangeStrategy, "Restrictive"}, row: row{name: "the end of what was closed for good", line: "freeze night --end", out: "policy/night no longer frozen or allowed: it was frozen\n", wrote: map[string]string{annotations.ChangeStrategy: ""}}},
		{object: "night", notes: []string{annotations.ChangeStrategy, "RestrictiveUntil", annotations.RestrictiveUntil, "2026-11-20T00:00:00Z"}, row: row{name: "the end of a freeze that is over", line: "freeze night --end", out: "policy/night was not frozen or allowed\n", wrote: map[string]string{annotations.ChangeStrategy: "", annotations.RestrictiveUntil: ""}}},
		{object: "namespace/shop", row: row{name: "a namespace", line: "freeze namespace/shop --for 2h --reason CHG-1", out: "namespace/shop frozen until Sat 2026-11-21 03:00 CET (2026-11-21T02:00:00Z)\n", wrote: frozen}},
		{object: "node/worker-1", row: row{name: "a node", line: "freeze node/worker-1 --for 2h --reason CHG-1", out: "node/worker-1 frozen until Sat 2026-11-21 03:00 CET (2026-11-21T02:00:00Z)\n", wrote: frozen}},
		{object: "node/worker-1", notes: []string{annotations.ChangePolicy, "maint-system/night"}, row: row{name: "a node behind which a policy stands", line: "allow node/worker-1 --for 2h --reason CHG-1", out: "node/worker-1 allowed until Sat 2026-11-21 03:00 CET (2026-11-21T02:00:00Z)\n", wrote: allowed}},
		{object: "node/worker-1", row: row{name: "a node behind which none stands", line: "allow node/worker-1 --for 2h --reason CHG-1", code: 1, err: "error: node/worker-1 has no policy, so change is permitted already; nothing was written, since this permission would close it at its end\n"}},
		{object: "node/worker-1", notes: stands, row: row{name: "a node behind which none stands, which is frozen", line: "allow node/worker-1 --for 2h --reason CHG-1", code: 1, err: "error: node/worker-1 is frozen until Tue 2026-12-01 01:00 CET (2026-12-01T00:00:00Z), in 10d0h, by joe (unverified): go-live; 'kubectl maint freeze node/worker-1 --end' ends that, and no policy applies that 'allow' could override\n"}},
		{object: "namespace/shop", notes: stands, row: row{name: "a namespace behind which none stands, which is frozen", line: "allow namespace/shop --for 2h --reason CHG-1", code: 1, err: "error: namespace/shop is frozen until Tue 2026-12-01 01:00 CET (2026-12-01T00:00:00Z), in 10d0h, by joe (unverified): go-live; 'kubectl maint freeze namespace/shop --end' ends that, and no policy applies that 'allow' could override\n"}},
		{object: "orders", row: row{name: "a plan behind which none stands, which is frozen", notes: stands, line: "allow orders --for 2h --reason CHG-1", code: 1, err: "error: plan/orders is frozen until Tue 2026-12-01 01:00 CET (2026-12-01T00:00:00Z), in 10d0h, by joe (unverified): go-live; 'kubectl maint freeze plan/orders --end' ends that, and no policy applies that 'allow' could override\n"}},
		{object: "node/worker-1", notes: []string{annotations.ChangeStrategy, "RestrictiveUntil", annotations.RestrictiveUntil, "2026-11-20T00:00:00Z"}, row: row{name: "a node behind which none stands, whose freeze is over", line: "allow node/worker-1 --for 2h --reason CHG-1", code: 1, err: "error: node/worker-1 has no policy, so change is permitted already; nothing was written, since this permission would close it at its end\n"}},
		{object: "node/worker-1", notes: []string{annotations.ChangeStrategy, "Closed"}, row: row{name: "a node whose strategy is not understood", line: "allow node/worker-1 --for 2h --reason CHG-1", code: 1, err: "error: node/worker-1: maint.dev/change-strategy: \"Closed\" is no strategy, and change is not permitted: write ByPolicy, Permissive, Restrictive, PermissiveUntil or RestrictiveUntil; 'kubectl maint freeze node/worker-1 --end' ends that, and no policy applies that 'allow' could override\n"}},
		{object: "node/worker-1", notes: append(held[:2:2], stands...), row: row{name: "a node that is frozen and paused, in a cluster that is", before: clusterPaused, line: "allow node/worker-1 --for 2h --reason CHG-1", code: 1, err: "error: node/worker-1 is paused until resumed; 'allow' does not end that: run 'kubectl maint resume node/worker-1'\nerror: the whole cluster is paused until resumed, by joe (unverified): disks; 'allow' does not end that: run 'kubectl maint resume --all -A'\nerror: node/worker-1 is frozen until Tue 2026-12-01 01:00 CET (2026-12-01T00:00:00Z), in 10d0h, by joe (unverified): go-live; 'kubectl maint freeze node/worker-1 --end' ends that, and no policy applies that 'allow' could override\n"}},
		{object: "node/worker-1", notes: held, row: row{name: "a node that is paused", line: "allow node/worker-1 --for 2h --reason CHG-1", code: 1, err: "error: node/worker-1 is paused until resumed, by joe (unverified): disks; 'allow' does not end that: run 'kubectl maint resume node/worker-1'\n"}},
		{object: "node/worker-1", notes: []string{annotations.Pause, "2026-11-20T00:00:00Z"}, row: row{name: "a node whose pause is over", line: "allow node/worker-1 --for 2h --reason CHG-1", code: 1, err: "error: node/worker-1 has no policy, so change is permitted already; nothing was written, since this permission would close it at its end\n"}},
		{object: "namespace/shop", notes: held, row: row{name: "a namespace that is paused", line: "allow namespace/shop --for 2h --reason CHG-1", code: 1, err: "error: namespace/shop is paused until resumed, by joe (unverified): disks; 'allow' does not end that: run 'kubectl maint resume --all'\n"}},
		{object: "orders", row: row{name: "a plan that is paused", notes: held, line: "allow orders --for 2h --reason CHG-1", code: 1, err: "error: plan/orders is paused until resumed, by joe (unverified): disks; 'allow' does not end that: run 'kubectl maint resume plan/orders'\n"}},
		{object: "orders", row: row{name: "a plan whose namespace is paused", before: func(o *cmdtest.Cluster) { o.Stores("namespaces", cmdtest.Namespace("shop", held...)) }, line: "allow orders --for 2h --reason CHG-1", code: 1, err: "error: namespace shop is paused until resumed, by joe (unverified): disks; 'allow' does not end that: run 'kubectl maint resume --all'\n"}},
		{object: "node/worker-1", row: row{name: "a node, while the cluster is paused", before: clusterPaused, line: "allow node/worker-1 --for 2h --reason CHG-1", code: 1, err: "error: the whole cluster is paused until resumed, by joe (unverified): disks; 'allow' does not end that: run 'kubectl maint resume --all -A'\n"}},
		{object: "node/worker-1", notes: []string{annotations.ChangePolicy, "maint-system/night"}, row: row{name: "a node behind which a policy stands, while the cluster is paused", before: clusterPaused, line: "allow node/worker-1 --for 2h --reason CHG-1", out: "node/worker-1 allowed until Sat 2026-11-21 03:00 CET (2026-11-21T02:00:00Z)\n", err: butPaused, wrote: allowed}},
		{object: "night", row: row{name: "a policy, while the cluster is paused", before: clusterPaused, line: "allow night --for 2h --reason CHG-1", out: "policy/night allowed until Fri 2026-11-20 21:00 EST (2026-11-21T02:00:00Z)\n", err: butPaused, wrote: allowed}},
		{object: "orders", row: row{name: "a plan behind which a policy stands, while the cluster is paused", before: clusterPaused, spec: "policies: [{name: night}]", line: "allow orders --for 2h --reason CHG-1", out: "plan/orders allowed until Sat 2026-11-21 03:00 CET (2026-11-21T02:00:00Z)\n", err: butPaused, wrote: allowed}},
		{object: "namespace/shop", notes: []string{annotations.ChangePolicy, "night"}, row: row{name: "a namespace, while the cluster is paused", before: clusterPaused, line: "allow namespace/shop --for 2h --reason CHG-1", out: "namespace/shop allowed until Sat 2026-11-21 03:00 CET (2026-11-21T02:00:00Z)\n", err: butPaused, wrote: allowed}},
		{object: "node/worker-1", row: row{name: "a node, frozen while the cluster is paused", before: clusterPaused, line: "freeze node/worker-1 --for 2h --reason CHG-1", out: "node/worker-1 frozen until Sat 2026-11-21 03:00 CET (2026-11-21T02:00:00Z)\n", wrote: frozen}},
		{object: "night", notes: held, row: row{name: "a policy that is paused, as is its namespace: both pauses go on", line: "allow night --for 2h --reason CHG-1", out: "policy/night allowed until Fri 2026-11-20 21:00 EST (2026-11-21T02:00:00Z)\n", err: "but policy/night is paused until resumed, by joe (unverified): disks; 'allow' does not end that: run 'kubectl maint resume policy/night'\nbut namespace shop is paused until resumed, by joe (unverified): disks; 'allow' does not end that: run 'kubectl maint resume --all'\n", wrote: allowed}},
		{object: "night", notes: held, row: row{name: "a policy that is paused, frozen as well", line: "freeze night --for 2h --reason CHG-1", out: "policy/night frozen until Fri 2026-11-20 21:00 EST (2026-11-21T02:00:00Z)\n", wrote: frozen}},
		{object: "office", row: row{name: "a HibernatePlan behind which a policy stands", before: func(o *cmdtest.Cluster) { o.Creates(cmdtest.Sleeper("office", "policies: [{name: night}]")) }, line: "allow configmap/office --for 2h --reason CHG-1", out: "configmap/office allowed until Sat 2026-11-21 03:00 CET (2026-11-21T02:00:00Z)\n", wrote: allowed}},
		{object: "office", row: row{name: "a HibernatePlan behind which none stands", before: func(o *cmdtest.Cluster) { o.Creates(cmdtest.Sleeper("office", "")) }, line: "allow configmap/office --for 2h --reason CHG-1", code: 1, err: "error: configmap/office has no policy, so change is permitted already; nothing was written, since this permission would close it at its end\n"}},
		{object: "orders", row: row{name: "a plan behind which a policy stands", spec: "policies: [{name: night}]", line: "allow orders --for 2h --reason CHG-1", out: "plan/orders allowed until Sat 2026-11-21 03:00 CET (2026-11-21T02:00:00Z)\n", wrote: allowed}},
		{object: "orders", row: row{name: "a plan behind which none stands", line: "allow orders --for 2h --reason CHG-1", code: 1, err: "error: plan/orders has no policy, so change is permitted already; nothing was written, since this permission would close it at its end\n"}},
		{object: "orders", row: row{name: "a plan behind which none stands, in a namespace that is frozen", before: namespaceFrozen, line: "allow orders --for 2h --reason CHG-1", code: 1, err: "error: " + binds}},
		{object: "orders", row: row{name: "a plan behind which a policy stands, in a namespace that is frozen", before: namespaceFrozen, spec: "policies: [{name: night}]", line: "allow orders --for 2h --reason CHG-1", out: "plan/orders allowed until Sat 2026-11-21 03:00 CET (2026-11-21T02:00:00Z)\n", err: "but " + binds, wrote: allowed}},
		{object: "orders", row: row{name: "a plan, frozen in a namespace that is frozen", before: namespaceFrozen, line: "freeze orders --for 2h --reason CHG-1", out: "plan/orders frozen until Sat 2026-11-21 03:00 CET (2026-11-21T02:00:00Z)\n", wrote: frozen}},
		{object: "night", notes: []string{annotations.ChangeStrategy, "Restrictive"}, row: row{name: "what somebody closed for good", line: "allow night --for 2h --reason CHG-1", code: 1, err: "error: policy/night is Restrictive by its annotation maint.dev/change-strategy, which would be lost: remove it first (--end)\n"}},
		{object: "night", row: row{name: "a trial", line: "freeze night --for 2h --reason CHG-1 --dry-run", out: "policy/night frozen until Fri 2026-11-20 21:00 EST (2026-11-21T02:00:00Z) (dry run)\n"}},
		{object: "night", row: row{name: "created again meanwhile", line: "freeze night --for 2h --reason CHG-1", before: func(o *cmdtest.Cluster) {
			o.Kube.PrependReactor("patch", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("ConfigMap").GroupKind(), "night", nil)
			})
		}, code: 1, err: "error: policy/night was deleted and created again meanwhile: look at it and ask again\n"}},
		{object: "night", row: row{name: "who may not write", line: "freeze night --for 2h --reason CHG-1", before: func(o *cmdtest.Cluster) { o.Forbids("patch", "configmaps", "") }, code: 1, err: "Error from server (Forbidden): write to policy/night: configmaps is forbidden: not for you; the ClusterRole edit in namespace shop would let you; 'kubectl -n shop auth can-i --list' shows what you may\n"}},
		{object: "night", row: row{name: "the name of a node alone", line: "freeze worker-1 --for 2h --reason CHG-1", code: 1, err: "error: there is no policy or plan \"worker-1\" in namespace shop; see 'kubectl maint list'; or did you mean node/worker-1?\n"}},
		{object: "night", row: row{name: "nothing of that name", line: "freeze nigh --for 2h --reason CHG-1", code: 1, err: "error: there is no policy or plan \"nigh\" in namespace shop; did you mean \"night\"?\n"}},
		{object: "night", row: row{name: "a node with a slip of the pen", line: "freeze node/wroker-1 --for 2h --reason CHG-1", code: 1, err: "error: there is no node \"wroker-1\"; did you mean \"worker-1\"?\n"}},
		{object: "night", row: row{name: "a node that there is not", line: "allow no/ghost --for 2h --reason CHG-1", code: 1, err: "error: there is no node \"ghost\"; 'kubectl get nodes' shows which there are\n"}},
		{object: "night", row: row{name: "a namespace that there is not", line: "freeze namespace/shpo --for 2h --reason CHG-1", code: 1, err: "error: read namespace/shpo: namespaces \"shpo\" not found; 'kubectl get namespace' shows which there are\n"}},
		{object: "night", row: row{name: "a kind that there is not", line: "freeze ghosts/casper --for 2h --reason CHG-1", code: 1, err: "error: read ghosts/casper: the server doesn't have a resource type \"ghosts\"\n"}},
		{object: "night", row: row{name: "without an end and a reason", line: "allow night", code: 2, err: "error: --for or --until is missing: it must end by itself\nerror: --reason is missing: everybody who asks why sees it\n"}},
		{object: "night", row: row{name: "with two ends", line: "allow night --for 2h --until sat --reason x", code: 2, err: "error: give one of --for, --until and --end\n"}},
		{object: "settings", row: row{name: "an object that nothing asks", before: settings, line: "freeze configmap/settings --for 2h --reason CHG-1", code: 1, err: "error: a freeze has no effect on configmap/settings: it works on plans, policies, nodes, namespaces and the objects of a policy's gates; freeze the plans that change it, or its namespace with 'kubectl maint freeze namespace/shop --for D --reason R'; with the admission policies, the label maint.dev/freeze=POLICY freezes one object\n"}},
		{object: "settings", row: row{name: "leave for one", before: settings, line: "allow configmap/settings --for 2h --reason CHG-1", code: 1, err: "error: a permission has no effect on configmap/settings: it works on plans, policies, nodes, namespaces and the objects of a policy's gates\n"}},
		{object: "settings", row: row{name: "an object of a gate", before: gated, line: "allow configmap/settings --for 2h --reason CHG-1", out: "configmap/settings allowed until Sat 2026-11-21 03:00 CET (2026-11-21T02:00:00Z)\n", wrote: allowed}},
		{object: "settings", row: row{name: "an object of a gate, closed", before: gated, line: "freeze configmap/settings --for 2h --reason CHG-1", out: "configmap/settings frozen until Sat 2026-11-21 03:00 CET (2026-11-21T02:00:00Z)\n", wrote: frozen}},
		{object: "settings", row: row{name: "one of which it is hidden whether a gate means it", before: func(o *cmdtest.Cluster) { settings(o); o.Forbids("list", "configmaps", "") }, line: "freeze configmap/settings --for 2h --reason CHG-1", out: "configmap/settings frozen until Sat 2026-11-21 03:00 CET (2026-11-21T02:00:00Z)\n", err: "warning: it is not known whether a policy's gate names configmap/settings, since you may not list ConfigMaps of all namespaces; if none does, this has no effect\n", wrote: frozen}},
		{object: "night", row: row{name: "for no time", line: "allow night --for 0s --reason x", code: 2, err: "error: --for: must be more than nothing, is 0s\n"}},
		{object: "night", row: row{name: "for something else", line: "allow night --for soon --reason x", code: 2, err: "error: --for: \"soon\" is no duration: write it like 90s, 15m, 1h30m or 30d\n"}},
		{object: "night", row: row{name: "until a time that has passed", line: "allow night --until 2026-11-20 --reason x", code: 2, err: "error: --until: Fri 2026-11-20 00:00 EST (2026-11-20T05:00:00Z) has passed\n"}},
		{object: "night", row: row{name: "until a time that has passed on the user's clocks and not on the policy's", line: "freeze night --until '2026-11-21 00:30' --reason CHG-1", out: "policy/night frozen until Sat 2026-11-21 00:30 EST (2026-11-21T05:30:00Z)\n", wrote: override("RestrictiveUntil", annotations.RestrictiveUntil, "2026-11-21T05:30:00Z", "CHG-1")}},
		{object: "night", row: row{name: "for a while, in a zone that there is not", line: "freeze night --for 2h --timezone Europe/Berln --reason CHG-1", code: 2, err: "error: --timezone: timezone: \"Europe/Berln\": is not a time zone of the IANA database 2025c; did you mean Europe/Berlin?\n"}},
		{object: "office", row: row{name: "a HibernatePlan by its name alone", before: office, line: "freeze office --for 2h --reason CHG-1", out: "hibernate-plan/office frozen until Sat 2026-11-21 02:00 UTC (2026-11-21T02:00:00Z)\n", wrote: frozen}},
		{object: "office", row: row{name: "a HibernatePlan by its kind", before: office, line: "freeze hibernate-plan/office --for 2h --reason CHG-1", out: "hibernate-plan/office frozen until Sat 2026-11-21 02:00 UTC (2026-11-21T02:00:00Z)\n", wrote: frozen}},
		{object: "office", row: row{name: "a HibernatePlan as a plan", before: office, line: "allow plan/office --for 2h --reason CHG-1", out: "hibernate-plan/office allowed until Sat 2026-11-21 02:00 UTC (2026-11-21T02:00:00Z)\n", wrote: allowed}},
		{object: "office", row: row{name: "a HibernatePlan by its name, behind which none stands", before: func(o *cmdtest.Cluster) { o.Creates(cmdtest.Sleeper("office", "")) }, line: "allow office --for 2h --reason CHG-1", code: 1, err: "error: hibernate-plan/office has no policy, so change is permitted already; nothing was written, since this permission would close it at its end\n"}},
	} {
		t.Run(c.row.name, func(t *testing.T) {
			night, node, ns := cmdtest.Policy("night", nights), cmdtest.Node("worker-1"), cmdtest.Namespace("shop")
			for _, notes := range []map[string]string{night.Annotations, node.Annotations, ns.Annotations} {
				for i := 0; i < len(c.notes); i += 2 {
					notes[c.notes[i]] = c.notes[i+1]
				}
			}
			o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Plan("orders", c.row.spec, cmdtest.Noting(c.row.notes...)), night, node, ns, cmdtest.Agent())
			if c.row.before != nil {
				c.row.before(o)
			}
			was := notesOf(o, c.object)
			o.Maint(append(cmdtest.Words(c.row.line), o.Served()...)...).Is(t, cmdtest.Printed{Code: c.row.code, Out: c.row.out, Err: c.row.err})
			if diff := cmp.Diff(c.row.wrote, cmdtest.Changed(was, notesOf(o, c.object))); diff != "" {
				t.Errorf("what it wrote on %s (-want +got):\n%s", c.object, diff)
			}
		})
	}
}
