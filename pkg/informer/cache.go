package informer

import (
	"context"
	"slices"
	"sync"
	"time"
	"unique"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// Cache is an informer with what tells how far it has come.
type Cache struct {
	Informer cache.SharedIndexInformer
	From     *ListWatch
	Synced   cache.InformerSynced // what was read first has reached the handler
	handled  handledVersions
}

// NewCache is a cache of what a list and a watch show, of which it keeps what keep
// says. The label tells an object's kind among those of one resource.
func NewCache(from *ListWatch, kindLabel string, keep cache.TransformFunc) *Cache {
	informer := cache.NewSharedIndexInformer(from, from.example, 0, cache.Indexers{})
	must(informer.SetTransform(keep))
	return &Cache{
		Informer: informer, From: from,
		handled: handledVersions{label: kindLabel, in: map[string]*handledNamespace{}},
	}
}

// Handle has every object shown to a handler, and notes what it has taken in. An
// object that becomes another kind is lost as the one and seen as the other.
func (c *Cache) Handle(saw, lost func(any)) {
	heard, err := c.Informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) {
			saw(o)
			c.handled.saw(o)
		},
		UpdateFunc: func(was, o any) {
			if c.handled.kindOf(was) != c.handled.kindOf(o) {
				lost(was)
			}
			saw(o)
			c.handled.saw(o)
		},
		DeleteFunc: func(o any) {
			if d, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = d.Obj
			}
			lost(o)
			c.handled.lost(o)
		},
	})
	must(err)
	c.Synced = heard.HasSynced
}

// ChangedIn tells apart what was taken in of a namespace at two times, but for objects of some
// kinds: it is another where one was taken in, or was gone, between them.
func (c *Cache) ChangedIn(namespace string, but ...string) uint64 {
	return c.handled.changedIn(namespace, but)
}

// Version is that of an object as the handler took it in; 0: it is not there.
func (c *Cache) Version(k types.NamespacedName) uint64 { return c.handled.version(k) }

// ShowsIn says whether the handler has taken in all that is there in a namespace, by name, and
// nothing else of its kinds.
func (c *Cache) ShowsIn(namespace string, there map[string]uint64, ours func(kind string) bool) bool {
	return c.handled.shows(namespace, there, ours)
}

// handledVersions are the versions of objects that a handler has taken in: it runs
// behind the store of its informer.
type handledVersions struct {
	label   string // that tells an object's kind
	mu      sync.Mutex
	in      map[string]*handledNamespace
	changes uint64 // how often one was taken in, or was gone
}

// handledNamespace is one that has objects.
type handledNamespace struct {
	seen    map[string]handledObject // by name
	changed map[string]uint64        // which of all changes was the last of a kind
}

type handledObject struct {
	version uint64
	kind    unique.Handle[string]
}

func keyOf(m metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: m.GetNamespace(), Name: m.GetName()}
}

func (h *handledVersions) saw(o any) {
	m, err := meta.Accessor(o)
	if err != nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	in := h.in[m.GetNamespace()]
	if in == nil {
		in = &handledNamespace{seen: map[string]handledObject{}, changed: map[string]uint64{}}
		h.in[m.GetNamespace()] = in
	}
	h.changes++
	if was, there := in.seen[m.GetName()]; there {
		in.changed[was.kind.Value()] = h.changes
	}
	kind := h.kindOf(o)
	in.seen[m.GetName()] = handledObject{Version(m.GetResourceVersion()), unique.Make(kind)}
	in.changed[kind] = h.changes
}

func (h *handledVersions) lost(o any) {
	m, err := meta.Accessor(o)
	if err != nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	in := h.in[m.GetNamespace()]
	if in == nil {
		return
	}
	h.changes++
	if was, there := in.seen[m.GetName()]; there {
		in.changed[was.kind.Value()] = h.changes
	}
	delete(in.seen, m.GetName())
	if len(in.seen) == 0 { // without objects it is as it was before the first
		delete(h.in, m.GetNamespace())
	}
}

func (h *handledVersions) kindOf(o any) string {
	m, err := meta.Accessor(o)
	if err != nil {
		return ""
	}
	return m.GetLabels()[h.label]
}

func (h *handledVersions) changedIn(namespace string, but []string) (last uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if in := h.in[namespace]; in != nil {
		for kind, at := range in.changed {
			if !slices.Contains(but, kind) {
				last = max(last, at)
			}
		}
	}
	return last
}

func (h *handledVersions) version(k types.NamespacedName) uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.versionOf(k)
}

func (h *handledVersions) versionOf(k types.NamespacedName) uint64 {
	if in := h.in[k.Namespace]; in != nil {
		return in.seen[k.Name].version
	}
	return 0
}

func (h *handledVersions) shows(namespace string, there map[string]uint64, ours func(kind string) bool) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for name, version := range there {
		if h.versionOf(types.NamespacedName{Namespace: namespace, Name: name}) < version {
			return false
		}
	}
	in := h.in[namespace]
	if in == nil {
		return true
	}
	for name, o := range in.seen {
		if _, is := there[name]; !is && ours(o.kind.Value()) {
			return false
		}
	}
	return true
}

// behind says whether the handler has not taken in what is stored, and nothing else.
func (h *handledVersions) behind(stored []any) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	there := map[types.NamespacedName]bool{}
	for _, o := range stored {
		m, err := meta.Accessor(o)
		if err != nil {
			continue
		}
		k := keyOf(m)
		if there[k] = true; h.versionOf(k) < Version(m.GetResourceVersion()) {
			return true
		}
	}
	for namespace, in := range h.in {
		for name := range in.seen {
			if !there[types.NamespacedName{Namespace: namespace, Name: name}] {
				return true
			}
		}
	}
	return false
}

// PollInterval is how often it is looked whether a store or a handler has caught up with the
// watch before it: within the process, where nothing says so (a guess).
const PollInterval = 5 * time.Millisecond

// ReachLatest returns when the cache, and what its handler keeps, hold everything that was
// written before it was called.
func (c *Cache) ReachLatest(ctx context.Context) error {
	version, err := c.From.latest(ctx)
	if err != nil {
		return err
	}
	return c.Reach(ctx, version)
}

// Reach returns when the cache, and what its handler keeps, hold everything that was
// written up to a version.
func (c *Cache) Reach(ctx context.Context, version uint64) error {
	if err := c.From.reach(ctx, version); err != nil {
		return err
	}
	for !c.caughtUp(version) {
		if !Sleep(ctx, PollInterval) {
			return ctx.Err()
		}
	}
	return nil
}

// Await returns when what the handler has taken in is as it is to be, or holds everything that was
// written up to a version. A watch that shows nothing for as long as an echo takes is doubted. One
// that is behind with what many write is not: it would have to wait for the list.
func (c *Cache) Await(ctx context.Context, version uint64, echo time.Duration, shows func() bool) error {
	for {
		handed := c.From.Handed()
		for end := time.Now().Add(echo); time.Now().Before(end); {
			if shows() {
				return nil
			}
			if !Sleep(ctx, PollInterval) {
				return ctx.Err()
			}
		}
		if c.From.handedUpTo() >= version && c.caughtUp(version) {
			return nil
		}
		c.From.RelistUnless(handed)
	}
}

// caughtUp says whether what was handed on has gone through. The version alone does
// not: what a list shows is handed on before what it no longer has.
func (c *Cache) caughtUp(version uint64) bool {
	store := c.Informer.GetStore()
	if Version(store.LastStoreSyncResourceVersion()) < version {
		return false
	}
	stored := store.List()
	return !c.From.deletedAmong(stored) && !c.handled.behind(stored)
}

// deletedAmong says whether the deletion of one of these objects has been handed on.
func (l *ListWatch) deletedAmong(stored []any) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(stored, func(o any) bool {
		m, err := meta.Accessor(o)
		if err != nil {
			return false
		}
		_, there := l.known[keyOf(m)]
		return !there
	})
}

// New is an informer of what a list and a watch show: keep says what is kept of
// each object, and the handler hears of it. It is not begun yet.
func New(from *ListWatch, keep cache.TransformFunc, handler cache.ResourceEventHandler) (cache.SharedIndexInformer, cache.ResourceEventHandlerRegistration) {
	informer := cache.NewSharedIndexInformer(from, from.example, 0, cache.Indexers{})
	must(informer.SetTransform(keep))
	heard, err := informer.AddEventHandler(handler)
	must(err)
	return informer, heard
}

// KeepName keeps of an object what names it and its state: that it moved is all that is asked.
func KeepName(o any) (any, error) {
	m, ok := o.(metav1.Object)
	if !ok {
		return o, nil
	}
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: m.GetName(), Namespace: m.GetNamespace(), UID: m.GetUID(), ResourceVersion: m.GetResourceVersion()}}, nil
}

// Run runs an informer of a ListWatch until ctx ends. The reflector's chatter is left out: to it a
// ListWatch that is refused is a watch that shows nothing, and it would say so every ten seconds.
// Who reads hears of refusals from the ListWatch.
func Run(ctx context.Context, informer cache.SharedIndexInformer) {
	log := klog.FromContext(ctx)
	informer.RunWithContext(klog.NewContext(ctx, log.WithSink(errorsOnly{log.GetSink()})))
}

// errorsOnly leaves out all that is no error.
type errorsOnly struct{ logr.LogSink }

// Enabled is logr.LogSink's, and is asked for all but errors.
func (errorsOnly) Enabled(int) bool { return false }

// WithValues is logr.LogSink's.
func (s errorsOnly) WithValues(values ...any) logr.LogSink {
	return errorsOnly{s.LogSink.WithValues(values...)}
}

// WithName is logr.LogSink's.
func (s errorsOnly) WithName(name string) logr.LogSink { return errorsOnly{s.LogSink.WithName(name)} }

// must is for calls that fail only when they are made too late, which is ours
// to know.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
