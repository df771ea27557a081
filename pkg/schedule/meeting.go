package schedule

import (
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule/internal/civil"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule/internal/meeting"
)

// betweenMeetings is how many openings are followed one by one before it is asked again whether
// the windows meet at all (a guess).
const betweenMeetings = 64

// meetingOf finds when the windows of courses may meet from an instant on. What is no timeline, and
// what exclusions take out, is left aside: where it finds nothing, nothing is open.
func meetingOf(all every, from int64, e *effort) *meeting.Finder {
	return meeting.Of(permitsOf(nil, all, from), e.spend)
}

func permitsOf(list []meeting.Source, c course, from int64) []meeting.Source {
	switch c := c.(type) {
	case *prefix:
		if from >= c.until {
			return permitsOf(list, c.then, from)
		}
	case every:
		for _, one := range c {
			list = permitsOf(list, one, from)
		}
	case *Timeline:
		if p, ok := c.permit.everyWeek(); ok && !c.always {
			return append(list, p)
		}
	}
	return list
}

// permits are windows that repeat every week.
type permits struct{ union }

// everyWeek is a union of windows that is open whenever this one is, and repeats every week: those
// of other rules open every day. False: there is none.
func (u *union) everyWeek() (permits, bool) {
	p := permits{union{weekly: u.weekly}}
	for _, s := range u.others {
		w, ok := s.(*windows)
		if ok {
			w, ok = w.everyDay()
		}
		if !ok {
			return permits{}, false
		}
		p.weekly = append(p.weekly[:len(p.weekly):len(p.weekly)], w)
	}
	return p, true
}

// everyDay has the windows open on every day, at their times.
func (w *windows) everyDay() (*windows, bool) {
	c := w.opening.clock
	if within, ok := c.(*bounded); ok {
		c = within.clock
	}
	daily := &wallClock{}
	switch c := c.(type) {
	case *wallClock:
		daily.times = c.times
	case *stride:
		daily.times = c.Times
	case *setpos:
		daily.times = c.Times
	default:
		return nil, false
	}
	opening := *w.opening
	opening.clock, opening.until, opening.skip = daily, civil.Never, exceptions{}
	return newWindows(&opening, w.length, w.onWall), true
}

func (p permits) Contains(t int64) bool { return p.contains(t) }
func (p permits) Opens(t int64) int64   { return p.opens(t) }
func (p permits) Closed(t int64) int64  { return p.closed(t) }

func (p permits) Calm(t int64) (start, end int64) {
	calm := p.calm(t)
	return calm.start, calm.end
}

func (p permits) Offsets(to []int64, at int64) []int64 {
	for i, w := range p.weekly {
		if i == 0 || w.opening.zone != p.weekly[i-1].opening.zone {
			to = append(to, w.opening.zone.at(at).offset)
		}
	}
	return to
}
