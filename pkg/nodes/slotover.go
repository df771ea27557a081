package nodes

import (
	"slices"
	"time"
)

// A request that does not drain is Ready at once, and nothing that happens on the
// node ends it: whoever may write it would have a slot for as long as he likes. So
// its slot has an end. The request keeps the node as it is; others may have their
// turn meanwhile, and the node counts as unavailable and in its zone.

// slotEnd is when the slot of a request that has its node goes to others.
func slotEnd(a *Asked, phase Phase, started *time.Time, limits Limits) (time.Time, bool) {
	if limits.WithoutDrain <= 0 || a.Request.Drain != nil || a.Fault != "" || !phase.given() || started == nil {
		return time.Time{}, false
	}
	return started.Add(limits.WithoutDrain), true
}

// noteSlots decides whether the slots of all who have the node are over.
func (s *site) noteSlots(limits Limits, now time.Time) {
	if s.leaving || len(s.standing) == 0 || len(s.holds) > 0 {
		return
	}
	s.over = !slices.ContainsFunc(s.standing, func(a *Asked) bool {
		if a.Status == nil {
			return true
		}
		end, has := slotEnd(a, s.phase(a), a.Status.Started, limits)
		return !has || end.After(now)
	})
}

// endSlots says once of each request that its slot is over.
func (w *work) endSlots() {
	for _, s := range w.holding() {
		end, has := slotEnd(s.Asked, s.next.Phase, s.next.Started, w.limits)
		if !has || w.soon.add(end) {
			s.next.SlotOver = false
			continue
		}
		if !s.next.SlotOver {
			s.next.SlotOver = true
			w.say(s.name(), true, "SlotOver", "has the node without a drain for "+w.limits.WithoutDrain.String()+
				" (maxTimeWithoutDrain): others have its slot; the node stays as it is until the request is removed")
		}
	}
}
