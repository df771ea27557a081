package look

import (
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
)

// Who may see no nodes sees the plans all the same.
func TestStatusWithoutRightsToNodes(t *testing.T) {
	k := cmdtest.Refusing("list", "nodes")
	o := &statusOptions{Factory: &factory.Factory{Env: factory.Env{IOStreams: genericiooptions.NewTestIOStreamsDiscard(), Now: cmdtest.Now, Name: "kubectl maint"}}}
	r, err := o.read(t.Context(), k)
	lines, _ := o.overview(k, r)
	if got := strings.Join(view.Texts(lines), "\n"); err != nil || got != "Needs somebody:\n  namespace shop  is frozen\n    'kubectl maint freeze namespace/shop --end'\n\nno plans in namespace shop; 'kubectl maint new' asks for what one needs, 'kubectl maint schedule' writes one" {
		t.Errorf("%q, %v", got, err)
	}
}
