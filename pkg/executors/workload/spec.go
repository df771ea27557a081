package workload

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/api"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// keepFinished is for how long a finished Job is kept by default (a guess: a night and the morning
// after).
const keepFinished = int32(24 * 60 * 60)

// nobody is the user of the image form: images without a user run as root, which the restricted pod
// security standard refuses.
const nobody = int64(65532)

// jobOf is the Job of this attempt.
func jobOf(call executors.Call, p *plan.JobProperties) (*batchv1.Job, error) {
	spec := simpleSpec(p)
	if p.Template != nil {
		if at := document.HugeQuantity(p.Template); at != "" {
			return nil, api.Refuse(executors.ReasonInvalid, "template: %s is no quantity that can be read: it is too long, or its exponent is", at)
		}
		spec = batchv1.JobSpec{}
		err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(p.Template, &spec, true)
		if err != nil {
			return nil, api.Refuse(executors.ReasonInvalid, "template: is no Job's spec: %s", err)
		}
	} else if p.Image == "" {
		return nil, api.Refuse(executors.ReasonInvalid, "image is missing, and there is no template")
	}
	pod := &spec.Template.Spec
	if pod.ServiceAccountName == "" && call.Clients.Cluster == "" { // another cluster may lack that account, or give it more rights
		pod.ServiceAccountName = call.Plan.Account // its pods have the rights of the step
	}
	if call.Nodes.Current != "" && pod.NodeName == "" && pod.NodeSelector == nil && pod.Affinity == nil {
		pod.NodeName = call.Nodes.Current // bypasses the scheduler, which respects the cordon
	}
	if pod.RestartPolicy == "" {
		pod.RestartPolicy = corev1.RestartPolicyNever
	}
	if spec.TTLSecondsAfterFinished == nil {
		ttl := keepFinished
		spec.TTLSecondsAfterFinished = &ttl
	}
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: call.Plan.Namespace, Name: jobName(call),
			Labels:      map[string]string{annotations.LabelPlan: call.Plan.Name, annotations.LabelStep: api.StepName(call)},
			Annotations: map[string]string{annotations.JobOf: api.Identity(call)},
		},
		Spec: spec,
	}, nil
}

// simpleSpec is one container that runs once, as the restricted pod security standard requires. For
// anything else there are templates.
func simpleSpec(p *plan.JobProperties) batchv1.JobSpec {
	no, yes, user, retries := false, true, nobody, int32(0)
	return batchv1.JobSpec{
		BackoffLimit: &retries,
		Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: &yes, RunAsUser: &user,
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name: "step", Image: p.Image, Command: p.Command, Args: p.Args,
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: &no,
					Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
		}},
	}
}
