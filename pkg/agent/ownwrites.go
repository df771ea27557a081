package agent

import (
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// ownWrites are the versions that our own last patches gave objects: what a watch
// shows of an earlier one has not caught up with us yet. The zero value has none.
type ownWrites struct {
	mu       sync.Mutex
	versions map[types.UID]uint64
}

func (w *ownWrites) patched(uid types.UID, version string) {
	n := number(version)
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
	n := number(version)
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

// number is a resourceVersion as a number, since they are compared; 0 is none.
func number(version string) uint64 {
	n, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
