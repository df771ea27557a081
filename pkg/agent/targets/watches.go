package targets

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/informer"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// targetName is what is kept of an object that plans may wait for: there may be many
// beside it.
type targetName struct {
	namespace, name string
	version         uint64
}

// GetObjectMeta is metav1.ObjectMetaAccessor's: a cache asks for it.
func (t *targetName) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: t.namespace, Name: t.name, ResourceVersion: strconv.FormatUint(t.version, 10)}
}

// Watches watch the targets of plans with label triggers, and those that
// plans wait for: one watch for all targets of a kind in a namespace that one
// account looks at.
type Watches struct {
	Config
	mu    sync.Mutex
	open  map[Key]*Watch
	plans map[types.NamespacedName]targetUse
	wrote store.Expectations // on targets
}

// Config is what targets are watched with.
type Config struct {
	Accounts *client.Impersonator
	Now      func() time.Time
	Plans    PlanQueue
	Changed  func(plan types.NamespacedName) // its target has changed
	Outdate  func(plan types.NamespacedName) // its target may have: the next look is to be live
}

// PlanQueue are the plans that are to be looked at.
type PlanQueue interface {
	Add(types.NamespacedName)
	AddAfter(types.NamespacedName, time.Duration)
}

// New watches nothing yet.
func New(c Config) *Watches {
	return &Watches{Config: c, open: map[Key]*Watch{}, plans: map[types.NamespacedName]targetUse{}}
}

// Expectations are the versions of targets that our own writes gave.
func (t *Watches) Expectations() *store.Expectations { return &t.wrote }

// Key tells watches apart. Whoever waits for a target needs to hear of it
// only that it is there or has changed: names says that the watch has no more.
type Key struct {
	Account  client.Account
	Resource schema.GroupVersionResource
	Cluster  bool
	Names    bool
}

// targetUse is what a plan looks at.
type targetUse struct {
	watch Key
	name  string
}

// Watch is one open watch, of all targets of a kind that an account looks at in a namespace.
type Watch struct {
	parent   context.Context //nolint:containedctx // of the work: a watch that is opened anew outlives the look that asked for it
	informer cache.SharedIndexInformer
	stop     context.CancelFunc
	mu       sync.Mutex
	plans    map[string][]types.NamespacedName // by the name of their target
	failure  string
	failed   time.Time // when the account was refused
}

// refusedPause is how long a watch that was refused, and that serves only to
// notice a target sooner, is not tried again (a guess).
const refusedPause = 2 * time.Minute

// maxOpen is how many watches are open for the plans of one namespace (a guess: eight
// accounts that each look at eight kinds).
const maxOpen = 64

// Keep makes sure that a plan's target is watched, and by nothing it no longer
// needs.
func (t *Watches) Keep(ctx context.Context, pk types.NamespacedName, wk Key, name string) *Watch {
	t.mu.Lock()
	defer t.mu.Unlock()
	use := targetUse{wk, name}
	old, have := t.plans[pk]
	if have && old != use {
		t.leave(pk)
	}
	w := t.open[wk]
	switch {
	case w == nil: // the plan is among those that hear of the first answer
		w = t.start(ctx, wk, map[string][]types.NamespacedName{name: {pk}}, "")
		t.open[wk], t.plans[pk] = w, use
	case !have || old != use:
		w.join(name, pk)
		t.plans[pk] = use
	}
	if w.informer == nil && t.Now().Sub(w.failed) >= refusedPause { // it was never begun
		t.restart(wk)
	}
	return t.open[wk]
}

// full says whether as many watches are open for a namespace as may be.
func (t *Watches) full(namespace string) bool {
	n := 0
	for wk, w := range t.open {
		if wk.Account.Namespace == namespace && w.informer != nil {
			n++
		}
	}
	return n >= maxOpen
}

// Await watches for a target that is not there or not ready, where the account may
// list and watch. The plan is looked at again when the target is not at the version
// that the plan has seen; 0 is one that was not there.
func (t *Watches) Await(ctx context.Context, pk types.NamespacedName, wk Key, ref plan.ObjectRef, version uint64) {
	w := t.Keep(ctx, pk, wk, ref.Name)
	now := t.Now()
	w.mu.Lock()
	refused := w.failure != "" && now.Sub(w.failed) >= refusedPause
	w.mu.Unlock()
	if refused {
		t.mu.Lock()
		t.restart(wk)
		t.mu.Unlock()
	}
	if w.version(wk, ref.Name) > version {
		t.Outdate(pk)
		t.Plans.AddAfter(pk, time.Second) // the watch was ahead of the look, or still is behind a deletion
	}
}

// Heard says whether a plan's target is watched, and the watch stands.
func (t *Watches) Heard(pk types.NamespacedName) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	use, have := t.plans[pk]
	if !have {
		return false
	}
	w := t.open[use.watch]
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failure == "" && w.informer != nil && w.informer.HasSynced()
}

// Drop ends a plan's interest.
func (t *Watches) Drop(pk types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.leave(pk)
}

func (t *Watches) leave(pk types.NamespacedName) {
	use, have := t.plans[pk]
	if !have {
		return
	}
	delete(t.plans, pk)
	w := t.open[use.watch]
	if w.left(use.name, pk) {
		w.stop()
		delete(t.open, use.watch)
	}
}

// Retry opens anew what an account was refused: its rights have changed.
func (t *Watches) Retry(w client.Account) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for wk, watch := range t.open {
		watch.mu.Lock()
		refused := watch.failure != ""
		watch.mu.Unlock()
		if wk.Account == w && refused {
			t.restart(wk)
		}
	}
}

// restart replaces a watch that was refused by a new one for the same plans. What
// was wrong is said until the new one has been answered.
func (t *Watches) restart(wk Key) {
	was := t.open[wk]
	if was == nil {
		return
	}
	was.stop()
	was.mu.Lock()
	defer was.mu.Unlock()
	t.open[wk] = t.start(was.parent, wk, maps.Clone(was.plans), was.failure)
}

// Count is how many watches are open.
func (t *Watches) Count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.open)
}

func (t *Watches) start(parent context.Context, wk Key, plans map[string][]types.NamespacedName, failure string) *Watch {
	ctx, cancel := context.WithCancel(parent)
	w := &Watch{parent: parent, stop: cancel, plans: plans, failure: failure, failed: t.Now()}
	if t.full(wk.Account.Namespace) {
		w.failure = fmt.Sprintf("namespace %s has %d watches of targets open, as many as one may: let its plans share ServiceAccounts, or spread them over namespaces", wk.Account.Namespace, maxOpen)
		return w
	}
	from, err := t.source(wk, func(err error) {
		switch {
		case err == nil: // whatever was wrong is over, though nothing may have changed
			t.works(w, wk)
		case apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err):
			t.refused(w, wk, err)
		}
	})
	if err != nil {
		w.failure = err.Error()
		return w
	}
	t.wire(w, from)
	go w.informer.RunWithContext(ctx)
	go func() { // a watch of nothing sends no event to say that it stands
		if cache.WaitForCacheSync(ctx.Done(), w.informer.HasSynced) {
			w.fail("", time.Time{})
			if !wk.Names {
				w.each("", t.Plans.Add)
			}
		}
	}()
	return w
}

// source lists and watches as the account, whose answers are told.
func (t *Watches) source(wk Key, told func(error)) (*informer.ListWatch, error) {
	namespace := wk.Account.Namespace
	if wk.Cluster {
		namespace = metav1.NamespaceAll
	}
	if wk.Names {
		c, err := t.Accounts.Metadata(wk.Account)
		if err != nil {
			return nil, err
		}
		from := informer.NewLongListWatch(&metav1.PartialObjectMetadata{}, told)
		names := c.Resource(wk.Resource).Namespace(namespace)
		from.ListFunc = func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return names.List(ctx, o) }
		from.WatchFunc = names.Watch
		return from, nil
	}
	c, err := t.Accounts.Clients(wk.Account, "")
	if err != nil {
		return nil, err
	}
	return informer.ForResource(c.Dynamic.Resource(wk.Resource).Namespace(namespace), told), nil
}

func (t *Watches) wire(w *Watch, from *informer.ListWatch) {
	w.informer, _ = informer.New(from, slimWatched, cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { t.changed(w, o) },
		UpdateFunc: func(_, o any) { t.changed(w, o) },
		DeleteFunc: func(o any) { t.changed(w, o) },
	})
}

// slimWatched keeps of an object what its plans look at.
func slimWatched(o any) (any, error) {
	switch o := o.(type) {
	case *unstructured.Unstructured:
		return Slim(o), nil
	case *metav1.PartialObjectMetadata:
		return &targetName{namespace: o.Namespace, name: o.Name, version: informer.Version(o.ResourceVersion)}, nil
	}
	return o, nil
}

// works notes that the account may look.
func (t *Watches) works(w *Watch, wk Key) {
	if w.fail("", time.Time{}) && !wk.Names {
		w.each("", t.Plans.Add)
	}
}

// refused notes that the account may not look. Where label triggers need the watch
// it is tried on, and the plans say so; else the plans ask for themselves.
func (t *Watches) refused(w *Watch, wk Key, err error) {
	news := w.fail(fmt.Sprintf("the ServiceAccount %s may not list and watch %s in namespace %s, which its label triggers need: %s", wk.Account.Name, wk.Resource.GroupResource(), wk.Account.Namespace, err), t.Now())
	switch {
	case wk.Names:
		w.stop()
	case news:
		w.each("", t.Plans.Add)
	}
}

func (t *Watches) changed(w *Watch, o any) {
	if d, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = d.Obj
	}
	m, err := meta.Accessor(o)
	if err != nil {
		return
	}
	w.fail("", time.Time{})
	w.each(m.GetName(), t.Changed)
}

// fail notes why nothing is seen, and says whether that is news.
func (w *Watch) fail(message string, at time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	news := w.failure != message
	w.failure, w.failed = message, at
	return news
}

func (w *Watch) join(name string, pk types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.plans[name] = append(w.plans[name], pk)
}

// left takes a plan off, and says whether it was the last.
func (w *Watch) left(name string, pk types.NamespacedName) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.plans[name] = slices.DeleteFunc(slices.Clone(w.plans[name]), func(k types.NamespacedName) bool { return k == pk })
	if len(w.plans[name]) == 0 {
		delete(w.plans, name)
	}
	return len(w.plans) == 0
}

// each visits the plans whose target has the name; an empty name is all.
func (w *Watch) each(name string, visit func(types.NamespacedName)) {
	w.mu.Lock()
	var hit []types.NamespacedName
	if name != "" {
		hit = slices.Clone(w.plans[name])
	} else {
		hit = slices.Concat(slices.Collect(maps.Values(w.plans))...)
	}
	w.mu.Unlock()
	for _, pk := range hit {
		visit(pk)
	}
}

// version is the one at which an object is seen; 0: not at all.
func (w *Watch) version(wk Key, name string) uint64 {
	if w.informer == nil {
		return 0
	}
	k := name
	if !wk.Cluster {
		k = wk.Account.Namespace + "/" + name
	}
	o, found, err := w.informer.GetStore().GetByKey(k)
	if err != nil || !found {
		return 0
	}
	m, err := meta.Accessor(o)
	if err != nil {
		return 0
	}
	return informer.Version(m.GetResourceVersion())
}

// Get is the target as last seen, or why it is not seen.
func (w *Watch) Get(namespace, name string) (*Object, string) {
	w.mu.Lock()
	failure := w.failure
	w.mu.Unlock()
	if failure != "" {
		return nil, failure
	}
	if w.informer == nil || !w.informer.HasSynced() {
		return nil, "its target has not been read yet"
	}
	k := name
	if namespace != "" {
		k = namespace + "/" + name
	}
	o, found, err := w.informer.GetStore().GetByKey(k)
	if err != nil || !found {
		return nil, ""
	}
	return o.(*Object), ""
}
