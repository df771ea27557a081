package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/queue"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/informer"
	"github.com/kubectl-maint/kubectl-maint/pkg/kube"
)

const (
	// freshTTL is how long a live look counts: what starts within that time of it
	// asks no more (a guess: a run's steps follow faster than people write).
	freshTTL = 2 * time.Second
	// echo is how long a watch has to show what a live look found, before it is
	// doubted (a guess: ten times what a busy API server takes).
	echo = time.Second
	// manyWaiting is from how many keys that wait on all plans are asked for at once; where
	// there are more than fewPlans, to ask for each costs less (guesses: the API server
	// lists about as many in the time between two such looks as are claimed then).
	manyWaiting = 64
	fewPlans    = 2000
	// confirmTimeout is how long somebody waits for an answer who has other work that must not
	// wait, as to wake what sleeps (a guess: ten times what a list of all takes).
	confirmTimeout = 10 * time.Second
)

// freshness knows of which plans and HibernatePlans, and of what gates them, it is certain that the
// caches show them as they are: by asking, at the moment when something is claimed or
// begins. A watch that has died says nothing of it.
type freshness struct {
	config FreshConfig
	docs   *Documents
	all    *sharedCheck // plans, where many wait

	mu      sync.Mutex
	in      map[string]*namespaceCheck                 // by namespace
	cleared uint64                                     // what their counts begin with
	plans   map[types.NamespacedName]time.Time         // when each was last looked at
	newer   map[types.NamespacedName]*corev1.ConfigMap // plans as they were read, until the watch shows that
	gone    map[types.NamespacedName]string            // uids of plans that are no longer there, until the watch shows that
}

// namespaceCheck is the look at what gates the plans of a namespace: what it says itself, and the
// policies, calendars, templates, connectors and configuration in it.
type namespaceCheck struct {
	*sharedCheck
	found atomic.Uint64 // grows whenever something of it was found to be old, and again when it is no more
}

// FreshConfig is what is needed to look live.
type FreshConfig struct {
	Kube           kube.Interface
	Meta           metadata.Interface
	Namespace      string // the agent's own
	WatchNamespace string // empty: all
	Now            func() time.Time
	Backlog        func() int // how many documents wait to be looked at
	Plans          func() int // how many plans there are
}

func newFreshness(d *Documents, c FreshConfig) *freshness {
	return &freshness{config: c, docs: d, all: newSharedCheck(), in: map[string]*namespaceCheck{}, plans: map[types.NamespacedName]time.Time{}, newer: map[types.NamespacedName]*corev1.ConfigMap{}, gone: map[types.NamespacedName]string{}}
}

// document is a plan as it was read live, where that is newer than what the cache has.
func (f *freshness) document(k types.NamespacedName, cached *corev1.ConfigMap) *corev1.ConfigMap {
	f.mu.Lock()
	defer f.mu.Unlock()
	if uid, gone := f.gone[k]; gone {
		if cached != nil && string(cached.UID) == uid {
			return nil
		}
		delete(f.gone, k)
	}
	newer := f.newer[k]
	if newer == nil {
		return cached
	}
	if cached != nil && informer.VersionOf(cached) >= informer.VersionOf(newer) {
		delete(f.newer, k)
		return cached
	}
	return newer
}

// forget drops a plan that the watch shows as gone.
func (f *freshness) forget(k types.NamespacedName) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.newer, k)
	delete(f.gone, k)
	delete(f.plans, k)
}

// namespacesFor are those whose documents may gate a plan: its own, and the agent's. What others
// write into theirs neither delays it nor has it decided anew.
func (f *freshness) namespacesFor(k types.NamespacedName) []string {
	switch own := f.config.Namespace; {
	case f.config.WatchNamespace != "":
		return []string{f.config.WatchNamespace}
	case k.Namespace == "" || k.Namespace == own:
		return []string{own}
	default:
		return []string{own, k.Namespace}
	}
}

func (f *freshness) check(namespace string) *namespaceCheck {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.in[namespace]
	if c == nil {
		if len(f.in) > 20_000 { // bounded by forgetting; what was decided on them is decided anew
			clear(f.in)
			f.cleared += 1 << 32
		}
		c = &namespaceCheck{sharedCheck: newSharedCheck()}
		c.found.Store(f.cleared)
		f.in[namespace] = c
	}
	return c
}

// recent says whether a plan and what gates it have been looked at live just now.
func (f *freshness) recent(k types.NamespacedName, now time.Time) bool {
	f.mu.Lock()
	at := f.plans[k]
	f.mu.Unlock()
	return (k.Name == "" || now.Sub(at).Abs() < freshTTL) &&
		!slices.ContainsFunc(f.namespacesFor(k), func(in string) bool { return !f.check(in).recent(now) })
}

// Basis is what a decision over a plan was made on.
type Basis struct {
	// Of each namespace that may gate it: how often something was found to be old, which change was
	// taken in last, and its own version.
	gates   [2]struct{ found, taken, namespace uint64 }
	version uint64 // of the plan
}

// Basis is to be taken before the caches are read. An empty name is for what begins without a
// plan: it rests on the policies and pauses of the agent's namespace alone.
func (d *Documents) Basis(k types.NamespacedName) (b Basis) {
	for i, in := range d.fresh.namespacesFor(k) {
		of := &b.gates[i]
		of.found, of.namespace = d.fresh.check(in).found.Load(), d.namespaces.Version(types.NamespacedName{Name: in})
		of.taken = d.cache.ChangedIn(in, annotations.KindPlan, annotations.KindHibernatePlan)
	}
	if cm := d.newest(k); cm != nil {
		b.version = informer.VersionOf(cm)
	}
	return b
}

// Confirm says whether what was decided may be begun: the caches, which are made sure of
// now, still show what it was decided on. Where they do not, it is to be decided anew.
func (d *Documents) Confirm(ctx context.Context, k types.NamespacedName, b Basis) (bool, error) {
	if !d.fresh.recent(k, d.fresh.config.Now()) {
		if err := d.fresh.confirm(ctx, k); err != nil {
			return false, err
		}
	}
	return d.Basis(k) == b, nil
}

// ConfirmSoon is Confirm for those who have other work that must not wait. queue.ErrConflict says
// that it is to be decided anew.
func (d *Documents) ConfirmSoon(ctx context.Context, k types.NamespacedName, b Basis) error {
	ctx, cancel := context.WithTimeout(ctx, confirmTimeout)
	defer cancel()
	unchanged, err := d.Confirm(ctx, k, b)
	if err == nil && !unchanged {
		return queue.ErrConflict
	}
	return err
}

// GateCheck is to be taken before the caches are read, by a look that begins things without a plan:
// it confirms that what gates them is as it was seen.
func (d *Documents) GateCheck() func(context.Context) error {
	on := d.Basis(types.NamespacedName{})
	return func(ctx context.Context) error { return d.ConfirmSoon(ctx, types.NamespacedName{}, on) }
}

// confirm looks live at a plan and at all that gates it.
func (f *freshness) confirm(ctx context.Context, k types.NamespacedName) error {
	for _, in := range f.namespacesFor(k) {
		c := f.check(in)
		if err := c.do(ctx, f.config.Now, func() error { return f.confirmNamespace(ctx, in, c) }); err != nil {
			return err
		}
	}
	if k.Name == "" {
		return nil
	}
	if f.config.Backlog() > manyWaiting && f.docs.Plan(k) != nil {
		if n := f.config.Plans(); n <= fewPlans && f.config.Backlog() > n/20 {
			if err := f.all.do(ctx, f.config.Now, func() error { return f.confirmPlans(ctx) }); err != nil {
				return fmt.Errorf("look whether the plans are as they were seen: %w", err)
			}
		}
	}
	if err := f.confirmPlan(ctx, k); err != nil {
		return fmt.Errorf("look whether plan %s is as it was seen: %w", k, err)
	}
	return nil
}

// confirmPlan reads one plan.
func (f *freshness) confirmPlan(ctx context.Context, k types.NamespacedName) error {
	began := f.config.Now()
	f.mu.Lock()
	known := began.Sub(f.plans[k]).Abs() < freshTTL
	f.mu.Unlock()
	if known {
		return nil
	}
	live, err := f.config.Kube.CoreV1().ConfigMaps(k.Namespace).Get(ctx, k.Name, metav1.GetOptions{})
	there := !apierrors.IsNotFound(err)
	if err != nil && there {
		return err
	}
	have := f.docs.newest(k)
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.plans) > 50_000 { // bounded by forgetting
		clear(f.plans)
	}
	f.plans[k] = began
	switch {
	case !there && have != nil:
		f.gone[k] = string(have.UID)
		delete(f.newer, k)
		f.doubtUnless(func() bool { now := f.docs.Any(k); return now == nil || now.UID != have.UID })
	case there && (have == nil || informer.VersionOf(live) > informer.VersionOf(have)):
		_, err = Strip(live)
		f.newer[k] = live
		f.doubtUnless(func() bool { return f.docs.newest(k) != live })
		return err
	}
	return nil // a plan that is gone is an answer, too
}

// doubtUnless doubts the watch of documents where it shows nothing, and not soon what was read live.
func (f *freshness) doubtUnless(shown func() bool) {
	handed := f.docs.cache.From.Handed()
	time.AfterFunc(echo, func() {
		if !shown() && !f.docs.cache.From.RelistUnless(handed) {
			f.doubtUnless(shown)
		}
	})
}

// confirmPlans compares all plans with what the cache has; those that differ are read
// one by one.
func (f *freshness) confirmPlans(ctx context.Context) error {
	began := f.config.Now()
	of := metav1.ListOptions{LabelSelector: annotations.LabelKind + "=" + annotations.KindPlan}
	_, err := f.eachOf(ctx, "configmaps", f.config.WatchNamespace, of, func(m *metav1.PartialObjectMetadata) {
		k := types.NamespacedName{Namespace: m.Namespace, Name: m.Name}
		have := f.docs.Plan(k)
		if have == nil || informer.VersionOf(have) < informer.Version(m.ResourceVersion) {
			return
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		f.plans[k] = began
	})
	return err
}

// confirmNamespace makes sure of the policies, calendars, templates, connectors and configuration in
// a namespace, and of the pause and the stanza on it.
func (f *freshness) confirmNamespace(ctx context.Context, in string, c *namespaceCheck) error {
	kinds := []string{annotations.KindPolicy, annotations.KindCalendar, annotations.KindStepTemplate, annotations.KindConnector, annotations.KindGate, annotations.KindAgentConfig}
	of := metav1.ListOptions{LabelSelector: annotations.LabelKind + " in (" + strings.Join(kinds, ",") + ")"}
	if err := f.confirmCache(ctx, f.docs.cache, c, "configmaps", in, of, func(there map[string]uint64) bool {
		return f.docs.cache.ShowsIn(in, there, func(kind string) bool { return slices.Contains(kinds, kind) })
	}); err != nil {
		return fmt.Errorf("look whether the policies are as they were seen: %w", err)
	}
	if f.config.WatchNamespace != "" {
		return nil
	}
	of = metav1.ListOptions{FieldSelector: metav1.ObjectNameField + "=" + in}
	if err := f.confirmCache(ctx, f.docs.namespaces, c, "namespaces", "", of, func(there map[string]uint64) bool {
		version := f.docs.namespaces.Version(types.NamespacedName{Name: in})
		return version >= there[in] && (version == 0 || there[in] != 0)
	}); err != nil {
		return fmt.Errorf("look whether the namespaces are as they were seen: %w", err)
	}
	return nil
}

// confirmCache compares what is there with what the handler of a cache has taken in,
// and waits until that is no older.
func (f *freshness) confirmCache(ctx context.Context, cache *informer.Cache, c *namespaceCheck, resource, namespace string, of metav1.ListOptions, shows func(there map[string]uint64) bool) error {
	there := map[string]uint64{}
	version, err := f.eachOf(ctx, resource, namespace, of, func(m *metav1.PartialObjectMetadata) { there[m.Name] = informer.Version(m.ResourceVersion) })
	if err != nil || shows(there) {
		return err
	}
	c.found.Add(1)
	defer c.found.Add(1) // who decided while it was not yet taken in decides anew, too
	return cache.Await(ctx, version, echo, func() bool { return shows(there) })
}

// eachOf hands on the metadata of what is there now of a core resource, and says which version the
// list has.
func (f *freshness) eachOf(ctx context.Context, resource, namespace string, of metav1.ListOptions, see func(*metav1.PartialObjectMetadata)) (version uint64, err error) {
	from := f.config.Meta.Resource(corev1.SchemeGroupVersion.WithResource(resource)).Namespace(namespace)
	err = kube.EachOf(ctx, func(ctx context.Context, page metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
		page.FieldSelector = of.FieldSelector
		list, err := from.List(ctx, page)
		if err == nil {
			version = informer.Version(list.ResourceVersion)
		}
		return list, err
	}, of.LabelSelector, func(m *metav1.PartialObjectMetadata) error {
		see(m)
		return nil
	})
	return version, err
}
