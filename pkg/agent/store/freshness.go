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
	"k8s.io/apimachinery/pkg/runtime/schema"
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
	gates  sharedCheck // policies, calendars, templates, the agent's configuration
	above  sharedCheck // namespaces
	all    sharedCheck // plans, where many wait

	found atomic.Int64 // grows whenever what gates plans was found to be old, and again when it is no more

	mu    sync.Mutex
	plans map[types.NamespacedName]time.Time         // when each was last looked at
	newer map[types.NamespacedName]*corev1.ConfigMap // plans as they were read, until the watch shows that
	gone  map[types.NamespacedName]string            // uids of plans that are no longer there, until the watch shows that
}

// sharedCheck is a look whose answer serves everybody who needs one at that time.
type sharedCheck struct {
	turn chan struct{} // whoever looks holds its one place

	mu sync.Mutex
	at time.Time // when the last one began
}

func newSharedCheck() sharedCheck { return sharedCheck{turn: make(chan struct{}, 1)} }

// do looks where nobody has just now. Whoever comes meanwhile waits for that look, and no longer
// than its ctx.
func (s *sharedCheck) do(ctx context.Context, now func() time.Time, look func() error) error {
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-s.turn }()
	began := now()
	if s.recent(began) {
		return nil
	}
	if err := look(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at = began
	return nil
}

func (s *sharedCheck) recent(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return now.Sub(s.at).Abs() < freshTTL
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
	return &freshness{config: c, docs: d, gates: newSharedCheck(), above: newSharedCheck(), all: newSharedCheck(), plans: map[types.NamespacedName]time.Time{}, newer: map[types.NamespacedName]*corev1.ConfigMap{}, gone: map[types.NamespacedName]string{}}
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

// recent says whether a plan and what gates it have been looked at live just now.
func (f *freshness) recent(k types.NamespacedName, now time.Time) bool {
	f.mu.Lock()
	at := f.plans[k]
	f.mu.Unlock()
	return (k.Name == "" || now.Sub(at).Abs() < freshTTL) && f.gates.recent(now) && (f.config.WatchNamespace != "" || f.above.recent(now))
}

// Basis is what a decision over a plan was made on.
type Basis struct {
	found   int64  // how often what gates plans had been found to be old
	taken   uint64 // how often something of what gates plans was taken in
	version uint64 // of the plan
}

// Basis is to be taken before the caches are read. An empty name is for what begins without a
// plan: it rests on policies and pauses alone.
func (d *Documents) Basis(k types.NamespacedName) Basis {
	b := Basis{found: d.fresh.found.Load(), taken: d.cache.ChangesBut(annotations.KindPlan, annotations.KindHibernatePlan) + d.namespaces.ChangesBut()}
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
	if err := f.gates.do(ctx, f.config.Now, func() error { return f.confirmGates(ctx) }); err != nil {
		return fmt.Errorf("look whether the policies are as they were seen: %w", err)
	}
	if f.config.WatchNamespace == "" {
		if err := f.above.do(ctx, f.config.Now, func() error { return f.confirmNamespaces(ctx) }); err != nil {
			return fmt.Errorf("look whether the namespaces are as they were seen: %w", err)
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
		f.doubtUnless(func() bool { return f.docs.cache.Version(k) == 0 })
	case there && (have == nil || informer.VersionOf(live) > informer.VersionOf(have)):
		_, err = Strip(live)
		f.newer[k] = live
		f.doubtUnless(func() bool { return f.docs.cache.Version(k) >= informer.VersionOf(live) })
		return err
	}
	return nil // a plan that is gone is an answer, too
}

// doubtUnless doubts the watch of documents that does not show soon what was read live.
func (f *freshness) doubtUnless(shown func() bool) {
	time.AfterFunc(echo, func() {
		if !shown() {
			f.docs.cache.From.Relist()
		}
	})
}

// confirmPlans compares all plans with what the cache has; those that differ are read
// one by one.
func (f *freshness) confirmPlans(ctx context.Context) error {
	began := f.config.Now()
	return f.eachOf(ctx, "configmaps", f.config.WatchNamespace, annotations.LabelKind+"="+annotations.KindPlan, func(m *metav1.PartialObjectMetadata, _ uint64) {
		if m == nil {
			return
		}
		k := types.NamespacedName{Namespace: m.Namespace, Name: m.Name}
		have := f.docs.Plan(k)
		if have == nil || informer.VersionOf(have) < informer.Version(m.ResourceVersion) {
			return
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		f.plans[k] = began
	})
}

// confirmGates makes sure of policies, calendars, templates and the configuration.
func (f *freshness) confirmGates(ctx context.Context) error {
	kinds := []string{annotations.KindPolicy, annotations.KindCalendar, annotations.KindStepTemplate, annotations.KindConnector, annotations.KindGate, annotations.KindAgentConfig}
	selector := annotations.LabelKind + " in (" + strings.Join(kinds, ",") + ")"
	return f.confirmCache(ctx, f.docs.cache, "configmaps", f.config.WatchNamespace, selector, func(kind string) bool { return slices.Contains(kinds, kind) })
}

// confirmNamespaces makes sure of the pauses and stanzas on namespaces.
func (f *freshness) confirmNamespaces(ctx context.Context) error {
	return f.confirmCache(ctx, f.docs.namespaces, "namespaces", "", "", func(string) bool { return true })
}

// confirmCache compares what is there with what the handler of a cache has taken in,
// and waits until that is no older: for the watch as long as an echo takes, then for a
// list.
func (f *freshness) confirmCache(ctx context.Context, c *informer.Cache, resource, namespace, selector string, ours func(kind string) bool) error {
	there, version := map[types.NamespacedName]uint64{}, uint64(0)
	err := f.eachOf(ctx, resource, namespace, selector, func(m *metav1.PartialObjectMetadata, list uint64) {
		version = list
		if m != nil {
			there[types.NamespacedName{Namespace: m.Namespace, Name: m.Name}] = informer.Version(m.ResourceVersion)
		}
	})
	if err != nil || c.Shows(there, ours) {
		return err
	}
	f.found.Add(1)
	defer f.found.Add(1) // who decided while it was not yet taken in decides anew, too
	for end := f.config.Now().Add(echo); f.config.Now().Before(end); {
		if !informer.Sleep(ctx, informer.PollInterval) {
			return ctx.Err()
		}
		if c.Shows(there, ours) {
			return nil
		}
	}
	return c.Reach(ctx, version)
}

// eachOf hands on the metadata of what is there now, and the version of the list; at
// the end once without an object.
func (f *freshness) eachOf(ctx context.Context, resource, namespace, selector string, see func(m *metav1.PartialObjectMetadata, list uint64)) error {
	from := f.config.Meta.Resource(schema.GroupVersionResource{Version: "v1", Resource: resource}).Namespace(namespace)
	options := metav1.ListOptions{LabelSelector: selector, Limit: informer.PageSize}
	for {
		page, err := from.List(ctx, options)
		if err != nil {
			return err
		}
		for i := range page.Items {
			see(&page.Items[i], informer.Version(page.ResourceVersion))
		}
		if options.Continue = page.Continue; options.Continue == "" {
			see(nil, informer.Version(page.ResourceVersion))
			return nil
		}
	}
}
