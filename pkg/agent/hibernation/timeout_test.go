package hibernation

import (
	"strings"
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

func TestATimeoutIsAFailureThatIsTriedAgain(t *testing.T) {
	night(t, oneToThree+"targets: [{name: apps, type: noop, parameters: {timeout: 5m}}]\n", func(w *world) {
		w.beds.goes("hearing", "is refused")
		w.until("01:04")
		if r := w.record("apps"); r == nil || r.State != hibernate.Running || r.Attempts != 0 {
			t.Errorf("before its time is over it is %+v", r)
		}
		w.until("01:06")
		const late = "it is not asleep after 5m0s: orders, web"
		if r := w.record("apps"); r == nil || r.State == hibernate.Asleep || r.Attempts != 1 || !strings.Contains(r.Message, late) {
			t.Errorf("after it, it is %+v", r)
		}
		w.wantEvent("Warning TargetFailed nights: shutdown of target apps failed (attempt 1): " + late)
		w.beds.goes("hearing", "")
		w.until("01:08")
		w.sleeps()
		w.is("Hibernated: 1 of 1 targets sleep")
	})
}
