package hibernate

import (
	"slices"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
)

// Hold is what people want of a plan whatever its schedule says.
type Hold struct {
	On     bool
	Asleep bool
	Until  *time.Time // nil: until it is taken away
}

// Holds says whether it counts at an instant.
func (h Hold) Holds(at time.Time) bool {
	return h.On && (h.Until == nil || at.Before(*h.Until))
}

// Overrides are what people ask of a plan beside what its document says.
type Overrides struct {
	Hold Hold
	Skip intent.Skip
}

// Cause is what says how a plan should be.
type Cause string

// What says how a plan should be: a hold comes before a skip, and a skip before the schedule.
const (
	BySchedule Cause = "schedule" // its exceptions and exclusions included
	ByHold     Cause = "hold"
	BySkip     Cause = "skip"
)

// DesiredState is how a plan's targets should be at an instant, and why.
type DesiredState struct {
	Asleep bool
	By     Cause
	Why    string
	Level  Level // of the schedule alone
	// Until is when that changes by itself; nil: it does not, as far as is looked.
	Until *time.Time
	// Again is the next instant at which something of this may be another; zero: none.
	Again time.Time
	// Forbidden says why no sleep may begin now, by the schedule alone; empty: it may.
	Forbidden string
}

// DesiredState is how the targets should be at an instant: what people hold counts, then what they
// skip, then the schedule.
func (t *Timetable) DesiredState(at time.Time, w Overrides) DesiredState {
	w.Skip = t.Named(w.Skip, at)
	want := t.wantAt(at, w)
	if want.By != ByHold && want.Asleep {
		if why, until := t.Forbidden(at); why != "" {
			want.Forbidden, want.Again = why, sooner(want.Again, until)
		}
	}
	want.Until = t.changes(want, w)
	return want
}

// Named names the off-windows of a skip of the next one: that is the one that it is in, or
// the first to come.
func (t *Timetable) Named(skip intent.Skip, at time.Time) intent.Skip {
	if !skip.Next {
		return skip
	}
	skip.Next = false
	for w := range t.Windows(at) {
		skip.Slots = append(slices.Clone(skip.Slots), w.Start)
		break
	}
	return skip
}

func (t *Timetable) wantAt(at time.Time, w Overrides) DesiredState {
	l := t.At(at)
	want := DesiredState{Asleep: l.Asleep, By: BySchedule, Why: l.Why, Level: l, Again: l.Until}
	if l.Asleep && w.Skip.Covers(l.Since) {
		want.Asleep, want.By, want.Why = false, BySkip, "these off-hours are skipped"
	}
	if !w.Hold.Holds(at) {
		return want
	}
	want.Asleep, want.By, want.Why = w.Hold.Asleep, ByHold, intent.HeldUntil(w.Hold.Asleep, w.Hold.Until)
	if until := w.Hold.Until; until != nil {
		want.Again = sooner(want.Again, *until)
	}
	return want
}

// farthestWish bounds how many changes of the schedule are followed to find when what is
// wanted changes: a skip may cover years of them (a guess: half a year of nights).
const farthestWish = 400

// changes is when a want changes by itself.
func (t *Timetable) changes(want DesiredState, w Overrides) *time.Time {
	if want.By == ByHold && w.Hold.Until == nil || w.Skip.All && !want.Asleep && !w.Hold.On {
		return nil
	}
	then := want
	if want.By == ByHold { // nothing changes before its end
		then = t.wantAt(*w.Hold.Until, w)
		if then.Asleep != want.Asleep {
			return new(w.Hold.Until.UTC())
		}
	}
	for n := 0; !then.Again.IsZero() && n < farthestWish; n++ {
		at := then.Again
		if then = t.wantAt(at, w); then.Asleep != want.Asleep {
			return new(at.UTC())
		}
	}
	return nil
}

func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
