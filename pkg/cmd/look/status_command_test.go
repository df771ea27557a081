package look_test

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

func TestStatusShowsTheNodesInMaintenance(t *testing.T) {
	o := cmdtest.NewCluster(
		t, cmd.Run, cmdtest.Agent(), cmdtest.Namespace("shop"), cmdtest.Node("quiet"),
		cmdtest.Node("a", cmdtest.Asked(cmdtest.Jane, "{}"), cmdtest.Asked("gpu", ""), cmdtest.Stood(cmdtest.Jane, nodes.Draining, "3 of 12 pods are left", cmdtest.Progress(3, 12)), cmdtest.CordonedFor(nodes.Cordon{By: []string{cmdtest.Jane}})),
		cmdtest.Node("b", cmdtest.CordonedFor(nodes.Cordon{By: []string{"plan:ops/roll"}})), cmdtest.Node("c", cmdtest.CordonedFor(nodes.Cordon{By: []string{"plan:ops/roll"}, Before: true})),
		cmdtest.Node("d", cmdtest.Stood("gone", nodes.Ready, "")), cmdtest.Node("e"),
		cmdtest.RollsThrough(t, "waits", run.Item{Name: "b", Phase: run.StepRunning}, run.Item{Name: "e", Phase: run.StepFailed, Message: "no disk"}, run.Item{Name: "quiet"}),
	)
	o.Maint("status").Is(t, cmdtest.Printed{Code: 0, Out: `Needs somebody:
  node c  is left cordoned for plan ops/roll, and no run of that plan has it now
    'kubectl maint why node/c'
  node e  Failed for plan ops/roll: run maint-run-roll-x, step roll: no disk
    'kubectl maint why node/e'

no plans in namespace shop; 'kubectl maint new' asks for what one needs, 'kubectl maint schedule' writes one

NODE   FOR                    PHASE      SINCE   LEFT   REASON
a      cli.jane-example.com   Draining   10m0s   3/12   3 of 12 pods are left
a      gpu                    Pending    -       -      requested; the agent has not looked at it yet
b      plan ops/roll          Running    -       -      run maint-run-roll-x, step roll
c      plan ops/roll          Cordoned   10m0s   -      no run of that plan has it now
d      gone                   Ready      10m0s   -      being released, was Ready
e      plan ops/roll          Failed     -       -      run maint-run-roll-x, step roll: no disk
`, Err: ""})
	o.Maint("status", "node/a", "b", "c", "quiet").Is(t, cmdtest.Printed{Code: 0, Out: `Node:      a  Ready, unschedulable
Cordoned:  for cli.jane-example.com, since Sat 2026-11-21 00:50 CET (2026-11-20T23:50:00Z), 10m0s ago
           it was schedulable before, and is again when the last one leaves
Requests:  cli.jane-example.com  Draining for 10m0s: 3 of 12 pods are left
           gpu  requested; the agent has not looked at it yet
Window:    open (no strategy is set)

Node:      b  Ready, unschedulable
Cordoned:  for plan ops/roll, since Sat 2026-11-21 00:50 CET (2026-11-20T23:50:00Z), 10m0s ago
           it was schedulable before, and is again when the last one leaves
Requests:  nobody asks for it
Rollouts:  plan ops/roll (run maint-run-roll-x, step roll)  at work
Window:    open (no strategy is set)

Needs somebody:
  node c  is left cordoned for plan ops/roll, and there is no such plan any more: nobody else uncordons it
    'kubectl uncordon c'

Node:      c  Ready, unschedulable
Cordoned:  for plan ops/roll, since Sat 2026-11-21 00:50 CET (2026-11-20T23:50:00Z), 10m0s ago
           it was cordoned before, and stays so afterwards
Requests:  nobody asks for it
Window:    open (no strategy is set)

Node:      quiet  Ready
Requests:  nobody asks for it
Rollouts:  plan ops/roll (run maint-run-roll-x, step roll)  not begun: waits
Window:    open (no strategy is set)
`, Err: ""})
}

// Who may not read the runs elsewhere, or any, is not told that none has the node.
func TestStatusOfANodeWhoseRunsMayNotBeRead(t *testing.T) {
	world := func() *cmdtest.Cluster {
		return cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), cmdtest.Namespace("shop"), cmdtest.Namespace("maint-system"), cmdtest.Node("b", cmdtest.CordonedFor(nodes.Cordon{By: []string{"plan:ops/roll"}})), cmdtest.RollsThrough(t, "waits", run.Item{Name: "b", Phase: run.StepRunning}))
	}
	const node = `Node:      b  Ready, unschedulable
Cordoned:  for plan ops/roll, since Sat 2026-11-21 00:50 CET (2026-11-20T23:50:00Z), 10m0s ago
           it was schedulable before; whether a run of plan ops/roll goes on with it cannot be seen
Requests:  nobody asks for it
Window:    open (no strategy is set)
`
	const claims = `
NODE   FOR             PHASE      SINCE   LEFT   REASON
b      plan ops/roll   Cordoned   10m0s   -      whether a run of that has it now cannot be seen
`
	elsewhere := func(a clienttesting.Action) (bool, runtime.Object, error) {
		return a.GetNamespace() == "", nil, apierrors.NewForbidden(corev1.Resource("configmaps"), "", nil)
	}
	o := world()
	o.Kube.PrependReactor("list", "configmaps", elsewhere)
	o.Maint("status", "node/b").Is(t, cmdtest.Printed{Out: node})
	o.Maint("status").Is(t, cmdtest.Printed{Out: "no plans in namespace shop; 'kubectl maint new' asks for what one needs, 'kubectl maint schedule' writes one\n" + claims})
	if got := o.Maint("why", "node/b"); got.Code != 3 || !strings.Contains(got.Out, "10m0s ago, and whether a run of that has it now cannot be seen\n") {
		t.Errorf("%+v", got)
	}
	o = world()
	o.Forbids("list", "configmaps", "shop")
	o.Kube.PrependReactor("list", "configmaps", elsewhere)
	got := o.Maint("status", "node/b")
	if strings.Count(got.Err, "\n") != 1 || !strings.HasPrefix(got.Err, "warning: list runs: configmaps is forbidden: not for you") || !strings.HasSuffix(got.Err, "; which runs have the node is not shown\n") {
		t.Errorf("%+v", got)
	}
	got.Err = ""
	got.Is(t, cmdtest.Printed{Out: node})
	if got := o.Maint("why", "node/b"); got.Code != 3 || !strings.Contains(got.Out, "10m0s ago, and whether a run of that has it now cannot be seen\n") {
		t.Errorf("%+v", got)
	}
}

// A node that a run left cordoned is told with its plan, too.
func TestStatusOfAPlanWhoseRunLeftNodesCordoned(t *testing.T) {
	roll := seen("roll", "")
	roll.Data[annotations.DataPlan] = "{apiVersion: maint.dev/v1alpha1, kind: Plan, spec: {steps: [{name: drain, type: drain, properties: {node: a}}]}}"
	roll.Annotations[annotations.StatusObserved] = annotations.Observed(roll)
	o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), cmdtest.Namespace("shop"), roll, cmdtest.Node("a", cmdtest.CordonedFor(nodes.Cordon{By: []string{"plan:shop/roll"}})), cmdtest.Node("b"))
	const what = "is left cordoned for it since Sat 2026-11-21 00:50 CET (2026-11-20T23:50:00Z), 10m0s ago: its next run goes on with the node"
	if got := o.Maint("status", "roll"); !strings.HasPrefix(got.Out, "Needs somebody:\n  node a  "+what+"\n    'kubectl uncordon a'\n\nPlan: ") {
		t.Errorf("%+v", got)
	}
	if got := o.Maint("status", "roll", "-o", "jsonpath={.needs[0].what}"); got.Out != what {
		t.Errorf("%+v", got)
	}
	o.Become("a", cmdtest.Asked("gpu", "{}"), cmdtest.Stood("gpu", nodes.Draining, "2 pods are left"), cmdtest.CordonedFor(nodes.Cordon{By: []string{"gpu", "plan:shop/roll"}}))
	if got := o.Maint("status", "roll"); !strings.HasPrefix(got.Out, "Needs somebody:\n  node a  "+what+"\n    'kubectl uncordon a' once it is given back by gpu\n\nPlan: ") {
		t.Errorf("while somebody drains it: %+v", got)
	}
	o.Become("a", cmdtest.CordonedFor(nodes.Cordon{By: []string{"plan:shop/other", "plan:shop/roll"}}))
	if got := o.Maint("status", "roll"); !strings.HasPrefix(got.Out, "Needs somebody:\n  node a  "+what+"\n    'kubectl maint why node/a'\n\nPlan: ") {
		t.Errorf("beside another plan: %+v", got)
	}
	if got := o.Line("status -A -o json"); got.Code != 0 || strings.Contains(got.Out, "unread") {
		t.Errorf("where all may be read: %+v", got)
	}
	o.Forbids("list", "nodes", "")
	if got := o.Maint("status", "roll"); got.Code != 0 || !strings.HasPrefix(got.Out, "Plan: ") {
		t.Errorf("%+v", got)
	}
	const unseen = "what goes on on nodes is not shown: list nodes: nodes is forbidden: not for you"
	for line, want := range map[string]string{"status": "", "status -A": "warning: " + unseen + "\n"} {
		if got := o.Line(line); got.Code != 0 || got.Err != want {
			t.Errorf("%s: %+v", line, got)
		}
		if got := o.Line(line + " -o jsonpath={.unread}"); got.Code != 0 || got.Err != want || got.Out != `["`+unseen+`"]` {
			t.Errorf("%s for scripts: %+v", line, got)
		}
	}
}

func TestStatusOfANodeFollowsIt(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), cmdtest.Node("a", cmdtest.Asked(cmdtest.Jane, "{}")))
	o.Ctx = ctx
	o.Told(map[string]func(){
		"has not looked at it yet": func() { o.Become("a", cmdtest.Stood(cmdtest.Jane, nodes.Pending, "waits its turn")) },
		"waits its turn": func() {
			o.Become("a", func(n *corev1.Node) {
				for key := range n.Annotations {
					delete(n.Annotations, key)
				}
			})
		},
		"nobody asks": interrupt,
	})
	o.Maint("status", "node/a", "-w").Is(t, cmdtest.Printed{Code: 130, Out: `2026-11-21T00:00:00Z node a: cli.jane-example.com: Pending: requested; the agent has not looked at it yet
2026-11-21T00:00:00Z node a: cli.jane-example.com: Pending: waits its turn
2026-11-21T00:00:00Z node a: nobody asks for it
`, Err: ""})
}

// Of a namespace whose plans were all read, a plan that is not among them does not exist.
func TestStatusSaysThatAPlanIsGoneForWhichANodeIsCordoned(t *testing.T) {
	node := func(name, by string) *corev1.Node {
		return cmdtest.Node(name, cmdtest.CordonedFor(nodes.Cordon{By: []string{by}}))
	}
	o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), cmdtest.Namespace("shop"), cmdtest.Plan("orders", ""), node("a", "plan:shop/gone"), node("b", "plan:shop/orders"), node("c", "plan:ops/roll"))
	const gone = "  node a  is left cordoned for plan shop/gone, and there is no such plan any more: nobody else uncordons it\n    'kubectl uncordon a'\n  node b  is left cordoned for plan shop/orders, and no run of that plan has it now\n    'kubectl maint why node/b'\n  node c  is left cordoned for plan ops/roll, and no run of that plan has it now\n"
	if got := o.Maint("status"); got.Code != 0 || !strings.Contains(got.Out, gone) {
		t.Errorf("%+v", got)
	}
	if got := o.Maint("status", "-A"); !strings.Contains(got.Out, "for plan ops/roll, and there is no such plan any more") {
		t.Errorf("of all namespaces: %+v", got)
	}
	if got := o.Maint("status", "-l", "team=none"); strings.Contains(got.Out, "no such plan") {
		t.Errorf("of some plans: %+v", got)
	}
}
