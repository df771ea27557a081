package ledger

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

func TestWhatIsWrongWithAPlan(t *testing.T) {
	at := func(hour int) time.Time { return time.Date(2026, 12, 1, hour, 0, 0, 0, time.UTC) }
	ended := func(result run.Result, hour int) Entry {
		return Entry{Slot: new(at(hour)), Result: result, At: at(hour).Add(time.Minute)}
	}
	many := ended(run.Missed, 1)
	many.First, many.Last, many.Count = new(at(1)), new(at(4)), 4
	token := ended(run.Missed, 3)
	token.Slot = nil
	rehearsed := ended(run.Missed, 5)
	rehearsed.DryRun = true
	ranDry := ended(run.Ran, 5)
	ranDry.DryRun = true
	for name, c := range map[string]struct {
		is   Ledger
		want Trouble
	}{
		"nothing happened yet":               {Ledger{}, Trouble{}},
		"a slot was missed":                  {Ledger{Recent: []Entry{ended(run.Ran, 1), ended(run.Missed, 2)}}, Trouble{Missed: at(2)}},
		"one was skipped after it":           {Ledger{Recent: []Entry{ended(run.Missed, 2), ended(run.Skipped, 3)}}, Trouble{Missed: at(2)}},
		"one ran after it":                   {Ledger{Recent: []Entry{ended(run.Missed, 2), ended(run.Ran, 3)}}, Trouble{}},
		"a dry run after it is none":         {Ledger{Recent: []Entry{ended(run.Missed, 2), ranDry}}, Trouble{Missed: at(2)}},
		"of many the newest":                 {Ledger{Recent: []Entry{many}}, Trouble{Missed: at(4)}},
		"a request without a slot":           {Ledger{Recent: []Entry{token}}, Trouble{Missed: at(3).Add(time.Minute)}},
		"what a dry run missed":              {Ledger{Recent: []Entry{rehearsed}}, Trouble{}},
		"the last run failed":                {Ledger{Last: &LastRun{Phase: run.Failed, EndedAt: at(6)}}, Trouble{Failed: at(6)}},
		"the last run was aborted by people": {Ledger{Last: &LastRun{Phase: run.Aborted, EndedAt: at(6)}}, Trouble{}},
		"the last run succeeded":             {Ledger{Last: &LastRun{Phase: run.Succeeded, EndedAt: at(6)}}, Trouble{}},
		"something was not put back":         {Ledger{Left: []Leftover{{Run: "r"}, {Run: "r"}}}, Trouble{NotBack: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.is.Trouble(); got != c.want {
				t.Error(cmp.Diff(c.want, got))
			}
		})
	}
}
