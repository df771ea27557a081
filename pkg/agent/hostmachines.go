package agent

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

// machines are those that the agent's replicas run on, by the provider id of their nodes.
// Where pods or nodes are none of its business (--watch-namespace, --without), none are
// known.
func (a *Agent) machines(ctx context.Context) ([]string, error) {
	pods, err := a.conn.Kube.CoreV1().Pods(a.options.Namespace).List(ctx, metav1.ListOptions{LabelSelector: annotations.AgentLabel + "=" + annotations.AgentName})
	switch {
	case apierrors.IsForbidden(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("list the agent's own pods: %w", err)
	}
	var out []string
	for _, pod := range pods.Items {
		found, there, err := a.caches.nodes.Informer.GetStore().GetByKey(pod.Spec.NodeName)
		if err != nil || !there {
			continue
		}
		if node, is := found.(interface{ ProviderID() string }); is && node.ProviderID() != "" && !slices.Contains(out, node.ProviderID()) {
			out = append(out, node.ProviderID())
		}
	}
	return out, nil
}
