package harness

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// ForgedRun is a run in a namespace as somebody writes it who may write ConfigMaps there, and
// knows what the agent's own look like. The plan may be another namespace's.
func ForgedRun(namespace string, of *corev1.ConfigMap, token string, steps ...plan.Step) run.Run {
	asked := run.Request{Kind: run.ByToken, Token: token, At: of.CreationTimestamp.UTC()}
	return run.Run{
		APIVersion: document.APIVersion, Kind: "Run", Name: annotations.RunName(of.Name, string(of.UID), asked), Namespace: namespace,
		Plan: of.Name, PlanUID: string(of.UID), Request: asked, Spec: plan.Spec{Steps: steps}.Defaulted(),
	}
}

// Keyring is the agent's, as an admin of its namespace may read it.
func Keyring(ctx context.Context, admin kubernetes.Interface) (annotations.Keyring, error) {
	secret, err := admin.CoreV1().Secrets(annotations.DefaultNamespace).Get(ctx, annotations.KeyName, metav1.GetOptions{})
	if err != nil {
		return annotations.Keyring{}, err
	}
	return annotations.ReadKeyring(secret)
}
