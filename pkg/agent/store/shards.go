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
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
)

// readShards reads the first n shards of a plan's marks. Where one is missing it
// says so, as where the agent has not signed it: what it held is not known any more.
func (l *Ledgers) readShards(ctx context.Context, pk types.NamespacedName, uid string, n int) (objects []*corev1.ConfigMap, shards []ledger.Shard, missing bool, err error) {
	for i := range n {
		cm, err := l.kube.CoreV1().ConfigMaps(pk.Namespace).Get(ctx, annotations.ShardName(pk.Name, uid, i), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil, nil, true, nil
		}
		if err != nil {
			return nil, nil, false, fmt.Errorf("read what plan %s has seen: %w", pk, err)
		}
		if forged := l.keys.CheckKind(cm, annotations.KindLedger); forged != nil {
			l.forged(pk, forged)
			return nil, nil, true, nil
		}
		shard, err := annotations.ReadShard(cm, uid)
		if err != nil {
			return nil, nil, false, err
		}
		objects, shards = append(objects, cm), append(shards, shard)
	}
	return objects, shards, false, nil
}

// Checkpoints are what a ledger and its shards know of each of its started rules. A
// ledger that lost a shard begins anew: what is there is recorded, and nothing
// runs for it.
func (l *Ledgers) Checkpoints(ctx context.Context, pk types.NamespacedName, uid string, led ledger.Ledger) (map[string]map[string]ledger.Checkpoint, bool, error) {
	_, shards, missing, err := l.readShards(ctx, pk, uid, led.Shards)
	if err != nil {
		return nil, false, err
	}
	if missing {
		return nil, true, l.Edit(ctx, pk, uid, func(led ledger.Ledger) ledger.Ledger {
			led.Rules, led.Seen, led.Shards = nil, nil, 0
			return led
		})
	}
	out := map[string]map[string]ledger.Checkpoint{}
	for rule := range led.Rules {
		if led.Kept(rule) {
			out[rule] = led.Checkpoints(rule, shards)
		}
	}
	return out, false, nil
}

// MergeCheckpoints writes marks into the shards of a ledger that is about to be written,
// and tells it how many there are. Of rules that are not kept nothing stays.
func (l *Ledgers) MergeCheckpoints(ctx context.Context, pk types.NamespacedName, uid string, led *ledger.Ledger, kept func(rule string) bool, seen []ledger.ObjectCheckpoint, anew []string) error {
	objects, shards, missing, err := l.readShards(ctx, pk, uid, led.Shards)
	if err != nil {
		return err
	}
	if missing { // somebody deleted it under us; what is known is found out by reading again
		return queue.ErrConflict
	}
	merged, changed := ledger.MergeCheckpoints(shards, seen, kept, anew)
	for i, shard := range merged {
		if !changed[i] {
			continue
		}
		var have *corev1.ConfigMap
		if i < len(objects) {
			have = objects[i]
		}
		if err := l.writeShard(ctx, pk, uid, i, have, shard); err != nil {
			return fmt.Errorf("write what plan %s has seen: %w", pk, err)
		}
	}
	led.Shards = len(merged)
	return nil
}

// writeShard writes one shard. One that the ledger does not count yet is of an
// agent that died before it could tell, or does not count: it is written over.
func (l *Ledgers) writeShard(ctx context.Context, pk types.NamespacedName, uid string, number int, have *corev1.ConfigMap, shard ledger.Shard) error {
	cm, err := annotations.ShardObject(pk.Namespace, pk.Name, uid, number, shard)
	if err != nil {
		return err
	}
	_, err = l.replace(ctx, have, cm)
	if apierrors.IsAlreadyExists(err) {
		if have, err = l.kube.CoreV1().ConfigMaps(pk.Namespace).Get(ctx, cm.Name, metav1.GetOptions{}); err != nil {
			return err
		}
		if _, foreign := annotations.ReadShard(have, uid); foreign != nil && !annotations.IsLedger(have) {
			return foreign
		}
		_, err = l.replace(ctx, have, cm)
	}
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return queue.ErrConflict
	}
	return err
}
