package hibernation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
)

// lastSleep is the newest sleep of a plan by its ledger. It is kept while the plan is the same
// object: an older ledger that somebody puts back makes no older restore data count.
type lastSleep struct {
	uid types.UID
	*ledger.LastSleep
}

// sleptLast takes in what a plan's ledger says of its last sleep. Of a plan that is gone it stays
// as it is, and a plan that is made anew begins anew.
func (r *records) sleptLast(k types.NamespacedName, plan *corev1.ConfigMap, slots *ledger.Ledger) {
	if plan == nil {
		return
	}
	now := lastSleep{uid: plan.UID}
	if slots != nil {
		now.LastSleep = slots.LastSleep
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if have := r.last[k]; have.uid == now.uid {
		now.LastSleep = have.Newer(now.LastSleep)
	}
	r.last[k] = now
}

func (r *records) lastSleep(k types.NamespacedName) *ledger.LastSleep {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last[k].LastSleep
}

func (r *records) forget(k types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.last, k)
}

// earlierError is restore data of an earlier sleep.
type earlierError struct {
	name  string
	began time.Time
}

func (e *earlierError) Error() string {
	return fmt.Sprintf("the restore data %s is of an earlier sleep, which began %s and is over: somebody put it back", e.name, e.began.UTC().Format(time.RFC3339))
}

// sleepOver says of restore data whose sleep has ended whether it has served, or why it does
// not count: the agent signed it, and somebody may have kept it. Where another sleep has begun
// since, it stands in the place of what that one needs. Its caller holds the lock.
func (r *records) sleepOver(s *stored) (served bool, fault error) {
	last := r.last[types.NamespacedName{Namespace: s.object.Namespace, Name: s.record.Plan}]
	if began := s.record.Snapshot.BeganAt; last.HasEnded(began) {
		if last.EndedAt != nil && s.record.Operation == hibernate.Wake && s.record.State == hibernate.Awake {
			return true, nil
		}
		return false, &earlierError{s.object.Name, began}
	}
	return false, nil
}

// closable says whether nobody needs restore data any more: it has served, or somebody deletes
// what is of an earlier sleep.
func (s *stored) closable() bool {
	earlier := new(earlierError)
	return s.over || errors.As(s.broken, &earlier) && s.object.DeletionTimestamp != nil
}

// closeEarlier takes away the restore data of a sleep whose end was recorded by an agent that
// died then, and returns the rest.
func (c *Controller) closeEarlier(ctx context.Context, stored []*stored) ([]*stored, error) {
	out := stored[:0]
	for _, s := range stored {
		if c.Scope.DryRun || !s.closable() {
			out = append(out, s)
		} else if err := c.records.close(ctx, s); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// beginAfter has restore data that is new begin after the last sleep, by whoever's clock that
// ended.
func (c *Controller) beginAfter(k types.NamespacedName, v view, d hibernate.Decision) {
	last := c.records.lastSleep(k)
	for i, r := range d.Write {
		if !v.recorded(r.Target) {
			d.Write[i].Snapshot.BeganAt = last.Next(r.Snapshot.BeganAt)
		}
	}
}

// began is when the sleep began that there is, or that is about to; zero: there is none.
func (v view) began(d hibernate.Decision) time.Time {
	var first time.Time
	for _, r := range slices.Concat(v.facts.Records, d.Write) {
		if at := r.Snapshot.BeganAt; first.IsZero() || at.Before(first) {
			first = at
		}
	}
	return first
}
