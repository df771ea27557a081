package factory

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/agentconfig"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/remedy"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
)

// Configuration is the agent's configuration; fault: why it is invalid.
func Configuration(cm *corev1.ConfigMap) (spec *agentconfig.AgentConfig, fault string) {
	text, missing := annotations.DocumentText(cm)
	if missing != nil {
		return nil, missing.String()
	}
	parsed, faults := agentconfig.Parse([]byte(text))
	if len(faults) > 0 {
		return nil, faults[0].String() + view.AndMore(len(faults)-1)
	}
	return &parsed, ""
}

// Unlabelled says that the agent does not find its configuration for want of a label, and what helps;
// empty: it does.
func (k *Cluster) Unlabelled(cm *corev1.ConfigMap) string {
	return remedy.Unlabelled(k.suggest, cm.Namespace, cm.Labels)
}

// InvalidConfiguration says that the agent's configuration is invalid or not found by the agent, and what
// follows; empty: it is in order, or missing, or the user may not read it.
func (k *Cluster) InvalidConfiguration(ctx context.Context, namespace string) string {
	cm, err := k.ConfigMaps(namespace).Get(ctx, annotations.AgentConfigName, metav1.GetOptions{})
	if err != nil {
		return ""
	}
	if lacks := k.Unlabelled(cm); lacks != "" {
		return lacks
	}
	_, fault := Configuration(cm)
	if fault == "" {
		return ""
	}
	return fmt.Sprintf("the agent's configuration, ConfigMap %s/%s, is invalid: %s; the previous one stays in force until the agent restarts, and after a restart the agent does nothing", namespace, annotations.AgentConfigName, document.Cut(fault, document.MaxMessage))
}
