// Package choice holds what commands share that act on many plans, chosen by their labels.
package choice

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
)

// Each does something with each of n things; do returns the name of the thing, too. Where one fails, the
// others go on unless that stops it.
func Each(ctx context.Context, n int, stops bool, do func(int) (string, error)) error {
	var failed []error
	for i := range n {
		name, err := do(i)
		switch {
		case err == nil:
			continue
		case stops || ctx.Err() != nil:
			return errors.Join(append(failed, err)...)
		case !strings.Contains(err.Error(), name):
			err = fmt.Errorf("plan %s: %w", name, err)
		}
		failed = append(failed, err)
	}
	if len(failed) < 2 {
		return errors.Join(failed...)
	}
	return &exit.Error{Code: exit.CodeError, Err: errors.Join(failed...)}
}

// Plans are the plans of both kinds that have some labels; at least one.
func Plans(ctx context.Context, c *factory.Factory, k *factory.Cluster, namespace, selector string) ([]*corev1.ConfigMap, error) {
	plans, err := k.Plans(ctx, namespace, selector)
	if err != nil {
		return nil, err
	}
	sleepers, err := k.HibernatePlans(ctx, namespace, selector)
	if err != nil {
		return nil, err
	}
	if plans = append(plans, sleepers...); len(plans) > 0 {
		return plans, nil
	}
	where := "any namespace"
	if namespace != metav1.NamespaceAll {
		where = annotations.NamespaceNamed(namespace)
	}
	return nil, fmt.Errorf("no plan in %s has the labels %s; see %s", where, selector, c.Suggest().List())
}

// Name is a plan's name, with its namespace where plans of all namespaces are meant.
func Name(plan metav1.Object, everywhere bool) string {
	if everywhere {
		return plan.GetNamespace() + "/" + plan.GetName()
	}
	return plan.GetName()
}
