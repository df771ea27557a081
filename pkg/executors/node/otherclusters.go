package node

import (
	"context"
	"strings"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
)

// otherCluster drains nodes of another cluster for one plan.
type otherCluster struct {
	*Drainer
	connection string // of its clients
	close      context.CancelFunc
	used       time.Time // when it was last used
}

// mostDrains is how many nodes of one other cluster are drained for a plan at once (a guess: the
// memory for each node has a limit of its own).
const mostDrains = 4

// mostClusters is on how many other clusters the plans of one namespace drain at once (a guess:
// what such a cluster reports is kept in memory, and its API server may be under anybody's
// control).
const mostClusters = 8

// ForCluster is the drainer of another cluster's nodes. When the credentials of the clients change, its
// sessions end: the new ones may have other rights.
func (d *Drainer) ForCluster(by string, clients executors.Clients) (executors.Drainer, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	key, now := by+" "+clients.Cluster+" "+clients.Address, d.config.Now()
	d.forgetIdle(key, now)
	have := d.others[key]
	switch {
	case have != nil && have.connection == clients.Connection:
		have.used = now
		return have, true
	case have != nil:
		have.close()
	case d.clustersOf(by) >= mostClusters:
		return nil, false
	}
	ctx, cancel := context.WithCancel(d.ctx)
	other := New(ctx, Config{
		Reads: clients.Kube, OnChange: func(node, _ string) { d.config.OnChange(node, by) }, Now: d.config.Now,
		Lease: leaseFor, Elsewhere: true,
	})
	d.others[key] = &otherCluster{Drainer: other, connection: clients.Connection, close: cancel, used: now}
	return d.others[key], true
}

// clustersOf is on how many other clusters the plans of a claimant's namespace drain.
func (d *Drainer) clustersOf(by string) (n int) {
	namespace, _, _ := strings.Cut(by, "/")
	for key := range d.others {
		if strings.HasPrefix(key, namespace+"/") {
			n++
		}
	}
	return n
}

// forgetIdle forgets the drainers of other clusters that drain nothing and were not used lately,
// except one: its user may be about to begin.
func (d *Drainer) forgetIdle(but string, now time.Time) {
	for key, other := range d.others {
		if key != but && now.Sub(other.used) >= leaseFor && other.idles() {
			other.close()
			delete(d.others, key)
		}
	}
}

// idles says whether a drainer has no sessions and no request in flight.
func (d *Drainer) idles() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.sessions) == 0 && d.busy == 0
}
