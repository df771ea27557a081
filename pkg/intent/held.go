package intent

import (
	"strings"
	"time"
)

// Held says of a HibernatePlan that it is held asleep, or awake.
func Held(asleep bool) string { return "it is held " + state(asleep) }

func state(asleep bool) string {
	if asleep {
		return "asleep"
	}
	return "awake"
}

const until = " until "

// HeldUntil is Held with the end of the hold; nil: it has none.
func HeldUntil(asleep bool, end *time.Time) string {
	return Held(asleep) + untilEnd(end)
}

func untilEnd(end *time.Time) string {
	if end == nil {
		return ""
	}
	return until + end.UTC().Format(time.RFC3339)
}

// SaysHeld says whether a message says HeldUntil of a hold, and not of one that ends another time.
func SaysHeld(message string, asleep bool, end *time.Time) bool {
	for _, words := range []string{Held(asleep), "somebody holds it " + state(asleep)} { // the latter is what agents of earlier versions say
		if _, after, is := strings.Cut(message, words+untilEnd(end)); is {
			return !strings.HasPrefix(after, until)
		}
	}
	return false
}
