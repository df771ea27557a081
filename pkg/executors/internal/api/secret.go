package api

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
)

// ReadSecret reads a Secret of the plan's namespace as the plan's account.
func ReadSecret(ctx context.Context, call executors.Call, name string) (*corev1.Secret, error) {
	action := Action{Verb: "get", Resource: corev1.SchemeGroupVersion.WithResource("secrets"), Namespace: call.Plan.Namespace, Name: name}
	s, err := call.Clients.Kube.CoreV1().Secrets(call.Plan.Namespace).Get(ctx, name, metav1.GetOptions{})
	return s, Failed(action, err)
}
