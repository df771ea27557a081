package store

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/informer"
)

// Expectations are the versions that our own last patches gave objects: what a watch
// shows of an earlier one has not caught up with us yet. The zero value has none.
type Expectations struct {
	mu       sync.Mutex
	versions map[types.UID]uint64
}

// Expect notes the version that our own patch gave an object.
func (w *Expectations) Expect(uid types.UID, version string) {
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

// Stale says whether an object is shown as it was before our last patch.
func (w *Expectations) Stale(uid types.UID, version string) bool {
	n := informer.Version(version)
	w.mu.Lock()
	defer w.mu.Unlock()
	wrote, have := w.versions[uid]
	if have && n >= wrote {
		delete(w.versions, uid)
	}
	return have && n != 0 && n < wrote
}

// Forget drops what is known of an object that is gone.
func (w *Expectations) Forget(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.versions, uid)
}
