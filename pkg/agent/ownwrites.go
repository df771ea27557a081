package agent

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/informer"
)

// ownWrites are the versions that our own last patches gave objects: what a watch
// shows of an earlier one has not caught up with us yet. The zero value has none.
type ownWrites struct {
	mu       sync.Mutex
	versions map[types.UID]uint64
}

func (w *ownWrites) patched(uid types.UID, version string) {
	n := informer.Version(version)
	if n == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.versions == nil {
		w.versions = map[types.UID]uint64{}
	}
	w.versions[uid] = n
}

// stale says whether an object is shown as it was before our last patch.
func (w *ownWrites) stale(uid types.UID, version string) bool {
	n := informer.Version(version)
	w.mu.Lock()
	defer w.mu.Unlock()
	wrote, have := w.versions[uid]
	if have && n >= wrote {
		delete(w.versions, uid)
	}
	return have && n != 0 && n < wrote
}

func (w *ownWrites) forget(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.versions, uid)
}
