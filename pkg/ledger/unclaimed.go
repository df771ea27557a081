package ledger

import (
	"slices"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// Knows says whether a run, or its slot, has an entry that has ended, as far as the head has it.
func (l Ledger) Knows(r run.Run) bool { return knows(l.Recent, r) }

// CloseUnclaimed records the end of a run that has no open entry, since the ledger that had it was
// lost: as an entry of its own. One whose entry has ended, here or in the archive, gets no second
// one, and neither does one that is older than all that a full archive has kept: its entry may be
// among those that went.
func (l Ledger) CloseUnclaimed(r run.Run, j run.Journal, archived []Entry, now time.Time) Ledger {
	full := len(archived) >= MaxArchived && r.Request.At.Before(archived[0].At)
	if full || l.IsOpen(r.Name) || l.Knows(r) || knows(archived, r) {
		return l
	}
	return l.Claim(r.Name, r.Request, "").CloseRun(r, j, now)
}

func knows(entries []Entry, r run.Run) bool {
	return slices.ContainsFunc(entries, func(e Entry) bool {
		return e.Run == r.Name || r.Request.Slot != nil && e.covers(*r.Request.Slot)
	})
}

// covers says whether an entry is the end of a slot, alone or folded with others.
func (e Entry) covers(slot time.Time) bool {
	switch {
	case e.Slot == nil:
		return false
	case e.First == nil || e.Last == nil:
		return e.Slot.Equal(slot)
	}
	return !slot.Before(*e.First) && !slot.After(*e.Last)
}
