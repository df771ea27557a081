package ledger

import (
	"slices"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
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

// maxHoursBytes is about what the hours of sleeps take in a head as JSON, well below what an object
// can hold: a plan may have a thousand targets. The newest entries stay whatever they take: the sleep
// that ends is noted on one of them.
const (
	maxHoursBytes = 400 << 10
	newestKept    = 2
)

// beyondHours is how many of the oldest closed entries do not fit beside the newer ones.
func (l Ledger) beyondHours() int {
	size := 0
	for i, e := range slices.Backward(l.Recent) {
		for _, s := range e.Slept {
			size += 100 + len(s.Target) + len(s.Executor) + len(s.Kind) + 40*len(s.UnitHours)
		}
		if size > maxHoursBytes && i < len(l.Recent)-newestKept {
			return i + 1
		}
	}
	return 0
}

// HasSlot says whether a slot has its entry among those that the head holds.
func (l Ledger) HasSlot(slot time.Time) bool {
	return slices.ContainsFunc(l.Recent, func(e Entry) bool { return e.covers(slot) })
}

// NamedSkip is a skip of the next off-window by the name of the one that it has met: it is used
// up by that.
func (l *Ledger) NamedSkip(skip intent.Skip) intent.Skip {
	if skip.Next && l != nil && l.NextSlot != nil {
		skip.Next, skip.Slots = false, append(slices.Clone(skip.Slots), *l.NextSlot)
	}
	return skip
}

// Record adds the entry of a slot that never had a claim.
func (l Ledger) Record(e Entry) Ledger { return l.add(e) }

// LastSleep is the newest sleep of a HibernatePlan. Restore data says when its sleep began: that
// tells it apart from what was signed in an earlier one.
type LastSleep struct {
	BeganAt time.Time  `json:"beganAt"`
	EndedAt *time.Time `json:"endedAt,omitempty"` // when all was awake again; nil: it is not over
}

// HasEnded says whether the sleep that began at an instant has ended.
func (s *LastSleep) HasEnded(began time.Time) bool {
	if s == nil {
		return false
	}
	return began.Before(s.BeganAt) || s.EndedAt != nil && !began.After(*s.EndedAt)
}

// Next is when a sleep begins that begins now: after the last one in any case, also if the clock
// that ended that one was ahead.
func (s *LastSleep) Next(now time.Time) time.Time {
	switch {
	case !s.HasEnded(now):
		return now
	case s.EndedAt != nil:
		return s.EndedAt.Add(time.Nanosecond)
	}
	return s.BeganAt
}

// Newer is the one of two that says more of the sleeps of one plan.
func (s *LastSleep) Newer(o *LastSleep) *LastSleep {
	if o == nil || s != nil && (s.BeganAt.After(o.BeganAt) || s.BeganAt.Equal(o.BeganAt) && s.EndedAt != nil) {
		return s
	}
	return o
}

// SleepBegan notes a sleep that began at an instant; false: it is noted already, or over.
func (l Ledger) SleepBegan(began time.Time) (Ledger, bool) {
	if s := l.LastSleep; s.HasEnded(began) || s != nil && began.Equal(s.BeganAt) {
		return l, false
	}
	l.LastSleep = &LastSleep{BeganAt: began.UTC()}
	return l, true
}

// RecordSlept notes on the newest entry since a sleep began what slept in it, and that it is
// over. A sleep that no slot asked for gets an entry of its own.
func (l Ledger) RecordSlept(began time.Time, slept []Slept, now time.Time) Ledger {
	began = began.UTC()
	l.LastSleep = l.LastSleep.Newer(&LastSleep{BeganAt: began, EndedAt: new(now.UTC())})
	l.Recent = slices.Clone(l.Recent)
	for i := len(l.Recent) - 1; i >= 0; i-- {
		if e := l.Recent[i]; e.Result == run.Ran && e.StartedAt != nil && !e.StartedAt.Before(began) {
			l.Recent[i].Slept, l.Recent[i].EndedAt = slept, new(now.UTC())
			return l
		}
	}
	return l.add(Entry{Kind: run.ByToken, Result: run.Ran, StartedAt: &began, At: now.UTC(), Slept: slept, EndedAt: new(now.UTC())})
}

// Awake is the off-window in which a HibernatePlan was seen last, and why nothing slept then.
type Awake struct {
	Slot   time.Time `json:"slot"`
	Reason string    `json:"reason,omitempty"` // empty: it was a dry run, and would have slept
	By     Cause     `json:"by,omitzero"`
}

// In says whether it is of the off-window that begins at an instant.
func (a *Awake) In(slot time.Time) bool { return a != nil && a.Slot.Equal(slot) }

// StaysAwake notes why nothing sleeps in an off-window, as long as that has no entry: it may end
// while nobody looks. False: it is noted already, or there is nothing to note. Words alone that
// change are not written.
func (l Ledger) StaysAwake(a *Awake) (Ledger, bool) {
	if a == nil || l.HasSlot(a.Slot) || l.Awake.In(a.Slot) && l.Awake.Reason == a.Reason && l.Awake.By.Actor.Name == a.By.Actor.Name {
		return l, false
	}
	by := Cause{Said: document.Cut(a.By.Said, maxOutcomeMessage), Actor: a.By.Actor}
	l.Awake = &Awake{Slot: a.Slot.UTC(), Reason: a.Reason, By: by}
	return l, true
}
