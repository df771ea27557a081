package setup_test

import (
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
)

// Without an agent nobody would uncordon a node that is cordoned for somebody.
func TestUninstallRefusesWhileANodeIsHeld(t *testing.T) {
	o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), cmdtest.Node("a"), cmdtest.Node("b", cmdtest.CordonedFor(nodes.Cordon{By: []string{"plan:ops/roll"}})))
	o.Maint("uninstall", "--yes").Is(t, cmdtest.Printed{Code: 3, Out: "", Err: "error: node b is cordoned for plan ops/roll, and nobody would uncordon it: 'kubectl maint status' shows all such nodes; release them, or let their plans end\n"})
}
