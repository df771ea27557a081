package look_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"

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
  node c  is left cordoned for plan ops/roll, and no run of that has it now
    'kubectl maint why node/c'
  node e  Failed for plan ops/roll: run maint-run-roll-x, step roll: no disk
    'kubectl maint why node/e'

no plans in namespace shop; 'kubectl maint new' asks for what one needs, 'kubectl maint schedule' writes one

NODE   FOR                    PHASE      SINCE   LEFT   REASON
a      cli.jane-example.com   Draining   10m0s   3/12   3 of 12 pods are left
a      gpu                    Pending    -       -      requested; the agent has not looked at it yet
b      plan ops/roll          Running    -       -      run maint-run-roll-x, step roll
c      plan ops/roll          Cordoned   10m0s   -      no run of that has it now
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
Rollouts:  plan ops/roll  at work (run maint-run-roll-x, step roll)
Window:    open (no strategy is set)

Node:      c  Ready, unschedulable
Cordoned:  for plan ops/roll, since Sat 2026-11-21 00:50 CET (2026-11-20T23:50:00Z), 10m0s ago
           it was cordoned before, and stays so afterwards
Requests:  nobody asks for it
Window:    open (no strategy is set)

Node:      quiet  Ready
Requests:  nobody asks for it
Rollouts:  plan ops/roll  not begun: waits (run maint-run-roll-x, step roll)
Window:    open (no strategy is set)
`, Err: ""})
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
