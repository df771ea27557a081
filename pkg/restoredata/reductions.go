package restoredata

import (
	"encoding/json"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

// Reductions are the ways to write a resource with less, each on top of those before it, where restore
// data is too large. They say, too, whether it is written at all; what waking needs always is.
func Reductions() []func(hibernate.Resource, hibernate.Operation) (hibernate.Resource, bool) {
	return []func(hibernate.Resource, hibernate.Operation) (hibernate.Resource, bool){summedUp, uncounted, unfinished, needed}
}

// summedUp is a resource with the seconds that it slept in place of the instants, once its
// sleep is over.
func summedUp(res hibernate.Resource, operation hibernate.Operation) (hibernate.Resource, bool) {
	if res.WokenAt != nil || res.RestoredAt != nil || res.LeftAt != nil {
		whole := res.UnitSlept == nil && res.PartUnits == nil
		if res = res.AccumulateSleep(lastInstant(res)); whole { // by Units and Slept it is known, too
			res.UnitSlept = nil
		}
	}
	if operation == hibernate.Wake {
		res.RevivedBy, res.NotBefore = "", nil
	}
	return res, true
}

// lastInstant is not before the end of a resource's sleep.
func lastInstant(res hibernate.Resource) time.Time {
	var last time.Time
	for _, at := range []*time.Time{res.WokenAt, res.RestoredAt, res.LeftAt} {
		if at != nil && at.After(last) {
			last = *at
		}
	}
	return last
}

// uncounted is a resource whose hours of sleep nobody can price any more.
func uncounted(res hibernate.Resource, _ hibernate.Operation) (hibernate.Resource, bool) {
	res.Kind, res.Units, res.PartUnits, res.UnitSlept, res.StartingAt = "", nil, nil, nil, nil
	return res, true
}

// unfinished has what is awake again dropped, and of what is left alone that to which nobody
// puts it back.
func unfinished(res hibernate.Resource, operation hibernate.Operation) (hibernate.Resource, bool) {
	if operation != hibernate.Wake {
		return res, true
	}
	if res.Left != "" {
		res.Before, res.LeftAt = json.RawMessage("null"), nil
	}
	return res, res.RestoredAt == nil
}

// needed is what a resource is woken by: CapturedAt and Revived tell requests apart, and by
// AskedAt what is seen awake may still be on its way down.
func needed(res hibernate.Resource, _ hibernate.Operation) (hibernate.Resource, bool) {
	return hibernate.Resource{ID: res.ID, UID: res.UID, Before: res.Before, Under: res.Under, CapturedAt: res.CapturedAt, AskedAt: res.AskedAt, Revived: res.Revived, Left: res.Left, RestoredAt: res.RestoredAt}, true
}
