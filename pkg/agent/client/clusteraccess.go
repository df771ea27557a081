package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// ClusterAccess is a cluster as a plan's account reaches it: its own, or another by a connector.
type ClusterAccess struct {
	Account  Account
	Clients  executors.Clients
	accounts *Impersonator
}

// NotReachedError is what keeps another cluster from being reached.
type NotReachedError struct{ Outcome executors.Outcome }

func (e *NotReachedError) Error() string { return e.Outcome.Message }

// ClusterIdentity tells clusters and connections to them apart; the zero value is the plan's own
// cluster.
type ClusterIdentity struct {
	Name       string // of the connector
	Server     string // the same for the same server, whatever the credentials
	Connection string // the same for the same server with the same credentials
}

// Access is how an account reaches the objects of a cluster, with a run for that run; nil is
// the plan's own.
func (a *Impersonator) Access(ctx context.Context, w Account, run string, on *Cluster) (ClusterAccess, error) {
	if on == nil {
		clients, err := a.Clients(w, run)
		return a.With(w, clients), err
	}
	clients, failure := a.Remote(ctx, w, *on)
	if failure != nil {
		return ClusterAccess{}, &NotReachedError{*failure}
	}
	return a.With(w, clients), nil
}

// With is a cluster that an account reaches already.
func (a *Impersonator) With(w Account, clients executors.Clients) ClusterAccess {
	return ClusterAccess{Account: w, Clients: clients, accounts: a}
}

// Where is the cluster that is reached.
func (r ClusterAccess) Where() ClusterIdentity {
	return ClusterIdentity{Name: r.Clients.Cluster, Server: r.Clients.Server, Connection: r.Clients.Connection}
}

// UID tells an object apart from all others of all clusters, see executors.Mark.
func (e ClusterIdentity) UID(uid types.UID) types.UID {
	return types.UID(executors.ObjectID(string(uid), e.Server))
}

// User is as whom it is reached, as the API server names it; Actor is the same for people.
func (r ClusterAccess) User() string { return r.call().User() }

// Actor is as whom it is reached, for people.
func (r ClusterAccess) Actor() string {
	if r.Clients.Cluster == "" {
		return r.Account.User()
	}
	return r.call().Actor()
}

func (r ClusterAccess) call() executors.Call {
	return executors.Call{Plan: executors.PlanRef{Namespace: r.Account.Namespace, Account: r.Account.Name}, Clients: r.Clients}
}

// Resolve finds the resource of a kind.
func (r ClusterAccess) Resolve(apiVersion, kind string) (*meta.RESTMapping, error) {
	if r.Clients.Cluster == "" {
		return r.accounts.Resolve(apiVersion, kind)
	}
	mapping, err := executors.Mapping(r.Clients.Mapper, apiVersion, kind)
	if meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("kind %s of %s is not known to K8SCluster %s: %w", kind, apiVersion, r.Clients.Cluster, err)
	}
	if err != nil {
		return nil, fmt.Errorf("look up kind %s of %s on K8SCluster %s: %w", kind, apiVersion, r.Clients.Cluster, err)
	}
	return mapping, nil
}

// Resource reaches the objects of a kind, in the namespace of the plan's name.
func (r ClusterAccess) Resource(ref plan.ObjectRef) (dynamic.ResourceInterface, error) {
	mapping, err := r.Resolve(ref.APIVersion, ref.Kind)
	if err != nil {
		return nil, err
	}
	resource := r.Clients.Dynamic.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		return resource.Namespace(r.Account.Namespace), nil
	}
	return resource, nil
}

// ObjectGone says whether a 404 means that an object is not there. One that names no
// object speaks of its kind, and an API server that starts says so of kinds that it
// has not read yet: it is asked once more.
func (r ClusterAccess) ObjectGone(err error, kind schema.GroupVersionKind) (bool, error) {
	if namesObject(err) {
		return true, nil
	}
	if r.Clients.Cluster == "" {
		return r.accounts.KindGone(kind)
	}
	served, asked := liveMapper{kube: r.Clients.Kube}.serves(kind)
	return asked == nil && !served, asked
}

// Lacks says whether the API server serves a kind, and its objects not for a verb: a Binding can be
// created, and neither read nor watched.
func (r ClusterAccess) Lacks(kind schema.GroupVersionKind, verb string) (bool, error) {
	list, err := r.Clients.Kube.Discovery().ServerResourcesForGroupVersion(kind.GroupVersion().String())
	if err != nil {
		return false, fmt.Errorf("ask how %s is served: %w", kind, err)
	}
	i := slices.IndexFunc(list.APIResources, func(one metav1.APIResource) bool { return one.Kind == kind.Kind && !strings.Contains(one.Name, "/") })
	return i >= 0 && !slices.Contains(list.APIResources[i].Verbs, verb), nil
}

// Refused says whether the right that a trigger label needs is missing.
func (r ClusterAccess) Refused(ctx context.Context, verb string, gvr schema.GroupVersionResource, name string) (string, error) {
	if r.Clients.Cluster == "" {
		return r.accounts.Refused(ctx, r.Account, verb, gvr, name)
	}
	question := fmt.Sprintf("%s may %s %s %s by %s", r.Account.User(), verb, gvr.GroupResource(), name, r.Clients.Connection)
	return r.accounts.ask(question, func() (string, error) {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: r.Account.Namespace, Verb: verb, Group: gvr.Group, Version: gvr.Version, Resource: gvr.Resource, Name: name,
		}}}
		got, err := r.Clients.Kube.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if err != nil || got.Status.Allowed {
			return "", err
		}
		return fmt.Sprintf("%s may not %s %s %q in namespace %s there, so its trigger label could not be taken away: grant it that right", r.Actor(), verb, gvr.GroupResource(), name, r.Account.Namespace), nil
	})
}

// Explain says of an error what lets the agent act as the account, where it may not.
func (r ClusterAccess) Explain(err error) error {
	if r.Clients.Cluster == "" && executors.MayNotImpersonate(err) {
		return mayNotAct(r.Account, err)
	}
	return err
}

// Connected are the clients of a connection to another cluster that is kept. Whoever needs
// it has reached it a moment ago; one that was forgotten is made anew by the next.
func (a *Impersonator) Connected(connection string) (executors.Clients, error) {
	one, have := a.remotes.get(connection, a.now())
	if !have {
		return executors.Clients{}, errors.New("the connection to its cluster is opened again")
	}
	return one.clients, nil
}

// namesObject says whether a 404 speaks of an object, and not of its kind.
func namesObject(err error) bool {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return false
	}
	details := answer.Status().Details
	return details != nil && details.Name != ""
}
