package ledger

import (
	"slices"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// Slept is how long the resources of one kind slept that a target had.
type Slept struct {
	Target    string  `json:"target"`
	Executor  string  `json:"executor"`
	Kind      string  `json:"kind"`
	Resources int     `json:"resources"`
	Hours     float64 `json:"hours"` // of all of them together
	// UnitHours are the hours of each unit that a price is for, as m5.large, cpu, memoryGiB.
	UnitHours map[string]float64 `json:"unitHours,omitempty"`
}

// Knows says whether a slot has its entry among those that the head holds.
func (l Ledger) Knows(slot time.Time) bool {
	return slices.ContainsFunc(l.Recent, func(e Entry) bool {
		folded := e.First != nil && e.Last != nil && !slot.Before(*e.First) && !slot.After(*e.Last)
		return folded || e.Slot != nil && e.Slot.Equal(slot)
	})
}

// Record adds the entry of a slot that never had a claim.
func (l Ledger) Record(e Entry) Ledger { return l.add(e) }

// RecordSlept notes on the newest entry since a sleep began what slept in it. A sleep that
// no slot asked for gets an entry of its own.
func (l Ledger) RecordSlept(began time.Time, slept []Slept, now time.Time) Ledger {
	began = began.UTC()
	l.Recent = slices.Clone(l.Recent)
	for i := len(l.Recent) - 1; i >= 0; i-- {
		if e := l.Recent[i]; e.Result == run.Ran && e.StartedAt != nil && !e.StartedAt.Before(began) {
			l.Recent[i].Slept, l.Recent[i].EndedAt = slept, new(now.UTC())
			return l
		}
	}
	return l.add(Entry{Kind: run.ByToken, Result: run.Ran, StartedAt: &began, At: now.UTC(), Slept: slept, EndedAt: new(now.UTC())})
}
