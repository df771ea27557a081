package look

import (
	"strings"
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
)

// Who may see no nodes sees the plans all the same.
func TestStatusWithoutRightsToNodes(t *testing.T) {
	k := cmdtest.Refusing("list", "nodes")
	o := &statusOptions{Factory: &factory.Factory{Env: factory.Env{Now: cmdtest.Now, Name: "kubectl maint"}}}
	lines, _, err := o.overview(t.Context(), k, factory.AgentState{Namespace: annotations.DefaultNamespace})
	if got := strings.Join(view.Texts(lines), "\n"); err != nil || got != "no plans in namespace shop; 'kubectl maint schedule' writes one" {
		t.Errorf("%q, %v", got, err)
	}
}
