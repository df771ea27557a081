package ledger_test

import (
	"slices"
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

// Two slots that one freeze kept from starting are one line; those of two freezes are two, and each
// says who froze.
func TestSlotsThatNeverBeganFoldWhereTheSameKeptThem(t *testing.T) {
	const jane, joe = "RestrictiveUntil 2026-11-20T04:00:00Z by jane: CHG-1", "RestrictiveUntil 2026-11-20T06:00:00Z by joe: CHG-2"
	l := ledger.Ledger{}
	for _, c := range []struct{ slot, said string }{{"02:00", jane}, {"03:00", jane}, {"05:00", joe}} {
		r := run.Run{Name: "r" + c.slot, Request: coretest.SlotAt(c.slot)}
		end := &run.End{Phase: run.Aborted, Result: run.Missed, Reason: run.ReasonWindow, Message: "late: " + c.said, Said: c.said}
		l = l.Claim(r.Name, r.Request, "").CloseRun(r, run.Journal{End: end}, coretest.Clock("07:00"))
	}
	var got []string
	for _, e := range l.Recent {
		got = append(got, e.Said+"|"+e.Kept())
	}
	if want := []string{jane + "|late: " + jane, joe + "|late: " + joe}; !slices.Equal(got, want) || l.Recent[0].Count != 2 {
		t.Errorf("got %q (%d), want %q", got, l.Recent[0].Count, want)
	}
}
