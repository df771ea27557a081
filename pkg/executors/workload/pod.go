package workload

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/api"
	"github.com/kubectl-maint/kubectl-maint/pkg/kube"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/selector"
)

// defaultContainer is the annotation of a pod that names kubectl's default container.
const defaultContainer = "kubectl.kubernetes.io/default-container"

// pick finds the pod and the container for a command.
func pick(ctx context.Context, call executors.Call, p *plan.ExecProperties) (place, error) {
	pod, err := podOf(ctx, call, p.Pod)
	if err != nil {
		return place{}, err
	}
	container, err := containerOf(pod, p.Container)
	return place{pod: pod, container: container}, err
}

func podOf(ctx context.Context, call executors.Call, s plan.PodSelector) (*corev1.Pod, error) {
	if s.Name != "" {
		return podNamed(ctx, call, s.Name)
	}
	sel, err := api.Selector(selector.LabelSelector{MatchLabels: s.MatchLabels, MatchExpressions: s.MatchExpressions})
	if err != nil {
		return nil, err
	}
	if sel == "" {
		return nil, api.Refuse(executors.ReasonInvalid, "pod: needs a name or labels")
	}
	var first *corev1.Pod // the first that is ready
	seen := false
	err = kube.EachOf(ctx, call.Clients.Kube.CoreV1().Pods(call.Plan.Namespace).List, sel, func(p *corev1.Pod) error {
		seen = true
		if p.DeletionTimestamp == nil && podReady(*p) && (first == nil || p.Name < first.Name) {
			first = p.DeepCopy() // a copy, so that its page can be freed
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, api.Failed(podAction("list", call.Plan.Namespace, ""), err)
	case !seen:
		return nil, api.Refuse(executors.ReasonNotFound, "no pod in namespace %s has the labels %s", call.Plan.Namespace, sel)
	case first == nil:
		return nil, notReady("of the pods in namespace %s with the labels %s none is ready", call.Plan.Namespace, sel)
	}
	return first, nil
}

// podNamed is a running pod. It need not be ready: a plan that names a pod may mean to repair it.
func podNamed(ctx context.Context, call executors.Call, name string) (*corev1.Pod, error) {
	pod, err := call.Clients.Kube.CoreV1().Pods(call.Plan.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, api.Failed(podAction("get", call.Plan.Namespace, name), err)
	}
	if pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodRunning {
		return nil, notReady("Pod/%s is %s and runs no command", name, phaseOf(pod))
	}
	return pod, nil
}

func notReady(format string, args ...any) error {
	return &api.Refused{Outcome: executors.Fail("NotReady", format, args...)}
}

func phaseOf(pod *corev1.Pod) string {
	if pod.DeletionTimestamp != nil {
		return "being deleted"
	}
	return string(pod.Status.Phase)
}

func containerOf(pod *corev1.Pod, wanted string) (string, error) {
	var names []string
	for _, c := range pod.Spec.Containers {
		names = append(names, c.Name)
	}
	for _, c := range pod.Spec.InitContainers {
		names = append(names, c.Name)
	}
	for _, c := range pod.Spec.EphemeralContainers {
		names = append(names, c.Name)
	}
	said := pod.Annotations[defaultContainer]
	switch {
	case wanted == "" && slices.Contains(names, said):
		return said, nil
	case wanted == "":
		return names[0], nil
	case slices.Contains(names, wanted):
		return wanted, nil
	}
	return "", api.Refuse(executors.ReasonInvalid, "container: Pod/%s has none named %q; it has %s", pod.Name, wanted, strings.Join(names, ", "))
}
