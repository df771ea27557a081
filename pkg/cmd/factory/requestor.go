package factory

import (
	"context"
	"errors"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
)

// Requestor is the requestor: the name that was given, or cli.<user>.
func (k *Cluster) Requestor(ctx context.Context, given string) (string, error) {
	if given != "" {
		return given, nil
	}
	user := k.Actor(ctx)
	if user == "" {
		return "", errors.New("the API server does not say who you are: name the requestor with --requestor")
	}
	return view.RequestorName(user), nil
}
