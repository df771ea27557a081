package schedule

import (
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/schedule/internal/civil"
)

// A search for the next or the last change looks as far as the calendar repeats, but asks
// no more than this: fifty short events that follow one another without a gap would have it
// ask for minutes. What is the same for so long counts as the same for ever, until it is
// looked at again from a later instant.
const (
	timelineEffort = 400_000   // of one timeline, in sources asked
	courseEffort   = 1_000_000 // of several timelines together
	leastEffort    = 500       // where a budget is spent (a guess: a millisecond, and years of windows that open daily)
)

// SearchAgain is the time after which a search is tried again that had to end because a budget was spent.
const SearchAgain = time.Minute

// Budget is what the searches of several gates may ask together, in sources. It is safe for
// concurrent use.
type Budget interface {
	Left() int
	Spend(n int)
}

// effort is what a search may ask, and has asked. reached is where one that had to end
// stood, or never: what was found is not known beyond it.
type effort struct {
	most, spent int
	over        bool // more was asked for than was left
	untold      bool // somebody else's verdict says no more yet, see Published
	reached     int64
}

func newEffort(most int) *effort { return &effort{most: most, reached: civil.Never} }

// left is what one of several timelines may ask: as much as ever, but where a budget is nearly spent.
func (e *effort) left() int {
	if e.most >= courseEffort {
		return timelineEffort
	}
	return max(e.most-e.spent, 0)
}

// spend says whether n sources more may be asked. What may not be asked costs nothing.
func (e *effort) spend(n int) bool {
	if e.over = e.over || e.spent+n > e.most; e.over {
		return false
	}
	e.spent += n
	return true
}

// endAhead notes where a search for the next change stands that nothing was left for.
func (e *effort) endAhead(t int64) {
	if e.over {
		e.notBeyond(t)
	}
}

// endBack notes where a search for the last change stands that nothing was left for.
func (e *effort) endBack(t int64) {
	if e.over {
		e.notBefore(t)
	}
}

// notBeyond notes that what a search for the next change found is not known beyond t.
func (e *effort) notBeyond(t int64) { e.reached = min(e.reached, t) }

// later says whether the change that a search found is not known yet: one that might ask as much as any
// is not tried again.
func (e *effort) later(found int64) bool {
	return e.reached < found && (e.most < courseEffort || e.untold)
}

// notBefore notes that what a search for the last change found is not known before t.
func (e *effort) notBefore(t int64) {
	if e.reached == civil.Never || e.reached < t {
		e.reached = t
	}
}

// changeOf is the next change of a course, by a search of its own.
func changeOf(c course, t int64) int64 { return c.change(t, newEffort(courseEffort)) }

// sinceOf is the last change of a course, by a search of its own.
func sinceOf(c course, t int64) int64 { return c.since(t, newEffort(courseEffort)) }
