package store

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
)

// Actors knows which intents were written by whom they name: those that appeared, or got
// another actor, while the API server refused false ones. What was there before may be
// false, and stays unverified for as long as it stands there.
type Actors struct {
	mu      sync.RWMutex
	certain bool
	seen    map[types.UID]map[string]writtenBy
}

// writtenBy is an intent as it was last seen.
type writtenBy struct {
	annotations.Stamp
	verified bool
}

func newActors() *Actors { return &Actors{seen: map[types.UID]map[string]writtenBy{}} }

// SetVerified says whether what is seen from now on was written while false actors are
// refused, and all from before has been seen.
func (a *Actors) SetVerified(certain bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.certain = certain
}

// skip is the one intent whose value the agent changes itself: it takes away what is over.
const skip = "skip"

// Seen takes in a document as the watch shows it.
func (a *Actors) Seen(cm *corev1.ConfigMap) {
	stamps := annotations.Stamps(cm.Annotations)
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(stamps) == 0 {
		delete(a.seen, cm.UID)
		return
	}
	was, is := a.seen[cm.UID], make(map[string]writtenBy, len(stamps))
	for what, stamp := range stamps {
		verified := a.certain
		if before, known := was[what]; known && before.Actor == stamp.Actor && (before.Value == stamp.Value || what == skip) {
			verified = before.verified
		}
		is[what] = writtenBy{stamp, verified}
	}
	a.seen[cm.UID] = is
}

// Gone forgets a document.
func (a *Actors) Gone(uid types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.seen, uid)
}

// verified says whether an intent of a document stands there as it was seen to be written
// by whom it names.
func (a *Actors) verified(uid types.UID, what string, stamp annotations.Stamp) bool {
	a.mu.RLock()
	defer a.mu.RUnlock()
	known := a.seen[uid][what]
	return known.verified && known.Stamp == stamp
}

// Intent is what people ask of a plan, and by whom as far as that is certain.
func (d *Documents) Intent(cm *corev1.ConfigMap) intent.Intent {
	return annotations.IntentBy(cm.Annotations, func(what string, stamp annotations.Stamp) bool {
		return d.Actors.verified(cm.UID, what, stamp)
	})
}
