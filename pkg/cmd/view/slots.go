package view

import (
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/instant"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
	"github.com/kubectl-maint/kubectl-maint/pkg/trigger"
)

// OffWindows are the off-windows of a HibernatePlan as slots, by their starts.
type OffWindows struct{ Table *hibernate.Timetable }

// Next is the first off-window that starts after an instant.
func (o OffWindows) Next(after time.Time) (schedule.Slot, bool) {
	for w := range o.Table.Windows(after) {
		if w.Start.After(after) {
			return schedule.Slot{At: w.Start, Zone: o.Table.Zone()}, true
		}
	}
	return schedule.Slot{}, false
}

// SlotsOver says whether the last slot of schedules is past.
func SlotsOver(schedules []plan.Schedule, now time.Time) bool {
	set, err := plan.ParseSchedules(schedules)
	_, more := set.Next(now)
	return err == nil && !more
}

// NotKnownThen is said of a slot at which change may or may not be permitted, as far as the one who
// asks can see.
const NotKnownThen = "not known whether change is permitted then: you may not read what decides it, and the agent published nothing"

// SlotStart is when the run of a slot starts, as far as its gate is known.
type SlotStart struct {
	Jitter   time.Duration    // from the slot until it is due
	Deadline time.Time        // a run that has not started by then is Missed
	Gate     schedule.Verdict // when it is due
}

// StartOf asks the gate of a plan for the run of a slot at the instant at which the agent asks it.
func StartOf(spec plan.Spec, namespace, name string, slot time.Time, index int, gate *schedule.Gate) SlotStart {
	due := trigger.StartsAt(spec, namespace, name, slot, index)
	return SlotStart{Jitter: due.Sub(slot), Deadline: due.Add(spec.StartDeadline.Or(plan.DefaultStartDeadline)), Gate: gate.Verdict(due)}
}

// TooLate says that the gate is closed until the slot is Missed.
func (s SlotStart) TooLate() bool { return s.Gate.Until != nil && s.Gate.Until.After(s.Deadline) }

// Opens is when a run starts that waits for its gate; nil: the gate is open, or does not open in time.
func (s SlotStart) Opens() *time.Time {
	if s.Gate.Permitted || s.Gate.Next == nil || !s.Gate.Next.Permitted || s.TooLate() {
		return nil
	}
	return s.Gate.Until
}

// SlotsOffered is how many slots completion offers (a guess).
const SlotsOffered = 10

// SlotChoice is a slot as completion offers it: its instant, and its time in a zone.
func SlotChoice(at time.Time, zone string) string {
	return at.UTC().Format(time.RFC3339) + "\t" + instant.Local(at, zone)
}
