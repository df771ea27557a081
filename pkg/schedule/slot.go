package schedule

import (
	"fmt"
	"iter"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/schedule/internal/civil"
)

// Slot is one instant at which a schedule asks for a run.
type Slot struct {
	// At is the instant, in UTC.
	At time.Time
	// Wall is the wall-clock time that the schedule asked for, in RFC 3339 with
	// its UTC offset. In a gap that is a time no clock shows, with the offset of
	// before the change: 2026-03-08T02:30:00-05:00 for a slot that fires at
	// 03:00-04:00. It names the slot; for the instant, and to show people when
	// it fires, use At and Local.
	Wall string
	// Zone is the IANA name of the schedule's time zone.
	Zone string
	// Index is the place of the schedule in its Set.
	Index int
	// Note is "gap" where clocks jump over the time that was asked for,
	// "overlap" where they show it twice, else empty.
	Note string
}

// Notes of slots.
const (
	NoteGap     = "gap"
	NoteOverlap = "overlap"
)

// Identity names the slot among the slots of its plan: wall-clock time with its
// UTC offset, and zone. It is the same after every restart and in every
// preview.
func (s Slot) Identity() string { return s.Wall + "[" + s.Zone + "]" }

// Local is the instant of the slot on the clocks of its zone.
func (s Slot) Local() time.Time {
	location, err := LoadZone(s.Zone)
	if err != nil {
		return s.At // a slot made by hand, in no zone of ours
	}
	return s.At.In(location)
}

// Set is the schedules of one plan.
type Set []*Schedule

// Next is the first slot of any schedule strictly after an instant; false when
// there is none ever. Two schedules that meet on one instant are one slot,
// named by the lower index.
func (s Set) Next(after time.Time) (Slot, bool) {
	first, index := firing{at: civil.Never}, -1
	for i, schedule := range s {
		if schedule == nil {
			continue
		}
		if fires, ok := schedule.next(after.Unix()); ok && (index < 0 || fires.at < first.at) {
			first, index = fires, i
		}
	}
	if index < 0 {
		return Slot{}, false
	}
	slot := s[index].slot(first)
	slot.Index = index
	return slot, true
}

// Last is the last slot of any schedule at or before an instant; false when
// there is none. It is what a plan owes after an outage, found without following
// all that was missed.
func (s Set) Last(until time.Time) (Slot, bool) {
	last, index := firing{}, -1
	for i, schedule := range s {
		if schedule == nil {
			continue
		}
		if fired, ok := schedule.last(until.Unix()); ok && (index < 0 || fired.at > last.at) {
			last, index = fired, i
		}
	}
	if index < 0 {
		return Slot{}, false
	}
	slot := s[index].slot(last)
	slot.Index = index
	return slot, true
}

// TooNear says, by index, of which schedules slots lie nearer together than a minute to those
// of others, and why: all that recur name the same second. An instant is one slot, however near
// to others; once tells which are instants.
func (s Set) TooNear(once func(i int) bool) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		first := -1
		for i, schedule := range s {
			why := ""
			switch {
			case schedule == nil || schedule.WithinMinute() || once(i):
			case first < 0:
				first = i
			default:
				if a, b := s[first].second(), schedule.second(); a != b {
					why = fmt.Sprintf("fires at second %d of a minute and schedules[%d] at second %d, and a plan begins at most once in a minute; name the same second", b, first, a)
				}
			}
			if why != "" && !yield(i, why) {
				return
			}
		}
	}
}

// second is the second of the minute at which the schedule fires.
func (s *Schedule) second() int {
	at, _ := s.NextTime(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC))
	return at.Second()
}

// firing is a slot in numbers: the instant, and the wall-clock time asked for.
type firing struct {
	at, wall, offset int64
	note             string
}

// appendWall writes a local second in RFC 3339.
func appendWall(to []byte, local, offset int64) []byte {
	day, second := civil.SplitLocal(local)
	year, month, dayOfMonth := civil.DateOf(day)
	to = appendTwo(to, int(year)/100)
	to = appendTwo(to, int(year)%100)
	to = appendTwo(append(to, '-'), month)
	to = appendTwo(append(to, '-'), dayOfMonth)
	to = appendTwo(append(to, 'T'), second/3600)
	to = appendTwo(append(to, ':'), second/60%60)
	to = appendTwo(append(to, ':'), second%60)
	if offset == 0 {
		return append(to, 'Z')
	}
	sign := byte('+')
	if offset < 0 {
		sign, offset = '-', -offset
	}
	to = appendTwo(append(to, sign), int(offset/civil.HourSeconds))
	return appendTwo(append(to, ':'), int(offset/civil.MinuteSeconds%60))
}

func appendTwo(to []byte, n int) []byte {
	return append(to, byte('0'+n/10), byte('0'+n%10))
}
