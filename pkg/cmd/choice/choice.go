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
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/remedy"
)

// Chosen says how objects were chosen: by their names or by their labels, in one namespace or in all.
type Chosen struct{ ByName, Everywhere bool }

// Each does something with each of several things, as kubectl does: where one fails, the others go on.
// Errors and suggested commands name the namespace of each where objects of all namespaces are meant.
// Several errors have the exit code that all of them have, or else 1; an end by --timeout or Ctrl-C has its own.
func Each[T any](ctx context.Context, c *factory.Factory, by Chosen, things []T, object func(T) metav1.Object, do func(T) error) error {
	home := c.Elsewhere
	defer func() { c.Elsewhere = home }()
	var failed []error
	for _, thing := range things {
		o := object(thing)
		if by.Everywhere {
			c.Elsewhere = o.GetNamespace()
		}
		err := do(thing)
		switch {
		case err == nil:
			continue
		case ctx.Err() != nil: // interrupted, or timed out
			return ended(ctx, failed, err)
		}
		failed = append(failed, by.naming(o, err, len(things)))
	}
	if len(failed) < 2 {
		return errors.Join(failed...)
	}
	return &exit.Error{Code: codeOf(failed), Err: errors.Join(failed...)}
}

// ended is the error where --timeout or Ctrl-C ended the command. Its exit code says so, whatever failed before.
func ended(ctx context.Context, failed []error, err error) error {
	code, why := exit.CodeInterrupted, "interrupted"
	if errors.Is(context.Cause(ctx), remedy.TimeoutPassed) {
		code, why = exit.CodeTimeout, "--timeout passed"
	}
	if known := new(exit.Error); !errors.As(err, &known) {
		err = fmt.Errorf("%s: %w", why, err)
	}
	return &exit.Error{Code: code, Err: errors.Join(append(failed, err)...)}
}

// naming is an error that names its object; that of the only one that was named goes without.
func (by Chosen) naming(o metav1.Object, err error, of int) error {
	name := Name(o, by.Everywhere)
	switch {
	case strings.Contains(err.Error(), name), by.ByName && of == 1:
		return err
	case by.ByName:
		return fmt.Errorf("%s: %w", name, err)
	}
	return fmt.Errorf("plan %s: %w", name, err)
}

// codeOf is the exit code that all errors have, or else that of any error.
func codeOf(failed []error) int {
	code := exit.CodeError
	for i, err := range failed {
		var known *exit.Error
		if !errors.As(err, &known) || i > 0 && known.Code != code {
			return exit.CodeError
		}
		code = known.Code
	}
	return code
}

// Object is a plan as an object.
func Object(plan *corev1.ConfigMap) metav1.Object { return plan }

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
