package report_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// A report of which something is missing says so: whoever reads it takes it for all there was.
func TestAReportSaysWhatItsLedgerHasForgotten(t *testing.T) {
	at := func(hours int) *time.Time { return cmdtest.Before(time.Duration(hours) * time.Hour) }
	ran := func(hours int, dry bool) ledger.Entry {
		return ledger.Entry{Slot: at(hours), Result: run.Ran, Reason: "schedule", StartedAt: at(hours), At: *at(hours), DryRun: dry, Outcome: &ledger.Outcome{Phase: run.Succeeded, Duration: document.Duration{Duration: time.Minute}}}
	}
	folded := ledger.Entry{Slot: at(60), First: at(60), Last: at(50), Count: 3, Result: run.Skipped, Reason: "paused", At: *at(50)}
	for _, c := range []struct {
		name   string
		totals map[run.Result]int64
		recent []ledger.Entry
		since  string
	}{
		{"all that was is there", map[run.Result]int64{run.Ran: 2}, []ledger.Entry{ran(40, false), ran(20, false)}, ""},
		{"one was dropped", map[run.Result]int64{run.Ran: 3}, []ledger.Entry{ran(40, false), ran(20, false)}, "2026-11-19T08:00:00Z"},
		{"folded ones count as many", map[run.Result]int64{run.Ran: 1, run.Skipped: 3}, []ledger.Entry{folded, ran(20, false)}, ""},
		{"dry runs are not counted", map[run.Result]int64{run.Ran: 2}, []ledger.Entry{ran(40, true), ran(20, false)}, "2026-11-19T08:00:00Z"},
	} {
		t.Run(c.name, func(t *testing.T) {
			world := objects(seen("orders", daily), cmdtest.LedgerOf("orders", ledger.Ledger{Totals: c.totals, Recent: c.recent}))
			runRows(t, []row{{name: "of two days", line: "report --last 48h -o 'jsonpath={.plans[0].plan} {.plans[0].since}'", world: world, out: "shop/orders " + c.since}})
		})
	}
}

// A ledger that was begun in place of a lost one is not taken for all there was.
func TestALedgerThatBeginsAnewIsSaid(t *testing.T) {
	began := cmdtest.Before(20 * time.Hour)
	ran := ledger.Entry{Slot: cmdtest.Before(10 * time.Hour), Result: run.Ran, Reason: "schedule", Run: "r", At: *cmdtest.Before(10 * time.Hour)}
	empty := objects(seen("orders", daily), cmdtest.LedgerOf("orders", ledger.Ledger{BegunAnew: began}))
	one := objects(seen("orders", daily), cmdtest.LedgerOf("orders", ledger.Ledger{BegunAnew: began, Recent: []ledger.Entry{ran}}))
	const said = "the ledger of plan orders begins anew at Fri 2026-11-20 05:00 CET (2026-11-20T04:00:00Z): what was before is not known\n"
	runRows(t, []row{
		{name: "nothing since", line: "history orders", world: empty, err: said + "No resources found in shop namespace.\n"},
		{name: "for scripts", line: "history orders -o 'jsonpath={.items[0].ledgerBegunAnew}'", world: one, err: said, out: "2026-11-20T04:00:00Z"},
		{name: "of a later time", line: "history orders --since 15h -o 'jsonpath={.items[0].run}'", world: one, err: "since Fri 2026-11-20 10:00 CET (2026-11-20T09:00:00Z)\n", out: "r"},
		{name: "in a report", line: "report --last 48h -o 'jsonpath={.plans[0].begunAnew}'", world: empty, out: "2026-11-20T04:00:00Z"},
	})
}

// Ends that lie on the bounds of the time asked for are in it, or not, but never twice.
func TestTheTimeOfAReport(t *testing.T) {
	at := func(hours int) *time.Time { return cmdtest.Before(time.Duration(hours) * time.Hour) }
	missed := func(hours int) ledger.Entry {
		return ledger.Entry{Slot: at(hours), Result: run.Missed, Reason: "deadline", At: *at(hours)}
	}
	world := objects(seen("orders", daily), cmdtest.LedgerOf("orders", ledger.Ledger{Totals: map[run.Result]int64{run.Missed: 3}, Recent: []ledger.Entry{missed(48), missed(24), missed(0)}}))
	const missedOf = "-o 'jsonpath={.plans[0].missed}'"
	runRows(t, []row{
		{name: "a day", line: "report --last 24h " + missedOf, world: world, out: "1"},
		{name: "the day before", line: "report --from 2026-11-19T00:00:00Z --to 2026-11-20T00:00:00Z " + missedOf, world: world, err: "from Thu 2026-11-19 01:00 CET (2026-11-19T00:00:00Z) to Fri 2026-11-20 01:00 CET (2026-11-20T00:00:00Z)\n", out: "1"},
		{name: "both", line: "report --last 48h " + missedOf, world: world, out: "2"},
		{name: "a span back from another end", line: "report --last 24h --to 2026-11-20T00:00:00Z " + missedOf, world: world, err: "from Thu 2026-11-19 01:00 CET (2026-11-19T00:00:00Z) to Fri 2026-11-20 01:00 CET (2026-11-20T00:00:00Z)\n", out: "1"},
		{name: "wall-clock times are those of the user's zone", line: "report --from 'tomorrow 01:00' --to 'tomorrow 00:00'", code: 2, err: "error: --to Sun 2026-11-22 00:00 CET (2026-11-21T23:00:00Z) is not after --from Sun 2026-11-22 01:00 CET (2026-11-22T00:00:00Z)\n"},
		{name: "a time of nothing", line: "report --last 0d", code: 2, err: "error: --last must be longer than 0s, is 0d\n"},
		{name: "times of the day and of the week look back", line: "report --from 'wed 01:00' --to 00:00 " + missedOf, world: world, err: "from Wed 2026-11-18 01:00 CET (2026-11-18T00:00:00Z) to Sat 2026-11-21 00:00 CET (2026-11-20T23:00:00Z)\n", out: "2"},
		{name: "durations look back", line: "report --from 3d --to 1h " + missedOf, world: world, err: "from Wed 2026-11-18 01:00 CET (2026-11-18T00:00:00Z) to Sat 2026-11-21 00:00 CET (2026-11-20T23:00:00Z)\n", out: "2"},
		{name: "a time to come", line: "report --from tomorrow", code: 2, err: "error: --from Sun 2026-11-22 00:00 CET (2026-11-21T23:00:00Z) is not before now\n"},
		{name: "two beginnings", line: "report --last 7d --from 2026-11-19T00:00:00Z", code: 2, err: "error: --last excludes --from: both say when it begins\n"},
		{name: "faults are told all at once", line: "report --last soon --from never --to later", code: 2, err: fmt.Sprintf("error: %s\nerror: --last: \"soon\" is no duration: write it like 90s, 15m, 1h30m or 30d\nerror: %s\n", noTime("later"), noTime("never"))},
	})
}

func noTime(word string) string {
	return fmt.Sprintf("%q is no time: write it like 2026-12-24T18:00:00Z, 2h, 30d, 08:00, \"tomorrow 08:00\", \"sat 02:00\" or \"2026-12-24 18:00\"", word)
}

// A plan's windows count from its creation on, and only those that touch the time asked for.
func TestTheWindowsOfAReport(t *testing.T) {
	created := func(hours int) *corev1.ConfigMap {
		return cmdtest.Plan("orders", daily+", policies: [{name: nights}]", func(cm *corev1.ConfigMap) {
			cm.CreationTimestamp.Time = cmdtest.Now().Add(-time.Duration(hours) * time.Hour)
			cm.Annotations[annotations.StatusObserved] = annotations.Observed(cm)
		})
	}
	policies := func(spec string) *corev1.ConfigMap { return cmdtest.Policy("nights", spec) }
	const nights = "{strategy: MaintenanceSchedule, maintenanceSchedule: {windows: [{start: '01:00', end: '03:00'}]}}"
	slot := cmdtest.Before(23 * time.Hour)
	late := slot.Add(time.Minute)
	l := cmdtest.LedgerOf("orders", ledger.Ledger{Totals: map[run.Result]int64{run.Ran: 1}, Recent: []ledger.Entry{{Slot: slot, Result: run.Ran, Reason: "schedule", StartedAt: &late, At: late, Outcome: &ledger.Outcome{Phase: run.Succeeded}}}})
	const windows = "report --last 72h -o 'jsonpath={.plans[0].windows}/{.plans[0].windowsUsed}'"
	runRows(t, []row{
		{name: "three nights of an old plan", line: windows, world: objects(created(1000), l, policies(nights)), out: "3/1"},
		{name: "those since it was made", line: windows, world: objects(created(30), l, policies(nights)), out: "1/1"},
		{name: "one that it was made in counts", line: windows, world: objects(created(46), l, policies(nights)), out: "2/1"},
		{name: "what is always open is no window", line: windows, world: objects(created(1000), l, policies("{strategy: Permissive}")), out: "0/0"},
		{name: "what never opens has none", line: windows, world: objects(created(1000), l, policies("{strategy: Restrictive}")), out: "0/0"},
	})
}

func TestHistorySaysWhyItShowsNothing(t *testing.T) {
	empty := objects(seen("orders", daily), cmdtest.LedgerOf("orders", ledger.Ledger{}))
	at := cmdtest.Before(time.Hour)
	one := objects(seen("orders", daily), cmdtest.LedgerOf("orders", ledger.Ledger{Totals: map[run.Result]int64{run.Missed: 1}, Recent: []ledger.Entry{{Slot: at, Result: run.Missed, Reason: "deadline", At: *at}}}))
	openBefore := objects(seen("orders", daily), cmdtest.LedgerOf("orders", ledger.Ledger{
		Recent: []ledger.Entry{{Slot: at, Result: run.Missed, Reason: "deadline", At: *at}},
		Open:   []ledger.Entry{{Result: run.Open, Reason: "manual", Run: "maint-run-orders-b", At: *cmdtest.Before(2 * time.Hour)}},
	}))
	const gone = "plan orders has no ledger, though the agent has looked at it: somebody deleted it, or the agent could not write it; what was before is not known\n"
	const line = "Sat 2026-11-21 00:00 CET   Missed   deadline   <none>   <none>\n"
	runRows(t, []row{
		{name: "of a plan without one", line: "history orders", world: empty, err: "No resources found in shop namespace.\nplan orders has no history yet: no slot has ended, and nothing ran\n"},
		{name: "of a plan that nobody looked at it is said once", line: "history orders", world: objects(unseen("orders", daily)), err: "No resources found in shop namespace.\nplan orders has no ledger yet: the agent has not looked at it\n"},
		{name: "of a plan whose ledger is gone", line: "history orders", world: objects(seen("orders", daily)), err: "No resources found in shop namespace.\n" + gone},
		{name: "of a plan that is not observed, whose ledger is gone and whose run is there", line: "history orders", world: objects(unseen("orders", daily), cmdtest.RunObject(cmdtest.RunOf(), "maint-run-orders-a")), err: "No resources found in shop namespace.\n" + gone},
		{name: "of a namespace", line: "history", world: empty, err: "No resources found in shop namespace.\n"},
		{name: "of a namespace that has one, filtered", line: "history --result ran", world: one, err: "No resources found in shop namespace.\nnothing of that kind is in the history\n"},
		{name: "for a machine: an empty list, and no words", line: "history orders -o 'jsonpath={.kind} {.items}'", world: empty, out: "LedgerList []"},
		{name: "what is shown in part has no totals", line: "history orders --since 2h --no-headers", world: one, err: "since Fri 2026-11-20 23:00 CET (2026-11-20T22:00:00Z)\n", out: line},
		{name: "what is as old as that is shown", line: "history orders --since 1h --no-headers", world: one, err: "since Sat 2026-11-21 00:00 CET (2026-11-20T23:00:00Z)\n", out: line},
		{name: "what is older is not", line: "history orders --since 59m", world: one, err: "since Sat 2026-11-21 00:01 CET (2026-11-20T23:01:00Z)\nNo resources found in shop namespace.\nnothing of that kind is in the history\n"},
		{name: "since the last time that it was that time", line: "history orders --since 00:00 --no-headers", world: one, err: "since Sat 2026-11-21 00:00 CET (2026-11-20T23:00:00Z)\n", out: line},
		{name: "since the last such day", line: "history orders --since 'sat 02:00' --no-headers", world: one, err: "since Sat 2026-11-14 02:00 CET (2026-11-14T01:00:00Z)\n", out: line},
		{name: "since an instant", line: "history orders --since 2026-11-20T23:00:00Z --no-headers", world: one, err: "since Sat 2026-11-21 00:00 CET (2026-11-20T23:00:00Z)\n", out: line},
		{name: "all of it has totals", line: "history orders --no-headers", world: one, out: line, err: "in all: 0 Ran, 0 Skipped, 1 Missed\n"},
		{name: "what is open is the last, also where it is not the newest", line: "history orders -o 'jsonpath={.items[*].result}'", world: openBefore, out: "Missed Open"},
		{name: "a limit below nothing", line: "history orders --limit -1", code: 2, err: "error: --limit must be 0 or more, is -1\n"},
		{name: "two plans", line: "history a b", code: 2, err: "error: give one PLAN, not 2\n"},
		{name: "labels with a name", line: "history orders -l a=b", code: 2, err: "error: a PLAN excludes -A and -l: it is looked for in one namespace\n"},
	})
}
