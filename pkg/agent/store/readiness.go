package store

import "github.com/kubectl-maint/kubectl-maint/pkg/trigger"

// ReadinessLook is what a look at a plan's readiness found, and of what it was a look.
type ReadinessLook struct {
	Done    bool
	Ready   trigger.Readiness
	Version uint64 // of the plan
	Newest  string // the run that the plan would have begun with
	Looks   int    // in a row that found it not ready
}
