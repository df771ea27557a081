package ledger_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/coretest"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

func TestARunWithoutAClaimIsRecordedOnce(t *testing.T) {
	began, now := coretest.Clock("12:00"), coretest.Clock("12:10")
	r := run.Run{Name: "r", Request: run.Request{Kind: run.ByToken, Token: "t", Actor: "jane", At: began}}
	slot := run.Run{Name: "r", Request: slotOf(3)}
	slot.Request.At = began
	before, after := run.Run{Name: "r", Request: slotOf(0)}, run.Run{Name: "r", Request: slotOf(5)}
	j := run.Journal{Phase: run.Running, StartedAt: &began, FinishedAt: &now, End: &run.End{Phase: run.Aborted, Reason: run.ReasonAborted}}
	ran := func(name string) ledger.Entry {
		return ledger.Entry{Kind: run.ByToken, Result: run.Ran, Run: name, At: now}
	}
	many := make([]ledger.Entry, ledger.MaxArchived)
	for i := range many {
		many[i] = ran(fmt.Sprint("other-", i))
	}
	folded := ledger.Ledger{}
	for i := range 4 {
		folded = folded.End(slotOf(i+1), run.Missed, run.ReasonWindow, ledger.Cause{}, now)
	}
	if len(folded.Recent) != 1 {
		t.Fatal("four slots that were missed do not fold", folded.Recent)
	}
	for name, c := range map[string]struct {
		r        run.Run
		l        ledger.Ledger
		archived []ledger.Entry
		recorded bool
	}{
		"the ledger knows nothing of it":                     {r: r, recorded: true},
		"nor does the archive":                               {r: r, archived: []ledger.Entry{ran("another")}, recorded: true},
		"the run of a slot":                                  {r: slot, recorded: true},
		"its close is repeated":                              {r: r, l: ledger.Ledger{Recent: []ledger.Entry{ran("r")}}},
		"its entry went to the archive":                      {r: r, archived: []ledger.Entry{ran("r")}},
		"its slot has ended in the head":                     {r: slot, l: ledger.Ledger{}.End(slotOf(3), run.Missed, run.ReasonWindow, ledger.Cause{}, now)},
		"its slot has ended among others that fold":          {r: slot, l: folded},
		"its slot is after those that fold":                  {r: after, l: folded, recorded: true},
		"its slot is before those that fold":                 {r: before, l: folded, recorded: true},
		"its slot has ended, where a fold has no end":        {r: slot, l: ledger.Ledger{Recent: []ledger.Entry{{Slot: slot.Request.Slot, First: slot.Request.Slot, Result: run.Missed}}}},
		"its slot has ended in the archive":                  {r: slot, archived: folded.Recent},
		"it may be among those that a full archive has lost": {r: r, archived: many},
		"its entry is open, which others close":              {r: r, l: ledger.Ledger{}.Claim("r", r.Request, "")},
	} {
		t.Run(name, func(t *testing.T) {
			got := c.l.CloseUnclaimed(c.r, j, c.archived, now)
			if added := len(got.Recent) - len(c.l.Recent); added == 1 != c.recorded || got.Totals[run.Ran]-c.l.Totals[run.Ran] != int64(added) {
				t.Errorf("recorded: %d entries, totals %v", added, got.Totals)
			}
			if again := got.CloseUnclaimed(c.r, j, c.archived, now.Add(time.Minute)); len(again.Recent) != len(got.Recent) || again.Totals[run.Ran] != got.Totals[run.Ran] {
				t.Errorf("a repeated close adds another: %v", again.Recent)
			}
			if !c.recorded {
				return
			}
			e := got.Recent[len(got.Recent)-1]
			if e.Run != "r" || e.Kind != c.r.Request.Kind || e.Result != run.Ran || e.Slot != c.r.Request.Slot || e.Outcome == nil || e.Outcome.Phase != run.Aborted || e.StartedAt != &began || len(got.Open) != 0 {
				t.Errorf("recorded as %+v, open %v", e, got.Open)
			}
			if got.Last == nil || got.Last.Name != "r" || got.Outcomes[run.Aborted] != 1 {
				t.Errorf("the last run is %+v, outcomes %v", got.Last, got.Outcomes)
			}
		})
	}
}
