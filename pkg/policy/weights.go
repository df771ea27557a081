package policy

import (
	"cmp"
	"fmt"

	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// What the policies of one namespace may hold together (guesses). A policy of a few hundred bytes
// holds the events of its calendars on the clock of its zone, and shares them only with policies of
// the same zone: a tenant with a few calendars and many zones could fill the agent's memory.
const (
	mostRecurring = 20_000
	mostDates     = 200_000
)

// weights are what the policies of each namespace hold.
type weights struct {
	names   map[string]map[string]bool // of the policies, by namespace
	known   map[string]bool            // namespaces that were weighed since they changed
	tooMuch map[string]string          // why a namespace's policies with a schedule are not ready
}

func newWeights() weights {
	return weights{names: map[string]map[string]bool{}, known: map[string]bool{}, tooMuch: map[string]string{}}
}

func (w weights) put(ref PolicyRef) {
	if w.names[ref.Namespace] == nil {
		w.names[ref.Namespace] = map[string]bool{}
	}
	w.names[ref.Namespace][ref.Name] = true
}

func (w weights) drop(ref PolicyRef) {
	if delete(w.names[ref.Namespace], ref.Name); len(w.names[ref.Namespace]) == 0 {
		delete(w.names, ref.Namespace)
	}
}

// outdate has one namespace, or all, be weighed anew.
func (w weights) outdate(namespace string, everywhere bool) {
	if everywhere {
		clear(w.known)
		return
	}
	delete(w.known, namespace)
}

// weigh notes whether the policies of a namespace hold too much. Those of the agent's namespace are
// the admin's, and have no bound.
func (b *Resolver) weigh(namespace string) {
	if b.weights.known[namespace] || b.agent != "" && namespace == b.agent {
		return
	}
	b.weights.known[namespace] = true
	now := b.tooMuchIn(namespace)
	if now == b.weights.tooMuch[namespace] {
		return
	}
	b.parsed.forget(namespace, false)
	if b.weights.tooMuch[namespace] = now; now == "" {
		delete(b.weights.tooMuch, namespace)
	}
}

// tooMuchIn says why the policies of a namespace hold too much together; empty: they do not.
func (b *Resolver) tooMuchIn(namespace string) string {
	type onClock struct {
		calendar PolicyRef
		zone     string
	}
	counted := map[onClock]bool{}
	recurring, dates := 0, 0
	for name := range b.weights.names[namespace] {
		if recurring > mostRecurring || dates > mostDates {
			break
		}
		s := b.policies[PolicyRef{Name: name, Namespace: namespace}].Spec.MaintenanceSchedule
		if s == nil {
			continue
		}
		recurring += len(s.Windows)
		dates += len(s.Exclude)
		for _, x := range s.Exclude {
			if x.Calendar == nil {
				continue
			}
			at := onClock{calendarOf(*x.Calendar, namespace), cmp.Or(s.Timezone, "UTC")}
			if b.calendars[at.calendar] == nil || counted[at] || !b.within(namespace, at.calendar.Namespace) {
				continue
			}
			counted[at] = true
			more, moreDates := b.calendars[at.calendar].Load()
			recurring, dates = recurring+more, dates+moreDates
		}
	}
	if recurring <= mostRecurring && dates <= mostDates {
		return ""
	}
	return fmt.Sprintf("the policies of namespace %s hold together more than %d windows and recurring events, or more than %d dates, those of a calendar once for each time zone that uses it: use fewer time zones, calendars or policies", namespace, mostRecurring, mostDates)
}

// calendarOf is the calendar that a policy of a namespace names.
func calendarOf(c schedule.CalendarRef, namespace string) PolicyRef {
	return PolicyRef{Name: c.Name, Namespace: cmp.Or(c.Namespace, namespace)}
}
