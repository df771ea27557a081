package report_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

const daily = "triggers: {schedules: [{cron: '0 2 * * *', timezone: Europe/Berlin}]}"

func objects(list ...runtime.Object) []runtime.Object { return list }

// seen is a plan as the agent has looked at it.
func seen(name, spec string) *corev1.ConfigMap {
	return cmdtest.Plan(name, spec, func(cm *corev1.ConfigMap) {
		cm.CreationTimestamp.Time = cmdtest.Now().Add(-48 * time.Hour)
		cm.Annotations[annotations.StatusObserved] = annotations.Observed(cm)
		cm.Annotations[annotations.StatusPhase] = "Idle"
	})
}

func ended(name string, phase run.Phase, at time.Duration) *corev1.ConfigMap {
	r := cmdtest.RunOf()
	r.Journal.Phase, r.Journal.StartedAt, r.Journal.FinishedAt = phase, cmdtest.Before(at), cmdtest.Before(at-5*time.Minute)
	return cmdtest.RunObject(r, name)
}

// row is a command line, the cluster beside an agent that runs, and what it printed.
type row struct {
	name   string
	line   string
	world  []runtime.Object
	before func(*cmdtest.Cluster)
	code   int
	out    string
	err    string
}

func runRows(t *testing.T, rows []row) {
	t.Helper()
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			o := cmdtest.NewCluster(t, cmd.Run, append(objects(cmdtest.Agent(), cmdtest.Namespace("maint-system")), r.world...)...)
			if r.before != nil {
				r.before(o)
			}
			o.Line(r.line).Is(t, cmdtest.Printed{Code: r.code, Out: r.out, Err: r.err})
		})
	}
}

func TestHistory(t *testing.T) {
	slot := func(h int) *time.Time { at := cmdtest.Now().Add(time.Duration(h) * time.Hour); return &at }
	l := cmdtest.Ledger(ledger.Ledger{Recent: []ledger.Entry{
		{Slot: slot(-72), First: slot(-72), Last: slot(-24), Count: 3, Result: run.Skipped, Reason: "paused", At: *slot(-24)},
		{Slot: slot(-23), Result: run.Ran, Reason: "schedule", Run: "maint-run-orders-a", StartedAt: slot(-23), At: *slot(-22)},
		{Result: run.Ran, Reason: "CHG-1", Run: "maint-run-orders-gone", Actor: "jane", DryRun: true, StartedAt: slot(-2), At: *slot(-2)},
	}, Open: []ledger.Entry{{Result: "Open", Reason: "manual", Run: "maint-run-orders-b", At: *slot(0)}}})
	approved := cmdtest.RunOf()
	approved.Journal.Approved, approved.Journal.Phase = &intent.Actor{Name: "joe", At: *slot(-1)}, run.Running
	world := objects(seen("orders", daily), l, ended("maint-run-orders-a", run.Failed, 23*time.Hour), cmdtest.RunObject(approved, "maint-run-orders-b"))
	runRows(t, []row{
		{name: "of a plan", line: "history orders", world: world, out: "WHEN                                                            RESULT          REASON     RUN                     OUTCOME\nWed 2026-11-18 01:00 CET to Fri 2026-11-20 01:00 CET, 3 slots   Skipped         paused     <none>                  <none>\nFri 2026-11-20 02:00 CET                                        Ran             schedule   maint-run-orders-a      Failed after 5m0s\nFri 2026-11-20 23:00 CET                                        Ran (dry run)   CHG-1      maint-run-orders-gone   <none>\nSat 2026-11-21 01:00 CET                                        Open            manual     maint-run-orders-b      Running, approved by joe (unverified)\n"},
		{name: "the newest", line: "history orders --limit 1 --no-headers", world: world, out: "Sat 2026-11-21 01:00 CET   Open   manual   maint-run-orders-b   Running, approved by joe (unverified)\n"},
		{name: "names of runs", line: "history orders -o name", world: world, out: "configmap/maint-run-orders-a\nconfigmap/maint-run-orders-gone\nconfigmap/maint-run-orders-b\n"},
		{name: "for a machine", line: "history orders --limit 2 -o 'jsonpath={.kind}{range .items[*]} {.plan} {.result} {.dryRun} {.actor} {.at}{end}'", world: world, out: "LedgerList shop/orders Ran true jane 2026-11-20T22:00:00Z shop/orders Open   2026-11-21T00:00:00Z"},
		{name: "of a plan that the agent has not looked at", line: "history orders -o name", world: objects(seen("orders", "")), err: "plan orders has no ledger yet: the agent has not looked at it\n"},
		{name: "of no plan", line: "history ghost", code: 1, err: "error: there is no plan \"ghost\" in namespace shop; the namespace has none: choose another with -n, or see all with 'kubectl maint list -A'\n"},
		{name: "who may not list runs", line: "history orders", world: world, before: func(o *cmdtest.Cluster) { o.Forbids("list", "configmaps", "") }, code: 1, err: "error: list runs: you may not: configmaps is forbidden: not for you\n"},
	})
}
