package setup_test

import (
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
)

// Without an agent nobody would uncordon a node that is cordoned for somebody.
func TestUninstallRefusesWhileANodeIsHeld(t *testing.T) {
	o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), cmdtest.Node("a"), cmdtest.Node("b", cmdtest.CordonedFor(nodes.Cordon{By: []string{"plan:ops/roll"}})))
	o.Maint("uninstall", "--yes").Is(t, cmdtest.Printed{Code: 3, Out: "", Err: "error: node b is cordoned for plan ops/roll, and nobody would uncordon it: 'kubectl maint status' shows all such nodes; release them, or let their plans end\n"})
}

// Nor would anybody wake what sleeps.
func TestUninstallRefusesWhileAnythingSleeps(t *testing.T) {
	asleep := cmdtest.Sleeper("office", "{schedule: {timezone: UTC, offHours: [{start: '20:00', end: '06:00'}]}, targets: [{name: a, type: noop}]}", cmdtest.Noting(annotations.StatusPhase, "Hibernated", annotations.StatusAsleep, "2026-11-20T20:00:00Z"))
	o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), cmdtest.Node("a"), asleep)
	o.Maint("uninstall", "--yes").Is(t, cmdtest.Printed{Code: 3, Out: "", Err: "error: what HibernatePlan shop/office names sleeps (Hibernated), and nobody would wake it: kubectl maint -n shop wake office --for 24h, and uninstall once it is awake\n"})
}
