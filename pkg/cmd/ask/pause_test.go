package ask_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
)

func objects(list ...runtime.Object) []runtime.Object { return list }

// east is a HibernatePlan on whose clocks it is Saturday morning already.
const east = "schedule: {timezone: Asia/Tokyo, offHours: [{start: '22:00', end: '06:00'}]}"

func TestPause(t *testing.T) {
	runRows(t, []row{
		{name: "a plan, until it is resumed", line: "pause orders --reason 'release week'", out: "plan/orders paused until resumed\n", wrote: signed(annotations.Pause, "true", "release week")},
		{name: "a plan, until a time in its zone", spec: weekly, line: "pause orders --until 'mon 06:00'", out: "plan/orders paused until Mon 2026-11-23 06:00 EST (2026-11-23T11:00:00Z)\n", wrote: signed(annotations.Pause, "2026-11-23T11:00:00Z", "")},
		{name: "a plan, until a time in another zone", spec: weekly, line: "pause orders --until 'mon 06:00' --timezone Europe/Berlin", out: "plan/orders paused until Mon 2026-11-23 06:00 CET (2026-11-23T05:00:00Z)\n", wrote: signed(annotations.Pause, "2026-11-23T05:00:00Z", "")},
		{name: "a pause that is longer takes the place of one that stands", notes: []string{annotations.Pause, "2026-11-22T00:00:00Z", annotations.Actor(annotations.Pause), "joe", annotations.Reason(annotations.Pause), "old"}, line: "pause orders", out: "plan/orders paused until resumed; before it was paused until Sun 2026-11-22 01:00 CET (2026-11-22T00:00:00Z), in 24h0m, by joe (unverified): old\n", wrote: map[string]string{annotations.Pause: "true", annotations.Actor(annotations.Pause): actor, annotations.Reason(annotations.Pause): ""}},
		{name: "a plan with faults can be paused", spec: "triggers: {schedules: [{cron: soon}]}", line: "pause orders", out: "plan/orders paused until resumed\n", wrote: signed(annotations.Pause, "true", "")},
		{name: "a plan and a policy", world: objects(cmdtest.Policy("night", "{}")), line: "pause orders policy/night", out: "plan/orders paused until resumed\npolicy/night paused until resumed\n", wrote: signed(annotations.Pause, "true", "")},
		{name: "a plan and a node", world: objects(cmdtest.Node("worker-1")), line: "pause orders worker-1 --until 2h", out: "plan/orders paused until Sat 2026-11-21 03:00 CET (2026-11-21T02:00:00Z)\nnode/worker-1 paused until Sat 2026-11-21 03:00 CET (2026-11-21T02:00:00Z)\n", wrote: signed(annotations.Pause, "2026-11-21T02:00:00Z", "")},
		{name: "of two names one means nothing: nothing is written", line: "pause orders ghost", code: 1, err: "error: there is no plan or policy \"ghost\" in namespace shop; see 'kubectl maint list'; nor is there a node of that name\n"},
		{name: "a plan that is named as a policy", line: "pause policy/orders", code: 1, err: "error: shop/orders is a plan and no policy; see 'kubectl maint list policies'\n"},
		{name: "a name that is a plan and a node", world: objects(cmdtest.Node("orders")), line: "pause orders", code: 2, err: "error: orders is a plan in namespace shop, and a node: write plan/orders or node/orders\n"},
		{name: "no node of that name", line: "pause node/ghost", code: 1, err: "error: there is no node \"ghost\"; 'kubectl get nodes' shows which there are\n"},
		{name: "a trial", line: "pause orders --dry-run", out: "plan/orders paused until resumed (dry run)\n"},
		{name: "who may not write", line: "pause orders", before: func(o *cmdtest.Cluster) { o.Forbids("patch", "configmaps", "") }, code: 1, err: "Error from server (Forbidden): write to shop/orders: configmaps is forbidden: not for you; the ClusterRole edit in namespace shop would let you; 'kubectl -n shop auth can-i --list' shows what you may\n"},
		{name: "who may not write on nodes", world: objects(cmdtest.Node("worker-1")), line: "pause worker-1", before: func(o *cmdtest.Cluster) { o.Forbids("patch", "nodes", "") }, code: 1, err: "Error from server (Forbidden): write to node worker-1: nodes is forbidden: not for you; a ClusterRole with patch on nodes would let you; 'kubectl auth can-i --list' shows what you may\n"},
		{name: "until a time that has passed on the user's clocks and not on the plan's", spec: weekly, line: "pause orders --until '2026-11-21 00:30'", out: "plan/orders paused until Sat 2026-11-21 00:30 EST (2026-11-21T05:30:00Z)\n", wrote: signed(annotations.Pause, "2026-11-21T05:30:00Z", "")},
		{name: "until a time that has passed on the clocks of one of two: nothing is written on the other", world: objects(cmdtest.Sleeper("east", east)), line: "pause orders east --until '2026-11-21 08:00'", code: 2, err: "error: --until: Sat 2026-11-21 08:00 JST (2026-11-20T23:00:00Z) has passed\n"},
		{name: "until a time that has passed", line: "pause orders --until 2026-11-20T00:00:00Z", code: 2, err: "error: --until: Fri 2026-11-20 01:00 CET (2026-11-20T00:00:00Z) has passed\n"},
		{name: "for a while, in a zone that there is not", line: "pause orders --until 2h --timezone Europe/Berln", code: 2, err: noZone},
		{name: "an end that is no time", line: "pause orders --until soon", code: 2, err: "error: --until: \"soon\" is no time: write it like 2026-12-24T18:00:00Z, 2h, 30d, 08:00, \"tomorrow 08:00\", \"sat 02:00\" or \"2026-12-24 18:00\"\n"},
		{name: "the plan was deleted and created again meanwhile", line: "pause orders", before: func(o *cmdtest.Cluster) {
			o.Conflicts("configmaps", func() {
				other := cmdtest.Plan("orders", "")
				other.UID = "another"
				o.Stores("configmaps", other)
			})
		}, code: 1, err: "error: shop/orders was deleted and created again meanwhile: look at it and ask again\n"},
	})
}

// What stands on a namespace holds all its plans; on the agent's, the whole cluster.
func TestPauseAndResumeOfAll(t *testing.T) {
	const cluster = "all maintenance in the cluster"
	policyNight := cmdtest.Policy("night", "{strategy: Permissive}")
	policyNight.Annotations[annotations.Pause] = "true"
	for _, c := range []struct {
		name      string
		line      []string
		shop      []string // annotations of the namespace
		system    []string // annotations of the agent's
		world     []runtime.Object
		noAgent   bool
		terminal  string // what is typed
		want      cmdtest.Printed
		namespace string // on which something is written
		wrote     map[string]string
	}{
		{name: "the namespace", line: []string{"pause", "--all", "--reason", "stocktaking"}, want: cmdtest.Printed{Out: "all plans in namespace shop paused until resumed\n"}, namespace: "shop", wrote: signed(annotations.Pause, "true", "stocktaking")},
		{name: "the namespace, until a time", line: []string{"pause", "--all", "--until", "2h"}, want: cmdtest.Printed{Out: "all plans in namespace shop paused until Sat 2026-11-21 03:00 CET (2026-11-21T02:00:00Z)\n"}, namespace: "shop", wrote: signed(annotations.Pause, "2026-11-21T02:00:00Z", "")},
		{name: "the cluster, by a script that says so", line: []string{"pause", "--all", "-A", "--yes"}, want: cmdtest.Printed{Out: cluster + " paused until resumed\n"}, namespace: "maint-system", wrote: signed(annotations.Pause, "true", "")},
		{name: "the cluster, by a script that does not", line: []string{"pause", "--all", "-A"}, want: cmdtest.Printed{Code: 2, Err: "error: pause " + cluster + ": give --yes, since nobody can be asked here\n"}},
		{name: "the cluster, after a yes", line: []string{"pause", "--all", "-A"}, terminal: "y\n", want: cmdtest.Printed{Out: cluster + " paused until resumed\n", Err: "pause " + cluster + "? [y/N] "}, namespace: "maint-system", wrote: signed(annotations.Pause, "true", "")},
		{name: "the cluster, after a no", line: []string{"pause", "--all", "-A"}, terminal: "n\n", want: cmdtest.Printed{Code: 1, Err: "pause " + cluster + "? [y/N] error: nothing was done\n"}},
		{name: "the cluster, as a trial that asks nobody", line: []string{"pause", "--all", "-A", "--dry-run"}, want: cmdtest.Printed{Out: cluster + " paused until resumed (dry run)\n"}},
		{name: "the cluster, without an agent", line: []string{"pause", "--all", "-A", "--yes"}, noAgent: true, want: cmdtest.Printed{Code: 5, Err: "error: no agent runs in namespace maint-system: install it with 'kubectl maint install --apply' (or name its namespace with --agent-namespace)\n"}},
		{name: "the agent's namespace, which is the cluster, by a script that does not say so", line: []string{"pause", "--all", "--agent-namespace", "shop"}, noAgent: true, want: cmdtest.Printed{Code: 2, Err: "error: pause " + cluster + ": give --yes, since nobody can be asked here\n"}},
		{name: "the agent's namespace, by a script that does", line: []string{"pause", "--all", "--agent-namespace", "shop", "--yes"}, noAgent: true, want: cmdtest.Printed{Out: cluster + " paused until resumed\n"}, namespace: "shop", wrote: signed(annotations.Pause, "true", "")},
		{name: "the namespace, without an agent", line: []string{"pause", "--all"}, noAgent: true, want: cmdtest.Printed{Out: "all plans in namespace shop paused until resumed\n"}, namespace: "shop", wrote: signed(annotations.Pause, "true", "")},
		{name: "the cluster, where the agent's namespace is named", line: []string{"pause", "--all", "-A", "--yes", "--agent-namespace", "shop"}, noAgent: true, want: cmdtest.Printed{Out: cluster + " paused until resumed\n"}, namespace: "shop", wrote: signed(annotations.Pause, "true", "")},
		{name: "a namespace that is not there", line: []string{"pause", "--all", "-A", "--yes", "--agent-namespace", "ghost"}, noAgent: true, want: cmdtest.Printed{Code: 1, Err: "error: there is no namespace \"ghost\"\n"}},
		{name: "resume of the namespace", line: []string{"resume", "--all"}, shop: []string{annotations.Pause, "true"}, want: cmdtest.Printed{Out: "all plans in namespace shop resumed\n"}, namespace: "shop", wrote: map[string]string{annotations.Pause: ""}},
		{name: "resume of the cluster names those that stay paused", line: []string{"resume", "--all", "-A"}, system: []string{annotations.Pause, "true"}, world: objects(cmdtest.Plan("orders", ""), cmdtest.Plan("reports", "", cmdtest.Noting(annotations.Pause, "true")), policyNight, cmdtest.Node("worker-1", cmdtest.Noted(annotations.Pause, "true"))), want: cmdtest.Printed{Out: cluster + " resumed\n", Err: "still paused themselves: policy shop/night, shop/reports, node worker-1\n"}, namespace: "maint-system", wrote: map[string]string{annotations.Pause: ""}},
		{name: "resume of a namespace that is not paused", line: []string{"resume", "--all"}, want: cmdtest.Printed{Out: "namespace shop was not paused\n"}},
		{name: "resume of a cluster that is not paused", line: []string{"resume", "--all", "-A"}, system: []string{annotations.Pause, "false"}, want: cmdtest.Printed{Out: "the whole cluster was not paused\n"}, namespace: "maint-system", wrote: map[string]string{annotations.Pause: ""}},
		{name: "resume of a namespace of a cluster that is paused", line: []string{"resume", "--all"}, shop: []string{annotations.Pause, "true"}, system: []string{annotations.Pause, "true"}, want: cmdtest.Printed{Out: "all plans in namespace shop resumed\n", Err: "but the whole cluster is paused until resumed: run 'kubectl maint resume --all -A'\n"}, namespace: "shop", wrote: map[string]string{annotations.Pause: ""}},
		{name: "resume of a cluster with a namespace that is paused", line: []string{"resume", "--all", "-A"}, shop: []string{annotations.Pause, "true"}, system: []string{annotations.Pause, "true"}, want: cmdtest.Printed{Out: cluster + " resumed\n", Err: "but namespace shop is paused until resumed: run 'kubectl maint -n shop resume --all'\n"}, namespace: "maint-system", wrote: map[string]string{annotations.Pause: ""}},
		{name: "resume of a namespace, as a trial", line: []string{"resume", "--all", "--dry-run"}, shop: []string{annotations.Pause, "true"}, want: cmdtest.Printed{Out: "all plans in namespace shop resumed (dry run)\n"}},
		{name: "resume of the agent's namespace is that of the cluster", line: []string{"resume", "--all", "--agent-namespace", "shop"}, noAgent: true, shop: []string{annotations.Pause, "true"}, want: cmdtest.Printed{Out: cluster + " resumed\n", Err: "the agent may not have seen this pause: it is kept as a pause that ended at Sat 2026-11-21 01:00 CET (2026-11-21T00:00:00Z), so that slots in it do not run late when the agent is back\n"}, namespace: "shop", wrote: map[string]string{annotations.Pause: "2026-11-21T00:00:00Z"}},
		{name: "resume of the cluster, without an agent", line: []string{"resume", "--all", "-A"}, noAgent: true, want: cmdtest.Printed{Code: 5, Err: "error: no agent runs in namespace maint-system: install it with 'kubectl maint install --apply' (or name its namespace with --agent-namespace)\n"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			world := append(objects(cmdtest.Namespace("shop", c.shop...), cmdtest.Namespace("maint-system", c.system...)), c.world...)
			if !c.noAgent {
				world = append(world, cmdtest.Agent())
			}
			o := cmdtest.NewCluster(t, cmd.Run, world...)
			o.Terminal, o.Stdin = c.terminal != "", c.terminal
			o.Maint(c.line...).Is(t, c.want)
			for name, notes := range map[string][]string{"shop": c.shop, "maint-system": c.system} {
				was := cmdtest.Namespace("", notes...).Annotations
				var want map[string]string
				if name == c.namespace {
					want = c.wrote
				}
				ns, err := o.Kube.CoreV1().Namespaces().Get(t.Context(), name, metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, cmdtest.Changed(was, ns.Annotations)); diff != "" {
					t.Errorf("what it wrote on namespace %s (-want +got):\n%s", name, diff)
				}
			}
		})
	}
}

func TestWhoMayNotWriteOnTheNamespaceIsToldWhatElseThereIs(t *testing.T) {
	o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Namespace("shop"), cmdtest.Agent())
	o.Forbids("patch", "namespaces", "")
	o.Maint("pause", "--all").Is(t, cmdtest.Printed{Code: 1, Err: "Error from server (Forbidden): write to namespace shop: namespaces is forbidden: not for you; a Role with patch on namespaces in namespace shop would let you; 'kubectl -n shop auth can-i --list' shows what you may\nerror: --all is about the namespace itself; name plans to pause or resume single ones\n"})
	o.Forbids("get", "namespaces", "")
	o.Maint("pause", "--all").Is(t, cmdtest.Printed{Code: 1, Err: "Error from server (Forbidden): read namespace shop: namespaces is forbidden: not for you; the ClusterRole view in namespace shop would let you; 'kubectl -n shop auth can-i --list' shows what you may\n"})
}

func TestResume(t *testing.T) {
	paused := []string{annotations.Pause, "true", annotations.Actor(annotations.Pause), "joe", annotations.Reason(annotations.Pause), "release week"}
	gone := map[string]string{annotations.Pause: "", annotations.Actor(annotations.Pause): "", annotations.Reason(annotations.Pause): ""}
	held := func(name string) []runtime.Object { return objects(cmdtest.Namespace(name, annotations.Pause, "true")) }
	night := cmdtest.Policy("night", "{}")
	night.Annotations[annotations.Pause] = "true"
	runRows(t, []row{
		{name: "a plan", notes: paused, line: "resume orders", out: "plan/orders resumed\n", wrote: gone},
		{name: "a plan that is not paused", line: "resume orders", out: "plan/orders was not paused\n"},
		{name: "a policy", world: objects(night.DeepCopy()), line: "resume night", out: "policy/night resumed\n"},
		{name: "a plan of a namespace that is paused", notes: paused, world: held("shop"), line: "resume orders", out: "plan/orders resumed\n", err: "but namespace shop is paused until resumed: run 'kubectl maint resume --all'\n", wrote: gone},
		{name: "a plan of a cluster that is paused", notes: paused, world: held("maint-system"), line: "resume orders", out: "plan/orders resumed\n", err: "but the whole cluster is paused until resumed: run 'kubectl maint resume --all -A'\n", wrote: gone},
		{name: "a node", world: objects(cmdtest.Node("worker-1", cmdtest.Noted(annotations.Pause, "true"))), line: "resume worker-1", out: "node/worker-1 resumed\n"},
		{name: "a node that is not paused", world: objects(cmdtest.Node("worker-1")), line: "resume node/worker-1", out: "node/worker-1 was not paused\n"},
		{name: "a node of a cluster that is paused", world: append(held("maint-system"), cmdtest.Node("worker-1", cmdtest.Noted(annotations.Pause, "true"))), line: "resume worker-1", out: "node/worker-1 resumed\n", err: "but the whole cluster is paused until resumed: run 'kubectl maint resume --all -A'\n"},
		{name: "a trial", notes: paused, line: "resume orders --dry-run", out: "plan/orders resumed (dry run)\n"},
		{name: "nothing of that name", line: "resume ghost", code: 1, err: "error: there is no plan or policy or run \"ghost\" in namespace shop; see 'kubectl maint list'; nor is there a node of that name\n"},
		{name: "a run that is suspended", world: objects(cmdtest.RunObject(cmdtest.RunOf(cmdtest.Record("hold", "suspend", "Running")), "maint-run-orders-a")), line: "resume orders-a --reason done", out: "run/maint-run-orders-a resumed\n", wrote: signed(annotations.Resume, "maint-run-orders-a", "done")},
		{name: "a run that is at something else", world: objects(cmdtest.RunObject(cmdtest.RunOf(cmdtest.Record("call", "webhook", "Running")), "maint-run-orders-a")), line: "resume orders-a", code: 3, err: "error: run maint-run-orders-a is not suspended now: Running for 1h0m, 0 of 1 steps done\n"},
		{name: "a run that has ended", world: objects(ended("Succeeded")), line: "resume orders-a", code: 1, err: "error: run maint-run-orders-a has ended (Succeeded): there is nothing to resume\n"},
		{name: "a pause is nothing to wait for", notes: []string{annotations.Pause, "true"}, line: "resume orders --wait", code: 2, err: "error: --wait is for a run, and orders is none: its pause ends at once\n"},
		{name: "nor are several", line: "resume orders other --wait", code: 2, err: "error: --wait is for one RUN\n"},
		{name: "a run that left something", world: objects(ended("Failed", cmdtest.Record("down", "scale", "Succeeded", left))), line: "resume orders-a", out: "run/maint-run-orders-a: what it did not put back or clean up is acknowledged; it stays as it is\n", wrote: signed(annotations.Resume, "maint-run-orders-a", "")},
		{name: "one of two steps that left something", world: objects(ended("Failed", cmdtest.Record("down", "scale", "Succeeded", left), cmdtest.Record("also", "scale", "Succeeded", left))), line: "resume orders-a/down", out: "run/maint-run-orders-a/down: what it did not put back or clean up is acknowledged; it stays as it is\n", wrote: signed(annotations.Resume, "maint-run-orders-a/down", "")},
		{name: "a step that left nothing, beside one that did", world: objects(ended("Failed", cmdtest.Record("down", "scale", "Succeeded", left), cmdtest.Record("also", "scale", "Succeeded"))), line: "resume orders-a/also", code: 1, err: "error: run maint-run-orders-a has ended (Failed), and left nothing of step also: there is nothing to resume\n"},
		{name: "a run whose cleanup failed", world: objects(ended("Aborted", cmdtest.Record("finally/up", "webhook", "Failed"))), line: "resume orders-a", out: "run/maint-run-orders-a: what it did not put back or clean up is acknowledged; it stays as it is\n", wrote: signed(annotations.Resume, "maint-run-orders-a", "")},
		{name: "a run beside another that was resumed and not handled", notes: []string{annotations.Resume, "maint-run-orders-b"}, world: objects(cmdtest.RunObject(cmdtest.RunOf(cmdtest.Record("hold", "suspend", "Running")), "maint-run-orders-a")), line: "resume orders-a", code: 3, err: "error: plan orders still has maint.dev/resume: maint-run-orders-b, which the agent has not handled: try again in a moment, or remove that annotation\n"},
	})
}

// Whether an agent runs is one question, however many plans are resumed.
func TestResumeAsksForTheAgentOnce(t *testing.T) {
	o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), cmdtest.Node("worker-1"), cmdtest.Namespace("shop", annotations.Pause, "true"), cmdtest.Namespace("maint-system"),
		cmdtest.Plan("orders", "", cmdtest.Noting(annotations.Pause, "true")), cmdtest.Plan("reports", "", cmdtest.Noting(annotations.Pause, "true")))
	for _, line := range [][]string{{"resume", "orders"}, {"resume", "orders", "reports", "worker-1"}, {"resume", "--all"}, {"resume", "--all", "-A"}} {
		o.Kube.ClearActions()
		if got := o.Maint(line...); got.Code != 0 {
			t.Errorf("%v: %+v", line, got)
		}
		if n := o.Asked("get", "configmaps", annotations.HeartbeatName); n != 1 {
			t.Errorf("%v asked for the agent %d times", line, n)
		}
	}
}
