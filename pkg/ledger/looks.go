package ledger

import (
	"slices"
	"time"
)

// Look is a time in which somebody looked at a plan's slots. Both its ends belong to it.
type Look struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// maxLooks is how many are kept apart (a guess): one for each agent that slots in a queue have
// outlived, where others fell due between two agents. Of the oldest it is forgotten then.
const maxLooks = 10

// Saw says whether somebody looked when a slot fell due.
func (l Ledger) Saw(slot time.Time) bool {
	return slices.ContainsFunc(l.Looks, func(o Look) bool { return !slot.Before(o.From) && !slot.After(o.To) })
}

// LookedTo is up to where somebody looked, as far as that is kept.
func (l Ledger) LookedTo() (time.Time, bool) {
	if len(l.Looks) == 0 {
		return time.Time{}, false
	}
	return l.Looks[len(l.Looks)-1].To, true
}

// WithLook notes that somebody looks from an instant on, and has seen what fell due up to another.
// joins says that nothing fell due between the look before and this one.
func (l Ledger) WithLook(from, to time.Time, joins bool) Ledger {
	l.Looks = slices.Clone(l.Looks)
	if last := len(l.Looks) - 1; last >= 0 && (joins || !from.After(l.Looks[last].To)) {
		l.Looks[last].To = to
		return l
	}
	l.Looks = append(l.Looks, Look{from, to})
	l.Looks = l.Looks[max(len(l.Looks)-maxLooks, 0):]
	return l
}

// Passed moves the watermark to a slot, and forgets who looked at what it has passed.
func (l Ledger) Passed(slot time.Time) Ledger {
	l.Watermark = slot.UTC()
	if i := slices.IndexFunc(l.Looks, func(o Look) bool { return o.To.After(slot) }); i < 0 {
		l.Looks = nil
	} else {
		l.Looks = l.Looks[i:]
	}
	return l
}
