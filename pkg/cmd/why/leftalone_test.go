package why_test

import (
	"strings"
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// It is not at work, what it waits for does not come, and it keeps no other from starting.
func TestWhyOfARunThatIsLeftAlone(t *testing.T) {
	const conditions = `[{"type":"RunStuck","status":"True","message":"run maint-run-orders-a is left alone: another key; sign it with 'kubectl maint -n shop adopt run/maint-run-orders-a'"}]`
	cm := cmdtest.Plan("orders", "", cmdtest.Noting(annotations.StatusConditions, conditions))
	cmdtest.Noting(annotations.StatusObserved, annotations.Observed(cm))(cm)
	left := cmdtest.RunOf(cmdtest.Record("hold", "suspend", run.StepRunning))
	for name, c := range map[string]struct {
		ledger ledger.Ledger
		hand   string
	}{
		"its ledger has it":     {ledger.Ledger{Open: []ledger.Entry{{Run: "maint-run-orders-a", Request: &run.Request{Kind: run.ByToken, Token: "t"}}}}, "if you sign it, nothing is lost"},
		"its ledger began anew": {ledger.Ledger{}, "if you sign it, it begins nothing, since its plan's ledger began anew without it: then 'kubectl maint abort maint-run-orders-a' ends it, with its restore and its finally steps"},
	} {
		o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), cmdtest.Namespace("shop"), cm, cmdtest.LedgerOf("orders", c.ledger), cmdtest.RunObject(left, "maint-run-orders-a"))
		got := o.Maint("why", "maint-run-orders-a", "-n", "shop")
		want := "1. run maint-run-orders-a is left alone: another key; sign it with 'kubectl maint -n shop adopt run/maint-run-orders-a'\n   " + c.hand + "; if you remove its finalizer by hand, it puts nothing back\n"
		if got.Code != 3 || !strings.HasPrefix(got.Out, want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// Whoever resumes it is not heard: only its end puts back what it changed.
func TestWhyOfASuspendedRunThatNoLedgerKnows(t *testing.T) {
	const conditions = `[{"type":"RunStuck","status":"True","message":"run maint-run-orders-a cannot go on: it has no open entry in its plan's ledger, so it begins nothing; 'kubectl maint -n shop abort maint-run-orders-a' puts back what it changed and ends it"}]`
	cm := cmdtest.Plan("orders", "", cmdtest.Noting(annotations.StatusConditions, conditions))
	cmdtest.Noting(annotations.StatusObserved, annotations.Observed(cm))(cm)
	o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), cmdtest.Namespace("shop"), cm, cmdtest.RunObject(cmdtest.RunOf(cmdtest.Record("hold", "suspend", run.StepRunning)), "maint-run-orders-a"))
	got := o.Maint("why", "maint-run-orders-a", "-n", "shop")
	if strings.Contains(got.Out, "maint resume") || !strings.Contains(got.Out, "maint -n shop abort maint-run-orders-a") {
		t.Errorf("%+v", got)
	}
}

// A ledger that somebody made immutable cannot be fixed, and the plan's own faults are none.
func TestWhyOfAPlanWhoseLedgerCannotBeWritten(t *testing.T) {
	const conditions = `[{"type":"Valid","status":"False","message":"nothing of this plan starts or ends: its ledger cannot be written: immutable"}]`
	cm := cmdtest.Plan("orders", "", cmdtest.Noting(annotations.StatusConditions, conditions))
	cm.UID = "u"
	cmdtest.Noting(annotations.StatusObserved, annotations.Observed(cm))(cm)
	o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), cmdtest.Namespace("shop"), cm)
	name := annotations.LedgerName("orders", "u")
	o.Maint("why", "orders", "-n", "shop").Is(t, cmdtest.Printed{Code: 3, Out: `1. the plan is invalid: nothing of this plan starts or ends: its ledger cannot be written: immutable
   make room in the quota, or fix what refuses it; if somebody made the ConfigMap immutable, only 'kubectl -n shop delete configmap ` + name + `' helps: a new ledger begins then, and what was before is not known
`})
}
