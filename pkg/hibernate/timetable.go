package hibernate

import (
	"cmp"
	"fmt"
	"iter"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// Timetable is when a valid plan's targets sleep, its exceptions included. It is immutable
// and safe for concurrent use.
type Timetable struct {
	regular    *schedule.Timeline
	exceptions []exception // as they apply: replace, extend, suspend
	location   *time.Location
	zone       string
}

// exception is one that can be asked.
type exception struct {
	Exception
	validity
	hours *schedule.Timeline // nil, of a suspend: always
}

// NewTimetable reads the schedule of a plan. The error names what Parse would.
func NewTimetable(s Spec) (*Timetable, error) {
	regular, err := schedule.ParseOffHours(s.Schedule.Timezone, s.Schedule.OffHours, s.Schedule.Exclude, noCalendars)
	if err != nil {
		return nil, fmt.Errorf("spec.schedule: %w", err)
	}
	t := &Timetable{regular: regular, zone: cmp.Or(s.Schedule.Timezone, "UTC")}
	if t.location, err = schedule.LoadZone(t.zone); err != nil {
		return nil, fmt.Errorf("spec.schedule: %w", err)
	}
	for _, kind := range []ExceptionType{Replace, Extend, Suspend} {
		for i, e := range s.Exceptions {
			if e.Type != kind {
				continue
			}
			one, err := newException(s.Schedule.Timezone, e)
			if err != nil {
				return nil, fmt.Errorf("spec.exceptions[%d]: %w", i, err)
			}
			t.exceptions = append(t.exceptions, one)
		}
	}
	return t, nil
}

func newException(zone string, e Exception) (exception, error) {
	out := exception{Exception: e}
	var err error
	if out.from, err = time.Parse(time.RFC3339, e.ValidFrom); err != nil {
		return out, fmt.Errorf("validFrom: %w", err)
	}
	if out.until, err = time.Parse(time.RFC3339, e.ValidUntil); err != nil {
		return out, fmt.Errorf("validUntil: %w", err)
	}
	if len(e.OffHours) > 0 || e.Type != Suspend {
		if out.hours, err = schedule.ParseOffHours(zone, e.OffHours, nil, noCalendars); err != nil {
			return out, err
		}
	}
	return out, nil
}

func (v validity) holds(at time.Time) bool { return !at.Before(v.from) && at.Before(v.until) }

// Zone names the time zone of the off-hours.
func (t *Timetable) Zone() string { return t.zone }

// Local is an instant as the clocks of the plan show it: 2026-03-01T20:00.
func (t *Timetable) Local(at time.Time) string {
	return at.In(t.location).Format("Mon 2006-01-02 15:04 MST")
}

// Slot names the off-window that begins at an instant, as the ledger does:
// 2026-03-01T20:00:00+07:00[Asia/Jakarta].
func (t *Timetable) Slot(start time.Time) string {
	return start.In(t.location).Format(time.RFC3339) + "[" + t.zone + "]"
}

// asleep is the level at an instant, and what says so.
func (t *Timetable) asleep(at time.Time) (asleep bool, why string, suspended bool) {
	state := t.regular.At(at)
	asleep, why = state.Open, state.Reason
	for _, e := range t.exceptions {
		if !e.holds(at) {
			continue
		}
		inside := e.hours == nil || e.hours.At(at).Open
		switch {
		case e.Type == Replace:
			asleep, why, suspended = inside, e.says("replaced"), false
		case e.Type == Extend && inside:
			asleep, why = true, e.says("extended")
		case e.Type == Suspend && inside:
			asleep, why, suspended = false, e.says("suspended"), true
		}
	}
	return asleep, why, suspended
}

func (e exception) says(what string) string {
	if e.Reason == "" {
		return what + " by an exception"
	}
	return what + " by an exception: " + e.Reason
}

// farthest bounds how many changes are followed to find the next of the level, where
// exceptions hide them (a guess: six a day for a year). Beyond it the level is looked at
// anew.
const farthest = 2_000

// next is the next instant at which the level may change; the zero instant: never.
func (t *Timetable) next(after time.Time) time.Time {
	var first time.Time
	take := func(at time.Time) {
		if at.After(after) && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	regular, hours := t.counts(after)
	if regular {
		if at, _, ok := t.regular.Next(after); ok {
			take(at)
		}
	}
	for _, e := range t.exceptions {
		take(e.from)
		take(e.until)
		if e.hours == nil || !after.Before(e.until) || !hours {
			continue
		}
		if at, _, ok := e.hours.Next(after); ok && at.Before(e.until) {
			take(at)
		}
	}
	return first
}

// counts says whether the regular off-hours, and those of exceptions, decide at an instant:
// what replaces them or suspends all hides them until it ends.
func (t *Timetable) counts(at time.Time) (regular, hours bool) {
	regular, hours = true, true
	for _, e := range t.exceptions {
		switch {
		case !e.holds(at):
		case e.hours == nil:
			return false, false
		case e.Type == Replace:
			regular = false
		}
	}
	return regular, hours
}

// last is the newest instant, not after another, at which the level may have changed.
func (t *Timetable) last(at time.Time) time.Time {
	var newest time.Time
	take := func(change time.Time) {
		if !change.After(at) && change.After(newest) {
			newest = change
		}
	}
	regular, hours := t.counts(at)
	if regular {
		if s := t.regular.At(at); s.HasSince {
			take(s.Since)
		}
	}
	for _, e := range t.exceptions {
		take(e.from)
		take(e.until)
		if e.hours == nil || at.Before(e.from) || !hours {
			continue
		}
		if s := e.hours.At(at); s.HasSince {
			take(s.Since)
		}
	}
	return newest
}

// Level is what the timetable says of an instant.
type Level struct {
	Asleep    bool
	Suspended bool      // an exception keeps awake what would sleep otherwise
	Since     time.Time // when it became so; zero: it always was
	Until     time.Time // when it changes; zero: never
	Why       string
}

// At is the level at an instant.
func (t *Timetable) At(at time.Time) Level {
	at = at.Truncate(time.Second)
	l := Level{}
	l.Asleep, l.Why, l.Suspended = t.asleep(at)
	for change, n := t.next(at), 0; !change.IsZero(); change, n = t.next(change), n+1 {
		if asleep, _, _ := t.asleep(change); asleep != l.Asleep || n == farthest {
			l.Until = change
			break
		}
	}
	for change, n := t.last(at), 0; !change.IsZero() && n < farthest; change, n = t.last(change.Add(-time.Second)), n+1 {
		if asleep, _, _ := t.asleep(change.Add(-time.Second)); asleep != l.Asleep {
			l.Since = change
			break
		}
	}
	return l
}

// What the schedule says of itself, where no exclusion and no exception does.
const (
	InOffHours = "off-hours"
	Outside    = "outside of the off-hours"
)

// Window is a stretch of sleep; a zero instant has none.
type Window struct {
	Start, End time.Time
	Why        string // of its beginning
	Ends       string // why it ends; empty where it does not
}

// Windows are the stretches of sleep from an instant on; one that it is in comes first,
// with its true start.
func (t *Timetable) Windows(from time.Time) iter.Seq[Window] {
	return func(yield func(Window) bool) {
		for l, ok := t.sleepFrom(from); ok; l, ok = t.sleepFrom(l.Until) {
			ends := ""
			if !l.Until.IsZero() {
				ends = t.At(l.Until).Why
			}
			if !yield(Window{l.Since, l.Until, l.Why, ends}) || l.Until.IsZero() {
				return
			}
		}
	}
}

// mostLooks bounds how often a level is looked at anew that exceptions hide for long.
const mostLooks = 50

// sleepFrom is the first sleep that an instant is in, or that comes after it.
func (t *Timetable) sleepFrom(at time.Time) (Level, bool) {
	l := t.At(at)
	for n := 0; !l.Asleep && !l.Until.IsZero() && n < mostLooks; n++ {
		l = t.At(l.Until)
	}
	return l, l.Asleep
}

// Forbidden says whether no sleep may begin at an instant: a suspend comes so soon that
// its lead time has begun. why is for people, and until is when that is over.
func (t *Timetable) Forbidden(at time.Time) (why string, until time.Time) {
	for _, e := range t.exceptions {
		if e.Type != Suspend || e.LeadTime == nil {
			continue
		}
		start, ok := e.start(at, at.Add(e.LeadTime.Duration))
		if ok {
			return fmt.Sprintf("%s, from %s on", e.says("soon suspended"), t.Local(start)), start
		}
	}
	return "", time.Time{}
}

// start is when a suspend begins that does so after one instant and not after another.
func (e exception) start(after, until time.Time) (time.Time, bool) {
	first := e.from
	if e.hours != nil {
		from := e.from
		if after.After(from) {
			from = after
		}
		s := e.hours.At(from)
		switch {
		case s.Open && from.Equal(e.from):
		case s.Open:
			return first, false // it has begun
		default:
			at, _, ok := e.hours.Next(from)
			if !ok {
				return first, false
			}
			first = at
		}
	}
	return first, first.After(after) && !first.After(until) && first.Before(e.until)
}
