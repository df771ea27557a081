package hibernation

import (
	"testing"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
)

// What the agent never put to sleep, and its owner stopped, is left so and said. Where a reply
// was lost it may have been the agent: that wakes.
func TestWhatItsOwnerStoppedBeforeItSleptIsLeftSo(t *testing.T) {
	patch := agenttest.When{User: runner, Verb: "patch", Resource: "deployments", Name: "orders"}
	for name, c := range map[string]struct {
		happens func(w *world)
		woken   string
	}{
		"the right was missing":             {func(*world) {}, "orders 0, web 2"},
		"an agent led that died in between": {func(w *world) { w.begins() }, "orders 0, web 2"},
		"a reply was lost before it was missing": {func(w *world) {
			w.api.Allow(runner, "patch", "deployments")
			w.api.LoseReply(patch, 1)
		}, "orders 3, web 2"},
		"nobody answered before it was missing": {func(w *world) {
			w.api.Allow(runner, "patch", "deployments")
			w.api.Fail(patch, 1)
		}, "orders 3, web 2"},
	} {
		for _, granted := range []string{"01:30", "03:30"} { // while it is to sleep, or after
			t.Run(name+" "+granted, func(t *testing.T) {
				night(t, oneToThree+apps, func(w *world) {
					w.until("00:59")
					w.api.Deny(runner, "patch", "deployments")
					c.happens(w)
					w.until("01:00")
					w.after(time.Second)
					w.api.Deny(runner, "patch", "deployments")
					w.until("01:10")
					w.scale("orders", 0)
					w.until(granted)
					w.api.Allow(runner, "patch", "deployments")
					w.after(90 * time.Minute)
					w.until("05:30")
					if c.woken == "orders 0, web 2" {
						w.has(c.woken)
					} else {
						w.awake()
					}
					w.closed()
				})
			})
		}
	}
}

// What comes after other resources is its owner's until it is its turn, also where that is refused.
func TestWhatItsOwnerStoppedBeforeItsTurnIsLeftSo(t *testing.T) {
	for name, c := range map[string]struct {
		granted string
		happens func(w *world)
	}{
		"while the first is on its way":  {"01:00", func(w *world) { w.scale("web", 0) }},
		"while its turn is refused":      {"01:30", func(w *world) { w.until("01:10"); w.scale("web", 0) }},
		"and its turn comes in the day":  {"03:30", func(w *world) { w.until("01:10"); w.scale("web", 0) }},
		"and another agent leads by now": {"01:30", func(w *world) { w.until("01:10"); w.begins(); w.scale("web", 0) }},
	} {
		t.Run(name, func(t *testing.T) {
			night(t, oneToThree+apps, func(w *world) {
				w.beds.turns = true
				mend := w.api.Refuse(agenttest.When{User: "maint-runner", Verb: "patch", Name: "web"}, agenttest.Always, 403, "not yet")
				w.until("01:00")
				w.after(time.Second)
				w.has("orders 0, web 2")
				c.happens(w)
				w.until(c.granted)
				mend()
				w.until("05:30")
				w.has("orders 3, web 0")
				w.closed()
			})
		})
	}
}
