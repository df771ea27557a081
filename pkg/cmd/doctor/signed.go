package doctor

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/kube"
)

// namedAtMost bounds the objects that are named (a guess: more is a list that nobody reads).
const namedAtMost = 5

// signed looks for objects that say that another key than the agent's signed them: they do not count.
// The heartbeat names the key; an older agent does not report it. After the Secret was lost or replaced
// the agent wrote them; but whoever may write ConfigMaps may have, too.
func (o *options) signed(ctx context.Context, k *factory.Cluster, agent factory.AgentState) {
	o.check = "signatures"
	if agent.Key == "" { // the check of the agent has reported it
		return
	}
	others, err := signedWithOthers(ctx, k, metav1.NamespaceAll, agent.Key)
	if apierrors.IsForbidden(err) {
		others, err = signedWithOthers(ctx, k, k.Namespace, agent.Key)
	}
	switch {
	case err != nil:
		o.unknown("which key signed the agent's runs and ledgers", k.Explain("list them", err))
		return
	case len(others) == 0:
		return
	}
	if ring, err := o.Keyring(ctx, k); err == nil { // what the key before this one signed counts
		others = slices.DeleteFunc(others, func(m *metav1.PartialObjectMetadata) bool { return ring.Knows(annotations.SignedWith(m)) })
	}
	if len(others) == 0 {
		return
	}
	names := make([]string, 0, len(others))
	for _, m := range others {
		names = append(names, m.Namespace+"/"+m.Name)
	}
	said, hand := "as their signatures say, with another: %s. They do not count", "signs them itself within minutes. If not, somebody else wrote them: look at each, and delete it, or sign only that one, as with %s"
	if len(others) == 1 {
		said, hand = "as its signature says, with another: %s. It does not count", "signs it itself within minutes. If not, somebody else wrote it: look at it, and delete it, or sign it with %s"
	}
	o.amiss(fmt.Sprintf("%s not signed with the agent's key (%s), but, "+said, view.Counted(len(others), "object"), agent.Key, document.Few(names, namedAtMost)),
		fmt.Sprintf("if the key was replaced, restore the former one as %q in Secret %s/%s: the agent then "+hand,
			annotations.DataPreviousKey, agent.Namespace, annotations.KeyName, o.Suggest().In(others[0].Namespace).Adopt(others[0].Name)))
}

// signedWithOthers are the objects of a namespace that say that another key signed them.
func signedWithOthers(ctx context.Context, k *factory.Cluster, namespace, key string) (others []*metav1.PartialObjectMetadata, err error) {
	records := k.Metadata.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace(namespace)
	err = kube.EachOf(ctx, records.List, annotations.SignedKinds(), func(o *metav1.PartialObjectMetadata) error {
		if id := annotations.SignedWith(o); id != "" && id != key {
			others = append(others, o)
		}
		return nil
	})
	return others, err
}
