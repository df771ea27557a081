package targets

import (
	"context"
	"fmt"
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

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/informer"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
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
	set   *informer.Set
	mu    sync.Mutex
	plans map[types.NamespacedName]*Watch
	wrote store.Expectations // on targets
}

// Config is what targets are watched with.
type Config struct {
	Accounts *client.Impersonator
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
	bound := informer.Bound{Max: maxOpen, Of: "targets", Advice: "let its plans share ServiceAccounts, or spread them over namespaces"}
	return &Watches{Config: c, set: informer.NewSet(bound), plans: map[types.NamespacedName]*Watch{}}
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
	Where    client.ClusterIdentity // whose connection stands while it is watched
}

// Watch is a plan's part in the watch of all targets of a kind that an account looks at in a
// namespace.
type Watch struct {
	key     Key
	name    string
	use     *informer.Use // nil: it could not be opened
	failure string        // and why
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
	if have := t.plans[pk]; have != nil && have.key == wk && have.name == name {
		return have
	}
	t.leave(pk)
	member := informer.Member{Name: name, Changed: func(any, bool) { t.Changed(pk) }}
	if !wk.Names { // who waits asks for itself
		member.Established = func() { t.Plans.Add(pk) }
	}
	use, err := t.set.Join(ctx, wk.shared(), t.source(wk), member)
	if err != nil {
		return &Watch{failure: err.Error()}
	}
	w := &Watch{key: wk, name: name, use: use}
	t.plans[pk] = w
	return w
}

// Await watches for a target that is not there or not ready, where the account may
// list and watch. The plan is looked at again when the target is not at the version
// that the plan has seen; 0 is one that was not there.
func (t *Watches) Await(ctx context.Context, pk types.NamespacedName, wk Key, ref plan.ObjectRef, version uint64) {
	if t.Keep(ctx, pk, wk, ref.Name).version() > version {
		t.Outdate(pk)
		t.Plans.AddAfter(pk, time.Second) // the watch was ahead of the look, or still is behind a deletion
	}
}

// IsWatched says whether a plan's target is watched, and the watch stands.
func (t *Watches) IsWatched(pk types.NamespacedName) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := t.plans[pk]
	return w != nil && w.use.Refusal() == nil && w.use.Synced()
}

// Drop ends a plan's interest.
func (t *Watches) Drop(pk types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.leave(pk)
}

func (t *Watches) leave(pk types.NamespacedName) {
	if w := t.plans[pk]; w != nil {
		w.use.Leave()
		delete(t.plans, pk)
	}
}

// Retry asks again for what an account was refused: its rights have changed.
func (t *Watches) Retry(w client.Account) { t.set.Retry(types.NamespacedName(w)) }

// Count is how many watches are open.
func (t *Watches) Count() int { return t.set.Count() }

func (wk Key) shared() informer.Key {
	k := informer.Key{As: types.NamespacedName(wk.Account), Resource: wk.Resource, Namespace: wk.Account.Namespace}
	if wk.Cluster {
		k.Namespace = metav1.NamespaceAll
	}
	if k.Variant = wk.Where.Connection; wk.Names {
		k.Variant += " names"
	}
	return k
}

// source lists and watches as the account. Where label triggers need the watch it is tried
// on while it is refused, and the plans say so; else the plans ask for themselves.
func (t *Watches) source(wk Key) informer.Source {
	source := informer.Source{Open: func() (*informer.ListWatch, error) { return t.open(wk) }, Keep: wk.slimWatched, Refusal: wk.refusal, RefusalTimeout: workflow.RefusalTimeout}
	if wk.Names {
		source.RefusalTimeout = 0 // nobody is told of it
		source.Pause = func(failed int, err error) time.Duration {
			if wk.refusal(err) != nil && !apierrors.IsNotFound(err) { // a kind may come at any time
				return refusedPause
			}
			return informer.Backoff(failed, err)
		}
	}
	return source
}

func (t *Watches) open(wk Key) (*informer.ListWatch, error) {
	if wk.Where.Connection != "" {
		c, err := t.Accounts.Connected(wk.Where.Connection)
		switch {
		case err != nil:
			return nil, err
		case wk.Names:
			return wk.shared().Metadata(c.Metadata), nil
		}
		return wk.shared().Objects(c.Dynamic), nil
	}
	if wk.Names {
		c, err := t.Accounts.Metadata(wk.Account)
		if err != nil {
			return nil, err
		}
		return wk.shared().Metadata(c), nil
	}
	c, err := t.Accounts.Clients(wk.Account, "")
	if err != nil {
		return nil, err
	}
	return wk.shared().Objects(c.Dynamic), nil
}

// slimWatched keeps of an object what its plans look at.
func (wk Key) slimWatched(o runtime.Object, _ any) any {
	switch o := o.(type) {
	case *unstructured.Unstructured:
		return Slim(o, wk.Where)
	case *metav1.PartialObjectMetadata:
		return &targetName{namespace: o.Namespace, name: o.Name, version: informer.Version(o.ResourceVersion)}
	}
	return o
}

// refusal says that the account may not look, that nobody can, or that there is nothing to look at.
func (wk Key) refusal(err error) error {
	if apierrors.IsNotFound(err) {
		where := "this cluster"
		if wk.Where.Name != "" {
			where = "K8SCluster " + wk.Where.Name
		}
		return fmt.Errorf("%s does not serve %s, the kind of its target, any more: %w", where, wk.Resource.GroupResource(), err)
	}
	if apierrors.IsMethodNotSupported(err) {
		return fmt.Errorf("the API server lets nobody list and watch %s, which the plan's label triggers need: %w", wk.Resource.GroupResource(), err)
	}
	if !apierrors.IsForbidden(err) && !apierrors.IsUnauthorized(err) {
		return nil
	}
	if wk.Where.Name != "" {
		return fmt.Errorf("the account of K8SCluster %s may not list and watch %s in namespace %s there, which the plan's label triggers need: %w", wk.Where.Name, wk.Resource.GroupResource(), wk.Account.Namespace, err)
	}
	return fmt.Errorf("the ServiceAccount %s may not list and watch %s in namespace %s, which its label triggers need: %w", wk.Account.Name, wk.Resource.GroupResource(), wk.Account.Namespace, err)
}

// version is the one at which the target is seen; 0: not at all.
func (w *Watch) version() uint64 {
	if w.use == nil {
		return 0
	}
	m, err := meta.Accessor(w.use.Get(w.use.Key().Namespace, w.name))
	if err != nil {
		return 0
	}
	return informer.Version(m.GetResourceVersion())
}

// Get is the target as last seen, or why it is not seen.
func (w *Watch) Get(namespace, name string) (*Object, string) {
	if w.use == nil {
		return nil, w.failure
	}
	if trouble := w.use.Trouble(); trouble != nil {
		return nil, trouble.Error()
	}
	if !w.use.Synced() {
		return nil, "its target has not been read yet"
	}
	o, found := w.use.Get(namespace, name).(*Object)
	if !found {
		return nil, ""
	}
	return o, ""
}
