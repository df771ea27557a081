package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
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
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/informer"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/trigger"
)

// targetObject is what is kept of a target: enough to see requests and
// readiness, and nothing of what it holds.
type targetObject struct {
	metav1.ObjectMeta
	ready string // why it is not ready; empty: it is
}

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

// facts are a target as the decisions look at it.
func (t *targetObject) facts(keys []string) *trigger.Target {
	out := &trigger.Target{UID: string(t.UID), Labels: map[string]trigger.TargetLabel{}, Handled: map[string]int64{}}
	for _, k := range keys {
		if value, present := t.Labels[k]; present {
			out.Labels[k] = trigger.TargetLabel{Value: value, Owner: annotations.DeclaredBy(&t.ObjectMeta, k)}
		}
		// Whoever may annotate the target may write any number there.
		if n, err := strconv.ParseInt(t.Annotations[annotations.Handled(k)], 10, 64); err == nil && n > 0 && n < trigger.MaxOrdinal {
			out.Handled[k] = n
		}
	}
	return out
}

func slimTarget(u *unstructured.Unstructured) *targetObject {
	t := &targetObject{ready: notReady(u)}
	t.Name, t.Namespace, t.UID, t.ResourceVersion = u.GetName(), u.GetNamespace(), u.GetUID(), u.GetResourceVersion()
	t.Labels, t.ManagedFields, t.DeletionTimestamp = u.GetLabels(), u.GetManagedFields(), u.GetDeletionTimestamp()
	t.Annotations = map[string]string{}
	for k, v := range u.GetAnnotations() {
		if strings.HasPrefix(k, annotations.StatusPrefix) || strings.HasSuffix(k, annotations.MirrorSkip) {
			t.Annotations[k] = v
		}
	}
	return t
}

// notReady says why an object is not ready yet: by its replicas where it has
// such, by its Ready condition where it has one, else it is ready by being there.
func notReady(u *unstructured.Unstructured) string {
	if observed, found, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration"); found && observed < u.GetGeneration() {
		return "its controller has not seen its newest generation"
	}
	if want, found, _ := unstructured.NestedInt64(u.Object, "spec", "replicas"); found {
		have, _, _ := unstructured.NestedInt64(u.Object, "status", "readyReplicas")
		if have < want {
			return fmt.Sprintf("%d of %d replicas are ready", have, want)
		}
		return ""
	}
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range conditions {
		if m, ok := c.(map[string]any); ok && m["type"] == "Ready" && m["status"] != "True" {
			return "its condition Ready is " + fmt.Sprint(m["status"])
		}
	}
	return ""
}

// errGone says that a target is not there.
type errGone struct{ ref plan.ObjectRef }

func (e errGone) Error() string { return e.ref.String() + " does not exist" }

// readTarget reads a target live, as the plan's account.
func (a *Agent) readTarget(ctx context.Context, w client.Account, ref plan.ObjectRef) (*unstructured.Unstructured, error) {
	from, err := a.accounts.Resource(w, "", ref)
	if err != nil {
		return nil, err
	}
	u, err := from.Get(ctx, ref.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		gone, asked := a.accounts.ObjectGone(err, schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind))
		if gone {
			return nil, errGone{ref}
		}
		err = errors.Join(err, asked)
	}
	if err != nil {
		return nil, fmt.Errorf("read the target %s as %s: %w", ref, w.User(), err)
	}
	return u, nil
}

// targetWatches watch the targets of plans with label triggers, and those that
// plans wait for: one watch for all targets of a kind in a namespace that one
// account looks at.
type targetWatches struct {
	agent *Agent
	mu    sync.Mutex
	open  map[watchKey]*targetWatch
	plans map[types.NamespacedName]targetUse
	wrote ownWrites // on targets
}

// watchKey tells watches apart. Whoever waits for a target needs to hear of it
// only that it is there or has changed: names says that the watch has no more.
type watchKey struct {
	who      client.Account
	resource schema.GroupVersionResource
	cluster  bool
	names    bool
}

// targetUse is what a plan looks at.
type targetUse struct {
	watch watchKey
	name  string
}

type targetWatch struct {
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

// keep makes sure that a plan's target is watched, and by nothing it no longer
// needs.
func (t *targetWatches) keep(ctx context.Context, pk types.NamespacedName, wk watchKey, name string) *targetWatch {
	t.mu.Lock()
	defer t.mu.Unlock()
	use := targetUse{wk, name}
	old, have := t.plans[pk]
	if have && old != use {
		t.leave(pk)
	}
	w := t.open[wk]
	if w == nil {
		w = t.start(ctx, wk, map[string][]types.NamespacedName{}, "")
		t.open[wk] = w
	}
	if !have || old != use {
		w.join(name, pk)
		t.plans[pk] = use
	}
	return w
}

// await watches for a target that is not there or not ready, where the account may
// list and watch. The plan is looked at again when the target is not at the version
// that the plan has seen; 0 is one that was not there.
func (t *targetWatches) await(ctx context.Context, pk types.NamespacedName, wk watchKey, ref plan.ObjectRef, version uint64) {
	w := t.keep(ctx, pk, wk, ref.Name)
	now := t.agent.now()
	w.mu.Lock()
	refused := w.failure != "" && now.Sub(w.failed) >= refusedPause
	w.mu.Unlock()
	if refused {
		t.mu.Lock()
		t.restart(wk)
		t.mu.Unlock()
	}
	if w.version(wk, ref.Name) > version {
		t.agent.blockers.outdate(pk)
		t.agent.planQueue.AddAfter(pk, time.Second) // the watch was ahead of the look, or still is behind a deletion
	}
}

// heard says whether a plan's target is watched, and the watch stands.
func (t *targetWatches) heard(pk types.NamespacedName) bool {
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

// drop ends a plan's interest.
func (t *targetWatches) drop(pk types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.leave(pk)
}

func (t *targetWatches) leave(pk types.NamespacedName) {
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

// retry opens anew what an account was refused: its rights have changed.
func (t *targetWatches) retry(w client.Account) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for wk, watch := range t.open {
		watch.mu.Lock()
		refused := watch.failure != ""
		watch.mu.Unlock()
		if wk.who == w && refused {
			t.restart(wk)
		}
	}
}

// restart replaces a watch that was refused by a new one for the same plans. What
// was wrong is said until the new one has been answered.
func (t *targetWatches) restart(wk watchKey) {
	was := t.open[wk]
	if was == nil {
		return
	}
	was.stop()
	was.mu.Lock()
	defer was.mu.Unlock()
	t.open[wk] = t.start(was.parent, wk, maps.Clone(was.plans), was.failure)
}

func (t *targetWatches) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.open)
}

func (t *targetWatches) start(parent context.Context, wk watchKey, plans map[string][]types.NamespacedName, failure string) *targetWatch {
	ctx, cancel := context.WithCancel(parent)
	w := &targetWatch{parent: parent, stop: cancel, plans: plans, failure: failure, failed: t.agent.now()}
	from, err := t.agent.targetSource(wk, func(err error) {
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
			if !wk.names {
				w.each("", t.agent.ringPlan)
			}
		}
	}()
	return w
}

// targetSource lists and watches as the account, whose answers are told.
func (a *Agent) targetSource(wk watchKey, told func(error)) (*informer.ListWatch, error) {
	namespace := wk.who.Namespace
	if wk.cluster {
		namespace = metav1.NamespaceAll
	}
	if wk.names {
		c, err := a.accounts.Metadata(wk.who)
		if err != nil {
			return nil, err
		}
		from := informer.NewLongListWatch(&metav1.PartialObjectMetadata{}, told)
		names := c.Resource(wk.resource).Namespace(namespace)
		from.ListFunc = func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return names.List(ctx, o) }
		from.WatchFunc = names.Watch
		return from, nil
	}
	c, err := a.accounts.Clients(wk.who, "")
	if err != nil {
		return nil, err
	}
	return informer.ForResource(c.Dynamic.Resource(wk.resource).Namespace(namespace), told), nil
}

func (t *targetWatches) wire(w *targetWatch, from *informer.ListWatch) {
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
		return slimTarget(o), nil
	case *metav1.PartialObjectMetadata:
		return &targetName{namespace: o.Namespace, name: o.Name, version: informer.Version(o.ResourceVersion)}, nil
	}
	return o, nil
}

// works notes that the account may look.
func (t *targetWatches) works(w *targetWatch, wk watchKey) {
	if w.fail("", time.Time{}) && !wk.names {
		w.each("", t.agent.ringPlan)
	}
}

// refused notes that the account may not look. Where label triggers need the watch
// it is tried on, and the plans say so; else the plans ask for themselves.
func (t *targetWatches) refused(w *targetWatch, wk watchKey, err error) {
	news := w.fail(fmt.Sprintf("the ServiceAccount %s may not list and watch %s in namespace %s, which its label triggers need: %s", wk.who.Name, wk.resource.GroupResource(), wk.who.Namespace, err), t.agent.now())
	switch {
	case wk.names:
		w.stop()
	case news:
		w.each("", t.agent.ringPlan)
	}
}

func (t *targetWatches) changed(w *targetWatch, o any) {
	if d, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = d.Obj
	}
	m, err := meta.Accessor(o)
	if err != nil {
		return
	}
	w.fail("", time.Time{})
	w.each(m.GetName(), t.agent.blockers.changed)
}

// fail notes why nothing is seen, and says whether that is news.
func (w *targetWatch) fail(message string, at time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	news := w.failure != message
	w.failure, w.failed = message, at
	return news
}

func (w *targetWatch) join(name string, pk types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.plans[name] = append(w.plans[name], pk)
}

// left takes a plan off, and says whether it was the last.
func (w *targetWatch) left(name string, pk types.NamespacedName) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.plans[name] = slices.DeleteFunc(slices.Clone(w.plans[name]), func(k types.NamespacedName) bool { return k == pk })
	if len(w.plans[name]) == 0 {
		delete(w.plans, name)
	}
	return len(w.plans) == 0
}

// each visits the plans whose target has the name; an empty name is all.
func (w *targetWatch) each(name string, visit func(types.NamespacedName)) {
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
func (w *targetWatch) version(wk watchKey, name string) uint64 {
	if w.informer == nil {
		return 0
	}
	k := name
	if !wk.cluster {
		k = wk.who.Namespace + "/" + name
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

// get is the target as last seen, or why it is not seen.
func (w *targetWatch) get(namespace, name string) (*targetObject, string) {
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
	return o.(*targetObject), ""
}
