package targets

import (
	"context"
	"errors"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// errUnsure says that an account may not even read the target that was read with it: an API
// server that has just begun says so to everybody.
var errUnsure = errors.New("the account may not read the target: its rights are not known yet") //nolint:gochecknoglobals // a sentinel

// MayChange says whether an account may change a target, which others may be at as well. One in
// the plan's own namespace is nobody else's, and is not asked for. A no counts only from an API
// server that knows that the account may read it.
func MayChange(ctx context.Context, from client.ClusterAccess, ref plan.ObjectRef) (bool, error) {
	mapping, err := from.Resolve(ref.APIVersion, ref.Kind)
	if err != nil || mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		return true, err
	}
	right := authorizationv1.ResourceAttributes{Group: mapping.Resource.Group, Version: mapping.Resource.Version, Resource: mapping.Resource.Resource, Name: ref.Name}
	for _, right.Verb = range []string{"patch", "update", "delete"} {
		if may, err := executors.Allowed(ctx, from.Clients.Kube, right); may || err != nil {
			return true, err
		}
	}
	right.Verb = "get"
	reads, err := executors.Allowed(ctx, from.Clients.Kube, right)
	if err == nil && !reads {
		err = errUnsure
	}
	return err != nil, err
}
