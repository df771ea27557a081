package workload

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/api"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// keepFinished is how long an ended Job stays to be looked at, where the
// template does not say. A guess: a night and the morning after.
const keepFinished = int32(24 * 60 * 60)

// nobody is the user that the image form runs as: images that say no user run
// as root otherwise, which the restricted pod security standard refuses.
const nobody = int64(65532)

// jobOf is the Job of this attempt.
func jobOf(call executors.Call, p *plan.JobProperties) (*batchv1.Job, error) {
	spec := simpleSpec(p)
	if p.Template != nil {
		spec = batchv1.JobSpec{}
		err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(p.Template, &spec, true)
		if err != nil {
			return nil, api.Refuse(executors.ReasonInvalid, "template: is no Job's spec: %s", err)
		}
	} else if p.Image == "" {
		return nil, api.Refuse(executors.ReasonInvalid, "image is missing, and there is no template")
	}
	pod := &spec.Template.Spec
	if pod.ServiceAccountName == "" && call.Clients.Cluster == "" { // another cluster may have no such account, or lend it more
		pod.ServiceAccountName = call.Plan.Account // what the step may, its pods may
	}
	if call.Nodes.Current != "" && pod.NodeName == "" && pod.NodeSelector == nil && pod.Affinity == nil {
		pod.NodeName = call.Nodes.Current // past the scheduler, which respects the cordon
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

// simpleSpec is one container that runs once, as the restricted pod security
// standard wants it. Who needs more writes a template.
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
