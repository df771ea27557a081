package gates

import (
	"testing"
	"time"
)

// A person's attempt is answered at once; two controllers that undo each other
// are answered later and later, and after a quiet time it begins anew.
func TestWhatIsOpenedAgainAndAgainIsClosedLaterAndLater(t *testing.T) {
	counted, field := newWrites(maxBackoff, backoffReset), closedField{"u", "/spec/suspend"}
	closeAt := func(at time.Time) time.Time {
		next := counted.until(field, at)
		if next.IsZero() {
			counted.note(field, at)
		}
		return next
	}
	now := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	if !closeAt(now).IsZero() {
		t.Error("the first closing waits")
	}
	var waits []time.Duration
	for range 12 {
		next := closeAt(now)
		if next.IsZero() {
			waits = append(waits, 0)
			continue
		}
		waits = append(waits, next.Sub(now))
		now = next
		if !closeAt(now).IsZero() {
			t.Fatal("it waits longer than it said")
		}
	}
	if waits[0] != 0 || waits[1] != 0 || waits[2] != 4*time.Second || waits[11] != maxBackoff {
		t.Errorf("waits %v", waits)
	}
	if now = now.Add(backoffReset + time.Second); !closeAt(now).IsZero() {
		t.Error("it is never forgiven")
	}
}
