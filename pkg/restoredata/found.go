package restoredata

import (
	"slices"

	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

// Found is the record with the address at which its cluster is now. A kubeconfig that was replaced
// may lead to another cluster, where all that sleeps would seem to be gone and whatever runs would
// be put to sleep. What tells is the uid of something that sleeps: failure says that none was found.
func Found(r hibernate.Record, address string, seen []hibernate.Observation) (out hibernate.Record, failure string) {
	if address == r.Snapshot.Address || len(r.Resources) == 0 {
		r.Snapshot.Address = address
		return r, ""
	}
	at := placesOf(seen)
	known := slices.ContainsFunc(r.Resources, func(res hibernate.Resource) bool {
		o, there := at[placeOf(res)]
		return there && !o.Gone && o.Unseen == nil
	})
	if !known {
		return r, "the kubeconfig names another API server than when this fell asleep, and none of the sleeping resources is there: let it name that cluster again"
	}
	r.Snapshot.Address = address
	return r, ""
}

// place is where a resource stands: there may be ten thousand.
type place struct{ id, uid string }

func placeOf(r hibernate.Resource) place { return place{r.ID, r.UID} }

// placesOf is what was seen at each place, the first time.
func placesOf(seen []hibernate.Observation) map[place]*hibernate.Observation {
	out := make(map[place]*hibernate.Observation, len(seen))
	for i, o := range seen {
		if p := (place{o.ID, o.UID}); out[p] == nil {
			out[p] = &seen[i]
		}
	}
	return out
}
