package factory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
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
	why = fmt.Sprintf("see 'kubectl -n %s get pods'", namespace)
	picked := metav1.ListOptions{LabelSelector: annotations.AgentPods, Limit: 10}
	if list, err := k.Kube.AppsV1().Deployments(namespace).List(ctx, picked); err == nil {
		for _, d := range list.Items {
			why, installed = cmp.Or(whyNoPods(&d), why), true
		}
	}
	var said []string
	if list, err := k.Kube.CoreV1().Pods(namespace).List(ctx, picked); err == nil {
		for _, p := range list.Items {
			installed = true
			if reason := whyNotRunning(&p); reason != "" {
				said = append(said, "pod "+p.Name+": "+reason)
			}
		}
	}
	return why + view.Prefix("; ", strings.Join(said, ", ")), installed
}

// whyNoPods says why a Deployment has no pods, or too few, with a command that helps; empty: no
// reason was found.
func whyNoPods(d *appsv1.Deployment) string {
	if d.Spec.Replicas != nil && *d.Spec.Replicas == 0 {
		return fmt.Sprintf("its Deployment %s is scaled to 0 replicas: start it with 'kubectl -n %s scale deployment %s --replicas=2'", d.Name, d.Namespace, d.Name)
	}
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue {
			return fmt.Sprintf("its Deployment %s cannot create pods: %s: see 'kubectl -n %s describe deployment %s'", d.Name, document.Cut(cmp.Or(c.Message, c.Reason), document.MaxMessage/2), d.Namespace, d.Name)
		}
	}
	return ""
}

// whyNotRunning says why a pod does not work; empty: it seems to.
func whyNotRunning(p *corev1.Pod) string {
	for _, s := range append(slices.Clone(p.Status.InitContainerStatuses), p.Status.ContainerStatuses...) {
		switch {
		case s.State.Waiting != nil && s.State.Waiting.Reason != "":
			last := ""
			if t := s.LastTerminationState.Terminated; t != nil {
				last = fmt.Sprintf(", after exit code %d (%s)", t.ExitCode, t.Reason)
			}
			return s.State.Waiting.Reason + last + view.Prefix(": ", document.Cut(s.State.Waiting.Message, document.MaxMessage/4))
		case s.State.Terminated != nil && s.State.Terminated.ExitCode != 0:
			return fmt.Sprintf("exit code %d (%s)", s.State.Terminated.ExitCode, s.State.Terminated.Reason)
		}
	}
	if p.Status.Phase == corev1.PodFailed { // evicted, or lost with its node
		return cmp.Or(p.Status.Reason, string(p.Status.Phase)) + view.Prefix(": ", document.Cut(p.Status.Message, document.MaxMessage/4))
	}
	for _, s := range p.Status.ContainerStatuses {
		if t := s.LastTerminationState.Terminated; t != nil && !s.Ready {
			return fmt.Sprintf("not ready, started again after exit code %d (%s), restarts: %d", t.ExitCode, t.Reason, s.RestartCount)
		}
	}
	for _, c := range p.Status.Conditions {
		if c.Status == corev1.ConditionFalse && (c.Type == corev1.PodScheduled || c.Type == corev1.PodReady) {
			return view.Prefix("", c.Reason) + view.Prefix(": ", document.Cut(c.Message, document.MaxMessage/4))
		}
	}
	if p.Status.Phase != corev1.PodRunning {
		return string(p.Status.Phase)
	}
	return ""
}
