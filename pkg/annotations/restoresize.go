package annotations

import (
	"encoding/json"
	"fmt"

	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/restoredata"
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
	for _, less := range restoredata.Reductions() {
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
