package wait_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

func ended(phase run.Phase, message string) *corev1.ConfigMap {
	r := cmdtest.RunOf()
	r.Journal.Phase, r.Journal.Message, r.Journal.FinishedAt = phase, message, cmdtest.Before(time.Minute)
	return cmdtest.RunObject(r, "maint-run-orders-a")
}

// rehearsed is a dry run that came after the other.
func rehearsed() *corev1.ConfigMap {
	r := cmdtest.RunOf()
	r.Run.Request.DryRun, r.Run.Request.At = true, r.Run.Request.At.Add(time.Minute)
	r.Journal.Phase, r.Journal.FinishedAt = run.Succeeded, cmdtest.Before(time.Second)
	return cmdtest.RunObject(r, "maint-run-orders-b")
}

func TestWhatIsSoOrNeverWillBe(t *testing.T) {
	asleep := cmdtest.Sleeper("office", "schedule: {timezone: UTC, offHours: [{start: '20:00', end: '06:00'}]}")
	seen := func(pairs ...string) *corev1.ConfigMap {
		return cmdtest.Plan("orders", "", func(cm *corev1.ConfigMap) { cm.Annotations[annotations.StatusObserved] = annotations.Observed(cm) }, cmdtest.Noting(pairs...))
	}
	const alone = `[{"type":"RunStuck","status":"True","message":"run maint-run-orders-a is left alone: false"}]`
	const ready = `[{"type":"Ready","status":"False","message":"policy night is not there"}]`
	world := func(list ...runtime.Object) []runtime.Object {
		return append(list, cmdtest.Agent(), cmdtest.Namespace("shop"), cmdtest.Namespace("maint-system"))
	}
	mute := func(list ...runtime.Object) []runtime.Object {
		silent := cmdtest.Agent()
		silent.Data["heartbeat"] = "2026-11-20T12:00:00Z"
		return append(list, silent, cmdtest.Namespace("shop"), cmdtest.Namespace("maint-system"))
	}
	const silence = "warning: the agent in namespace maint-system was last seen 12h0m0s ago (Fri 2026-11-20 13:00 CET): see 'kubectl -n maint-system get pods'\n"
	remembered := cmdtest.Ledger(ledger.Ledger{
		Recent: []ledger.Entry{
			{Run: "maint-run-orders-x", Result: run.Ran, Outcome: &ledger.Outcome{Phase: run.Succeeded}},
			{Run: "maint-run-orders-y", Result: run.Ran, Outcome: &ledger.Outcome{Phase: run.Failed, Step: "call", Message: "503"}},
			{Run: "maint-run-orders-z", Result: run.Skipped, Reason: run.ReasonBusy},
		},
		Last: &ledger.LastRun{Name: "maint-run-orders-y", Phase: run.Failed},
	})
	const left = "error: run maint-run-orders-y ended Failed in step call: 503\n"
	for _, c := range []struct {
		name, line string
		world      []runtime.Object
		code       int
		out, err   string
	}{
		{name: "a run that the agent leaves alone", line: "wait orders-a", world: world(seen(annotations.StatusConditions, alone), runningOrders()), code: 3, out: "2026-11-20T23:00:00Z run maint-run-orders-a: Running\n2026-11-20T23:59:00Z step hold: Running\n", err: "error: run maint-run-orders-a is left alone: false\n"},
		{name: "a phase of a run that the agent leaves alone", line: "wait orders-a --for=phase=Succeeded", world: world(seen(annotations.StatusConditions, alone), runningOrders()), code: 3, err: "error: run maint-run-orders-a is left alone: false\n"},
		{name: "a run that succeeded", line: "wait orders-a", world: world(seen(), ended(run.Succeeded, "done")), out: "2026-11-20T23:59:00Z run maint-run-orders-a: Succeeded: done\n"},
		{name: "the newest of a plan, which failed", line: "wait plan/orders", world: world(seen(), ended(run.Failed, "no disk")), code: 4, out: "2026-11-20T23:59:00Z run maint-run-orders-a: Failed: no disk\n", err: "run maint-run-orders-a is the newest of plan orders\nerror: run maint-run-orders-a ended Failed: no disk\n"},
		{name: "a plan whose run was rehearsed since", line: "wait orders", world: world(seen(), ended(run.Failed, "no disk"), rehearsed()), code: 4, out: "2026-11-20T23:59:00Z run maint-run-orders-a: Failed: no disk\n", err: "run maint-run-orders-a is the newest of plan orders that was no dry run\nerror: run maint-run-orders-a ended Failed: no disk\n"},
		{name: "plans with labels, of which one failed", line: "wait -l maint.dev/kind", world: world(seen(), ended(run.Failed, "no disk")), code: 4, out: "2026-11-20T23:59:00Z run maint-run-orders-a: Failed: no disk\n", err: "run maint-run-orders-a is the newest of plan orders\nerror: run maint-run-orders-a ended Failed: no disk\n"},
		{name: "plans with labels of all namespaces", line: "wait -l maint.dev/kind -A --for=permitted", world: world(seen(), cmdtest.Plan("stock", "", func(cm *corev1.ConfigMap) { cm.Namespace = "depot" }), cmdtest.Namespace("depot")), out: "plan/depot/stock: change is permitted (no strategy is set)\nplan/shop/orders: change is permitted (no strategy is set)\n"},
		{name: "labels of both kinds, one of which has no end: before the first wait", line: "wait -l maint.dev/kind --for=ended", world: world(seen(), ended(run.Succeeded, ""), asleep), code: 2, err: "error: office: a HibernatePlan is not waited for with --for=ended: it takes phase, condition\n"},
		{name: "labels of both kinds, one of which has no such phase", line: "wait -l maint.dev/kind -A --for=phase=Idle", world: world(seen(), asleep), code: 2, err: "error: --for=phase=Idle: shop/office never has that phase; its phases are Active, Hibernating, Hibernated, WakingUp, Suspended, Error, Invalid\n"},
		{name: "a plan of another namespace that has not run: the command names it", line: "wait -l team=a -A --for=ended", world: world(cmdtest.Plan("stock", "", func(cm *corev1.ConfigMap) { cm.Namespace, cm.Labels["team"] = "depot", "a" }), cmdtest.Namespace("depot")), code: 1, err: "error: plan depot/stock: plan stock has no run: 'kubectl maint -n depot trigger stock' asks for one\n"},
		{name: "labels that no plan has", line: "wait -l team=red", world: world(seen()), code: 1, err: "error: no plan in namespace shop has the labels team=red; see 'kubectl maint list'\n"},
		{name: "labels and a name", line: "wait orders -l team=red", code: 2, err: "error: -l and a name exclude each other\n"},
		{name: "all namespaces without labels", line: "wait orders -A", code: 2, err: "error: -A needs -l\n"},
		{name: "a run, for a script", line: "wait orders-a -o 'jsonpath={.kind} {.subject}/{.metadata.name} {.for} {.met}'", world: world(seen(), ended(run.Succeeded, "done")), out: "WaitResult run/maint-run-orders-a ended true", err: "2026-11-20T23:59:00Z run maint-run-orders-a: Succeeded: done\n"},
		{name: "the newest of a plan, which failed, for a script", line: "wait plan/orders -o name", world: world(seen(), ended(run.Failed, "no disk")), code: 4, out: "run/maint-run-orders-a\n", err: "run maint-run-orders-a is the newest of plan orders\n2026-11-20T23:59:00Z run maint-run-orders-a: Failed: no disk\nerror: run maint-run-orders-a ended Failed: no disk\n"},
		{name: "what never will be, for a script", line: "wait orders-a --for=phase=Running -o 'jsonpath={.met} {.message}'", world: world(seen(), ended(run.Succeeded, "")), code: 3, out: "false run maint-run-orders-a ended, and will never be Running: phase Succeeded", err: "error: run maint-run-orders-a ended, and will never be Running: phase Succeeded\n"},
		{name: "a run that succeeded and is no longer kept", line: "wait maint-run-orders-x", world: world(seen(), remembered), out: "run maint-run-orders-x: Succeeded\n"},
		{name: "a run that is no longer kept, for a script", line: "wait run/maint-run-orders-x -o 'jsonpath={.kind} {.subject}/{.metadata.name} {.for} {.met}'", world: world(seen(), remembered), out: "WaitResult run/maint-run-orders-x ended true", err: "run maint-run-orders-x: Succeeded\n"},
		{name: "a run that failed and is no longer kept", line: "wait maint-run-orders-y", world: world(seen(), remembered), code: 4, err: left},
		{name: "a run that never began", line: "wait maint-run-orders-z", world: world(seen(), remembered), code: 3, err: "error: run maint-run-orders-z did not start: Skipped (busy)\n"},
		{name: "a plan whose newest run is no longer kept", line: "wait orders -o name", world: world(seen(), remembered), code: 4, out: "run/maint-run-orders-y\n", err: left},
		{name: "a plan whose newest run is in its ledger's head alone", line: "wait orders", world: world(seen(), cmdtest.Ledger(ledger.Ledger{Last: &ledger.LastRun{Name: "maint-run-orders-x", Phase: run.Succeeded}})), out: "run maint-run-orders-x: Succeeded\n"},
		{name: "another phase of a run that is no longer kept", line: "wait maint-run-orders-x --for=phase=Failed", world: world(seen(), remembered), code: 3, err: "error: run maint-run-orders-x ended, and will never be Failed: phase Succeeded\n"},
		{name: "the phase of a run that is no longer kept", line: "wait maint-run-orders-y --for=phase=failed", world: world(seen(), remembered), out: "run/maint-run-orders-y: phase Failed: 503\n"},
		{name: "the phase of a run that is no longer kept, for a script", line: "wait maint-run-orders-x --for=phase=Succeeded -o 'jsonpath={.subject}/{.metadata.name} {.for} {.met} {.message}'", world: world(seen(), remembered), out: "run/maint-run-orders-x phase=Succeeded true phase Succeeded"},
		{name: "the success of a run that failed and is no longer kept", line: "wait maint-run-orders-y --for=phase=Succeeded", world: world(seen(), remembered), code: 4, err: "error: run maint-run-orders-y ended, and will never be Succeeded: phase Failed: 503\n"},
		{name: "no phase of a run, of one that is no longer kept", line: "wait maint-run-orders-y --for=phase=Idle", world: world(seen(), remembered), code: 2, err: "error: --for=phase=Idle: maint-run-orders-y never has that phase; its phases are Pending, Running, Succeeded, Failed, Aborted, Replaced\n"},
		{name: "the phase of a run that never began", line: "wait maint-run-orders-z --for=phase=Succeeded -o 'jsonpath={.for} {.met}'", world: world(seen(), remembered), code: 3, out: "phase=Succeeded false", err: "error: run maint-run-orders-z did not start: Skipped (busy)\n"},
		{name: "the success of a run that is no longer kept, as a condition", line: "wait maint-run-orders-x --for=condition=Succeeded", world: world(seen(), remembered), out: "run/maint-run-orders-x: condition Succeeded=True\n"},
		{name: "the failure of one, as a condition", line: "wait maint-run-orders-y --for=condition=succeeded=false", world: world(seen(), remembered), out: "run/maint-run-orders-y: condition Succeeded=False: 503\n"},
		{name: "the success of one that failed, as a condition", line: "wait maint-run-orders-y --for=condition=Succeeded", world: world(seen(), remembered), code: 4, err: "error: run maint-run-orders-y ended, and will never have condition Succeeded: condition Succeeded=False: 503\n"},
		{name: "the failure of one that succeeded, as a condition, for a script", line: "wait maint-run-orders-x --for=condition=Succeeded=False -o 'jsonpath={.subject}/{.metadata.name} {.for} {.met}'", world: world(seen(), remembered), code: 3, out: "run/maint-run-orders-x condition=Succeeded=False false", err: "error: run maint-run-orders-x ended, and will never have condition Succeeded=False: condition Succeeded=True\n"},
		{name: "another condition of one", line: "wait maint-run-orders-x --for=condition=Approved", world: world(seen(), remembered), code: 3, err: "error: run maint-run-orders-x ended, and will never have condition Approved: it has no condition Approved, but Succeeded\n"},
		{name: "a condition of a run that never began", line: "wait maint-run-orders-z --for=condition=Succeeded", world: world(seen(), remembered), code: 3, err: "error: run maint-run-orders-z did not start: Skipped (busy)\n"},
		{name: "the success of a run that failed, as a condition", line: "wait orders-a --for=condition=Succeeded", world: world(seen(), ended(run.Failed, "no disk")), code: 4, err: "error: run maint-run-orders-a ended, and will never have condition Succeeded: condition Succeeded=False: no disk\n"},
		{name: "a condition that a run which has ended never had", line: "wait orders-a --for=condition=Approved", world: world(seen(), ended(run.Succeeded, "")), code: 3, err: "error: run maint-run-orders-a ended, and will never have condition Approved: it has no condition Approved, but Succeeded\n"},
		{name: "a policy that permits, for a script", line: "wait open -o 'jsonpath={.subject} {.for} {.met} {.message}'", world: world(cmdtest.Policy("open", "{strategy: Permissive}")), out: "policy permitted true change is permitted (policy open: Permissive)"},
		{name: "a phase that a silent agent published", line: "wait orders --for=phase=Idle", world: mute(seen(annotations.StatusPhase, "Idle")), out: "plan/orders: phase Idle\n", err: silence},
		{name: "a node that was released, with a silent agent", line: "wait a --for=released --requestor gpu", world: mute(cmdtest.Node("a")), out: "node/a: gpu does not ask for it\n", err: silence},
		{name: "a policy that permits, with a silent agent", line: "wait open", world: mute(cmdtest.Policy("open", "{strategy: Permissive}")), out: "policy/open: change is permitted (policy open: Permissive)\n", err: silence},
		{name: "a plan that is permitted, with a silent agent", line: "wait orders --for=permitted", world: mute(seen()), out: "plan/orders: change is permitted (no strategy is set)\n", err: silence},
		{name: "a JSONPath with a fault", line: "wait open -o jsonpath={.items[*", code: 2, err: "error: -o jsonpath={.items[*: error parsing jsonpath {.items[*, unterminated array\n"},
		{name: "a format that is none", line: "wait open -o xml", code: 2, err: "error: -o must be json, yaml, name, jsonpath=…, custom-columns=… or go-template=…, is \"xml\"\n"},
		{name: "a plan that never ran", line: "wait orders", world: world(seen()), code: 1, err: "error: plan orders has no run: 'kubectl maint trigger orders' asks for one\n"},
		{name: "a phase that is", line: "wait orders --for=phase=idle", world: world(seen(annotations.StatusPhase, "Idle", annotations.StatusMessage, "next run soon")), out: "plan/orders: phase Idle: next run soon\n"},
		{name: "a phase that a run never will have", line: "wait orders-a --for=phase=Running", world: world(seen(), ended(run.Succeeded, "")), code: 3, err: "error: run maint-run-orders-a ended, and will never be Running: phase Succeeded\n"},
		{name: "a condition that is", line: "wait orders --for=condition=Ready=False", world: world(seen(annotations.StatusConditions, ready)), out: "plan/orders: condition Ready=False: policy night is not there\n"},
		{name: "a condition that is not", line: "wait orders --for=condition=Ready --timeout 500ms", world: world(seen(annotations.StatusConditions, ready)), code: 124, err: "waiting for condition=Ready of plan/orders: condition Ready=False: policy night is not there\nerror: --timeout passed: plan/orders: condition Ready=False: policy night is not there\n"},
		{name: "a policy that permits", line: "wait open", world: world(cmdtest.Policy("open", "{strategy: Permissive}")), out: "policy/open: change is permitted (policy open: Permissive)\n"},
		{name: "a policy that does not, and nobody acts", line: "wait shut", world: []runtime.Object{cmdtest.Namespace("shop"), cmdtest.Namespace("maint-system"), cmdtest.Policy("shut", "{strategy: Restrictive}")}, code: 5, err: "error: no agent runs in namespace maint-system: install it with 'kubectl maint install --apply'; shut is not waited for\n"},
		{name: "a node that nobody asked for", line: "wait a", world: world(cmdtest.Node("a")), code: 3, err: "error: node a: cli.jane-example.com does not ask for it: ask with 'kubectl maint drain a'\n"},
		{name: "a node that was released", line: "wait a --for=released --requestor gpu", world: world(cmdtest.Node("a")), out: "node/a: gpu does not ask for it\n"},
		{name: "an invalid plan that is permitted", line: "wait odd --for=permitted", world: world(cmdtest.Plan("odd", "startDeadline: soon")), out: "plan/odd: change is permitted (no strategy is set)\n", err: "warning: the plan is invalid, so it starts nothing: line 1: spec.startDeadline: \"soon\" is no duration: write it like 90s, 15m, 1h30m or 30d; apart from that, this is the answer for it\n"},
		{name: "what its kind has not", line: "wait open --for=ended", world: world(cmdtest.Policy("open", "{strategy: Permissive}")), code: 2, err: "error: a policy is not waited for with --for=ended: it takes permitted, condition\n"},
		{name: "a word that is none, and a phase without its name", line: "wait a --for=soon", code: 2, err: "error: --for must be ended, permitted, ready, released, phase=PHASE or condition=TYPE[=STATUS], is \"soon\"\n"},
		{name: "a phase without its name", line: "wait a --for=phase", code: 2, err: "error: --for=phase lacks its value: write --for=phase=Idle\n"},
		{name: "a condition of nothing of that name", line: "wait ghost --for=condition=Ready", world: world(), code: 1, err: "error: there is no run or plan or policy \"ghost\" in namespace shop; the namespace has none: choose another with -n, or see all with 'kubectl maint list -A'; nor is there a node of that name\n"},
		{name: "no node of that name", line: "wait worker-11 --for=ready", world: world(cmdtest.Node("worker-1")), code: 1, err: "error: there is no node \"worker-11\"; did you mean \"worker-1\"?\n"},
		{name: "no node of a name that is like none", line: "wait ghost --for=released --requestor gpu", world: world(cmdtest.Node("worker-1")), code: 1, err: "error: there is no node \"ghost\"; 'kubectl get nodes' shows which there are\n"},
		{name: "a plan, which is never ready", line: "wait orders --for=ready", world: world(seen()), code: 2, err: "error: a plan is not waited for with --for=ready: it takes ended, permitted, phase, condition\n"},
		{name: "nothing of that name", line: "wait ghost", world: world(), code: 1, err: "error: there is no run or plan or policy \"ghost\" in namespace shop; the namespace has none: choose another with -n, or see all with 'kubectl maint list -A'; nor is there a node of that name\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := cmdtest.NewCluster(t, cmd.Run, c.world...)
			o.Line(c.line).Is(t, cmdtest.Printed{Code: c.code, Out: c.out, Err: c.err})
		})
	}
}

// `run=$(kubectl maint trigger orders -o name); kubectl maint wait $run` must do where the plan is
// busy, and the agent makes the run later.
func TestARunThatIsAskedForIsWaitedFor(t *testing.T) {
	plan := cmdtest.Plan("orders", "", cmdtest.Noting(annotations.Trigger, "t1"))
	name := annotations.RunName("orders", string(plan.UID), run.Request{Kind: run.ByToken, Token: "t1"})
	world := []runtime.Object{cmdtest.Agent(), plan}
	o := cmdtest.NewCluster(t, cmd.Run, world...)
	if waited := o.Line("wait run/" + name + " --timeout 100ms"); waited.Code != 124 || !strings.Contains(waited.Err, "--timeout passed: run "+name) {
		t.Errorf("%+v", waited)
	}
	asked := "error: run " + name + " is asked for, and has not begun: the trigger of plan orders waits, see 'kubectl maint why orders'\n"
	for _, line := range []string{"status " + name, "logs " + name, "wait " + name + " --for=phase=Running"} {
		o.Line(line).Is(t, cmdtest.Printed{Code: 1, Err: asked})
	}
	o.Line("wait maint-run-orders-a").Is(t, cmdtest.Printed{Code: 1, Err: "error: there is no run or plan or policy \"maint-run-orders-a\" in namespace shop; did you mean \"orders\"?\n"})
}

// `trigger orders; wait orders` must not go by the run before.
func TestAPlanWhoseTriggerWaitsIsNotItsEarlierRun(t *testing.T) {
	quiet := cmdtest.Agent()
	quiet.Data["heartbeat"] = "2026-11-20T23:00:00Z"
	for name, c := range map[string]struct {
		agent *corev1.ConfigMap
		notes []string
		after []string // of the command
		code  int
		err   string
	}{
		"it is paused":                       {cmdtest.Agent(), []string{annotations.Pause, "true"}, nil, 3, "error: the trigger of plan orders waits, and its run RUN does not begin: paused; see 'kubectl maint why orders'\n"},
		"a pause that ends is waited for":    {cmdtest.Agent(), []string{annotations.Pause, "2026-12-24T00:00:00Z"}, []string{"--timeout", "100ms"}, 124, "run RUN is asked for by the trigger of plan orders\n"},
		"the agent is silent":                {quiet, nil, nil, 5, "error: the agent in namespace maint-system was last seen"},
		"what was handled is not waited for": {cmdtest.Agent(), []string{annotations.StatusTrigger, "t1"}, nil, 0, "run maint-run-orders-a is the newest of plan orders\n"},
	} {
		t.Run(name, func(t *testing.T) {
			plan := cmdtest.Plan("orders", "", cmdtest.Noting(append([]string{annotations.Trigger, "t1"}, c.notes...)...))
			o := cmdtest.NewCluster(t, cmd.Run, c.agent, plan, cmdtest.Namespace("shop"), cmdtest.Namespace("maint-system"), ended(run.Succeeded, "done"))
			asked := annotations.RunName("orders", string(plan.UID), run.Request{Kind: run.ByToken, Token: "t1"})
			got := o.Line(strings.Join(append([]string{"wait orders"}, c.after...), " "))
			if got.Code != c.code || !strings.HasPrefix(got.Err, strings.ReplaceAll(c.err, "RUN", asked)) {
				t.Errorf("%+v", got)
			}
			warned := "warning: run " + asked + " is asked for, and has not begun: the trigger of plan orders waits, see 'kubectl maint why orders'\n"
			if logs := o.Line("logs orders"); strings.Contains(logs.Err, warned) != (c.code != 0) {
				t.Errorf("logs: %+v", logs)
			}
		})
	}
}

// Whoever waits for a run behind another learns what that one needs from somebody, also when it needs it later.
func TestAWaitBehindASuspendedRunSaysWhatThatNeeds(t *testing.T) {
	plan := cmdtest.Plan("orders", "", cmdtest.Noting(annotations.Trigger, "t1"))
	plan.Annotations[annotations.StatusObserved] = annotations.Observed(plan)
	asked := annotations.RunName("orders", string(plan.UID), run.Request{Kind: run.ByToken, Token: "t1"})
	working, suspended := cmdtest.Record("hold", "webhook", run.StepRunning), cmdtest.Record("hold", "suspend", run.StepRunning)
	const needs = "; run maint-run-orders-a is suspended in step hold: 'kubectl maint resume maint-run-orders-a'\n"
	for name, first := range map[string]run.Record{"when it begins": suspended, "when that is suspended later": working} {
		t.Run(name, func(t *testing.T) {
			o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), plan, cmdtest.Namespace("shop"), cmdtest.Namespace("maint-system"), cmdtest.RunObject(cmdtest.RunOf(first), "maint-run-orders-a"))
			o.Told(map[string]func(){"waiting for run " + asked: func() { o.Stores("configmaps", cmdtest.RunObject(cmdtest.RunOf(suspended), "maint-run-orders-a")) }})
			if got := o.Line("wait orders --timeout 3s"); got.Code != 124 || !strings.Contains(got.Out, "waiting for run "+asked+needs) {
				t.Errorf("%+v", got)
			}
		})
	}
}

// What decides over a policy may be hidden until the agent has looked at it: a wait goes on until then.
func TestAPolicyWhosePauseIsHiddenIsWaitedFor(t *testing.T) {
	o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), cmdtest.Namespace("shop"), cmdtest.Namespace("maint-system", annotations.Pause, "true"), cmdtest.Policy("open", "{strategy: Permissive}"))
	o.Forbids("get", "namespaces", "maint-system")
	got := o.Line("wait policy/open --for=permitted --timeout 500ms")
	if got.Code != 124 || !strings.Contains(got.Out+got.Err, "whether change is permitted is not known (whether the whole cluster is paused cannot be read)") {
		t.Errorf("%+v", got)
	}
}
