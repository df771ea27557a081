package keys

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
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
// first, and then by the whole object. left are those that could not be signed.
func (s *Store) signAll(ctx context.Context, due func(metav1.Object) bool) (left int64, err error) {
	var signed, refused atomic.Int64
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	listed := s.each(inner, func(o *metav1.PartialObjectMetadata) error {
		if due(o) {
			group.Go(func() error {
				did, err := s.signOne(inner, o.Namespace, o.Name, due)
				switch {
				case did:
					signed.Add(1)
				case isRefused(err):
					refused.Add(1)
					s.Log.Warn("an object of the agent's could not be signed, and does not count", "object", o.Namespace+"/"+o.Name, "error", err.Error())
					return nil
				}
				return err
			})
		}
		return nil
	})
	if err := group.Wait(); err != nil {
		return 0, err
	}
	if listed != nil {
		return 0, listed
	}
	if n := signed.Load(); n > 0 {
		s.Log.Info("signed what was written before", "objects", n, "key", s.ID())
	}
	return refused.Load(), nil
}

// isRefused says whether one object cannot be signed while all others can: it is immutable, admission
// refuses it, or somebody writes it all the time. It stays as it is, and is told where it is read. One
// tenant's object must not keep the agent of all from beginning.
func isRefused(err error) bool {
	return err != nil && (client.IsRejectedForGood(err) || executors.RefusalOf(err, "") == executors.RefusedByAdmission || apierrors.IsConflict(err))
}

// signBackoff repeats a signature that lost against other writers, for some seconds (guesses).
func signBackoff() wait.Backoff {
	return wait.Backoff{Steps: 8, Duration: 10 * time.Millisecond, Factor: 2.5, Jitter: 0.2}
}

// signOne signs an object as it is now, if it still is to be signed.
func (s *Store) signOne(ctx context.Context, namespace, name string, due func(metav1.Object) bool) (did bool, err error) {
	maps := s.Kube.CoreV1().ConfigMaps(namespace)
	err = retry.RetryOnConflict(signBackoff(), func() error {
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
	if err == nil || apierrors.IsNotFound(err) {
		return did, nil
	}
	return false, fmt.Errorf("sign %s/%s: %w", namespace, name, err)
}
