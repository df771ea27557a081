package transition

import (
	"slices"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

// AsleepSince is when the first target fell asleep that still sleeps, but for those whose records
// are closed; empty: none sleeps.
func AsleepSince(records []hibernate.Record, closed []string) string {
	var first time.Time
	for _, r := range records {
		if r.State == hibernate.Asleep && r.FinishedAt != nil && !slices.Contains(closed, r.Target) && (first.IsZero() || r.FinishedAt.Before(first)) {
			first = *r.FinishedAt
		}
	}
	if first.IsZero() {
		return ""
	}
	return first.UTC().Format(time.RFC3339)
}

// WokenAt is when the last of some targets was awake again; zero: one is not.
func WokenAt(records []hibernate.Record) time.Time {
	var last time.Time
	for _, r := range records {
		if r.Operation != hibernate.Wake || r.State != hibernate.Awake || r.FinishedAt == nil {
			return time.Time{}
		}
		if r.FinishedAt.After(last) {
			last = *r.FinishedAt
		}
	}
	return last
}
