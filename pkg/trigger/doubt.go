package trigger

import "time"

// Doubt is a time in which the clock was not to be trusted: nothing started in it, and nothing was
// recorded.
type Doubt struct {
	Why   string // while it lasts; empty: it is over, or there was none
	From  time.Time
	Until time.Time // not a part of it; zero: it lasts
}

// Covers says whether the clock was in doubt at an instant.
func (d Doubt) Covers(t time.Time) bool {
	return !d.From.IsZero() && !t.Before(d.From) && (d.Until.IsZero() || t.Before(d.Until))
}
