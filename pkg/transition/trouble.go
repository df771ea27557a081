package transition

import (
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

// Trouble is what somebody should know of a plan.
type Trouble struct {
	Overdue time.Time // since when something should be awake that is not; zero: nothing
	NotBack int       // targets that cannot be woken by themselves, or not yet
}

// TroubleOf is what is wrong with a plan after a decision: what sleeps that should not, also
// where somebody paused it, and what cannot be woken. It follows from the schedule and the
// records, so that an agent that begins finds it again.
func TroubleOf(f hibernate.Facts, want hibernate.DesiredState, d hibernate.Decision) Trouble {
	out := Trouble{NotBack: len(f.Missing) + len(f.Blocked)}
	asleep := len(f.Blocked) > 0
	for _, r := range f.Records {
		if r.Operation == hibernate.Wake && r.State == hibernate.Failed {
			out.NotBack++
		}
		asleep = asleep || r.Operation != hibernate.Wake || r.State != hibernate.Awake
	}
	if asleep && !f.Sleep && len(d.Closed) == 0 {
		out.Overdue = wakeDue(f, want)
	}
	return out
}

// wakeDue is since when a plan is to be awake: by its schedule, else by what was recorded
// when it fell asleep. Who wakes it before, by hand, does so now.
func wakeDue(f hibernate.Facts, want hibernate.DesiredState) time.Time {
	if want.By == hibernate.BySchedule && !want.Level.Asleep && !want.Level.Since.IsZero() {
		return want.Level.Since
	}
	due := f.Now
	for _, r := range f.Records {
		if at := r.Snapshot.WakeAt; at != nil && at.Before(due) {
			due = *at
		}
	}
	return due
}
