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
			w.api.Away(patch, 1)
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
