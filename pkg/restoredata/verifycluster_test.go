package restoredata

import (
	"errors"
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

// A kubeconfig that was replaced leads to the same cluster only where something is found that
// sleeps: in another one all of it would seem to be gone.
func TestWhetherARecordsClusterIsFoundAgain(t *testing.T) {
	asleep := []hibernate.Resource{{ID: "apps/orders", UID: "1"}, {ID: "apps/cart", UID: "2"}}
	for name, c := range map[string]struct {
		recorded  string
		resources []hibernate.Resource
		now       string
		seen      []hibernate.Observation
		lost      bool
	}{
		"the plan's own":                            {resources: asleep},
		"as it was":                                 {recorded: "a", resources: asleep, now: "a"},
		"as it was, and all of it is gone":          {recorded: "a", resources: asleep, now: "a", seen: []hibernate.Observation{{ID: "apps/orders", UID: "1", Gone: true}}},
		"before anything sleeps":                    {recorded: "a", now: "b"},
		"elsewhere, with one of those that sleep":   {recorded: "a", resources: asleep, now: "b", seen: []hibernate.Observation{{ID: "apps/cart", UID: "2"}}},
		"elsewhere, with others of the same names":  {recorded: "a", resources: asleep, now: "b", seen: []hibernate.Observation{{ID: "apps/orders", UID: "8"}, {ID: "apps/cart", UID: "9"}}, lost: true},
		"elsewhere, where nothing can be looked at": {recorded: "a", resources: asleep, now: "b", seen: []hibernate.Observation{{ID: "apps/orders", UID: "1", Unseen: errors.New("no answer")}}, lost: true},
		"elsewhere, where nothing is":               {recorded: "a", resources: asleep, now: "b", lost: true},
		"elsewhere, where all is gone":              {recorded: "a", resources: asleep, now: "b", seen: []hibernate.Observation{{ID: "apps/orders", UID: "1", Gone: true}}, lost: true},
	} {
		t.Run(name, func(t *testing.T) {
			want := c.now
			if c.lost {
				want = c.recorded
			}
			got, failure := VerifyCluster(hibernate.Record{Resources: c.resources, Snapshot: hibernate.Snapshot{Address: c.recorded}}, c.now, c.seen)
			if got.Snapshot.Address != want || (failure != "") != c.lost {
				t.Errorf("found at %q, %q", got.Snapshot.Address, failure)
			}
		})
	}
}
