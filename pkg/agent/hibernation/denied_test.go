package hibernation

import (
	"strings"
	"testing"
)

// An admin's word against a type of targets holds at the act, and what sleeps then wakes in time.
func TestATargetThatIsDeniedFallsNotAsleep(t *testing.T) {
	const why = "the agent's configuration does not allow targets of type noop in namespace shop"
	night(t, oneToThree+apps, func(w *world) {
		w.denied.Store([]string{"function", "noop"})
		w.until("01:30")
		w.awake()
		if got := w.phase(); !strings.Contains(got, why) {
			t.Errorf("at 01:30 the plan says %q", got)
		}
		w.denied.Store([]string{"function"})
		w.until("01:35")
		w.sleeps()
		w.denied.Store([]string{"noop"})
		w.until("02:30")
		w.sleeps()
		w.until("03:30")
		w.awake()
		w.closed()
		w.is("Active: ")
	})
}
