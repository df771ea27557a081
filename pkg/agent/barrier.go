package agent

import (
	"context"
	"sync"
	"time"
	"unique"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

// cached is one of the agent's own informers, with what tells how far it has come.
type cached struct {
	informer cache.SharedIndexInformer
	from     *listWatch
	synced   cache.InformerSynced // what was read first has reached the handler
	handled  handledVersions
}

// handledVersions are the versions of objects that a handler has taken in: it runs
// behind the store of its informer.
type handledVersions struct {
	mu   sync.Mutex
	seen map[types.NamespacedName]handledObject
	gate uint64 // how often one was taken in, or was gone, that may gate plans
}

type handledObject struct {
	version uint64
	kind    unique.Handle[string]
}

func objectKey(m metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: m.GetNamespace(), Name: m.GetName()}
}

func (h *handledVersions) saw(o any) {
	m, err := meta.Accessor(o)
	if err != nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.seen == nil {
		h.seen = map[types.NamespacedName]handledObject{}
	}
	kind := kindOf(o)
	h.seen[objectKey(m)] = handledObject{number(m.GetResourceVersion()), unique.Make(kind)}
	h.moved(kind)
}

func (h *handledVersions) lost(o any) {
	m, err := meta.Accessor(o)
	if err != nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.seen, objectKey(m))
	h.moved(kindOf(o))
}

func (h *handledVersions) moved(kind string) {
	if kind != annotations.KindPlan {
		h.gate++
	}
}

// gating grows with each object taken in, or gone, that is no plan.
func (h *handledVersions) gating() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.gate
}

// version is that of an object as the handler took it in; 0: it is not there.
func (h *handledVersions) version(k types.NamespacedName) uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.seen[k].version
}

// shows says whether all that is there was taken in, and nothing else of its kinds.
func (h *handledVersions) shows(there map[types.NamespacedName]uint64, ours func(kind string) bool) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for k, version := range there {
		if h.seen[k].version < version {
			return false
		}
	}
	for k, o := range h.seen {
		if _, is := there[k]; !is && ours(o.kind.Value()) {
			return false
		}
	}
	return true
}

// behind says whether the handler has not taken in all that a store holds.
func (h *handledVersions) behind(store cache.Store) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	there := map[types.NamespacedName]bool{}
	for _, o := range store.List() {
		m, err := meta.Accessor(o)
		if err != nil {
			continue
		}
		k := objectKey(m)
		if there[k] = true; h.seen[k].version < number(m.GetResourceVersion()) {
			return true
		}
	}
	for k := range h.seen {
		if !there[k] {
			return true
		}
	}
	return false
}

// tick is how often it is looked whether a store or a handler has caught up with the
// watch before it: within the process, where nothing says so (a guess).
const tick = 5 * time.Millisecond

// reach returns when the cache, and what its handler keeps, hold everything that was
// written up to a version.
func (c *cached) reach(ctx context.Context, version uint64) error {
	if err := c.from.reach(ctx, version); err != nil {
		return err
	}
	for number(c.informer.GetStore().LastStoreSyncResourceVersion()) < version || c.handled.behind(c.informer.GetStore()) {
		if !sleep(ctx, tick) {
			return ctx.Err()
		}
	}
	return nil
}

// barrier returns when every cache holds what was there after this agent began to
// lead: only then may it decide anything. A watch that hangs holds it up no longer
// than a list takes.
func (a *Agent) barrier(ctx context.Context) {
	began := a.now()
	var group sync.WaitGroup
	for _, c := range a.watched() {
		group.Go(func() {
			for failed := 1; ctx.Err() == nil; failed++ {
				version, err := c.from.latest(ctx)
				if err == nil {
					err = c.reach(ctx, version)
				}
				if err == nil {
					return
				}
				a.log.Warn("the newest state could not be read; it is tried again", "error", err.Error())
				sleep(ctx, pause(failed, err))
			}
		})
	}
	group.Wait()
	a.log.Info("the caches are as new as the lease", "took", a.now().Sub(began).String())
}
