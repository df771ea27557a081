package nodemaintenance

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// maxGoneChecks bounds how many nodes are asked for at one run's end, whether they
// are gone (a guess): the rest is asked for at the next.
const maxGoneChecks = 50

// Gone are those of the nodes that are not there any more: asked for live, as
// the watch may be behind. An agent that watches no nodes knows of none.
func (k *Controller) Gone(ctx context.Context, known run.NodeTurns) map[string]bool {
	gone, asked := map[string]bool{}, 0
	if k.Scope.WatchNamespace != "" {
		return gone
	}
	for name := range known {
		if _, there, err := k.Nodes.GetByKey(name); there || err != nil || asked == maxGoneChecks {
			continue
		}
		asked++
		_, err := k.Clients.Kube.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		gone[name] = apierrors.IsNotFound(err)
	}
	return gone
}
