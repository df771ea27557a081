package factory

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/instant"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
)

// beginsWithin is how long a new leader may take until its first heartbeat: it first reads all
// objects, and signs those that an older version left unsigned (a guess).
const beginsWithin = time.Minute

// byLease judges an agent without a heartbeat by its Lease, where that may be read: a new leader
// works before its first heartbeat; one that only holds the Lease does not.
func (c *Factory) byLease(ctx context.Context, k *Cluster, s AgentState) AgentState {
	lease, err := k.Kube.CoordinationV1().Leases(s.Namespace).Get(ctx, annotations.LeaseName, metav1.GetOptions{})
	s.Absent = s.Absent && err != nil // uninstall deletes it
	now := c.Now().Add(k.Skew())
	if err != nil || !view.LeaseHeld(lease, now) || lease.Spec.AcquireTime == nil {
		return s
	}
	acquired := lease.Spec.AcquireTime.Time
	if now.Sub(acquired) <= beginsWithin {
		return AgentState{Namespace: s.Namespace, Identity: *lease.Spec.HolderIdentity, Heartbeat: lease.Spec.RenewTime.Time}
	}
	s.Missing = fmt.Sprintf("the agent in namespace %s has held its Lease since %s, but writes no heartbeat: see %s", s.Namespace, instant.Local(acquired, c.Zone), k.commands().In(s.Namespace).Logs(annotations.AgentName))
	return s
}

// leads says whether a heartbeat is of the holder of the Lease beside it, as far as that may be read; a
// new leader has written none yet.
func (c *Factory) leads(ctx context.Context, k *Cluster, beat corev1.ConfigMap) bool {
	lease, err := k.Kube.CoordinationV1().Leases(beat.Namespace).Get(ctx, annotations.LeaseName, metav1.GetOptions{})
	if err != nil || lease.Spec.HolderIdentity == nil || lease.Spec.AcquireTime == nil {
		return apierrors.IsForbidden(err)
	}
	begins := c.Now().Add(k.Skew()).Sub(lease.Spec.AcquireTime.Time) <= beginsWithin
	return begins || *lease.Spec.HolderIdentity == "" || *lease.Spec.HolderIdentity == beat.Data["identity"]
}

// renewal is when the agent of the heartbeat last renewed its Lease, or released it after its last
// heartbeat. The Lease of another agent, or one that may not be read, says nothing.
func (k *Cluster) renewal(ctx context.Context, s AgentState) (at time.Time, known bool) {
	lease, err := k.Kube.CoordinationV1().Leases(s.Namespace).Get(ctx, annotations.LeaseName, metav1.GetOptions{})
	if err != nil || lease.Spec.HolderIdentity == nil || lease.Spec.RenewTime == nil {
		return time.Time{}, false
	}
	at = lease.Spec.RenewTime.Time
	if *lease.Spec.HolderIdentity == "" {
		return at, !at.Before(s.Heartbeat)
	}
	return at, *lease.Spec.HolderIdentity == s.Identity
}

// stillFor is how long neither heartbeat nor Lease of a living agent can stay the same: an agent
// that cannot renew its Lease for 8 s ends itself.
const stillFor = 10 * time.Second

// signs are the last signs of life of an agent. That they do not change shows its death sooner than
// their age does, and does not depend on its clock.
type signs struct {
	heartbeat, renewed time.Time
	since              time.Time // when this Lease was first seen; zero: not looked at since the heartbeat
}

// gone says whether the agent has shown nothing new for too long.
func (a *signs) gone(ctx context.Context, k *Cluster, s AgentState, now time.Time) bool {
	if !s.Heartbeat.Equal(a.heartbeat) {
		*a = signs{heartbeat: s.Heartbeat}
		return false
	}
	renewed, known := k.renewal(ctx, s)
	switch {
	case !known:
		a.since = time.Time{}
		return false
	case a.since.IsZero() || !renewed.Equal(a.renewed):
		a.renewed, a.since = renewed, now
		return false
	}
	return now.Sub(a.since) >= stillFor
}
