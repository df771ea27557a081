package intent

import (
	"strings"
	"time"
)

// SomebodyHolds begins what is said of a hold of a HibernatePlan.
const SomebodyHolds = "somebody holds it"

// Held says of a HibernatePlan that somebody holds it asleep, or awake.
func Held(asleep bool) string {
	if asleep {
		return SomebodyHolds + " asleep"
	}
	return SomebodyHolds + " awake"
}

const until = " until "

// HeldUntil is Held with the end of the hold; nil: it has none.
func HeldUntil(asleep bool, end *time.Time) string {
	if end == nil {
		return Held(asleep)
	}
	return Held(asleep) + until + end.UTC().Format(time.RFC3339)
}

// SaysHeld says whether a message says HeldUntil of a hold, and not of one that ends another time.
func SaysHeld(message string, asleep bool, end *time.Time) bool {
	_, after, is := strings.Cut(message, HeldUntil(asleep, end))
	return is && !strings.HasPrefix(after, until)
}
