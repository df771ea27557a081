package ledger

import (
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// Trouble is what somebody should know of a plan, as its ledger has it.
type Trouble struct {
	Missed  time.Time // the newest slot that was missed while nothing ran since; zero: none
	Failed  time.Time // when the last run ended, where it failed; zero: it did not
	NotBack int       // what ended runs did not put back
}

// Trouble is what is wrong with a plan until something ends well. It is a state, not
// an event: an agent that begins finds it in the ledger again.
func (l Ledger) Trouble() Trouble {
	t := Trouble{Missed: l.missed(), NotBack: len(l.Left)}
	if l.Last != nil && l.Last.Phase == run.Failed {
		t.Failed = l.Last.EndedAt
	}
	return t
}

// missed is the newest slot that was missed, unless a run came after it. What was
// skipped says nothing of either: somebody wanted it so.
func (l Ledger) missed() time.Time {
	for i := len(l.Recent) - 1; i >= 0; i-- {
		e := l.Recent[i]
		switch {
		case e.DryRun:
		case e.Result == run.Ran:
			return time.Time{}
		case e.Result == run.Missed:
			return e.due()
		}
	}
	return time.Time{}
}

// due is the slot that an entry is about, the newest of many; of a request without one
// when it ended.
func (e Entry) due() time.Time {
	switch {
	case e.Last != nil:
		return *e.Last
	case e.Slot != nil:
		return *e.Slot
	}
	return e.At
}
