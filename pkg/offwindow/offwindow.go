// Package offwindow gives each off-window of a HibernatePlan its end in the plan's ledger, and says
// which skips are used up, and when the plan falls asleep or wakes next.
package offwindow

import (
	"cmp"
	"slices"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// atOnce bounds how many off-windows are passed in one look, after a long outage.
const atOnce = 500

// Facts are what the end of an off-window rests on.
type Facts struct {
	Now       time.Time
	UID       string
	Created   time.Time
	Lost      bool   // it had a ledger, which is gone or does not count: nothing from before now is made up
	Timetable string // tells apart when the plan sleeps
	Table     *hibernate.Timetable
	Skip      intent.Skip
	SkipBy    intent.Actor
	Begun     time.Time // when the sleep began that there is; zero: there is none
	Woken     time.Time // when all of it was awake again; zero: it is not yet
	// Awake is the off-window that it is in now, and why nothing sleeps; nil: it is in none.
	Awake  *ledger.Awake
	DryRun bool
}

// First is the ledger of a plan that has none.
func First(f Facts) ledger.Ledger {
	l := ledger.Ledger{PlanUID: f.UID, Watermark: f.Created.UTC(), Timetable: f.Timetable}
	if f.Lost {
		l.Watermark, l.BegunAnew = f.Now.UTC(), new(f.Now.UTC())
	}
	return l
}

// Pass records what became of the off-windows up to now, each once: of one that is not
// over, that its sleep has begun; of one that is, why nothing slept. With changed the
// ledger is to be written.
func Pass(stored *ledger.Ledger, f Facts) (l ledger.Ledger, changed bool) {
	if stored == nil {
		l, changed = First(f), true
	} else {
		l = *stored
	}
	if created := f.Created.UTC(); l.Watermark.Before(created) { // somebody wrote it: nothing was owed before the plan was there
		l.Watermark, changed = created, true
	}
	if l.Timetable != f.Timetable { // what the earlier schedule owed is nothing: only the level counts
		l.Timetable, l.Watermark, changed = f.Timetable, latest(l.Watermark, f.Now.UTC()), true
	}
	if l.NextSlot != nil && !f.Skip.Next {
		l.NextSlot, changed = nil, true
	}
	n := 0
	for w := range f.Table.Windows(l.Watermark) {
		if w.Start.After(f.Now) || n == atOnce {
			break
		}
		n++
		if f.Skip.Next && l.NextSlot == nil && w.End.After(f.Now) {
			l.NextSlot, changed = new(w.Start.UTC()), true
		}
		if l.HasSlot(w.Start) {
			continue
		}
		entry, over := f.entry(l, w)
		if !over {
			break
		}
		if entry.Result == "" {
			continue
		}
		l, changed = l.Record(entry), true
		l.Watermark = latest(l.Watermark, w.Start.UTC())
	}
	l, noted := l.StaysAwake(f.Awake)
	return l, changed || noted
}

// entry is what became of an off-window; false: it may still sleep in it. Of one that began
// before the plan was made, nothing was owed.
func (f Facts) entry(l ledger.Ledger, w hibernate.Window) (ledger.Entry, bool) {
	e := f.entryOf(w)
	over := isOver(w, f.Now)
	switch {
	case !f.Begun.IsZero() && (!over || f.Begun.Before(w.End)) && (f.Woken.IsZero() || w.Start.Before(f.Woken)):
		e.Result, e.StartedAt = run.Ran, new(latest(f.Begun, w.Start).UTC())
		return e, true
	case !over || w.Start.Before(f.Created):
		return ledger.Entry{}, over
	case f.DryRun && l.Awake.In(w.Start) && l.Awake.Reason == "":
		e.Result, e.StartedAt = run.Ran, new(w.Start.UTC())
		return e, true
	}
	return f.Unslept(l, w), true
}

func (f Facts) entryOf(w hibernate.Window) ledger.Entry {
	return ledger.Entry{Slot: new(w.Start.UTC()), Local: f.Table.Slot(w.Start), Kind: run.BySchedule, DryRun: f.DryRun, At: f.Now.UTC()}
}

// Unslept is the entry of an off-window if nothing sleeps in it to its end.
func (f Facts) Unslept(l ledger.Ledger, w hibernate.Window) ledger.Entry {
	e := f.entryOf(w)
	var by ledger.Cause
	e.Result, e.Reason, by = f.why(l, w)
	return e.By(by)
}

// why says why nothing slept in an off-window.
func (f Facts) why(l ledger.Ledger, w hibernate.Window) (run.Result, string, ledger.Cause) {
	reason, by := run.ReasonCatchUp, ledger.Cause{}
	switch {
	case l.Awake.In(w.Start):
		reason, by = cmp.Or(l.Awake.Reason, reason), l.Awake.By // it was a dry run until now
	case l.NextSlot != nil && l.NextSlot.Equal(w.Start): // nobody knows who that was
		reason = run.ReasonSkip
	case !f.Skip.Next && f.Skip.Covers(w.Start): // whoever wrote it when: it is what has it skipped
		reason, by = run.ReasonSkip, ledger.CauseBy(f.SkipBy, "skip")
	}
	if reason == run.ReasonSkip || reason == run.ReasonPaused || reason == run.ReasonHold {
		return run.Skipped, reason, by
	}
	return run.Missed, reason, by
}

// UsedUp is what is left of a skip once the off-windows that it named are over and recorded; false:
// nothing of it is used up. Of one that an off-window began under, that one is skipped to its end.
func UsedUp(l ledger.Ledger, f Facts) (left intent.Skip, used bool) {
	left = f.Skip
	if !left.Next && left.Until == nil && len(left.Slots) == 0 {
		return left, false
	}
	level := f.Table.At(f.Now)
	within := func(start time.Time) bool { return level.Asleep && level.Since.Equal(start) }
	switch {
	case left.All, f.behind(l):
		return left, false
	case left.Next:
		left.Next = l.NextSlot == nil || within(*l.NextSlot)
		return left, !left.Next
	case left.Until != nil && !f.Now.Before(*left.Until) && (!level.Asleep || !level.Since.Before(*left.Until)):
		left.Until, used = nil, true
	}
	left.Slots = slices.DeleteFunc(slices.Clone(left.Slots), func(slot time.Time) bool { return !slot.After(f.Now) && !within(slot) })
	return left, used || len(left.Slots) < len(f.Skip.Slots)
}

// behind says whether an off-window is over that has no entry yet.
func (f Facts) behind(l ledger.Ledger) bool {
	for w := range f.Table.Windows(l.Watermark) {
		switch {
		case !isOver(w, f.Now):
			return false
		case !w.Start.Before(f.Created) && !l.HasSlot(w.Start):
			return true
		}
	}
	return false
}

func isOver(w hibernate.Window, now time.Time) bool { return !w.End.IsZero() && !w.End.After(now) }

func latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
