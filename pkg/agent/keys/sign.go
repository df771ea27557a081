package keys

import (
	"context"
	"fmt"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/kube"
)

// atOnce is how many objects are signed side by side (a guess: an upgrade of 10,000 plans is some
// 40,000 objects).
const atOnce = 8

// unsigned are the objects of an agent that signed nothing, or that went back to a
// version that did not: whatever does not count now. Their metadata does not tell.
func (s *Store) unsigned(o metav1.Object) bool {
	cm, whole := o.(*corev1.ConfigMap)
	return !whole || s.Check(cm) != nil
}

// outdated are those that the key before has signed, and that are as they were signed.
func (s *Store) outdated(o metav1.Object) bool {
	cm, whole := o.(*corev1.ConfigMap)
	return s.keyring().Outdated(o) && (!whole || s.Check(cm) == nil)
}

// each hands over the metadata of the agent's objects.
func (s *Store) each(ctx context.Context, see func(*metav1.PartialObjectMetadata) error) error {
	maps := s.Meta.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace(s.WatchNamespace)
	return kube.EachOf(ctx, func(ctx context.Context, o metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
		list, err := maps.List(ctx, o)
		if err != nil {
			return nil, fmt.Errorf("list what the agent signs: %w", err)
		}
		return list, nil
	}, annotations.SignedKinds(), see)
}

// signAll signs those of the agent's objects that are due. It asks by their metadata
// first, and then by the whole object.
func (s *Store) signAll(ctx context.Context, due func(metav1.Object) bool) error {
	var signed atomic.Int64
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	listed := s.each(inner, func(o *metav1.PartialObjectMetadata) error {
		if due(o) {
			group.Go(func() error {
				did, err := s.signOne(inner, o.Namespace, o.Name, due)
				if did {
					signed.Add(1)
				}
				return err
			})
		}
		return nil
	})
	if err := group.Wait(); err != nil {
		return err
	}
	if listed != nil {
		return listed
	}
	if n := signed.Load(); n > 0 {
		s.Log.Info("signed what was written before", "objects", n, "key", s.ID())
	}
	return nil
}

// signOne signs an object as it is now, if it still is to be signed.
func (s *Store) signOne(ctx context.Context, namespace, name string, due func(metav1.Object) bool) (did bool, err error) {
	maps := s.Kube.CoreV1().ConfigMaps(namespace)
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		cm, err := maps.Get(ctx, name, metav1.GetOptions{})
		if err != nil || !due(cm) {
			return err
		}
		if err := s.Sign(cm); err != nil {
			return err
		}
		_, err = maps.Update(ctx, cm, client.UpdateOptions())
		did = err == nil
		return err
	})
	switch {
	case err == nil || apierrors.IsNotFound(err):
		return did, nil
	case client.IsRejectedForGood(err): // an immutable one: it stays as it is, and is told where it is read
		s.Log.Warn("an object of the agent's could not be signed", "object", namespace+"/"+name, "error", err.Error())
		return false, nil
	}
	return false, fmt.Errorf("sign %s/%s: %w", namespace, name, err)
}
