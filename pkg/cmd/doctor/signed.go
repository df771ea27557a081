package doctor

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/kube"
)

// signed looks for objects that were signed with another key than the agent's: after the Secret was
// lost or replaced they no longer count. The heartbeat names the key; an older agent does not
// report it.
func (o *options) signed(ctx context.Context, k *factory.Cluster, agent factory.AgentState) {
	key := agent.Key
	if key == "" { // the check of the agent has reported it
		return
	}
	others, first, err := signedWithOthers(ctx, k, metav1.NamespaceAll, key)
	if apierrors.IsForbidden(err) {
		others, first, err = signedWithOthers(ctx, k, k.Namespace, key)
	}
	switch {
	case err != nil:
		o.unknown("which key signed the agent's runs and ledgers", factory.Explain("list them", err))
	case others > 0:
		o.amiss(fmt.Sprintf("another key than the agent's (%s) has signed %s, such as %s/%s: they do not count", key, view.Counted(others, "object"), first.Namespace, first.Name),
			fmt.Sprintf("restore the former key as %q in Secret %s/%s, or check the objects and sign them with %s; after a change of the key the agent signs them itself within minutes", annotations.DataPreviousKey, agent.Namespace, annotations.KeyName, o.Suggest().In(first.Namespace).Adopt("--all")))
	}
}

// signedWithOthers counts the objects of a namespace that are signed with another key.
func signedWithOthers(ctx context.Context, k *factory.Cluster, namespace, key string) (count int, first metav1.ObjectMeta, err error) {
	records := k.Metadata.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace(namespace)
	err = kube.EachOf(ctx, records.List, annotations.SignedKinds(), func(o *metav1.PartialObjectMetadata) error {
		if id := annotations.SignedWith(o); id != "" && id != key {
			if count++; count == 1 {
				first = o.ObjectMeta
			}
		}
		return nil
	})
	return count, first, err
}
