package hibernation

import (
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/queue"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

const (
	// mostRestore is how much restore data one namespace may have. All of it is in memory,
	// and each target's holds the whole plan: a few hundred plans with many targets would
	// fill an agent of 256 MiB.
	mostRestore = 16 << 20
	fullPause   = time.Minute
)

// room keeps targets awake whose restore data would not fit beside that of their namespace:
// all of a plan, or those that begin while others of it sleep. What is kept for them here is let
// go by records.release.
func (c *Controller) room(k types.NamespacedName, v *view) {
	n := v.facts.Beginning()
	if n == 0 || v.facts.Forbidden != "" {
		return
	}
	text, err := json.Marshal(v.facts.Spec)
	if err != nil {
		return
	}
	v.facts.Forbidden = c.records.reserve(k, n*len(text))
	if v.facts.Forbidden != "" {
		v.again = queue.Soonest(v.again, c.Clock.Now().Add(fullPause))
	}
}

// overQuota says why resources that a look found are not recorded, and so not put to sleep;
// empty: they may be.
func (c *Controller) overQuota(k types.NamespacedName, before, after hibernate.Record) string {
	if before.Operation != hibernate.Shutdown {
		return ""
	}
	if err := annotations.RoomToSleep(before, after); err != nil {
		return err.Error()
	}
	found := after.Resources[min(len(before.Resources), len(after.Resources)):]
	if len(found) == 0 {
		return ""
	}
	text, err := json.Marshal(found)
	if err != nil {
		return err.Error()
	}
	return c.records.full(k, len(text))
}

// reserve keeps room for a plan that begins to sleep, and says why there is none.
func (r *records) reserve(k types.NamespacedName, bytes int) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.begins, k)
	why := r.beyond(k.Namespace, bytes)
	if why == "" {
		r.begins[k] = bytes
	}
	return why
}

// release lets go of what was kept: what came of it is among the records.
func (r *records) release(k types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.begins, k)
}

// full says why a plan may not record so many bytes more; empty: it may.
func (r *records) full(k types.NamespacedName, more int) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.beyond(k.Namespace, more)
}

func (r *records) beyond(namespace string, more int) string {
	held := 0
	for k, s := range r.byKey {
		if k.Namespace == namespace {
			held += annotations.SizeOf(s.object)
		}
	}
	for k, bytes := range r.begins {
		if k.Namespace == namespace {
			held += bytes
		}
	}
	if held+more <= r.most {
		return ""
	}
	return fmt.Sprintf("its restore data would take %d KiB, beside %d KiB that the namespace has, and %d KiB is the limit: put fewer resources to sleep here, or use shorter plans with fewer targets",
		more>>10, held>>10, r.most>>10)
}
