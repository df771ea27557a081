package store

// Values of change_management_change_pending.
const (
	PendingNone      = 0
	PendingInitiated = 1
	PendingBlocked   = 2
)
