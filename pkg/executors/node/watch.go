package node

import (
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/follow"
	"github.com/kubectl-maint/kubectl-maint/pkg/kube"
)

func podsOn(kube kube.Interface, node string, heard func(error)) follow.Source[*corev1.PodList] {
	return follow.Source[*corev1.PodList]{
		List: kube.CoreV1().Pods("").List, Watch: kube.CoreV1().Pods("").Watch, OnAnswer: heard,
		Trim: func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", node).String()
		},
	}
}

func allBudgets(kube kube.Interface, heard func(error)) follow.Source[*policyv1.PodDisruptionBudgetList] {
	in := kube.PolicyV1().PodDisruptionBudgets("")
	return follow.Source[*policyv1.PodDisruptionBudgetList]{List: in.List, Watch: in.Watch, OnAnswer: heard, Trim: func(*metav1.ListOptions) {}}
}

func allAttachments(kube kube.Interface, heard func(error)) follow.Source[*storagev1.VolumeAttachmentList] {
	in := kube.StorageV1().VolumeAttachments()
	return follow.Source[*storagev1.VolumeAttachmentList]{List: in.List, Watch: in.Watch, OnAnswer: heard, Small: true, Trim: func(*metav1.ListOptions) {}}
}
