package store

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

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
	if broken != nil || l.keys.Check(cm) != nil { // it says no more than who comes first: a rollout goes on without
		return nil, nil //nolint:nilerr // see above
	}
	return turns, nil
}

// NoteTurns takes turns into a plan's ledger. Doing it twice changes nothing.
func (l *Ledgers) NoteTurns(ctx context.Context, pk types.NamespacedName, uid string, turns run.NodeTurns, gone func(run.NodeTurns) map[string]bool) error {
	have, err := l.kube.CoreV1().ConfigMaps(pk.Namespace).Get(ctx, annotations.NodeTurnsName(pk.Name, uid), metav1.GetOptions{})
	var known run.NodeTurns
	left := map[string]bool{}
	switch {
	case apierrors.IsNotFound(err):
		have, err = nil, nil
	case err == nil && !annotations.IsLedger(have):
		_, err = annotations.ReadNodeTurns(have, uid)
	case err == nil && l.keys.Check(have) == nil: // what does not count, or cannot be read, is written anew: it says no more than who comes first
		known, _ = annotations.ReadNodeTurns(have, uid)
		left = gone(known)
	}
	var cm *corev1.ConfigMap
	if err == nil {
		cm, err = annotations.NodeTurnsObject(pk.Namespace, pk.Name, uid, known.With(turns, func(name string) bool { return left[name] }))
	}
	if err == nil {
		_, err = l.replace(ctx, have, cm)
	}
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return queue.ErrConflict
	}
	if err != nil {
		return fmt.Errorf("write which nodes plan %s has been through: %w", pk, err)
	}
	return nil
}
