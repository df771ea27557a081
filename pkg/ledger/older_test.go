package ledger_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/coretest"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// A backup that somebody put back starts nothing that was done since.
func TestAnOlderLedgerTakesNothingBack(t *testing.T) {
	entry := func(at string) ledger.Entry {
		return ledger.Entry{Slot: coretest.On(at), Result: run.Ran, At: coretest.Clock(at)}
	}
	old := ledger.Ledger{PlanUID: "u", Watermark: coretest.Clock("01:00"), Recent: []ledger.Entry{entry("01:00")}, Totals: map[run.Result]int64{run.Ran: 7}, Tokens: []string{"a"}, Open: []ledger.Entry{{Run: "stale"}}}
	known := ledger.Ledger{PlanUID: "u", Watermark: coretest.Clock("03:00"), Recent: []ledger.Entry{entry("03:00")}, Totals: map[run.Result]int64{run.Ran: 2}, Tokens: []string{"b"}, Open: []ledger.Entry{{Run: "lives"}}}
	anew := known
	anew.BegunAnew = coretest.On("02:00")
	other := known
	other.PlanUID = "another"
	if !old.IsOlder(known) || known.IsOlder(old) || known.IsOlder(known) || old.IsOlder(other) {
		t.Error("which one is older is not known")
	}
	want := known
	want.Totals = map[run.Result]int64{run.Ran: 7}
	if diff := cmp.Diff(want, known.WithPast(old)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	want = anew
	want.Totals, want.Recent, want.Tokens = map[run.Result]int64{run.Ran: 7}, []ledger.Entry{entry("01:00"), entry("03:00")}, []string{"a", "b"}
	twice := anew.WithPast(old).WithPast(old)
	if diff := cmp.Diff(want, twice); diff != "" {
		t.Errorf("begun anew, and put back twice (-want +got):\n%s", diff)
	}
	for writes, older := range map[int64]bool{0: false, 6: true, 7: false, 8: false} {
		was, is := known, known
		was.Writes, is.Writes = writes, 7
		if was.IsOlder(is) != older {
			t.Errorf("of %d writes, where 7 are known: older %t", writes, !older)
		}
	}
}
