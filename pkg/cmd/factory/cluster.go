package factory

import (
	"cmp"
	"context"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/remedy"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/serverstate"
	"github.com/kubectl-maint/kubectl-maint/pkg/kube"
)

// Cluster is the API server of the kubeconfig, and the namespace of the command line.
type Cluster struct {
	Kube      kube.Basic
	Metadata  metadata.Interface // reads metadata only
	Namespace string
	clock     *serverstate.State // nil: nothing is known, as of clients that were given
	suggest   remedy.Commands
	actors    *actorsOf
	Warn      func(string)    // prints a warning; nil: nobody listens
	seen      *seenNamespaces // nil: they are read each time
	Cached    *kube.Cached    // nil: Metadata has all of it

	// As makes clients that impersonate somebody; nil: they are made from the kubeconfig.
	As func(user string) *Cluster
	// Broken is told why a watch is interrupted; nil: nobody listens.
	Broken func(error)
}

// In is the same cluster with another namespace.
func (k *Cluster) In(namespace string) *Cluster {
	out := *k
	if namespace != "" {
		out.Namespace = namespace
	}
	return &out
}

// Whole is the same cluster with all namespaces (empty), where they are meant.
func (k *Cluster) Whole(all bool) *Cluster {
	out := *k
	if all {
		out.Namespace = metav1.NamespaceAll
	}
	return &out
}

// commands are the commands that messages suggest.
func (k *Cluster) commands() remedy.Commands {
	if k.suggest.Name == "" { // clients were given
		return remedy.Commands{Name: "kubectl maint"}
	}
	return k.suggest
}

// Names are those of objects with some labels, as the API server's cache has them: of thousands a small
// answer.
func (k *Cluster) Names(ctx context.Context, resource, namespace, selector string) ([]string, error) {
	if k.Cached != nil {
		return k.Cached.Names(ctx, resource, namespace, selector)
	}
	list, err := k.Metadata.Resource(schema.GroupVersionResource{Version: "v1", Resource: resource}).Namespace(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector, ResourceVersion: "0"})
	if err != nil {
		return nil, err
	}
	out := make([]string, len(list.Items))
	for i := range list.Items {
		out[i] = list.Items[i].Name
	}
	return out, nil
}

// server is what is known of how the API server answers; nothing where clients were given.
func (k *Cluster) server() *serverstate.State { return cmp.Or(k.clock, &serverstate.State{}) }

// Reached says whether the API server has answered this command once, whatever it does now.
func (k *Cluster) Reached() bool { return k.server().Reached() }

// Skew is how far the API server's clock is ahead of ours.
func (k *Cluster) Skew() time.Duration { return k.server().Skew() }

// ConfigMaps is the client for a namespace, or for all where it is empty.
func (k *Cluster) ConfigMaps(namespace string) typedcorev1.ConfigMapInterface {
	return k.Kube.CoreV1().ConfigMaps(namespace)
}

// Actor is the user name by which the API server knows us; empty where it does not say.
func (k *Cluster) Actor(ctx context.Context) string {
	review, err := k.Kube.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return "" // a missing actor is shown as unverified, like a false one
	}
	return review.Status.UserInfo.Username
}

// Explain adds what a person can do to an error of the API server.
func (k *Cluster) Explain(doing string, err error) error { return k.commands().Explain(doing, err) }

// ReadError is Explain for reading documents, in a namespace or, where it is empty, in all. Where a
// right is missing, it says what to ask for, or where to look instead.
func (k *Cluster) ReadError(doing, namespace string, err error) error {
	out := k.Explain(doing, err)
	switch {
	case !apierrors.IsForbidden(err):
		return out
	case namespace == "":
		return exit.WithHelp(out, "-n NAMESPACE asks for one namespace alone")
	}
	return exit.WithHelp(out, exit.RightBy("the ClusterRole view", namespace, k.canI(namespace)))
}

// WriteError is Explain for a write, or for what only who writes reads, in a namespace or, where it is
// empty, in the whole cluster. Where a right is missing, it says which role has it.
func (k *Cluster) WriteError(doing, verb, namespace string, err error) error {
	return exit.NeedsRight(k.Explain(doing, err), verb, namespace, k.canI(namespace))
}

// canI lists what somebody may do in a namespace, or, where it is empty, in that of the context.
func (k *Cluster) canI(namespace string) string { return k.commands().In(namespace).CanI() }

// unconfigured is client-go's address of the API server without any configuration.
const unconfigured = "http://localhost:8080"
