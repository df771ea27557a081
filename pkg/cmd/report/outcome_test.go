package report

import (
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

func TestHistorySaysWhoAnswered(t *testing.T) {
	entry := ledger.Entry{Run: "maint-run-p-x"}
	approved, rejected := cmdtest.RunOf(), cmdtest.RunOf()
	approved.Journal.Phase, approved.Journal.FinishedAt, approved.Journal.Approved = run.Succeeded, cmdtest.Before(0), &intent.Actor{Name: "jane"}
	rejected.Journal = run.Journal{Phase: run.Aborted, End: &run.End{Reason: run.ReasonRejected, Message: "rejected by joe (unverified): no"}}
	for want, r := range map[string]view.Run{"Succeeded after 60m0s, approved by jane (unverified)": approved, "Aborted, rejected by joe (unverified): no": rejected, "Running": cmdtest.RunOf()} {
		if got := outcome(entry, []view.Run{r}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
