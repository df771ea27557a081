package view

import (
	"cmp"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// Bounded is a window of the subject with the freeze or the pause that holds up to its start and from its end on,
// and who permits or pauses change within it. asked is the earliest instant that is asked about.
func (s Subject) Bounded(i schedule.Interval, asked time.Time) (bounded schedule.Interval, within string) {
	if i.Start != nil {
		asked = *i.Start
	}
	if pause := s.PauseAt(asked); pause.On { // above it: its own would have no window
		return i, pause.Said()
	}
	if i.Start != nil {
		i.Before = cmp.Or(heldBy(s.Verdict(i.Start.Add(-time.Second))), i.Before)
	}
	if i.End != nil {
		i.After = cmp.Or(heldBy(s.Verdict(*i.End)), i.After)
	}
	if v := s.Verdict(asked); v.Granted() {
		within = "permitted: " + v.Reason
	}
	return i, within
}

// heldBy is the freeze or the pause that a verdict follows from; empty: none.
func heldBy(v schedule.Verdict) string {
	if k := v.Cause.Kind; v.Permitted || k != schedule.CauseFreeze && k != schedule.CausePause {
		return ""
	}
	return v.Why()
}
