package cmd

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

// thing is what a name on the command line means: a document of ours, or a node.
type thing struct {
	document *corev1.ConfigMap
	node     *corev1.Node
}

// thing finds a document of the namespace, or a node. What is before the name
// decides, as in plan/NAME and node/NAME; a name that is both is not guessed at.
func (k *cluster) thing(ctx context.Context, name string, kinds ...string) (thing, error) {
	if kind, bare := splitKind(name); kind == kindNode {
		n, err := k.node(ctx, bare)
		return thing{node: n}, err
	}
	cm, err := k.document(ctx, name, kinds...)
	if bareName(name) != name {
		return thing{document: cm}, err
	}
	n, nodeErr := k.kube.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	switch {
	case nodeErr != nil: // who may not read nodes means none
		return thing{document: cm}, err
	case err != nil:
		return thing{node: n}, nil
	}
	kind := strings.ReplaceAll(cm.Labels[annotations.LabelKind], "-", " ")
	return thing{}, exit(CodeUsage, "%s is a %s in namespace %s, and a node: write %s/%s or node/%s", name, kind, cm.Namespace, kind, cm.Name, name)
}
