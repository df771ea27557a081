package factory

import (
	"context"
	"errors"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
)

// Resource is what a name on the command line means: a document or a node.
type Resource struct {
	Document *corev1.ConfigMap
	Node     *corev1.Node
}

// Find finds a document of the namespace, or a node. A kind before the name decides, as in
// plan/NAME and node/NAME; a name that both have is an error.
func (k *Cluster) Find(ctx context.Context, name string, kinds ...string) (Resource, error) {
	if kind, bare := SplitKind(name); kind == KindNode {
		n, err := k.node(ctx, bare)
		return Resource{Node: n}, err
	}
	cm, err := k.Document(ctx, name, kinds...)
	if BareName(name) != name {
		return Resource{Document: cm}, err
	}
	n, nodeErr := k.Kube.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	switch {
	case err != nil && apierrors.IsForbidden(nodeErr):
		return Resource{}, unseenNode(err)
	case err != nil && apierrors.IsNotFound(nodeErr):
		return Resource{}, k.NodeMeant(ctx, name, err)
	case nodeErr != nil: // a user who may not read nodes means a document
		return Resource{Document: cm}, err
	case err != nil && unknown(err): // it may be both
		return Resource{}, err
	case err != nil:
		return Resource{Node: n}, nil
	}
	kind := cm.Labels[annotations.LabelKind]
	return Resource{}, exit.Errorf(exit.CodeUsage, "%s is a %s in namespace %s, and a node: write %s/%s or node/%s", name, view.KindWord(kind), cm.Namespace, kind, cm.Name, name)
}

// unknown says whether an error leaves open if there is such a document: the API server did not
// answer, or with a fault of its own. Who may not read documents means none.
func unknown(err error) bool {
	var sent *url.Error
	var status apierrors.APIStatus
	return errors.As(err, &sent) || errors.As(err, &status) && !apierrors.IsForbidden(err)
}

// unseenNode adds to a not-found error that nodes could not be read. Other errors stay as they are.
func unseenNode(err error) error {
	if none, is := nothing(err); is {
		return none + " (you may not read nodes: whether it is one is not known)"
	}
	return err
}

// nothing is the error of a name that nothing has or had: a run that is gone is known.
func nothing(err error) (none NotFoundError, is bool) {
	is = errors.As(err, &none) && !errors.As(err, new(*GoneRunError))
	return none, is
}

// NodeMeant adds to a not-found error the node that was probably meant, or that there is none. Other
// errors stay as they are.
func (k *Cluster) NodeMeant(ctx context.Context, name string, err error) error {
	none, is := nothing(err)
	if !is {
		return err
	}
	near, ok := k.nearNode(ctx, name)
	switch {
	case ok:
		return none + NotFoundError("; or did you mean node/"+near+"?")
	case strings.HasSuffix(string(none), "?"): // another name was found
		return err
	}
	return none + "; nor is there a node of that name"
}

// SplitKind splits KIND/NAME; plain names have no kind.
func SplitKind(text string) (kind, name string) {
	kind, name, found := strings.Cut(text, "/")
	if !found {
		return "", text
	}
	if kind == "nodes" || kind == "no" {
		kind = "node"
	}
	return kind, name
}
