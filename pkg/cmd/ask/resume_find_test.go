package ask

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
)

// Who may not list is told so, and what is not known is not denied.
func TestResumeSaysThatItMayNotLookForARunThatIsGone(t *testing.T) {
	o := cmdtest.NewCluster(t, nil, cmdtest.Leaving(t)...)
	o.Kube.PrependReactor("list", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(corev1.Resource("configmaps"), "", nil)
	})
	c := factory.New(factory.Env{Now: cmdtest.Now})
	_, err := (&resumeOptions{Factory: c}).find(t.Context(), &factory.Cluster{Kube: o.Kube, Metadata: o.Connected().Metadata, Namespace: "shop"}, "orders-x")
	if text := cmdtest.ErrText(err); !strings.Contains(text, "there is no plan or policy or run") || !strings.Contains(text, "look for run orders-x in the plans' ledgers") {
		t.Error(text)
	}
}
