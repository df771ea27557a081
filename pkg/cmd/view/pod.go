package view

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
)

// WhyNotRunning says why a pod does not work; empty: it seems to.
func WhyNotRunning(p *corev1.Pod) string {
	for _, s := range append(slices.Clone(p.Status.InitContainerStatuses), p.Status.ContainerStatuses...) {
		switch {
		case s.State.Waiting != nil && s.State.Waiting.Reason != "":
			last := ""
			if t := s.LastTerminationState.Terminated; t != nil {
				last = fmt.Sprintf(", after exit code %d (%s)", t.ExitCode, t.Reason)
			}
			return s.State.Waiting.Reason + last + Prefix(": ", document.Cut(s.State.Waiting.Message, document.MaxMessage/4))
		case s.State.Terminated != nil && s.State.Terminated.ExitCode != 0:
			return fmt.Sprintf("exit code %d (%s)", s.State.Terminated.ExitCode, s.State.Terminated.Reason)
		}
	}
	if p.Status.Phase == corev1.PodFailed { // evicted, or lost with its node
		return cmp.Or(p.Status.Reason, string(p.Status.Phase)) + Prefix(": ", document.Cut(p.Status.Message, document.MaxMessage/4))
	}
	for _, s := range p.Status.ContainerStatuses {
		if t := s.LastTerminationState.Terminated; t != nil && !s.Ready {
			return fmt.Sprintf("not ready, started again after exit code %d (%s), restarts: %d", t.ExitCode, t.Reason, s.RestartCount)
		}
	}
	for _, c := range p.Status.Conditions {
		if c.Status == corev1.ConditionFalse && (c.Type == corev1.PodScheduled || c.Type == corev1.PodReady) {
			return Prefix("", c.Reason) + Prefix(": ", document.Cut(c.Message, document.MaxMessage/4))
		}
	}
	if p.Status.Phase != corev1.PodRunning {
		return string(p.Status.Phase)
	}
	return ""
}
