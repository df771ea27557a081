package factory

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
)

// silentAgent says why an agent is silent, with a command that helps, as far as the user may read
// its Deployment and pods; installed: they exist.
func (k *Cluster) silentAgent(ctx context.Context, namespace string) (why string, installed bool) {
	why = "see " + k.commands().In(namespace).Get("pods")
	picked := metav1.ListOptions{LabelSelector: annotations.AgentPods, Limit: 10}
	if list, err := k.Kube.AppsV1().Deployments(namespace).List(ctx, picked); err == nil {
		for _, d := range list.Items {
			why, installed = cmp.Or(k.whyNoPods(&d), why), true
		}
	}
	var said []string
	if list, err := k.Kube.CoreV1().Pods(namespace).List(ctx, picked); err == nil {
		for _, p := range list.Items {
			installed = true
			if reason := view.WhyNotRunning(&p); reason != "" {
				said = append(said, "pod "+p.Name+": "+reason)
			}
		}
	}
	return why + view.Prefix("; ", strings.Join(said, ", ")), installed
}

// whyNoPods says why a Deployment has no pods, or too few, with a command that helps; empty: no
// reason was found.
func (k *Cluster) whyNoPods(d *appsv1.Deployment) string {
	of := k.commands().In(d.Namespace)
	if d.Spec.Replicas != nil && *d.Spec.Replicas == 0 {
		return fmt.Sprintf("its Deployment %s is scaled to 0 replicas: start it with %s", d.Name, of.Scale(d.Name))
	}
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue {
			return fmt.Sprintf("its Deployment %s cannot create pods: %s: see %s", d.Name, document.Cut(cmp.Or(c.Message, c.Reason), document.MaxMessage/2), of.DescribeDeployment(d.Name))
		}
	}
	return ""
}
