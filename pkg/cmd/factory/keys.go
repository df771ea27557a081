package factory

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

// Keyring reads the agent's key: whoever may read it is trusted to write in the agent's name.
func (c *Factory) Keyring(ctx context.Context, k *Cluster) (annotations.Keyring, error) {
	state, err := c.Agent(ctx, k)
	namespace := state.Namespace
	if err != nil && namespace == "" {
		namespace = annotations.DefaultNamespace
	}
	secret, err := k.Kube.CoreV1().Secrets(namespace).Get(ctx, annotations.KeyName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return annotations.Keyring{}, fmt.Errorf("there is no Secret %s/%s: the agent makes it when it first leads", namespace, annotations.KeyName)
	}
	if err != nil {
		return annotations.Keyring{}, k.WriteError("read the agent's key", "get", namespace, err)
	}
	return annotations.ReadKeyring(secret)
}

// Sign signs a record of the agent's and writes it, on the version that was read: else the API
// server reports a conflict.
func (k *Cluster) Sign(ctx context.Context, ring annotations.Keyring, cm *corev1.ConfigMap, dry *DryRun) error {
	if err := ring.Sign(cm); err != nil {
		return err
	}
	if dry.Client() {
		dry.Wrote(cm)
		return nil
	}
	written, err := k.ConfigMaps(cm.Namespace).Update(ctx, cm, metav1.UpdateOptions{FieldManager: annotations.ManagerCLI, DryRun: dry.Options().DryRun})
	if err == nil {
		dry.Wrote(written)
	}
	return err
}
