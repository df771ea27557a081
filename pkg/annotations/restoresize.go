package annotations

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

const (
	// largestRestore is how much data the API server accepts in a ConfigMap.
	largestRestore = 1 << 20
	// largestAsleep is how much may be recorded before a shutdown, with laterFields for each
	// resource. The rest is for messages and for what is left out.
	largestAsleep = largestRestore - 64<<10
	// laterFields is what is written of a resource after it was recorded: when it fell asleep
	// and woke, what put it back, why it was left (a guess; four instants take 180 bytes).
	laterFields = 300
)

// TooManyResources is restore data that no ConfigMap holds.
type TooManyResources struct {
	Target string
	N      int
	Bytes  int
	Most   int
}

func (e *TooManyResources) Error() string {
	return fmt.Sprintf("the restore data of target %s takes %d bytes for %d resources until they are awake again, and %d fit: make several targets of it", e.Target, e.Bytes, e.N, e.Most)
}

// RoomToSleep refuses, with *TooManyResources, what is about to be recorded before a shutdown
// if a ConfigMap might not hold it until everything is awake again. What was recorded already
// is never refused.
func RoomToSleep(recorded, wanted hibernate.Record) error {
	if restoreSize(wanted.Resources) <= restoreSize(recorded.Resources) {
		return nil
	}
	bare := wanted
	bare.Resources = make([]hibernate.Resource, len(wanted.Resources))
	for i, res := range wanted.Resources {
		bare.Resources[i] = hibernate.Resource{ID: res.ID, UID: res.UID, Before: res.Before, CapturedAt: res.CapturedAt, Kind: res.Kind, Units: res.Units}
	}
	text, err := json.Marshal(bare)
	if err != nil {
		return fmt.Errorf("restore data of %s/%s: %w", wanted.Plan, wanted.Target, err)
	}
	if size := len(text) + laterFields*len(bare.Resources); size > largestAsleep {
		return &TooManyResources{wanted.Target, len(bare.Resources), size, largestAsleep}
	}
	return nil
}

// restoreSize grows with what is needed to wake resources.
func restoreSize(resources []hibernate.Resource) int {
	n := 0
	for _, res := range resources {
		n += laterFields + len(res.ID) + len(res.UID) + len(res.Before)
	}
	return n
}

// restoreText is a record as a ConfigMap holds it. One that is too large is written without
// what waking does not need.
func restoreText(r hibernate.Record) ([]byte, error) {
	text, err := json.Marshal(r)
	if err != nil || len(text) <= largestRestore {
		return text, err
	}
	full := len(text)
	for _, less := range []func(hibernate.Resource, hibernate.Operation) (hibernate.Resource, bool){summedUp, uncounted, unfinished, needed} {
		out := r
		out.LeftOut, out.Resources = nil, make([]hibernate.Resource, 0, len(r.Resources))
		for _, res := range r.Resources {
			if res, stays := less(res, r.Operation); stays {
				out.Resources = append(out.Resources, res)
			}
		}
		if text, err = json.Marshal(out); err != nil || len(text) <= largestRestore {
			return text, err
		}
		r = out
	}
	return nil, &TooManyResources{r.Target, len(r.Resources), full, largestRestore}
}

// summedUp is a resource with the seconds that it slept in place of the instants, once its
// sleep is over.
func summedUp(res hibernate.Resource, operation hibernate.Operation) (hibernate.Resource, bool) {
	if res.WokenAt != nil || res.RestoredAt != nil || res.LeftAt != nil {
		whole := res.UnitSlept == nil && res.PartUnits == nil
		if res = res.Banked(lastInstant(res)); whole { // by Units and Slept it is known, too
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
