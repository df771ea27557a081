package surge

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
	"github.com/kubectl-maint/kubectl-maint/pkg/kube"
)

// DeploymentOf is the Deployment of a pod, by its ReplicaSet. It needs get on both.
func DeploymentOf(ctx context.Context, clients kube.Interface, p drain.Pod) (*appsv1.Deployment, error) {
	apps := clients.AppsV1()
	rs, err := apps.ReplicaSets(p.Namespace).Get(ctx, p.Controller.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("find the Deployment of pod %s: %w", p, err)
	}
	owner := metav1.GetControllerOfNoCopy(rs)
	if string(rs.UID) != p.Controller.UID || owner == nil || owner.Kind != "Deployment" {
		return nil, &Cannot{Why: "its ReplicaSet belongs to no Deployment", Remedy: NoSurge}
	}
	dep, err := apps.Deployments(p.Namespace).Get(ctx, owner.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("find the Deployment of pod %s: %w", p, err)
	}
	if dep.UID != owner.UID {
		return nil, &Cannot{Why: "its ReplicaSet belongs to another Deployment than the one that is named " + dep.Name + " now", Remedy: NoSurge}
	}
	return dep, nil
}

// MayScale refuses a Deployment whose replicas another controller would set back.
func MayScale(ctx context.Context, clients kube.Interface, manager string, dep *appsv1.Deployment) error {
	owner, remedy, err := ownerOf(ctx, clients, manager, dep)
	switch {
	case err != nil:
		return Denied(err, "list on horizontalpodautoscalers.autoscaling")
	case owner != "":
		return &Cannot{Why: owner + " owns the replicas of Deployment/" + dep.Name, Remedy: remedy + ", or " + NoSurge}
	}
	return nil
}
