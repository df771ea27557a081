// Package answers remembers which answers of people the runs of a plan have taken up.
package answers

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/informer"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
)

// TakenUp knows since which version of a plan the answers that its runs took up are gone. A cache that
// is behind still shows them, and one resume must not end the suspend that comes next, too.
type TakenUp struct {
	mu    sync.Mutex
	since map[types.UID]uint64
}

// Note takes in since which version answers are gone.
func (a *TakenUp) Note(plan types.UID, since uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.since == nil || len(a.since) > 10_000 { // bounded by forgetting
		a.since = map[types.UID]uint64{}
	}
	a.since[plan] = max(a.since[plan], since)
}

// Open is what a plan asks of its runs, without answers that were taken up.
func (a *TakenUp) Open(cm *corev1.ConfigMap, in intent.Intent) intent.Intent {
	a.mu.Lock()
	defer a.mu.Unlock()
	if informer.VersionOf(cm) >= a.since[cm.UID] {
		delete(a.since, cm.UID)
		return in
	}
	in.Resume, in.Approve, in.Reject = intent.RunRef{}, intent.RunRef{}, intent.RunRef{}
	return in
}
