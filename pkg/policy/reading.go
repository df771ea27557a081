package policy

import (
	"strings"
	"sync"
	"sync/atomic"

	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// reading is a policy that is parsed once, by whoever needs it first. It has all that it needs for
// that: what the resolver is told later makes another one.
type reading struct {
	calendars []PolicyRef // that the policy names
	policy    func() *schedule.Policy
	done      atomic.Bool
}

// read is a policy by its document alone. Of a shared resolver it is not ready before somebody has
// parsed it, which takes seconds for the largest ones.
func (b *Resolver) read(ref PolicyRef, state State) *schedule.Policy {
	b.weigh(ref.Namespace)
	one := b.parsed[ref.Namespace][ref.Name]
	if one == nil {
		one = b.reading(ref, state)
		b.parsed.put(ref, one)
	}
	if b.shared && !one.done.Load() {
		b.lacking = append(b.lacking, one)
		p := schedule.PolicyNotReady(ref.Name, "it is edited again and again while it is read")
		p.Namespace = ref.Namespace
		return p
	}
	return one.policy()
}

// lacks are the policies that are to be parsed before the last answer can be given.
func (b *Resolver) lacks() []*reading {
	list := b.lacking
	b.lacking = nil
	return list
}

// reading is a policy as it is known now, and the calendars that it names.
func (b *Resolver) reading(ref PolicyRef, state State) *reading {
	one, budget := &reading{}, b.searches(ref.Namespace)
	found := map[PolicyRef]foundCalendar{}
	why := ""
	if s := state.Spec.MaintenanceSchedule; s != nil {
		why = b.weights.tooMuch[ref.Namespace]
		for _, x := range s.Exclude {
			if x.Calendar == nil {
				continue
			}
			at := calendarOf(*x.Calendar, ref.Namespace)
			if _, known := found[at]; !known {
				one.calendars = append(one.calendars, at)
				found[at] = b.calendarFor(ref.Namespace, at)
			}
		}
	}
	one.policy = sync.OnceValue(func() *schedule.Policy {
		p := parse(ref, state, why, found)
		p.Namespace = ref.Namespace
		p.Within(budget)
		one.done.Store(true)
		return p
	})
	return one
}

// foundCalendar is a calendar as a policy finds it; nil: it is not there, or why the policy cannot use it.
type foundCalendar struct {
	*schedule.Calendar
	broken, hidden string
}

func (b *Resolver) calendarFor(namespace string, at PolicyRef) foundCalendar {
	c, there := b.calendars[at]
	switch {
	case !b.within(namespace, at.Namespace):
		return foundCalendar{broken: b.foreign("calendar", at, namespace)}
	case !there && b.unread[at.Namespace]:
		return foundCalendar{hidden: "the calendars of namespace " + at.Namespace + " cannot be read"}
	case there && c == nil:
		return foundCalendar{broken: "calendar " + at.Name + " cannot be read"}
	}
	return foundCalendar{Calendar: c}
}

// parse reads a policy. tooMuch is why those of its namespace with a schedule are not ready.
func parse(ref PolicyRef, state State, tooMuch string, calendars map[PolicyRef]foundCalendar) *schedule.Policy {
	switch {
	case len(state.Faults) > 0:
		return schedule.PolicyNotReady(ref.Name, state.Faults[0].String())
	case tooMuch != "":
		return schedule.PolicyNotReady(ref.Name, tooMuch)
	}
	var unusable foundCalendar
	p, err := schedule.ParsePolicy(ref.Name, schedule.PolicySpec{Strategy: state.Spec.Strategy, MaintenanceSchedule: state.Spec.MaintenanceSchedule}, func(namespace, name string) (*schedule.Calendar, bool) {
		c := calendars[calendarOf(schedule.CalendarRef{Name: name, Namespace: namespace}, ref.Namespace)]
		if c.broken != "" || c.hidden != "" {
			unusable = c
		}
		return c.Calendar, c.Calendar != nil
	})
	switch {
	case unusable.broken != "":
		return schedule.PolicyNotReady(ref.Name, unusable.broken)
	case unusable.hidden != "":
		return schedule.PolicyHidden(ref.Name, unusable.hidden)
	case err != nil:
		return schedule.PolicyNotReady(ref.Name, strings.Join(strings.Fields(err.Error()), " "))
	}
	return p
}
