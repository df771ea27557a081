package workload

import (
	"context"
	"fmt"
	"slices"
	"strings"

	kstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/api"
)

// health is the health of one object by the rules of its kind. For a healthy one, Why is a remark,
// or empty.
func health(ctx context.Context, call executors.Call, kind api.Object, u *unstructured.Unstructured) (verdict, error) {
	if u.GetDeletionTimestamp() != nil {
		return notYet("is being deleted"), nil
	}
	if rule, ok := rollouts()[kind.Kind.GroupKind()]; ok {
		v := rule(u)
		if v.Well {
			v.Why = ""
		}
		return v, nil
	}
	switch kind.Kind.GroupKind() {
	case schema.GroupKind{Group: batchv1.GroupName, Kind: "Job"}:
		return job(read[batchv1.Job](u)), nil
	case schema.GroupKind{Kind: "Pod"}:
		return pod(read[corev1.Pod](u)), nil
	case schema.GroupKind{Kind: "Node"}:
		return node(read[corev1.Node](u)), nil
	case schema.GroupKind{Kind: "PersistentVolumeClaim"}:
		return claim(read[corev1.PersistentVolumeClaim](u)), nil
	}
	return othersHealth(ctx, call, kind, u)
}

// othersHealth is the health of an object whose kind has no rules here: first by what is common to
// all controllers (kstatus: an unobserved generation, Reconciling, Stalled) and what kstatus knows
// of Kubernetes' own kinds, then by its condition Ready, which has to exist: kstatus alone treats
// an object without conditions as current, and absence is not success.
func othersHealth(ctx context.Context, call executors.Call, kind api.Object, u *unstructured.Unstructured) (verdict, error) {
	standing, err := kstatus.Compute(u)
	switch {
	case err != nil:
		return notYet("its status cannot be read: %v", err), nil
	case standing.Status == kstatus.FailedStatus:
		return failed("Stalled", "will not become healthy: %s", document.Cut(standing.Message, 300)), nil
	case standing.Status == kstatus.InProgressStatus && !hasReady(u):
		return notYet("%s", document.Cut(standing.Message, 300)), nil
	case standing.Status == kstatus.CurrentStatus && kstatus.GetLegacyConditionsFn(u) != nil:
		return well(""), nil
	}
	if _, has := u.Object["status"]; !has {
		return withoutStatus(ctx, call, kind)
	}
	ready, why := api.Condition(u, "Ready")
	if ready {
		return well(""), nil
	}
	return notYet("%s", why), nil
}

// hasReady says that an object's own Ready condition is more precise than kstatus.
func hasReady(u *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(item any) bool {
		c, _ := item.(map[string]any)
		return c["type"] == "Ready"
	})
}

// withoutStatus tells a kind that has no status, such as ConfigMap, from an object whose controller
// has not written one yet: by whether the API server has a status subresource. Everybody may ask
// for that.
func withoutStatus(ctx context.Context, call executors.Call, kind api.Object) (verdict, error) {
	path := "/apis/" + kind.Resource.GroupVersion().String()
	if kind.Resource.Group == "" {
		path = "/api/" + kind.Resource.Version
	}
	var served metav1.APIResourceList
	err := call.Clients.Kube.Discovery().RESTClient().Get().AbsPath(path).Do(ctx).Into(&served)
	if err != nil {
		return verdict{}, fmt.Errorf("ask what %s serves: %w", kind.Resource.GroupVersion(), err)
	}
	if slices.ContainsFunc(served.APIResources, func(r metav1.APIResource) bool { return r.Name == kind.Resource.Resource+"/status" }) {
		return notYet("has no status yet"), nil
	}
	return well(""), nil
}

func job(j batchv1.Job) verdict {
	for _, c := range j.Status.Conditions {
		switch {
		case c.Status != corev1.ConditionTrue:
		case c.Type == batchv1.JobComplete:
			return well("")
		case c.Type == batchv1.JobFailed:
			return failed("JobFailed", "failed: %s: %s", c.Reason, document.Cut(c.Message, 300))
		case c.Type == batchv1.JobSuspended:
			return notYet("is suspended")
		}
	}
	return notYet("is not complete: %d active, %d succeeded, %d failed", j.Status.Active, j.Status.Succeeded, j.Status.Failed)
}

func pod(p corev1.Pod) verdict {
	switch p.Status.Phase {
	case corev1.PodSucceeded:
		return well("")
	case corev1.PodFailed:
		return failed("PodFailed", "failed: %s", strings.TrimSpace(p.Status.Reason+" "+document.Cut(p.Status.Message, 300)))
	}
	if podReady(p) {
		return well("")
	}
	for _, c := range p.Status.ContainerStatuses {
		if c.State.Waiting != nil && c.State.Waiting.Reason != "" {
			return notYet("is %s and not Ready: container %s is waiting: %s", p.Status.Phase, c.Name, c.State.Waiting.Reason)
		}
	}
	return notYet("is %s and not Ready", p.Status.Phase)
}

func podReady(p corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// node is healthy when it is Ready and under no pressure. A cordoned node is healthy, since
// somebody meant it; it is mentioned, because pods that wait for it will wait.
func node(n corev1.Node) verdict {
	ready := false
	var troubles []string
	for _, c := range n.Status.Conditions {
		switch c.Type {
		case corev1.NodeReady:
			ready = c.Status == corev1.ConditionTrue
		case corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure, corev1.NodeNetworkUnavailable:
			if c.Status == corev1.ConditionTrue {
				troubles = append(troubles, string(c.Type))
			}
		}
	}
	switch {
	case !ready:
		return notYet("is not Ready")
	case len(troubles) > 0:
		return notYet("has %s", strings.Join(troubles, ", "))
	case n.Spec.Unschedulable:
		return well("is cordoned")
	}
	return well("")
}

func claim(c corev1.PersistentVolumeClaim) verdict {
	switch c.Status.Phase {
	case corev1.ClaimBound:
		return well("")
	case corev1.ClaimLost:
		return failed("ClaimLost", "has lost its volume %s", c.Spec.VolumeName)
	}
	return notYet("is %s and not Bound", c.Status.Phase)
}
