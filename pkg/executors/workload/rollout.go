package workload

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
)

// verdict is the state of an object: well, failed, or neither yet.
type verdict struct {
	Well   bool
	Failed string // why waiting does not help, CamelCase
	Why    string // in words
}

func notYet(format string, args ...any) verdict { return verdict{Why: fmt.Sprintf(format, args...)} }

func failed(reason, format string, args ...any) verdict {
	return verdict{Failed: reason, Why: fmt.Sprintf(format, args...)}
}

func well(format string, args ...any) verdict {
	return verdict{Well: true, Why: fmt.Sprintf(format, args...)}
}

// read converts an object to its Go type. What the API server sent always fits. Of an object with a quantity that
// would take long to read, as only another cluster sends it, nothing is read.
func read[T any](u *unstructured.Unstructured) T {
	var typed T
	if document.HugeQuantity(u.Object) != "" {
		return typed
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &typed); err != nil {
		panic(fmt.Sprintf("workload.read %s as %T: %v", u.GroupVersionKind(), typed, err))
	}
	return typed
}

// rollouts are the kinds with a rollout, and the rules for its completion: those of kubectl rollout
// status, and all pods available besides. They are written out here because that library would pull
// in all of kubectl.
func rollouts() map[schema.GroupKind]func(*unstructured.Unstructured) verdict {
	return map[schema.GroupKind]func(*unstructured.Unstructured) verdict{
		{Group: appsv1.GroupName, Kind: "Deployment"}:  func(u *unstructured.Unstructured) verdict { return deployment(read[appsv1.Deployment](u)) },
		{Group: appsv1.GroupName, Kind: "StatefulSet"}: func(u *unstructured.Unstructured) verdict { return statefulSet(read[appsv1.StatefulSet](u)) },
		{Group: appsv1.GroupName, Kind: "DaemonSet"}:   func(u *unstructured.Unstructured) verdict { return daemonSet(read[appsv1.DaemonSet](u)) },
	}
}

func deployment(d appsv1.Deployment) verdict {
	if d.Generation > d.Status.ObservedGeneration {
		return unseen(d.Generation)
	}
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentProgressing && c.Reason == "ProgressDeadlineExceeded" {
			return failed(c.Reason, "exceeded its progress deadline: %s", c.Message)
		}
	}
	v := pods(replicas(d.Spec.Replicas), d.Status.UpdatedReplicas, d.Status.AvailableReplicas)
	if old := d.Status.Replicas - d.Status.UpdatedReplicas; v.Well && old > 0 {
		v = notYet("%d old pods are still there", old)
	}
	if !v.Well && d.Spec.Paused {
		v.Why += " (it is paused)"
	}
	return v
}

func statefulSet(s appsv1.StatefulSet) verdict {
	if s.Generation > s.Status.ObservedGeneration {
		return unseen(s.Generation)
	}
	wanted := replicas(s.Spec.Replicas)
	updated := s.Status.UpdatedReplicas + min(partition(s), wanted) // pods below the partition stay as they are
	if s.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType {
		updated = wanted
	}
	return pods(wanted, updated, s.Status.AvailableReplicas)
}

func daemonSet(d appsv1.DaemonSet) verdict {
	if d.Generation > d.Status.ObservedGeneration {
		return unseen(d.Generation)
	}
	wanted, updated := d.Status.DesiredNumberScheduled, d.Status.UpdatedNumberScheduled
	if d.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType {
		updated = wanted
	}
	return pods(wanted, updated, d.Status.NumberAvailable)
}

func unseen(generation int64) verdict {
	return notYet("its controller has not seen generation %d yet", generation)
}

func pods(wanted, updated, available int32) verdict {
	switch {
	case updated < wanted:
		return notYet("%d of %d pods are updated", updated, wanted)
	case available < wanted:
		return notYet("%d of %d pods are available", available, wanted)
	}
	return well("%d pods are updated and available", wanted)
}

// replicas is 1 by default, as in the API server.
func replicas(n *int32) int32 {
	if n == nil {
		return 1
	}
	return *n
}

func partition(s appsv1.StatefulSet) int32 {
	if u := s.Spec.UpdateStrategy.RollingUpdate; u != nil && u.Partition != nil {
		return *u.Partition
	}
	return 0
}

// podTemplate is the path of the template for these kinds.
func podTemplate(u *unstructured.Unstructured) corev1.PodTemplateSpec {
	return read[struct {
		Spec struct {
			Template corev1.PodTemplateSpec `json:"template"`
		} `json:"spec"`
	}](u).Spec.Template
}
