package hibernation

import (
	"testing"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

// A write that an agent began, and that comes when another one leads and all is awake again, does not
// bring back that something sleeps.
func TestALateStatusBringsBackNoSleep(t *testing.T) {
	night(t, oneToThree+apps, func(w *world) {
		w.until("00:59")
		letGo := w.api.Hold(agenttest.When{User: "agent", Verb: "patch", Resource: "configmaps", Name: "nights"}, 1)
		w.until("01:00")
		w.after(time.Second)
		deposed := w.agent
		w.agent = nil
		w.begins()
		w.after(5 * time.Second)
		w.sleeps()
		w.says(annotations.HoldState, "awake")
		w.awake()
		w.closed()
		letGo()
		w.after(0)
		deposed.stop()
		w.after(time.Second)
		w.is("Active: ")
		w.says(annotations.HoldState, "")
		w.until("01:10")
		w.sleeps()
		w.is("Hibernated: 1 of 1 targets sleep")
	})
}
