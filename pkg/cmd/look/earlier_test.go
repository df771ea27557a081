package look_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// Somebody deleted a plan whose run lives, and made another one of its name: the agent ends that
// run, and the new plan does not wait for it.
func TestARunOfAnEarlierPlanIsNotOneOfThePlanOfItsName(t *testing.T) {
	shop, plans := cmdtest.Namespace("shop"), seen("orders", daily)
	plans.UID = types.UID("u-new")
	old := cmdtest.RunObject(cmdtest.RunOf(cmdtest.Record("hold", "suspend", run.StepRunning)), "maint-run-orders-old")
	runRows(t, []row{
		{name: "what keeps the plan", line: "why orders", world: objects(shop, plans, old), out: "nothing is in the way\nnext slot: Sat 2026-11-21 02:00 CET (2026-11-21T01:00:00Z), in 1h0m\nby hand: 'kubectl maint trigger orders'\n"},
		{name: "what keeps the run", line: "why maint-run-orders-old", world: objects(shop, plans, old), code: 3, err: "error: the plan orders of run maint-run-orders-old was deleted: the agent ends the run with its restore and finally; see 'kubectl maint status maint-run-orders-old'\n"},
		{name: "the plan's newest run", line: "logs orders", world: objects(shop, plans, old), code: 1, err: "error: plan orders has no run: 'kubectl maint trigger orders' asks for one\n"},
		{name: "all", line: "status", world: objects(shop, plans, old), out: "Needs somebody:\n  orders  had an earlier plan of its name, which was deleted: the agent ends its run maint-run-orders-old with its restore and finally; it is Running for 1h0m, 0 of 1 steps done\n    'kubectl maint status maint-run-orders-old'\n\nPLAN     PHASE   NEXT                              LAST   MESSAGE\norders   Idle    Sat 2026-11-21 02:00 CET (1h0m)   -      -\n"},
	})
}

func TestAnInvalidPlanHidesNothingThatItsRunsNeed(t *testing.T) {
	broken := seen("orders", "startDeadline: soon")
	held := cmdtest.RunObject(cmdtest.RunOf(cmdtest.Record("hold", "suspend", run.StepRunning)), "maint-run-orders-a")
	left := cmdtest.Ledger(ledger.Ledger{Left: []ledger.Leftover{{Run: "maint-run-orders-z", Step: "down", Message: "replicas: forbidden"}}})
	world := objects(cmdtest.Namespace("shop"), broken, held, left)
	runRows(t, []row{
		{name: "why", line: "why orders", world: world, code: 3, out: "run maint-run-orders-a is at work: Running for 1h0m, 0 of 1 steps done\n1. the plan is invalid: line 1: spec.startDeadline: \"soon\" is no duration: write it like 90s, 15m, 1h30m or 30d\n   fix it; 'kubectl maint lint -f FILE' tells all faults\n2. not put back by run maint-run-orders-z, step down: replicas: forbidden\n   look at it, and then acknowledge it: 'kubectl maint resume maint-run-orders-z'\n3. run maint-run-orders-a is suspended at step hold\n   'kubectl maint resume maint-run-orders-a'\nnext slot: nothing runs while the plan is invalid\n"},
		{name: "status", line: "status", world: world, out: "Needs somebody:\n  orders  is invalid, so it starts nothing: line 1: spec.startDeadline: \"soon\" is no duration: write it like 90s, 15m, 1h30m or 30d\n    'kubectl maint describe orders'\n  orders  run maint-run-orders-a is suspended in step hold\n    'kubectl maint resume maint-run-orders-a'\n  orders  not put back by run maint-run-orders-z, step down: replicas: forbidden\n    'kubectl maint resume maint-run-orders-z'\n\nshop/maint-run-orders-a  Running for 1h0m, 0 of 1 steps done\n  ▶ hold  suspend  Running       60s  waits for 'kubectl maint resume maint-run-orders-a'\n\nPLAN     PHASE     NEXT   LAST   MESSAGE\norders   Invalid   -      -      line 1: spec.startDeadline: \"soon\" is no duration: write it like 90s, 15m, 1h30m or 30d\n"},
	})
}

func TestStatusOfAllNamespacesNamesThemInItsCommands(t *testing.T) {
	asks := cmdtest.RunObject(cmdtest.RunOf(cmdtest.Record("hold", "suspend", run.StepRunning), cmdtest.Record("ask", plan.TypeApproval, run.StepRunning)), "maint-run-orders-a")
	runRows(t, []row{{name: "all", line: "status -A", world: objects(cmdtest.Namespace("shop"), seen("orders", daily), asks), out: "Needs somebody:\n  shop/orders  run maint-run-orders-a is suspended in step hold\n    'kubectl maint -n shop resume maint-run-orders-a'\n  shop/orders  run maint-run-orders-a asks in step ask: waits for approval\n    'kubectl maint -n shop approve maint-run-orders-a/ask' or 'kubectl maint -n shop reject maint-run-orders-a/ask'\n\nshop/maint-run-orders-a  Running for 1h0m, 0 of 2 steps done\n  ▶ hold  suspend   Running       60s  waits for 'kubectl maint -n shop resume maint-run-orders-a'\n  ▶ ask   approval  Running       60s  waits for 'kubectl maint -n shop approve maint-run-orders-a/ask'\n\nNAMESPACE   PLAN     PHASE   NEXT                              LAST   MESSAGE\nshop        orders   Idle    Sat 2026-11-21 02:00 CET (1h0m)   -      -\n"}})
}
