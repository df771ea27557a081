package report

import (
	"testing"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

func TestHistorySaysWhoAnswered(t *testing.T) {
	entry := ledger.Entry{Run: "maint-run-p-x"}
	approved, rejected := cmdtest.RunOf(), cmdtest.RunOf()
	approved.Journal.Phase, approved.Journal.FinishedAt, approved.Journal.Approved = run.Succeeded, cmdtest.Before(0), &intent.Actor{Name: "jane"}
	rejected.Journal = run.Journal{Phase: run.Aborted, End: &run.End{Phase: run.Aborted, Reason: run.ReasonRejected, Message: "rejected by joe (unverified): no"}}
	aborted := cmdtest.RunOf(cmdtest.Record("roll/nc-1/ready", "wait", run.StepFailed, cmdtest.Message("aborted by joe (unverified): wrong week")))
	aborted.Journal.Phase, aborted.Journal.FinishedAt, aborted.Journal.End = run.Aborted, cmdtest.Before(0), &run.End{Phase: run.Aborted, Reason: "Aborted", Actor: "joe", Step: "roll/nc-1/ready", Message: "aborted by joe (unverified): wrong week"}
	resumed := cmdtest.RunOf(cmdtest.Record("hold", "suspend", run.StepSucceeded, func(rec *run.Record) { rec.Resumed = &intent.Actor{Name: "joe", Reason: "the copy is done"} }))
	resumed.Journal.Phase, resumed.Journal.FinishedAt = run.Succeeded, cmdtest.Before(0)
	accepted := cmdtest.RunOf(cmdtest.Record("down", "scale", run.StepSucceeded, func(rec *run.Record) { rec.Drift = &run.Drift{Accepted: &intent.Actor{Name: "joe", Verified: true}} }))
	accepted.Journal.Phase, accepted.Journal.FinishedAt = run.Succeeded, cmdtest.Before(0)
	for want, r := range map[string]view.Run{
		"Aborted after 1h0m, step roll/nc-1/ready, aborted by joe (unverified): wrong week": aborted,
		"Succeeded after 1h0m, resumed in step hold by joe (unverified): the copy is done":  resumed,
		"Succeeded after 1h0m, resumed by joe":                                              accepted,
		"Succeeded after 1h0m, approved by jane (unverified)":                               approved, "Aborted, rejected by joe (unverified): no": rejected, "Running": cmdtest.RunOf(),
	} {
		e := entry
		e.Outcome = endOf(entry, []view.Run{r})
		if got := outcome(e); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestHistoryTellsOfARunThatIsGone(t *testing.T) {
	e := ledger.Entry{Run: "maint-run-p-x", Outcome: &ledger.Outcome{
		Phase: run.Failed, Reason: "StepFailed", Step: "migrate", Message: "exit code 3", Duration: document.Duration{Duration: 90 * time.Second},
		Overrides: []ledger.Override{{What: ledger.OverrideBypass, Actor: "ops", Verified: true, Reason: "urgent"}, {What: ledger.OverrideResumed, Step: "hold", Actor: "joe"}},
	}}
	e.Outcome = endOf(e, nil)
	unknown := e
	unknown.Outcome = &ledger.Outcome{Phase: run.Succeeded, Overrides: []ledger.Override{{What: ledger.OverrideBypass, Reason: "urgent"}}}
	if got, want := outcome(unknown), "Succeeded, bypass by somebody unknown: urgent"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := outcome(e), "Failed after 90s, step migrate, bypass by ops: urgent, resumed in step hold by joe (unverified)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
