package schedule

import (
	"iter"
	"sync/atomic"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/schedule/internal/civil"
)

// Verdict answers whether change is permitted at an instant.
//
// Since is nil if it always was so, Until if it never changes; Next is there
// whenever Until is. The two numbers are those of the change_management
// metrics: −2 not ready or not known yet, −1 for ever, else seconds, rounded up.
type Verdict struct {
	Permitted           bool       `json:"permitted"`
	Ready               bool       `json:"-"`
	Reason              string     `json:"reason"`
	Cause               Cause      `json:"-"`
	AfterFreeze         string     `json:"-"` // as it follows the Reason of a freeze: what keeps it closed up to Until
	Later               string     `json:"-"` // as it follows the Reason: that Until is not known yet
	Unfinished          bool       `json:"-"` // Since, Until or the end of Next is not known yet, and looked for later
	Since               *time.Time `json:"since,omitempty"`
	Until               *time.Time `json:"until,omitempty"`
	Next                *Following `json:"next,omitempty"`
	NextChangeETA       int64      `json:"nextChangeETA"`       // 0 permitted now, >0 seconds until permitted, −1 restricted for ever
	PermissiveRemaining int64      `json:"permissiveRemaining"` // 0 restricted now, >0 seconds left, −1 permitted for ever
}

// Why is the Reason up to Until: with what follows a freeze, and whether it is looked for later.
func (v Verdict) Why() string { return v.Reason + v.AfterFreeze + v.Later }

// NotKnownYet begins what stands in Later.
const (
	NotKnownYet    = "; when that changes is not known yet"
	lookedForLater = NotKnownYet + ": the agent limits its searches for each namespace; it tries again in a minute"
)

// Following is the stretch after the present one. End is nil where it has none, or where that is not known yet.
type Following struct {
	Permitted bool       `json:"permitted"`
	Start     time.Time  `json:"start"`
	End       *time.Time `json:"end,omitempty"`
	Later     bool       `json:"-"` // End is not known yet
}

// Values of NextChangeETA and PermissiveRemaining that are no number of seconds.
const (
	NotReady = -2 // also where the number is not known yet
	ForEver  = -1
)

// Verdict is what the gate says at an instant. Its pointers are shared with other verdicts: read
// them, and write nothing through them.
func (g *Gate) Verdict(now time.Time) Verdict {
	t := now.Unix()
	why := g.course.explain(t)
	if !g.course.ready(t) {
		return Verdict{Reason: why.text, Cause: why.cause, NextChangeETA: NotReady, PermissiveRemaining: NotReady}
	}
	present := g.present(t)
	verdict := Verdict{
		Permitted: present.open, Ready: true, Reason: why.text, Cause: why.cause,
		Since: present.since, Until: present.until, Next: present.next, Unfinished: present.later,
	}
	if !present.open && why.cause.Kind == CauseFreeze {
		verdict.AfterFreeze = afterFreeze(g.course, t, present.end)
	}
	left := int64(ForEver)
	switch {
	case present.until != nil:
		left = secondsUntil(now, *present.until)
	case present.later && present.known.end != civil.Never:
		left, verdict.Later = NotReady, lookedForLater
	}
	if verdict.Permitted {
		verdict.PermissiveRemaining = left
	} else {
		verdict.NextChangeETA = left
	}
	return verdict
}

// At is the state of the gate at an instant; one that is not ready is closed.
func (g *Gate) At(t time.Time) State { return stateOf(g.course, t) }

// Intervals are the stretches in which the gate permits change, as those of a
// Timeline.
func (g *Gate) Intervals(from time.Time) iter.Seq[Interval] { return intervalsOf(g.course, from) }

// secondsUntil rounds up, so that whoever waits so long does not come early:
// changes come on whole seconds, so leaving off the fraction of now does it.
func secondsUntil(now, then time.Time) int64 {
	return then.Unix() - now.Unix()
}

// steadySpan is a time without change, with what a verdict says of it.
type steadySpan struct {
	span
	known        span  // where it is known to be so; less than the span where a search had to end
	at           int64 // the instant that it was searched for
	asked        int   // what finding it cost, see effort
	most         int   // what the searches for it might ask
	open         bool
	later        bool // a search had to end since a budget was spent
	since, until *time.Time
	next         *Following
}

// memo keeps the open and the closed stretch that were asked for last. Nothing
// but speed depends on it: a course has the same stretches whenever it is asked.
type memo struct{ open, closed atomic.Pointer[steadySpan] }

func (m *memo) find(t int64) *steadySpan {
	if t < 0 {
		return nil // see longAgo
	}
	if last := m.open.Load(); last != nil && last.holds(t) {
		return last
	}
	if last := m.closed.Load(); last != nil && last.holds(t) {
		return last
	}
	return nil
}

// holds says whether an instant is in the part of a stretch that is known.
func (s *steadySpan) holds(t int64) bool { return s.known.start <= t && t < s.known.end }

// unfinished is the stretch of one kind that was asked for last, if a search for it had to end.
func (m *memo) unfinished(open bool) (*steadySpan, bool) {
	last := m.closed.Load()
	if open {
		last = m.open.Load()
	}
	return last, last != nil && last.later
}

func (m *memo) keep(found *steadySpan) *steadySpan {
	if found.open {
		m.open.Store(found)
	} else {
		m.closed.Store(found)
	}
	return found
}

func (g *Gate) present(t int64) *steadySpan {
	known := g.memo.find(t)
	switch {
	case known != nil && !known.later:
		return known
	case g.budget == nil:
		return g.memo.keep(stretchOf(g.course, t, courseEffort))
	}
	tried := 0
	if last, is := g.memo.unfinished(g.course.open(t)); is {
		if last.at <= t && t < min(last.end, last.at+int64(SearchAgain/time.Second)) {
			return last
		}
		tried = last.most
	}
	most := searchOf(g.budget.Left(), tried)
	if most == leastEffort && known != nil {
		return known
	}
	found := stretchOf(g.course, t, most)
	if most > leastEffort { // the least is free: else many who ask for it would keep a budget spent
		g.budget.Spend(found.asked)
	}
	found.most = max(most, tried)
	return g.memo.keep(found)
}

// searchOf is what a search may ask where so much is left of a budget, and one that might ask tried had
// to end: at least twice that, so that those that end with nothing cost no more than the one that does not.
// Of half a budget it may ask as much as any: else what needs a whole one would wait until nobody asks.
func searchOf(left, tried int) int {
	switch {
	case left >= courseEffort/2:
		return courseEffort
	case left < 2*tried:
		return leastEffort
	}
	return max(left, leastEffort)
}

// searched notes how far the two searches that found a stretch came, and what they cost. One
// that had to end outside of the stretch, since something else bounds it, leaves nothing unknown.
func (s *steadySpan) searched(back, ahead *effort) *steadySpan {
	s.known, s.asked = s.span, back.spent+ahead.spent
	if back.reached != civil.Never {
		s.known.start = max(s.start, back.reached)
	}
	if ahead.reached != civil.Never {
		s.known.end = min(s.end, ahead.reached)
	}
	return s
}

func stretchOf(c course, t int64, most int) *steadySpan {
	back, ahead, further := newEffort(most), newEffort(most), newEffort(most)
	s := &steadySpan{span: span{c.since(t, back), c.change(t, ahead)}, at: t, open: c.open(t)}
	s.searched(back, ahead)
	s.since, s.until = instantOf(s.start), instantOf(s.end)
	if s.until != nil {
		end := c.change(s.end, further)
		s.next = &Following{Permitted: !s.open, Start: *s.until, End: instantOf(end), Later: further.later(end)}
	}
	s.asked += further.spent
	s.later = ahead.later(s.end) || s.next != nil && s.next.Later || most < courseEffort && s.known.start != s.start
	return s
}
