package report_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// A ledger that cannot be read is not one in which nothing happened, and whoever reads what the agent
// did not sign knows it.
func TestWhatIsWrongWithALedgerIsSaid(t *testing.T) {
	book := func(plan string) *corev1.ConfigMap {
		return cmdtest.LedgerOf(plan, ledger.Ledger{Totals: map[run.Result]int64{run.Ran: 1}, Recent: []ledger.Entry{{Result: run.Ran, Reason: "CHG-1", Run: "maint-run-" + plan + "-a", StartedAt: cmdtest.Before(time.Hour), At: *cmdtest.Before(time.Hour), Outcome: &ledger.Outcome{Phase: run.Failed}}}})
	}
	unread := "cannot be read: read ledger shop/" + annotations.LedgerName("orders", "u-orders") + ": unexpected end of JSON input; what ran of it is not known here"
	const doubt = "is not known to be the agent's record: it carries no signature of the agent's"
	const warning = "warning: the ledger of plan shop/orders "
	const span = " from Thu 2026-10-22 02:00 CEST (2026-10-22T00:00:00Z) to Sat 2026-11-21 01:00 CET (2026-11-21T00:00:00Z)\n"
	torn := objects(cmdtest.Namespace("shop"), seen("orders", daily), seen("other", daily), cmdtest.CutShort(book("orders")), book("other"))
	unsigned := objects(cmdtest.Namespace("shop"), seen("orders", daily), cmdtest.Unsigned(book("orders")))
	const fields = "'jsonpath={range .plans[*]}{.plan} {.runs} {.unread} {.ledgerFault}{\"; \"}{end}'"
	const one = "WHEN                       RESULT   REASON   RUN                  OUTCOME\nSat 2026-11-21 00:00 CET   Ran      CHG-1    maint-run-orders-a   Failed\n"
	runRows(t, []row{
		{name: "a report counts it as unread", line: "report -o " + fields, world: torn, out: "shop/orders 0 true " + unread + "; shop/other 1  ; ", err: warning + unread + "\n"},
		{name: "and one without a signature as such", line: "report -o " + fields, world: unsigned, out: "shop/orders 1  " + doubt + "; ", err: warning + doubt + "\n"},
		{name: "history shows the others", line: "history", world: torn, out: "PLAN    WHEN                       RESULT   REASON   RUN                 OUTCOME\nother   Sat 2026-11-21 00:00 CET   Ran      CHG-1    maint-run-other-a   Failed\n", err: warning + unread + "\n"},
		{name: "history of a plan whose ledger has no signature", line: "history orders", world: unsigned, out: one, err: warning + doubt + "\nin all: 1 Ran, 0 Skipped, 0 Missed\n"},
		{name: "savings", line: "savings", world: objects(cmdtest.Sleeper("orders", "schedule: {offHours: [{start: '20:00', end: '06:00'}]}"), cmdtest.CutShort(book("orders"))), err: warning + unread + "\nNo resources found in shop namespace.\nnothing slept" + span},
	})
}
