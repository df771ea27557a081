package schedule

import (
	"sort"

	"github.com/kubectl-maint/kubectl-maint/pkg/schedule/internal/civil"
)

// windows is the source of the windows that a schedule opens. Each lasts for
// an elapsed time, or up to a wall-clock time so much later.
type windows struct {
	opening *Schedule
	length  int64
	onWall  bool
	weekly  bool        // the same every week, as long as the offset stays
	runs    []civil.Run // see civil.Daytimes.Dense
	daily   bool        // a stride whose windows touch all day long
}

func newWindows(opening *Schedule, length int64, onWall bool) *windows {
	w := &windows{opening: opening, length: length, onWall: onWall}
	plain := opening.until == civil.Never && len(opening.skip.days)+len(opening.skip.walls)+len(opening.skip.instants) == 0
	switch clock := opening.clock.(type) {
	case *civil.Wall:
		w.weekly = plain && weekly(&clock.Days)
		if !onWall {
			w.runs = clock.Times.Dense(length)
		}
	case *civil.Stride:
		w.weekly = plain && weekly(&clock.Days) && civil.WeekSeconds%clock.Step == 0
		w.daily = plain && !onWall && clock.Times.Hours == civil.EveryHour && clock.Step <= length &&
			(clock.Unit == civil.HourSeconds || clock.Times.Minutes == civil.EveryMinute)
	}
	return w
}

// weekly tells whether the days are the same in every week.
func weekly(r *civil.Days) bool {
	return r.Interval <= 1 && r.Months == 0 &&
		r.Monthdays|r.FromEnd == 0 && r.Numbered == [6]uint8{} && r.FromLast == [6]uint8{} && r.Yearly == nil
}

func (w *windows) end(opened firing) int64 {
	if w.onWall {
		return w.opening.zone.instant(opened.wall + w.length)
	}
	return opened.at + w.length
}

func (w *windows) until(t int64) (int64, bool) {
	opened, ok := w.opening.previous(t)
	if !ok {
		return 0, false
	}
	end := w.end(opened)
	if end <= t {
		return 0, false
	}
	switch {
	case w.runs != nil:
		end = max(end, w.runEnd(opened))
	case w.daily:
		end = max(end, w.dayEnd(opened))
	}
	return end, true
}

// dayEnd is the end of the last window that opens on the day of opened, if
// clocks do not change before.
func (w *windows) dayEnd(opened firing) int64 {
	day, _ := civil.SplitLocal(opened.wall)
	last, ok := w.opening.clock.Previous(day*civil.DaySeconds + civil.DaySeconds - 1)
	if last += opened.at - opened.wall; !ok || last >= w.opening.zone.at(opened.at).end {
		return opened.at
	}
	return last + w.length
}

// runEnd is the end of the last window of the run that opened belongs to, if
// clocks do not change before.
func (w *windows) runEnd(opened firing) int64 {
	_, second := civil.SplitLocal(opened.wall)
	i := sort.Search(len(w.runs), func(i int) bool { return w.runs[i].Last >= second })
	last := opened.at + int64(w.runs[i].Last-second)
	if opened.note == NoteGap || last >= w.opening.zone.at(opened.at).end || last > w.opening.until {
		return opened.at
	}
	return last + w.length
}

func (w *windows) since(t int64) (int64, bool) {
	var opened firing
	var ok bool
	if w.onWall {
		opened, ok = w.opening.nextFromWall(w.opening.zone.firstWallAfter(t) - w.length)
	} else {
		opened, ok = w.opening.next(t - w.length)
	}
	if !ok || opened.at > t || opened.at > w.opening.until {
		return 0, false
	}
	switch {
	case w.runs != nil:
		return min(opened.at, w.runStart(opened)), true
	case w.daily:
		return min(opened.at, w.dayStart(opened)), true
	}
	return opened.at, true
}

// runStart is the start of the first window of the run that opened belongs to,
// if clocks have not changed since.
func (w *windows) runStart(opened firing) int64 {
	_, second := civil.SplitLocal(opened.wall)
	i := sort.Search(len(w.runs), func(i int) bool { return w.runs[i].Last >= second })
	first := opened.at - int64(second-w.runs[i].First)
	if opened.note != "" || first < w.opening.zone.at(opened.at).unambiguousFrom() {
		return opened.at
	}
	return first
}

// dayStart is the start of the first window that opens on the day of opened, if
// clocks have not changed since.
func (w *windows) dayStart(opened firing) int64 {
	day, _ := civil.SplitLocal(opened.wall)
	first, ok := w.opening.clock.Next(day * civil.DaySeconds)
	if first += opened.at - opened.wall; !ok || opened.note != "" || first < w.opening.zone.at(opened.at).unambiguousFrom() {
		return opened.at
	}
	return first
}

func (w *windows) opens(t int64) (int64, bool) {
	for {
		opened, ok := w.opening.next(t)
		if !ok || w.end(opened) > opened.at {
			return opened.at, ok
		}
		t = opened.at // all of it fell into a gap
	}
}

func (w *windows) closed(t int64) (int64, bool) {
	if !w.onWall {
		opened, ok := w.opening.previous(t - w.length)
		return opened.at + w.length, ok
	}
	for until := w.opening.zone.firstWallAfter(t) - 1 - w.length; ; {
		opened, ok := w.opening.previousFromWall(until)
		if end := w.end(opened); !ok || end > opened.at {
			return end, ok
		}
		until = opened.wall - 1
	}
}
