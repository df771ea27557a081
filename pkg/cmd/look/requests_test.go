package look_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
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
