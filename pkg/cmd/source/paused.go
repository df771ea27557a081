package source

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
)

// PausedThemselves are the plans and policies of a namespace with a pause of their own, of all
// namespaces nodes, too; and the namespaces of all plans and policies.
func PausedThemselves(ctx context.Context, k *factory.Cluster, namespace string, now time.Time) (names, namespaces []string) {
	held := func(m metav1.ObjectMeta) bool { return annotations.Intent(m.Annotations).Pause.Holds(now) }
	kinds := annotations.LabelKind + " in (" + annotations.KindPlan + "," + annotations.KindHibernatePlan + "," + annotations.KindPolicy + ")"
	list, err := k.ConfigMaps(namespace).List(ctx, metav1.ListOptions{LabelSelector: kinds})
	if err != nil {
		list = &corev1.ConfigMapList{}
	}
	for _, cm := range list.Items {
		namespaces = append(namespaces, cm.Namespace)
		if !held(cm.ObjectMeta) {
			continue
		}
		kind := ""
		if cm.Labels[annotations.LabelKind] == annotations.KindPolicy {
			kind = "policy "
		}
		names = append(names, kind+cm.Namespace+"/"+cm.Name)
	}
	if namespace != "" {
		return names, namespaces
	}
	nodes, _ := k.Nodes(ctx, "") // none where they may not be read
	for _, n := range nodes {
		if held(n.ObjectMeta) {
			names = append(names, "node "+n.Name)
		}
	}
	return names, namespaces
}
