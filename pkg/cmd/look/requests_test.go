package look_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	ktesting "k8s.io/client-go/testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// Each request is a round trip that somebody waits for: their number does not grow with that of the plans.
func TestStatusSendsAsManyRequestsForManyPlansAsForAFew(t *testing.T) {
	const most = 14 // docs/benchmarks.md has it: the agent, a list each of what status shows, and what decides over it
	sent := map[int]int{}
	for _, plans := range []int{20, 200} {
		world := []runtime.Object{cmdtest.Agent(), cmdtest.Namespace("shop"), cmdtest.Namespace("maint-system")}
		for i := range plans {
			world = append(world, cmdtest.Plan(fmt.Sprintf("orders-%03d", i), fmt.Sprintf("target: {apiVersion: apps/v1, kind: Deployment, name: d%d}", i)))
		}
		o := cmdtest.NewCluster(t, cmd.Run, world...)
		if got := o.Maint("status"); got.Code != 0 {
			t.Fatal(got.Err)
		}
		sent[plans] = len(o.Kube.Actions())
		if sent[plans] > most {
			t.Errorf("of %d plans %d requests: %v", plans, sent[plans], o.Kube.Actions())
		}
	}
	if sent[20] != sent[200] {
		t.Errorf("%d requests for 20 plans, %d for 200", sent[20], sent[200])
	}
}

// Nor does the number grow with the rollouts of other nodes, and no plan is asked for twice.
func TestWhatIsSaidOfANodeSendsAsManyRequestsWithManyRolloutsAsWithAFew(t *testing.T) {
	for _, line := range []string{"status node/node-0", "why node/node-0"} {
		sent := map[int]int{}
		for _, rollouts := range []int{2, 20} {
			world := []runtime.Object{cmdtest.Agent(), cmdtest.Namespace("shop"), cmdtest.Namespace("maint-system")}
			for i := range rollouts {
				node, name := fmt.Sprintf("node-%d", i), fmt.Sprintf("roll-%d", i)
				rec := cmdtest.Record("roll", plan.TypeForEachNode, run.StepRunning, cmdtest.Looping(run.Item{Name: node, Phase: run.StepRunning}))
				r := cmdtest.RunOf(rec)
				r.Run.Plan = name
				world = append(world, cmdtest.RunObject(r, "maint-run-"+name+"-x"), cmdtest.Plan(name, ""), cmdtest.Node(node, cmdtest.CordonedFor(nodes.Cordon{By: []string{"plan:shop/" + name}})))
			}
			o := cmdtest.NewCluster(t, cmd.Run, world...)
			if got := o.Line(line); got.Out == "" {
				t.Fatal(got.Err)
			}
			sent[rollouts] = len(o.Kube.Actions())
			asked := map[string]int{}
			for _, a := range o.Kube.Actions() {
				if get, is := a.(ktesting.GetAction); is && get.GetResource().Resource == "configmaps" {
					asked[get.GetName()]++
				}
			}
			if asked["roll-0"] > 1 {
				t.Errorf("%s asks %d times for the plan", line, asked["roll-0"])
			}
		}
		if sent[2] != sent[20] {
			t.Errorf("%s: %d requests beside 2 rollouts, %d beside 20", line, sent[2], sent[20])
		}
	}
}
