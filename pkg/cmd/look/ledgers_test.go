package look_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// A run that somebody is told to retry can be retried.
func TestARetryIsSuggestedWhereItWouldBeTakenUp(t *testing.T) {
	end := func(name string, phase run.Phase, ago time.Duration) ledger.Entry {
		return ledger.Entry{Result: run.Ran, Run: name, At: *cmdtest.Before(ago), Outcome: &ledger.Outcome{Phase: phase, Step: "dump", Message: "no disk"}}
	}
	failed, aborted := end("maint-run-orders-a", run.Failed, 2*time.Hour), end("maint-run-orders-b", run.Aborted, time.Hour)
	kept := func(last run.Phase, entries ...ledger.Entry) *corev1.ConfigMap {
		e := entries[len(entries)-1]
		return cmdtest.Ledger(ledger.Ledger{Last: &ledger.LastRun{Name: e.Run, Phase: last, EndedAt: e.At}, Recent: entries})
	}
	first, second := ended("maint-run-orders-a", run.Failed, 2*time.Hour), ended("maint-run-orders-b", run.Aborted, time.Hour)
	const (
		last    = "its last run maint-run-orders-a failed Fri 2026-11-20 23:00 CET (2026-11-20T22:00:00Z), 2h0m ago, in step dump: no disk\n   see 'kubectl maint describe maint-run-orders-a'"
		earlier = "run maint-run-orders-a failed, in step dump: no disk; no run has succeeded since\n   see 'kubectl maint describe maint-run-orders-a'"
		next    = "\nnothing keeps the next run from starting\nby hand: 'kubectl maint trigger orders'\n"
	)
	runRows(t, []row{
		{name: "the newest, which is kept", line: "why orders", world: objects(cmdtest.Namespace("shop"), seen("orders", ""), kept(run.Failed, failed), first), out: last + "; 'kubectl maint retry maint-run-orders-a' runs it once more" + next},
		{name: "the newest, which is no longer kept", line: "why orders", world: objects(cmdtest.Namespace("shop"), seen("orders", ""), kept(run.Failed, failed)), out: last + next},
		{name: "one before another that was aborted", line: "why orders", world: objects(cmdtest.Namespace("shop"), seen("orders", ""), kept(run.Aborted, failed, aborted), first, second), out: earlier + next},
	})
}

// Of a run that is no longer kept, scripts get what the ledger remembers.
func TestDescribeTellsScriptsOfARunThatIsGone(t *testing.T) {
	kept := cmdtest.Ledger(ledger.Ledger{Recent: []ledger.Entry{{Result: run.Ran, Reason: "CHG-1", Run: "maint-run-orders-z", At: *cmdtest.Before(time.Hour), Outcome: &ledger.Outcome{Phase: run.Failed, Step: "dump"}}}})
	const doubt = "warning: the ledger of plan shop/orders is not known to be the agent's record: it carries no signature of the agent's\n"
	const fields = "{.kind} {.plan} {.run} {.result} {.outcome.phase} {.outcome.step}"
	runRows(t, []row{
		{name: "its entry", line: "describe maint-run-orders-z -o 'jsonpath=" + fields + "'", world: objects(seen("orders", ""), kept), out: "Ledger shop/orders maint-run-orders-z Ran Failed dump"},
		{name: "its name", line: "describe maint-run-orders-z -o name", world: objects(seen("orders", ""), kept), out: "run/maint-run-orders-z\n"},
		{name: "beside others", line: "describe orders maint-run-orders-z -o jsonpath={.items[*].kind}", world: objects(seen("orders", ""), kept), out: "PlanStatus Ledger"},
		{name: "of a ledger without a signature", line: "describe maint-run-orders-z -o name", world: objects(seen("orders", ""), cmdtest.Unsigned(kept.DeepCopy())), out: "run/maint-run-orders-z\n", err: doubt},
	})
}

// What a ledger that cannot be read would say is not known, and that is said.
func TestStatusSaysThatALedgerCannotBeRead(t *testing.T) {
	book := func() *corev1.ConfigMap {
		return cmdtest.Ledger(ledger.Ledger{Watermark: cmdtest.Now(), Last: &ledger.LastRun{Name: "maint-run-orders-z", Phase: run.Succeeded, EndedAt: *cmdtest.Before(time.Hour)}})
	}
	name := annotations.LedgerName("orders", "u-orders")
	needs := func(what string) string {
		return "Needs somebody:\n  orders  its ledger " + what + "\n    'kubectl get configmap " + name + " -o yaml'\n\n"
	}
	unread := "cannot be read: read ledger shop/" + name + ": unexpected end of JSON input; what ran of it is not known here"
	const doubted = "is not known to be the agent's record: it carries no signature of the agent's"
	torn := objects(cmdtest.Namespace("shop"), seen("orders", daily), cmdtest.CutShort(book()))
	unsigned := objects(cmdtest.Namespace("shop"), seen("orders", daily), cmdtest.Unsigned(book()))
	runRows(t, []row{
		{name: "cut short", line: "status", world: torn, out: needs(unread) + "PLAN     PHASE   NEXT        LAST        MESSAGE\norders   Idle    not known   not known   -\n"},
		{name: "cut short, for scripts", line: "status -o 'jsonpath={.items[0].needs[0].what} {.items[0].next}'", world: torn, out: "its ledger " + unread + " "},
		{name: "without a signature", line: "status", world: unsigned, out: needs(doubted) + "PLAN     PHASE   NEXT                              LAST                 MESSAGE\norders   Idle    Sat 2026-11-21 02:00 CET (1h0m)   Succeeded 1h0m ago   -\n"},
		{name: "the plan alone", line: "status orders", world: unsigned, out: "Needs somebody:\n  orders  its ledger " + doubted + "\n    'kubectl get configmap maint-ledger-orders-d5gtysswlk -o yaml'\n\nPlan:    orders in namespace shop\nPhase:   Idle\nNext:    Sat 2026-11-21 02:00 CET (2026-11-21T01:00:00Z), in 1h0m\nLast:    Succeeded maint-run-orders-z\nLedger:  " + doubted + "\n"},
		{name: "why", line: "why orders", world: unsigned, out: "nothing is in the way\nits ledger " + doubted + "\nnext slot: Sat 2026-11-21 02:00 CET (2026-11-21T01:00:00Z), in 1h0m\nby hand: 'kubectl maint trigger orders'\n"},
	})
}
