package schedule

import (
	"slices"
	"strings"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/schedule/internal/civil"
)

// mostLifts bounds what is asked about one verdict: the freezes that follow each other, and those
// that would have to end together (a guess: an object has its own, its namespace's, and those of a
// few policies).
const mostLifts = 8

// afterFreeze is what keeps a course closed when the freeze ends that closes it at an instant;
// empty: nothing does. Where that is another freeze, it goes on to what follows that.
func afterFreeze(c course, t, until int64) string {
	text, before := "", "; after the freeze: "
	for range mostLifts {
		end := freezeEnd(c.explain(t))
		if end <= t || end >= until || c.open(end) {
			return text
		}
		t = end
		text += before + c.explain(t).text
		before = "; after that: "
	}
	return text
}

// freezeEnd is when the freeze ends that an explanation names; the beginning: it names none.
func freezeEnd(why explanation) int64 {
	if why.cause.Kind != CauseFreeze {
		return civil.Beginning
	}
	return saidUntil(why.text)
}

// Lifts are the freezes and pauses that keep the gate closed at an instant, and that open it if
// all of them are ended; none: it would stay closed, or that is not known.
func (g *Gate) Lifts(now time.Time) []Cause {
	var out []Cause
	c, t := g.course, now.Unix()
	for range mostLifts {
		if c.open(t) {
			return out
		}
		cause := c.explain(t).cause
		left, ok := lifted(c, t)
		if !ok {
			return nil
		}
		c = left
		if !slices.Contains(out, cause) {
			out = append(out, cause)
		}
	}
	return nil
}

// lifted is a course without the freeze or pause that closes it at an instant; false: none does.
func lifted(c course, t int64) (course, bool) {
	switch c := c.(type) {
	case *prefix:
		if t >= c.until {
			return lifted(c.then, t)
		}
		return c.then, !c.permits && (c.why.cause.Kind == CauseFreeze || c.why.cause.Kind == CausePause)
	case *published: // what is below it was not said; a freeze that ends with the closed time is all there is
		return &constant{permits: true}, t < c.until && c.until != civil.Never && c.why.cause.Kind == CauseFreeze && c.holds >= c.until
	case every:
		for i, one := range c {
			if one.open(t) {
				continue
			}
			left, ok := lifted(one, t)
			return every(slices.Concat(c[:i:i], []course{left}, c[i+1:])), ok
		}
	}
	return c, false
}

// AllowedBy is who permitted change up to an instant, as it follows a sentence ( by jane: CHG-1), where
// the gate is open at an instant only since somebody did.
func (g *Gate) AllowedBy(now time.Time) (string, bool) { return allowing(g.course, now.Unix()) }

func allowing(c course, t int64) (by string, allowed bool) {
	switch c := c.(type) {
	case *prefix:
		if t >= c.until {
			return allowing(c.then, t)
		}
		if c.permits && c.why.cause.Kind == CauseAllow && !c.then.open(t) {
			_, after, _ := strings.Cut(c.why.text, string(PermissiveUntil)+" ")
			_, by, allowed = cutStamp(after)
		}
	case every:
		for i := 0; i < len(c) && !allowed; i++ {
			by, allowed = allowing(c[i], t)
		}
	}
	return by, allowed
}
