package kube

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DaemonSets says whether a DaemonSet exists, and asks for each once.
func DaemonSets(ctx context.Context, from Basic) func(namespace, name string) (bool, error) {
	known := map[string]bool{}
	return func(namespace, name string) (bool, error) {
		at := namespace + "/" + name
		if there, asked := known[at]; asked {
			return there, nil
		}
		_, err := from.AppsV1().DaemonSets(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return false, err
		}
		known[at] = err == nil
		return known[at], nil
	}
}
