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
	for want, r := range map[string]view.Run{"Succeeded after 60m0s, approved by jane (unverified)": approved, "Aborted, rejected by joe (unverified): no": rejected, "Running": cmdtest.RunOf()} {
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
	if got, want := outcome(e), "Failed after 90s, step migrate, bypass by ops: urgent"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
