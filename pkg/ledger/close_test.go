package ledger_test

import (
	"testing"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/coretest"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

func TestARunClosesItsClaimByWhatItsJournalSays(t *testing.T) {
	now, began := coretest.Clock("03:00"), coretest.Clock("02:00")
	for _, c := range []struct {
		name    string
		j       run.Journal
		result  run.Result
		reason  string
		started *time.Time
	}{
		{"it started", run.Journal{Phase: run.Succeeded, StartedAt: &began, End: &run.End{Phase: run.Succeeded}}, run.Ran, "schedule", &began},
		{"it ended before", run.Journal{End: &run.End{Result: run.Missed, Reason: run.ReasonDeadline}}, run.Missed, run.ReasonDeadline, nil},
		{"nobody says why", run.Journal{}, run.Skipped, run.ReasonAborted, nil},
		{"its end names no result", run.Journal{End: &run.End{Reason: "PlanDeleted"}}, run.Skipped, run.ReasonAborted, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := run.Run{Name: "r", Request: coretest.SlotAt("02:00")}
			l := ledger.Ledger{}.Claim("r", r.Request, "").CloseRun(r, c.j, now)
			if len(l.Open) != 0 || len(l.Recent) != 1 {
				t.Fatalf("open %v, recent %v", l.Open, l.Recent)
			}
			e := l.Recent[0]
			if e.Result != c.result || e.Reason != c.reason || (e.StartedAt == nil) != (c.started == nil) {
				t.Errorf("got %s, %q, started %v; want %s, %q, %v", e.Result, e.Reason, e.StartedAt, c.result, c.reason, c.started)
			}
		})
	}
}
