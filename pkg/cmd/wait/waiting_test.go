package wait_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// looked is a plan of which the agent has said something.
func looked(pairs ...string) *corev1.ConfigMap {
	return cmdtest.Plan("orders", "", func(cm *corev1.ConfigMap) { cm.Annotations[annotations.StatusObserved] = annotations.Observed(cm) }, cmdtest.Noting(pairs...))
}

func runningOrders() *corev1.ConfigMap {
	return cmdtest.RunObject(cmdtest.RunOf(cmdtest.Record("hold", plan.TypeGroup, run.StepRunning)), "maint-run-orders-a")
}

// beats has the agent show itself again and again until ctx ends.
func beats(ctx context.Context, o *cmdtest.Cluster) {
	for begun := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(20 * time.Second):
		}
		beat := cmdtest.Agent()
		beat.Data["heartbeat"] = cmdtest.Now().Add(time.Since(begun)).Format(time.RFC3339)
		o.Stores("configmaps", beat)
	}
}

// waits is a wait for something that is not so yet.
type waits struct {
	name, line string
	world      []runtime.Object
	paused     bool                   // the whole cluster is
	silent     bool                   // the agent shows itself no more
	until      string                 // what is printed before something happens
	then       func(*cmdtest.Cluster) // a second later
	interrupts bool                   // somebody does, in its place
	code       int
	out, err   string
}

func (c waits) play(t *testing.T) {
	ctx, interrupt := context.WithTimeout(t.Context(), 5*time.Minute) // no wait here is longer
	defer interrupt()
	system := cmdtest.Namespace("maint-system")
	if c.paused {
		system = cmdtest.Namespace("maint-system", annotations.Pause, "true")
	}
	world := append([]runtime.Object{cmdtest.Agent(), cmdtest.Namespace("shop"), system}, c.world...)
	o := cmdtest.NewCluster(t, cmd.Run, world...)
	o.Moves, o.Ctx = true, ctx
	if !c.silent {
		go beats(ctx, o)
	}
	if c.until == "" {
		c.until = "waiting "
	}
	switch {
	case c.interrupts:
		o.Told(map[string]func(){c.until: cmdtest.Later(interrupt)})
	case c.then != nil:
		o.Told(map[string]func(){c.until: cmdtest.Later(func() { c.then(o) })})
	}
	o.Line(c.line).Is(t, cmdtest.Printed{Code: c.code, Out: c.out, Err: c.err})
}

func playAll(t *testing.T, all []waits) {
	t.Helper()
	for _, c := range all {
		t.Run(c.name, func(t *testing.T) { synctest.Test(t, c.play) })
	}
}

func TestWaitForAPhaseOrACondition(t *testing.T) {
	stores := func(cm *corev1.ConfigMap) func(*cmdtest.Cluster) {
		return func(o *cmdtest.Cluster) { o.Stores("configmaps", cm) }
	}
	another := func() *corev1.ConfigMap {
		cm := looked(annotations.StatusPhase, "Idle")
		cm.UID = "another"
		return cm
	}
	older := func(cm *corev1.ConfigMap) *corev1.ConfigMap {
		cm.Annotations[annotations.StatusObserved] = "older"
		return cm
	}
	const valid, office = `[{"type":"Valid","status":"True"}]`, "schedule: {offHours: [{start: '20:00', end: '06:00'}]}"
	open := func() *corev1.ConfigMap {
		cm := cmdtest.Policy("open", "{strategy: Permissive}")
		cmdtest.Noting(annotations.StatusObserved, annotations.Observed(cm), annotations.StatusConditions, valid)(cm)
		return cm
	}
	const waiting = "waiting for phase=Idle of plan/orders: phase Running: run maint-run-orders-a\n"
	busy := looked(annotations.StatusPhase, "Running", annotations.StatusMessage, "run maint-run-orders-a")
	playAll(t, []waits{
		{name: "it becomes so", line: "wait orders --for=phase=Idle", world: []runtime.Object{busy}, then: stores(looked(annotations.StatusPhase, "Idle")), out: "plan/orders: phase Idle\n", err: waiting},
		{name: "an agent that does not look at it", line: "wait office", world: []runtime.Object{older(cmdtest.Sleeper("office", office))}, code: 5, err: "waiting for phase=Active of hibernate-plan/office: the agent has not looked at it yet\nerror: the agent does not look at hibernate-plan/office: it is too old, or does not watch namespace shop; 'kubectl maint doctor' shows its version, and 'kubectl maint install --apply --namespace maint-system' upgrades it\n"},
		{name: "for a script: how it stands goes to standard error", line: "wait orders --for=phase=Idle -o 'jsonpath={.met} {.subject} {.metadata.namespace}/{.metadata.name} {.message}'", world: []runtime.Object{busy}, then: stores(looked(annotations.StatusPhase, "Idle")), out: "true plan shop/orders phase Idle", err: waiting},
		{
			name: "the agent's word is of an older version", line: "wait orders --for=phase=Idle", world: []runtime.Object{older(looked(annotations.StatusPhase, "Idle"))}, then: stores(looked(annotations.StatusPhase, "Idle")),
			out: "plan/orders: phase Idle\n", err: "waiting for phase=Idle of plan/orders: the agent has not looked at it yet\n",
		},
		{name: "it is deleted", line: "wait orders --for=phase=Idle", world: []runtime.Object{busy}, then: func(o *cmdtest.Cluster) { o.Deletes("configmaps", "orders") }, code: 3, err: waiting + "error: plan/orders was deleted\n"},
		{name: "it is another one of its name, that would be so", line: "wait orders --for=phase=Idle", world: []runtime.Object{busy}, then: stores(another()), code: 3, err: waiting + "error: plan/orders was deleted\n"},
		{name: "no phase of its kind", line: "wait orders --for=phase=Hibernated", world: []runtime.Object{busy}, code: 2, err: "error: --for=phase=Hibernated: orders never has that phase; its phases are Idle, Waiting, Running, Paused, Invalid\n"},
		{name: "it comes to pass too late", line: "wait orders --for=phase=Idle --timeout 5s", world: []runtime.Object{busy}, code: 124, err: waiting + "error: --timeout passed: plan/orders: phase Running: run maint-run-orders-a\n"},
		{name: "for a script: the time is over", line: "wait orders --for=phase=Idle --timeout 5s -o 'jsonpath={.met}'", world: []runtime.Object{busy}, code: 124, out: "false", err: waiting + "error: --timeout passed: plan/orders: phase Running: run maint-run-orders-a\n"},
		{name: "somebody interrupts it", line: "wait orders --for=phase=Idle", world: []runtime.Object{busy}, interrupts: true, code: 130, err: waiting + "error: interrupted: plan/orders: phase Running: run maint-run-orders-a\n"},
		{
			name: "the agent shows itself no more", line: "wait orders --for=phase=Idle", world: []runtime.Object{busy}, silent: true, code: 5,
			err: waiting + "error: the agent in namespace maint-system was last seen 31s ago (Sat 2026-11-21 01:00 CET): see 'kubectl -n maint-system get pods'; plan/orders: phase Running: run maint-run-orders-a\n",
		},
		{
			name: "a HibernatePlan, by default until it is awake", line: "wait office", world: []runtime.Object{cmdtest.Sleeper("office", "schedule: {offHours: [{start: '20:00', end: '06:00'}]}", cmdtest.Noting(annotations.StatusPhase, "WakingUp"))},
			then: func(o *cmdtest.Cluster) {
				o.Stores("configmaps", cmdtest.Sleeper("office", "schedule: {offHours: [{start: '20:00', end: '06:00'}]}", cmdtest.Noting(annotations.StatusPhase, "Active")))
			}, out: "hibernate-plan/office: phase Active\n", err: "waiting for phase=Active of hibernate-plan/office: phase WakingUp\n",
		},
		{
			name: "a condition that comes", line: "wait orders --for=condition=ready", world: []runtime.Object{looked()}, then: stores(looked(annotations.StatusConditions, `[{"type":"Ready","status":"True","message":"all is there"}]`)),
			out: "plan/orders: condition Ready=True: all is there\n", err: "waiting for condition=ready of plan/orders: it has no condition ready\n",
		},
		{
			name: "a condition of an older version", line: "wait orders --for=condition=Valid --timeout 5s", world: []runtime.Object{older(looked(annotations.StatusConditions, valid))}, then: stores(looked(annotations.StatusConditions, `[{"type":"Valid","status":"False"}]`)),
			code: 124, err: "waiting for condition=Valid of plan/orders: the agent has not looked at it yet\nwaiting for condition=Valid of plan/orders: condition Valid=False\nerror: --timeout passed: plan/orders: condition Valid=False\n",
		},
		{
			name: "a condition of an older version of a HibernatePlan", line: "wait office --for=condition=Valid", world: []runtime.Object{older(cmdtest.Sleeper("office", office, cmdtest.Noting(annotations.StatusConditions, valid)))},
			then: stores(cmdtest.Sleeper("office", office, cmdtest.Noting(annotations.StatusConditions, valid))), out: "hibernate-plan/office: condition Valid=True\n", err: "waiting for condition=Valid of hibernate-plan/office: the agent has not looked at it yet\n",
		},
		{
			name: "a condition of an older version of a policy", line: "wait open --for=condition=Valid", world: []runtime.Object{older(open())}, then: stores(open()), out: "policy/open: condition Valid=True\n", err: "waiting for condition=Valid of policy/open: the agent has not looked at it yet\n",
		},
		{
			name: "a condition that is to be unknown", line: "wait orders --for=condition=Ready=unknown", world: []runtime.Object{looked(annotations.StatusConditions, `[{"type":"Ready","status":"True"}]`)},
			then: stores(looked(annotations.StatusConditions, `[{"type":"Ready","status":"Unknown"}]`)), out: "plan/orders: condition Ready=Unknown\n", err: "waiting for condition=Ready=unknown of plan/orders: condition Ready=True\n",
		},
	})
}

func TestWaitForThePhaseOfARun(t *testing.T) {
	const waiting = "waiting for phase=Succeeded of run/maint-run-orders-a: phase Running\n"
	ends := func(phase run.Phase, message string) func(*cmdtest.Cluster) {
		return func(o *cmdtest.Cluster) { o.Stores("configmaps", ended(phase, message)) }
	}
	world := []runtime.Object{looked(), runningOrders()}
	playAll(t, []waits{
		{name: "it succeeds", line: "wait orders-a --for=phase=Succeeded", world: world, then: ends(run.Succeeded, "done"), out: "run/maint-run-orders-a: phase Succeeded: done\n", err: waiting},
		{name: "it fails", line: "wait orders-a --for=phase=succeeded", world: world, then: ends(run.Failed, "no disk"), code: 4, err: "waiting for phase=succeeded of run/maint-run-orders-a: phase Running\nerror: run maint-run-orders-a ended, and will never be succeeded: phase Failed: no disk\n"},
		{name: "somebody aborts it", line: "wait orders-a --for=phase=Succeeded", world: world, then: ends(run.Aborted, "by jane"), code: 3, err: waiting + "error: run maint-run-orders-a ended, and will never be Succeeded: phase Aborted: by jane\n"},
		{name: "that it fails is what is waited for", line: "wait orders-a --for=phase=Failed", world: world, then: ends(run.Failed, "no disk"), out: "run/maint-run-orders-a: phase Failed: no disk\n", err: "waiting for phase=Failed of run/maint-run-orders-a: phase Running\n"},
		{name: "no phase of a run", line: "wait orders-a --for=phase=Idle", world: world, code: 2, err: "error: --for=phase=Idle: orders-a never has that phase; its phases are Pending, Running, Succeeded, Failed, Aborted, Replaced\n"},
	})
}

func TestWaitForTheEndOfARun(t *testing.T) {
	ends := func(phase run.Phase, message string) func(*cmdtest.Cluster) {
		return func(o *cmdtest.Cluster) { o.Stores("configmaps", ended(phase, message)) }
	}
	world := []runtime.Object{looked(), runningOrders()}
	const shown = "2026-11-20T23:00:00Z run maint-run-orders-a: Running\n" + "2026-11-20T23:59:00Z step hold: Running\n"
	playAll(t, []waits{
		{name: "it succeeds", line: "wait orders-a", until: "Running", world: world, then: ends(run.Succeeded, "done"), out: shown + "2026-11-20T23:59:00Z run maint-run-orders-a: Succeeded: done\n"},
		{name: "it fails", line: "wait orders-a", until: "Running", world: world, then: ends(run.Failed, "no disk"), code: 4, out: shown + "2026-11-20T23:59:00Z run maint-run-orders-a: Failed: no disk\n", err: "error: run maint-run-orders-a ended Failed: no disk\n"},
		{
			name: "for a script, it fails: it has ended", line: "wait orders-a -o 'jsonpath={.met} {.message}'", until: "Running", world: world, then: ends(run.Failed, "no disk"), code: 4, out: "true run maint-run-orders-a ended Failed: no disk",
			err: shown + "2026-11-20T23:59:00Z run maint-run-orders-a: Failed: no disk\nerror: run maint-run-orders-a ended Failed: no disk\n",
		},
		{name: "its plan is gone: the run is followed all the same", line: "wait orders-a", until: "Running", world: []runtime.Object{runningOrders()}, then: ends(run.Succeeded, "done"), out: shown + "2026-11-20T23:59:00Z run maint-run-orders-a: Succeeded: done\n"},
		{
			name: "the time is over", line: "wait orders-a --timeout 5s", world: world, code: 124, out: shown,
			err: "error: --timeout passed: run maint-run-orders-a goes on without you; see 'kubectl maint status maint-run-orders-a', or end it with 'kubectl maint abort maint-run-orders-a'\n",
		},
		{
			name: "the agent shows itself no more", line: "wait orders-a", world: world, silent: true, code: 5, out: shown,
			err: "error: the agent in namespace maint-system was last seen 31s ago (Sat 2026-11-21 01:00 CET): see 'kubectl -n maint-system get pods'; run maint-run-orders-a goes on when an agent is back: see 'kubectl maint status maint-run-orders-a'\n",
		},
	})
}

func TestWaitUntilChangeIsPermitted(t *testing.T) {
	policyWith := func(spec string, pairs ...string) *corev1.ConfigMap {
		p := cmdtest.Policy("night", spec)
		p.ResourceVersion = "2"
		cmdtest.Noting(pairs...)(p)
		return p
	}
	const opens = "{strategy: MaintenanceSchedule, maintenanceSchedule: {windows: [{start: '00:01', end: '02:00'}]}}"
	playAll(t, []waits{
		{
			name: "the clock opens a window: nobody writes anything", line: "wait night", world: []runtime.Object{policyWith(opens)}, out: "policy/night: change is permitted (policy night: in a window)\n",
			err: "waiting until policy/night permits change: change is not permitted (policy night: outside of the windows)\n",
		},
		{
			name: "somebody changes the policy: that is seen at once", line: "wait night --timeout 5s", world: []runtime.Object{policyWith("{strategy: Restrictive}")},
			then: func(o *cmdtest.Cluster) {
				p := policyWith("{strategy: Permissive}")
				p.ResourceVersion = "3"
				o.Stores("configmaps", p)
			},
			out: "policy/night: change is permitted (policy night: Permissive)\n", err: "waiting until policy/night permits change: change is not permitted (policy night: Restrictive)\n",
		},
		{
			name: "the cluster's pause is over, which nobody publishes on a node", line: "wait a --for=permitted", paused: true, world: []runtime.Object{cmdtest.Node("a")},
			then: func(o *cmdtest.Cluster) { o.Stores("namespaces", cmdtest.Namespace("maint-system")) },
			out:  "node/a: change is permitted (no strategy is set)\n", err: "waiting until node/a permits change: change is not permitted (the whole cluster is paused)\n",
		},
		{
			name: "the time is over first", line: "wait night --timeout 5s", world: []runtime.Object{policyWith("{strategy: Restrictive}")}, code: 124,
			err: "waiting until policy/night permits change: change is not permitted (policy night: Restrictive)\nerror: --timeout passed: policy/night: change is not permitted (policy night: Restrictive)\n",
		},
		{
			name: "it is deleted", line: "wait night", world: []runtime.Object{policyWith("{strategy: Restrictive}")}, then: func(o *cmdtest.Cluster) { o.Deletes("configmaps", "night") }, code: 3,
			err: "waiting until policy/night permits change: change is not permitted (policy night: Restrictive)\nerror: policy/night was deleted\n",
		},
	})
}

func TestWaitForANode(t *testing.T) {
	const asks = "waiting for ready of node/a: requested; the agent has not looked at it yet\n"
	cordoned := cmdtest.CordonedFor(nodes.Cordon{By: []string{cmdtest.Jane, "gpu"}, Node: "uid-a", Drained: []nodes.Drained{{}}})
	requested := cmdtest.Node("a", cmdtest.Asked(cmdtest.Jane, "{}"))
	identity, err := nodes.Parse(cmdtest.Jane, "{}")
	if err != nil {
		t.Fatal(err)
	}
	given := func(s *nodes.Status) { s.Ended = &nodes.End{Why: nodes.EndAborted, Value: identity.Identity} }
	becomes := func(edits ...func(*corev1.Node)) func(*cmdtest.Cluster) {
		return func(o *cmdtest.Cluster) { o.Become("a", edits...) }
	}
	withdrawn := func(n *corev1.Node) { delete(n.Annotations, annotations.RequestPrefix+cmdtest.Jane) }
	gone := func(o *cmdtest.Cluster) {
		if err := o.Kube.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("nodes"), "", "a"); err != nil {
			o.Error(err)
		}
	}
	other := func(o *cmdtest.Cluster) {
		o.Stores("nodes", cmdtest.Node("a", func(n *corev1.Node) { n.UID = "another" }, cmdtest.Asked(cmdtest.Jane, "{}"), cmdtest.Stood(cmdtest.Jane, nodes.Ready, "it is yours")))
	}
	held := cmdtest.Node("a", cmdtest.Asked("gpu", "{}"), cmdtest.Stood("gpu", nodes.Ready, "it is gpu's"), cordoned)
	opened := cmdtest.Node("a", cmdtest.Asked(cmdtest.Jane, "{}"), cmdtest.Stood(cmdtest.Jane, nodes.Ready, "the requestor has the node"), cordoned, func(n *corev1.Node) { n.Spec.Unschedulable = false })
	const uncordoned = "Uncordoned: somebody uncordoned the node while its requestor had it: it is not Ready any more, pods may come; cordon it, and it is drained again, or remove the request"
	const holds = "waiting for released of node/a: Ready: it is gpu's\n"
	playAll(t, []waits{
		{name: "it becomes ready", line: "wait a", world: []runtime.Object{requested}, then: becomes(cordoned, cmdtest.Stood(cmdtest.Jane, nodes.Ready, "it is yours")), out: "node/a: Ready: it is yours\n", err: asks},
		{name: "that of another requestor", line: "wait a --requestor gpu", world: []runtime.Object{held, cmdtest.Node("b")}, out: "node/a: Ready: it is gpu's\n"},
		{name: "another's is not mine", line: "wait a", world: []runtime.Object{held}, code: 3, err: "error: node a: " + cmdtest.Jane + " does not ask for it: ask with 'kubectl maint drain a'\n"},
		{name: "it is given up", line: "wait a", world: []runtime.Object{requested}, then: becomes(cmdtest.Stood(cmdtest.Jane, nodes.Pending, "the drain was aborted after 5m0s", given)), code: 3, err: asks + "error: node a: the drain was aborted after 5m0s\n"},
		{name: "it is taken back", line: "wait a", world: []runtime.Object{requested}, then: becomes(withdrawn), code: 3, err: asks + "error: node a: " + cmdtest.Jane + " does not ask for it: ask with 'kubectl maint drain a'\n"},
		{name: "it is taken back while the agent had it", line: "wait a", world: []runtime.Object{requested}, then: becomes(withdrawn, cmdtest.Stood(cmdtest.Jane, nodes.Draining, "1 pod left")), code: 3, err: asks + "error: node a: " + cmdtest.Jane + " does not ask for it: ask with 'kubectl maint drain a'\n"},
		{name: "its value cannot be read", line: "wait a", world: []runtime.Object{cmdtest.Node("a", cmdtest.Asked(cmdtest.Jane, "["))}, code: 3, err: "error: node a: the request of " + cmdtest.Jane + " cannot be read: this is no JSON: unexpected EOF\n"},
		{name: "the node is deleted", line: "wait a", world: []runtime.Object{requested}, then: gone, code: 3, err: asks + "error: node a was deleted\n"},
		{name: "another one of its name is ready", line: "wait a", world: []runtime.Object{requested}, then: other, code: 3, err: asks + "error: node a was deleted\n"},
		{name: "what was a node's is released with it", line: "wait a --for=released --requestor gpu", world: []runtime.Object{held}, then: gone, out: "node/a: it is gone\n", err: holds},
		{
			name: "it is released when the agent has let it go", line: "wait a --for=released --requestor gpu", world: []runtime.Object{held},
			then: becomes(func(n *corev1.Node) { n.Annotations = map[string]string{} }), out: "node/a: gpu does not ask for it\n", err: holds,
		},
		{name: "somebody uncordoned it, and no agent looked at that yet", line: "wait a", silent: true, world: []runtime.Object{opened}, code: 5, err: "waiting for ready of node/a: " + uncordoned + "\nerror: the agent in namespace maint-system was last seen 31s ago (Sat 2026-11-21 01:00 CET): see 'kubectl -n maint-system get pods'; node/a: " + uncordoned + "\n"},
		{name: "it is cordoned again, and drained", line: "wait a", world: []runtime.Object{opened}, until: "waiting for", then: becomes(cordoned, cmdtest.Stood(cmdtest.Jane, nodes.Ready, "it is yours again")), out: "node/a: Ready: it is yours again\n", err: "waiting for ready of node/a: " + uncordoned + "\n"},
		{name: "a condition of a node needs no requestor", line: "wait a --for=condition=MaintenancePermitted=False", world: []runtime.Object{cmdtest.Node("a", cmdtest.Noted(annotations.StatusConditions, `[{"type":"MaintenancePermitted","status":"False"}]`))}, out: "node/a: condition MaintenancePermitted=False\n"},
		{name: "a node is in no phase", line: "wait a --for=phase=Ready", world: []runtime.Object{held}, code: 2, err: "error: a node is not waited for with --for=phase: it takes ready, released, permitted, condition\n"},
		{name: "an agent that knows no requests", line: "wait a", world: []runtime.Object{requested}, code: 5, err: asks + "error: the agent writes nothing about node a: it is too old, or watches only one namespace; 'kubectl maint doctor' shows its version, and 'kubectl maint install --apply --namespace maint-system' upgrades it\n"},
		{name: "the time is over first", line: "wait a --timeout 5s", world: []runtime.Object{requested}, code: 124, err: asks + "error: --timeout passed: node/a: requested; the agent has not looked at it yet\n"},
	})
}

func TestWaitRefusesACommandLine(t *testing.T) {
	for line, want := range map[string]string{
		"wait":                              "error: RUN, PLAN, POLICY or NODE is missing; --help shows examples\n",
		"wait a b":                          "error: one RUN, PLAN, POLICY or NODE at a time, not 2\n",
		"wait a --for=ready=yes":            "error: --for=ready takes no value, is \"ready=yes\"\n",
		"wait a --for=condition==True":      "error: --for=condition lacks its value: write --for=condition=Ready\n",
		"wait a --for=condition":            "error: --for=condition lacks its value: write --for=condition=Ready\n",
		"wait a --timeout -1s":              "error: --timeout must not be negative\n",
		"wait a --timeout -1s --for=x -o y": "error: -o must be json, yaml, name, jsonpath=…, custom-columns=… or go-template=…, is \"y\"\nerror: --for must be ended, permitted, ready, released, phase=PHASE or condition=TYPE[=STATUS], is \"x\"\nerror: --timeout must not be negative\n",
	} {
		t.Run(line, func(t *testing.T) {
			o := cmdtest.NewCluster(t, cmd.Run)
			o.Line(line).Is(t, cmdtest.Printed{Code: 2, Err: want})
		})
	}
}
