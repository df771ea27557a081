package offwindow

import (
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// Change is when a HibernatePlan wakes or falls asleep next. At is nil where nothing changes by
// itself; Why says so.
type Change struct {
	At    *time.Time
	Wakes bool
	Why   string

	Unknown bool // whether policies let it come cannot be read
}

// Verb says which of the two it does.
func (c Change) Verb() string {
	if c.Wakes {
		return "wakes"
	}
	return "sleeps"
}

// Timeline is what says when a HibernatePlan changes: its schedule, what people ask of it, and policies,
// which let a sleep begin or not.
type Timeline struct {
	table  *hibernate.Timetable
	wishes hibernate.Overrides
	gate   *schedule.Gate
}

// NewTimeline is the timeline from an instant on; gate is nil where nothing gates it. A skip of the next
// off-window means the one that is the next at that instant.
func NewTimeline(table *hibernate.Timetable, wishes hibernate.Overrides, gate *schedule.Gate, now time.Time) Timeline {
	wishes.Skip = table.Named(wishes.Skip, now)
	return Timeline{table: table, wishes: wishes, gate: gate}
}

// At is the state that the plan is to have at an instant.
func (c Timeline) At(at time.Time) hibernate.DesiredState { return c.table.DesiredState(at, c.wishes) }

// After is the change that follows a state that the plan has.
func (c Timeline) After(has hibernate.DesiredState) Change {
	switch {
	case has.Until == nil && has.Asleep:
		return Change{Why: "asleep until somebody changes that"}
	case has.Until == nil:
		return Change{Why: stayAwake}
	case has.Asleep:
		return Change{At: has.Until, Wakes: true}
	}
	return c.Begin(*has.Until, c.At(*has.Until))
}

// Paused is the change that comes in spite of a pause which holds: none of one without an end, and else what
// follows that end.
func (c Timeline) Paused(by schedule.Pause, asleep bool) Change {
	if by.Until == nil {
		return Change{Why: "none, since it is paused"}
	}
	then := c.At(*by.Until)
	if then.Asleep == asleep {
		return c.After(then)
	}
	return c.Begin(*by.Until, then)
}

// Begin is the change to a state that the plan is to have at an instant, and has not. It falls asleep
// only when its schedule and policies permit that: in these off-hours, or in later ones.
func (c Timeline) Begin(at time.Time, want hibernate.DesiredState) Change {
	if !want.Asleep {
		return Change{At: &at, Wakes: true}
	}
	stays := stayAwake
	for range mostOffHours {
		if !want.Asleep {
			if want.Until == nil {
				break
			}
			at = *want.Until
			want = c.At(at)
			continue
		}
		opens, why := c.opens(at, want)
		switch {
		case why != "":
			return Change{Why: why, Unknown: why == cannotBeRead || why == notFoundYet}
		case opens.Equal(at):
			return Change{At: &at}
		}
		at, stays = opens, noneBegins // a freeze may take years
		want = c.At(at)
	}
	return Change{Why: stays}
}

// opens is the first instant from another on at which a sleep that is wanted may begin, as far as is
// known now: the same, if it may begin at once. why says that there is none.
func (c Timeline) opens(at time.Time, want hibernate.DesiredState) (opens time.Time, why string) {
	if want.Forbidden != "" {
		_, until := c.table.Forbidden(at)
		return until, ""
	}
	if c.gate == nil {
		return at, ""
	}
	switch v := c.gate.Verdict(at); {
	case v.Permitted:
		return at, ""
	case v.Unknown():
		return at, cannotBeRead
	case v.Later != "":
		return at, notFoundYet
	case !v.Ready || v.Until == nil:
		return at, noneBegins
	default:
		return *v.Until, ""
	}
}

const (
	stayAwake  = "awake until somebody changes that"
	noneBegins = "none: no sleep may begin"

	cannotBeRead = "not known: what policies say then cannot be read"
	notFoundYet  = "not known yet: when policies permit a sleep is looked for later"
)

// mostOffHours bounds the off-hours in which a freeze is followed to its end: a year of days.
const mostOffHours = 800
