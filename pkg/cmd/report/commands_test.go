package report_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

const daily = "triggers: {schedules: [{cron: '0 2 * * *', timezone: Europe/Berlin}]}"

func objects(list ...runtime.Object) []runtime.Object { return list }

// seen is a plan as the agent has looked at it.
// unseen is a plan at which no agent has looked.
func unseen(name, spec string) *corev1.ConfigMap {
	return cmdtest.Plan(name, spec, func(cm *corev1.ConfigMap) { delete(cm.Annotations, annotations.StatusObserved) })
}

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
	remembered := objects(seen("ledger", daily), cmdtest.LedgerOf("ledger", ledger.Ledger{
		Totals: map[run.Result]int64{run.Ran: 41, run.Missed: 2}, Outcomes: map[run.Phase]int64{run.Succeeded: 40, run.Failed: 1},
		Recent: []ledger.Entry{{Slot: slot(-23), Result: run.Ran, Reason: "schedule", Run: "maint-run-orders-gone", StartedAt: slot(-23), At: *slot(-22), Outcome: &ledger.Outcome{Phase: run.Failed, Step: "dump", Message: "exit code 3", Duration: document.Duration{Duration: 90 * time.Second}}}},
	}))
	kept := objects(seen("kept", daily), cmdtest.LedgerOf("kept", ledger.Ledger{
		Recent: []ledger.Entry{{Slot: slot(-23), Result: run.Ran, Reason: "schedule", Run: "maint-run-kept-gone", StartedAt: slot(-23), At: *slot(-22), Outcome: &ledger.Outcome{Phase: run.Succeeded, Message: "what step tag found was not put back: it changed", Duration: document.Duration{Duration: 90 * time.Second}}}},
	}))
	runRows(t, []row{
		{name: "of a plan", line: "history orders", world: world, out: "WHEN                                                            RESULT          REASON     RUN                     OUTCOME\nWed 2026-11-18 01:00 CET to Fri 2026-11-20 01:00 CET, 3 slots   Skipped         paused     <none>                  <none>\nFri 2026-11-20 02:00 CET                                        Ran             schedule   maint-run-orders-a      Failed after 5m0s\nFri 2026-11-20 23:00 CET                                        Ran (dry run)   CHG-1      maint-run-orders-gone   <none>\nSat 2026-11-21 01:00 CET                                        Open            manual     maint-run-orders-b      Running, approved by joe (unverified)\n"},
		{name: "the newest", line: "history orders --limit 1 --no-headers", world: world, out: "Sat 2026-11-21 01:00 CET   Open   manual   maint-run-orders-b   Running, approved by joe (unverified)\n"},
		{name: "names of runs", line: "history orders -o name", world: world, out: "configmap/maint-run-orders-a\nconfigmap/maint-run-orders-gone\nconfigmap/maint-run-orders-b\n"},
		{name: "for a machine", line: "history orders --limit 2 -o 'jsonpath={.apiVersion} {.kind}{range .items[*]} {.plan} {.result} {.dryRun} {.actor} {.at}{end}'", world: world, out: "maint.dev/v1alpha1 LedgerList shop/orders Ran true jane 2026-11-20T22:00:00Z shop/orders Open   2026-11-21T00:00:00Z"},
		{name: "of a plan that the agent has not looked at", line: "history orders -o name", world: objects(unseen("orders", "")), err: "plan orders has no ledger yet: the agent has not looked at it\n"},
		{name: "of no plan", line: "history ghost", world: objects(cmdtest.Namespace("shop")), code: 1, err: "error: there is no plan \"ghost\" in namespace shop; the namespace has none: choose another with -n, or see all with 'kubectl maint list -A'\n"},
		{name: "of a run whose object is gone", line: "history ledger --result failed --since 48h -o wide", world: remembered, err: "since Thu 2026-11-19 01:00 CET (2026-11-19T00:00:00Z)\n", out: "WHEN                       RESULT   REASON     RUN                     OUTCOME                       UTC                        ACTOR    MESSAGE\nFri 2026-11-20 02:00 CET   Ran      schedule   maint-run-orders-gone   Failed after 90s, step dump   Fri 2026-11-20 01:00 UTC   <none>   exit code 3\n"},
		{name: "with what ever was", line: "history ledger --no-headers", world: remembered, out: "Fri 2026-11-20 02:00 CET   Ran   schedule   maint-run-orders-gone   Failed after 90s, step dump: exit code 3\n", err: "in all: 41 Ran (40 Succeeded, 1 Failed), 0 Skipped, 2 Missed\n"},
		{name: "with what others changed while a run succeeded", line: "history kept --no-headers", world: kept, out: "Fri 2026-11-20 02:00 CET   Ran   schedule   maint-run-kept-gone   Succeeded after 90s: what step tag found was not put back: it changed\n"},
		{name: "of all plans", line: "history -A --since 24h --no-headers", world: append(remembered, world...), err: "since Fri 2026-11-20 01:00 CET (2026-11-20T00:00:00Z)\n", out: "shop/orders   Wed 2026-11-18 01:00 CET to Fri 2026-11-20 01:00 CET, 3 slots   Skipped         paused     <none>                  <none>\nshop/ledger   Fri 2026-11-20 02:00 CET                                        Ran             schedule   maint-run-orders-gone   Failed after 90s, step dump: exit code 3\nshop/orders   Fri 2026-11-20 02:00 CET                                        Ran             schedule   maint-run-orders-a      <none>\nshop/orders   Fri 2026-11-20 23:00 CET                                        Ran (dry run)   CHG-1      maint-run-orders-gone   <none>\nshop/orders   Sat 2026-11-21 01:00 CET                                        Open            manual     maint-run-orders-b      Running, approved by joe (unverified)\n"},
		{name: "of the namespace, for a machine", line: "history --result Failed -o 'jsonpath={.items[*].plan} {.items[0].outcome.phase} {.items[0].outcome.step} {.items[0].outcome.duration}'", world: append(remembered, world...), out: "shop/ledger Failed dump 1m30s"},
		{name: "of which nothing is left", line: "history --result Missed --since 1h", world: world, err: "since Sat 2026-11-21 00:00 CET (2026-11-20T23:00:00Z)\nNo resources found in shop namespace.\nnothing of that kind is in the history\n"},
		{name: "of nothing", line: "history -A", err: "No resources found\n"},
		{name: "with flags that make no sense", line: "history orders -A --result Lost --since 2027-01-01T00:00:00Z", code: 2, err: "error: --since Fri 2027-01-01 01:00 CET (2027-01-01T00:00:00Z) is in the future\nerror: a PLAN excludes -A and -l: it is looked for in one namespace\nerror: --result must be one of Ran, Skipped, Missed, Open, Succeeded, Failed, Aborted, Replaced, is \"Lost\"\n"},
		{name: "who may not list runs", line: "history orders", world: world, before: func(o *cmdtest.Cluster) { o.Forbids("list", "configmaps", "") }, code: 1, err: "Error from server (Forbidden): list runs: configmaps is forbidden: not for you; the ClusterRole view in namespace shop would let you; 'kubectl -n shop auth can-i --list' shows what you may\n"},
	})
}

func TestReport(t *testing.T) {
	slot := func(h int) *time.Time { at := cmdtest.Now().Add(time.Duration(h) * time.Hour); return &at }
	late := slot(-23).Add(90 * time.Second)
	world := objects(seen("orders", daily+", policies: [{name: nights}]"), seen("idle", daily), cmdtest.LedgerOf("orders", ledger.Ledger{
		Totals: map[run.Result]int64{run.Ran: 2, run.Missed: 1},
		Recent: []ledger.Entry{
			{Slot: slot(-70), First: slot(-70), Last: slot(-70), Count: 1, Result: run.Missed, Reason: "deadline", At: *slot(-69)},
			{Slot: slot(-23), Result: run.Ran, Reason: "schedule", Run: "maint-run-orders-gone", StartedAt: &late, At: *slot(-22), Outcome: &ledger.Outcome{
				Phase: run.Failed, Reason: "StepFailed", Step: "dump", Message: "exit code 3", Duration: document.Duration{Duration: 90 * time.Second},
				Overrides: []ledger.Override{{What: ledger.OverrideBypass, Actor: "jane", Reason: "CHG-1"}},
			}},
		},
	}), cmdtest.Policy("nights", "{strategy: MaintenanceSchedule, maintenanceSchedule: {windows: [{start: '01:00', end: '03:00'}]}}"))
	runRows(t, []row{
		{name: "of a day", line: "report --last 24h", world: world, out: "PLAN          RUNS   SUCCEEDED   FAILED   ABORTED   REPLACED   SKIPPED   MISSED   LATE (MEDIAN)   LATE (MOST)   WORKED   NODES   WINDOWS USED   NOTE\nshop/orders   1      0           1        0         0          0         0        1m30s           1m30s         1m30s    0       1 of 1         <none>\n\nWhat did not succeed\nWHEN                       PLAN          RESULT   REASON       STEP   MESSAGE       RUN\nFri 2026-11-20 02:00 CET   shop/orders   Failed   StepFailed   dump   exit code 3   maint-run-orders-gone\n\nDecisions of people\nWHEN                       PLAN          WHAT     WHO                 WHY     STEP     RUN\nFri 2026-11-20 02:00 CET   shop/orders   bypass   jane (unverified)   CHG-1   <none>   maint-run-orders-gone\n", err: "1 run, 1 Failed; 0 slots skipped, 0 missed, from Fri 2026-11-20 01:00 CET (2026-11-20T00:00:00Z) to Sat 2026-11-21 01:00 CET (2026-11-21T00:00:00Z)\n"},
		{name: "for a change manager", line: "report --last 7d -o md", world: world, out: "# Maintenance from Sat 2026-11-14 00:00 UTC to Sat 2026-11-21 00:00 UTC\n\n1 run, 1 Failed; 0 slots skipped, 1 missed.\n\n## Plans\n\n| Plan | Runs | Succeeded | Failed | Aborted | Replaced | Skipped | Missed | Late (median) | Late (most) | Worked | Nodes | Windows used | Note |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n| shop/orders | 1 | 0 | 1 | 0 | 0 | 0 | 1 | 1m30s | 1m30s | 1m30s | 0 | 1 of 2 | Missed(deadline): 1; its ledger reaches back to Wed 2026-11-18 02:00 UTC |\n\n## What did not succeed\n\n| When | Plan | Result | Reason | Step | Message | Run |\n| --- | --- | --- | --- | --- | --- | --- |\n| Wed 2026-11-18 02:00 UTC | shop/orders | Missed | deadline |  |  |  |\n| Fri 2026-11-20 01:00 UTC | shop/orders | Failed | StepFailed | dump | exit code 3 | maint-run-orders-gone |\n\n## Decisions of people\n\n| When | Plan | What | Who | Why | Step | Run |\n| --- | --- | --- | --- | --- | --- | --- |\n| Fri 2026-11-20 01:00 UTC | shop/orders | bypass | jane (unverified) | CHG-1 |  | maint-run-orders-gone |\n"},
		{name: "for a spreadsheet", line: "report -A --from 2026-11-19T00:00:00Z -o csv", world: world, err: "from Thu 2026-11-19 01:00 CET (2026-11-19T00:00:00Z) to Sat 2026-11-21 01:00 CET (2026-11-21T00:00:00Z)\n", out: "plan,slot,started,result,reason,phase,failure,step,message,run,actor,dryRun,slots,lateSeconds,durationSeconds,nodes,overrides\nshop/orders,2026-11-20T01:00:00Z,2026-11-20T01:01:30Z,Ran,schedule,Failed,StepFailed,dump,exit code 3,maint-run-orders-gone,,false,1,90,90,0,bypass jane (unverified)\n"},
		{name: "for a script", line: "report --last 24h -o 'jsonpath={.apiVersion} {.kind} {.from} {.plans[0].plan} {.endings[0].step}'", world: world, out: "maint.dev/v1alpha1 Report 2026-11-20T00:00:00Z shop/orders dump"},
		{name: "for a script, by name", line: "report --last 24h -o name", world: world, out: "configmap/orders\n"},
		{name: "of which nothing is known", line: "report --last 24h", err: "No resources found in shop namespace.\nno plan has anything in its ledger from Fri 2026-11-20 01:00 CET (2026-11-20T00:00:00Z) to Sat 2026-11-21 01:00 CET (2026-11-21T00:00:00Z)\n"},
		{name: "with flags that make no sense", line: "report --last soon -o svg", code: 2, err: "error: --last: \"soon\" is no duration: write it like 90s, 15m, 1h30m or 30d\nerror: -o must be table, md, csv, html, json, yaml, name, jsonpath=…, custom-columns=… or go-template=…, is \"svg\"\n"},
		{name: "of a time that is none", line: "report --from 2026-11-21T00:00:00Z --to 2026-11-20T00:00:00Z", code: 2, err: "error: --to Fri 2026-11-20 01:00 CET (2026-11-20T00:00:00Z) is not after --from Sat 2026-11-21 01:00 CET (2026-11-21T00:00:00Z)\n"},
	})
}
