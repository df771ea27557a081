package cmd

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// rollsThrough is a live run of plan roll, with a rollout over nodes.
func rollsThrough(t *testing.T, message string, items ...plan.Item) *corev1.ConfigMap {
	t.Helper()
	rec := record("roll", plan.TypeForEachNode, plan.StepRunning)
	rec.Items, rec.Listed, rec.Message = items, true, message
	r := plan.Run{Name: "maint-run-roll-x", Namespace: "ops", Plan: "roll", PlanUID: "u"}
	cm, err := annotations.RunObject(r, plan.Journal{Phase: plan.RunRunning, StartedAt: before(0), Steps: []plan.Record{rec}})
	if err != nil {
		t.Fatal(err)
	}
	return cm
}

func TestStatusShowsTheNodesInMaintenance(t *testing.T) {
	o := newOnline(
		t, Run, anAgent(), worker("quiet"),
		worker("a", asked(jane, "{}"), asked("gpu", ""), stood(jane, nodes.Draining, "3 of 12 pods are left", progress(3, 12)), cordonedFor(nodes.Cordon{By: []string{jane}})),
		worker("b", cordonedFor(nodes.Cordon{By: []string{"plan:ops/roll"}})), worker("c", cordonedFor(nodes.Cordon{By: []string{"plan:ops/roll"}, Before: true})),
		worker("d", stood("gone", nodes.Ready, "")), worker("e"),
		rollsThrough(t, "waits", plan.Item{Name: "b", Phase: plan.StepRunning}, plan.Item{Name: "e", Phase: plan.StepFailed, Message: "no disk"}, plan.Item{Name: "quiet"}),
	)
	o.maint("status").is(t, printed{code: 0, out: `no plans in namespace shop; 'kubectl maint schedule' writes one

NODE   FOR                    PHASE      SINCE   LEFT   REASON
a      cli.jane-example.com   Draining   10m0s   3/12   3 of 12 pods are left
a      gpu                    Pending    -       -      requested; the agent has not looked at it yet
b      plan ops/roll          Running    -       -      run maint-run-roll-x, step roll
c      plan ops/roll          Cordoned   10m0s   -      cordoned for it
d      gone                   Ready      10m0s   -      being released, was Ready
e      plan ops/roll          Failed     -       -      run maint-run-roll-x, step roll
`, err: ""})
	o.maint("status", "node/a", "b", "c", "quiet").is(t, printed{code: 0, out: `Node:      a  Ready, unschedulable
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
`, err: ""})
}

func TestStatusOfANodeFollowsIt(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	o := newOnline(t, Run, anAgent(), worker("a", asked(jane, "{}")))
	o.ctx = ctx
	o.told(map[string]func(){
		"has not looked at it yet": func() { o.become("a", stood(jane, nodes.Pending, "waits its turn")) },
		"waits its turn": func() {
			o.become("a", func(n *corev1.Node) {
				for key := range n.Annotations {
					delete(n.Annotations, key)
				}
			})
		},
		"nobody asks": interrupt,
	})
	o.maint("status", "node/a", "-w").is(t, printed{code: 130, out: `2026-11-21T00:00:00Z node a: cli.jane-example.com: Pending: requested; the agent has not looked at it yet
2026-11-21T00:00:00Z node a: cli.jane-example.com: Pending: waits its turn
2026-11-21T00:00:00Z node a: nobody asks for it
`, err: ""})
}

// Who may see no nodes sees the plans all the same.
func TestStatusWithoutRightsToNodes(t *testing.T) {
	k := refusing("list", "nodes")
	o := &statusOptions{cli: &cli{Env: Env{Now: saturday, Name: "kubectl maint"}}}
	lines, _, err := o.overview(t.Context(), k, agentState{Namespace: annotations.DefaultNamespace})
	if got := strings.Join(lines, "\n"); err != nil || got != "no plans in namespace shop; 'kubectl maint schedule' writes one" {
		t.Errorf("%q, %v", got, err)
	}
}

// Without an agent nobody would uncordon a node that is cordoned for somebody.
func TestUninstallRefusesWhileANodeIsHeld(t *testing.T) {
	o := newOnline(t, Run, anAgent(), worker("a"), worker("b", cordonedFor(nodes.Cordon{By: []string{"plan:ops/roll"}})))
	o.maint("uninstall", "--yes").is(t, printed{code: 3, out: "", err: "error: node b is cordoned for plan ops/roll, and nobody would uncordon it: 'kubectl maint status' shows all such nodes; release them, or let their plans end\n"})
}
