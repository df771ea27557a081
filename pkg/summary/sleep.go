package summary

import (
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// isSleep says whether an entry tells of a sleep: it had no run.
func isSleep(e ledger.Entry) bool { return e.Result == run.Ran && e.Run == "" && e.Outcome == nil }

// sleep is how a sleep ended.
type sleep int

const (
	goesOn sleep = iota
	slept
	nothingSlept
)

// sleepsOf says of the entries that tell of sleeps how each ended, by its place. What slept
// in a sleep that was longer than its off-hours stands on the last entry of it alone.
func sleepsOf(entries []ledger.Entry) map[int]sleep {
	out, ended := map[int]sleep{}, goesOn
	for i := len(entries) - 1; i >= 0; i-- {
		e := entries[i]
		if !isSleep(e) {
			continue
		}
		switch {
		case len(e.Slept) > 0:
			ended = slept
		case e.EndedAt != nil:
			ended = nothingSlept
		}
		out[i] = ended
	}
	return out
}

// countSleep counts a sleep beside runs.
func (r *Row) countSleep(e ledger.Entry, ended sleep) {
	r.Runs++
	r.lateBy(e)
	switch ended {
	case slept:
		r.Succeeded++
	case nothingSlept:
		r.NothingSlept++
	case goesOn:
		r.Asleep++
	}
}
