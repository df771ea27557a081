package schedule

import "time"

// Earliest is the earlier of two instants; a zero one is none.
func Earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// SameInstant says whether both are the same instant, or none.
func SameInstant(a, b *time.Time) bool {
	return a == nil && b == nil || a != nil && b != nil && a.Equal(*b)
}
