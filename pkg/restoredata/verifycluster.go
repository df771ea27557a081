package restoredata

import (
	"slices"

	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

// VerifyCluster is the record with the address at which its cluster is now. A kubeconfig that was replaced
// may lead to another cluster, where all that sleeps would seem to be gone and whatever runs would
// be put to sleep. What tells is the uid of something that sleeps: failure says that none was found.
func VerifyCluster(r hibernate.Record, address string, seen []hibernate.Observation) (out hibernate.Record, failure string) {
	if address == r.Snapshot.Address || len(r.Resources) == 0 {
		r.Snapshot.Address = address
		return r, ""
	}
	at := hibernate.ByPlace(seen)
	known := slices.ContainsFunc(r.Resources, func(res hibernate.Resource) bool {
		i, there := at[hibernate.Place{ID: res.ID, UID: res.UID}]
		return there && !seen[i].Gone && seen[i].Unseen == nil
	})
	if !known {
		return r, "the kubeconfig names another API server than when this fell asleep, and none of the sleeping resources is there: let it name that cluster again"
	}
	r.Snapshot.Address = address
	return r, ""
}
