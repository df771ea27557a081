package store

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/queue"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// NodeTurns are the turns of a plan's rollouts that its ledger knows.
func (l *Ledgers) NodeTurns(ctx context.Context, pk types.NamespacedName, uid string) (run.NodeTurns, error) {
	cm, err := l.kube.CoreV1().ConfigMaps(pk.Namespace).Get(ctx, annotations.NodeTurnsName(pk.Name, uid), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read which nodes plan %s has been through: %w", pk, err)
	}
	turns, broken := annotations.ReadNodeTurns(cm, uid)
	if broken != nil { // it says no more than who comes first: a rollout goes on without
		return nil, nil //nolint:nilerr // see above
	}
	return turns, nil
}

// NoteTurns takes turns into a plan's ledger. Doing it twice changes nothing.
func (l *Ledgers) NoteTurns(ctx context.Context, pk types.NamespacedName, uid string, turns run.NodeTurns, gone func(run.NodeTurns) map[string]bool) error {
	maps := l.kube.CoreV1().ConfigMaps(pk.Namespace)
	cm, err := maps.Get(ctx, annotations.NodeTurnsName(pk.Name, uid), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		if cm, err = annotations.NodeTurnsObject(pk.Namespace, pk.Name, uid, turns.With(nil, func(string) bool { return false })); err == nil {
			_, err = maps.Create(ctx, cm, client.CreateOptions())
		}
	case err == nil:
		known, broken := annotations.ReadNodeTurns(cm, uid)
		if errors.Is(broken, annotations.ErrForeign) {
			return broken
		} // what cannot be read is written anew: it says no more than who comes first
		left := gone(known)
		if cm, err = annotations.WithNodeTurns(cm, uid, known.With(turns, func(name string) bool { return left[name] })); err == nil {
			_, err = maps.Update(ctx, cm, client.UpdateOptions())
		}
	}
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return queue.ErrConflict
	}
	if err != nil {
		return fmt.Errorf("write which nodes plan %s has been through: %w", pk, err)
	}
	return nil
}
