package view

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
)

// HeldFor is for how long after its last renewal a Lease shows that its holder lives: the leader
// renews it every second, and another agent may take it after 8 s.
const HeldFor = 15 * time.Second

// AheadBy is how far the agent's clock may be ahead of the API server's.
const AheadBy = 90 * time.Second

// LeaseHeld says whether somebody holds an agent's Lease at an instant of the API server's clock.
func LeaseHeld(lease *coordinationv1.Lease, now time.Time) bool {
	holder, renewed := lease.Spec.HolderIdentity, lease.Spec.RenewTime
	return holder != nil && *holder != "" && renewed != nil && now.Sub(renewed.Time) <= HeldFor && now.Sub(renewed.Time) >= -AheadBy
}
