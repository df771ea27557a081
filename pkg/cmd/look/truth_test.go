package look_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// What is said of a plan is what is so, whichever command is asked.
func TestCommandsSayOfAPlanWhatIsSo(t *testing.T) {
	silent := cmdtest.Agent()
	silent.Data["heartbeat"] = "2026-11-19T00:00:00Z"
	slot := cmdtest.Now().Add(-30 * time.Minute)
	hourly := "triggers: {schedules: [{cron: '30 * * * *'}]}"
	known := cmdtest.Ledger(ledger.Ledger{Watermark: slot.Add(-30 * time.Minute)})
	overdue := seen("orders", hourly, annotations.StatusPhase, "Idle", annotations.StatusMessage, "next run 2026-11-20T23:30:00Z UTC", annotations.StatusNextRun, "2026-11-20T23:30:00Z")
	known.Namespace = "shop"
	dry := seen("orders", "dryRun: true, "+daily, annotations.StatusPhase, "Idle", annotations.StatusNextRun, "2026-11-21T01:00:00Z")
	held := hibernated(t, "office", annotations.HoldState, "asleep", annotations.Actor(annotations.HoldState), "jane", annotations.Reason(annotations.HoldState), "CHG-9")
	paused := hibernated(t, "office", annotations.Pause, "true")
	refused := cmdtest.Ledger(ledger.Ledger{Watermark: cmdtest.Now(), Open: []ledger.Entry{{Run: "maint-run-orders-x", Kind: run.ByToken, Result: run.Open, Refused: "exceeded quota: q", Request: &run.Request{Kind: run.ByToken, Token: "x"}}}})
	for _, c := range []struct {
		name, line string
		world      []runtime.Object
		want       []string
		never      string
	}{
		{name: "a slot is overdue while the agent is silent", line: "status orders", world: objects(silent, overdue, known), want: []string{"waits for the agent; it is Missed at"}, never: "next run"},
		{name: "so, in the table", line: "status", world: objects(silent, overdue, known), want: []string{"has come, and the agent has not looked at it yet"}, never: "next run"},
		{name: "so, in why", line: "why orders", world: objects(silent, overdue, known), want: []string{"due slot: ", "waits for the agent"}, never: "next run"},
		{name: "so, for scripts", line: "status orders -o json", world: objects(silent, overdue, known), want: []string{`"due": {`, `"why": "waits for the agent"`}, never: "next run"},
		{name: "so, in a list", line: "list -o wide", world: objects(silent, overdue, known), want: []string{"orders"}, never: "next run"},
		{name: "a plan that only runs dry", line: "status orders", world: objects(cmdtest.Agent(), dry), want: []string{"only runs dry"}},
		{name: "so, in the table", line: "status", world: objects(cmdtest.Agent(), dry), want: []string{"only runs dry"}},
		{name: "so, in why", line: "why orders", world: objects(cmdtest.Agent(), dry), want: []string{"only runs dry"}},
		{name: "so, in next", line: "next orders", world: objects(cmdtest.Agent(), dry), want: []string{"dry run"}},
		{name: "so, in a list", line: "list -o wide", world: objects(cmdtest.Agent(), dry), want: []string{"only runs dry"}},
		{name: "so, in the calendar", line: "calendar", world: objects(cmdtest.Agent(), dry), want: []string{"dry run"}},
		{name: "a run that the API server refuses", line: "status", world: objects(cmdtest.Agent(), seen("orders", ""), refused), want: []string{"Needs somebody:", "the API server refuses its run: exceeded quota: q"}},
		{name: "a plan that is held", line: "next office", world: append(objects(cmdtest.Agent()), held...), want: []string{"jane", "CHG-9"}},
		{name: "so, in status", line: "status office", world: append(objects(cmdtest.Agent()), held...), want: []string{"it is held asleep by jane (unverified): CHG-9"}},
		{name: "so, in the calendar", line: "calendar", world: append(objects(cmdtest.Agent()), held...), want: []string{"jane", "CHG-9"}},
		{name: "a plan that is paused while it sleeps", line: "status office", world: append(objects(cmdtest.Agent()), paused...), want: []string{"none, since it is paused"}, never: "wakes "},
		{name: "so, in why", line: "why office", world: append(objects(cmdtest.Agent()), paused...), want: []string{"paused until"}, never: "it is to wake"},
		{name: "so, for scripts", line: "status office -o json", world: append(objects(cmdtest.Agent()), paused...), want: []string{`"name": "office"`}, never: "wakesAt\": \""},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := cmdtest.NewCluster(t, cmd.Run, append(objects(cmdtest.Namespace("shop"), cmdtest.Namespace("maint-system")), c.world...)...)
			got := o.Line(c.line)
			all := got.Out + got.Err
			for _, want := range c.want {
				if !strings.Contains(all, want) {
					t.Errorf("no %q in\n%s", want, all)
				}
			}
			if c.never != "" && strings.Contains(got.Out, c.never) {
				t.Errorf("%q in\n%s", c.never, got.Out)
			}
		})
	}
}
