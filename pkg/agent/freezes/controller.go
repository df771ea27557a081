// Package freezes says on namespaces which of their objects may not be changed now:
// those labelled with a policy that is restrictive, and targets that a run holds for
// itself. The admission policy maint-freeze reads it and refuses the changes.
package freezes

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/queue"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/kube"
)

// Config is what freezes are published with.
type Config struct {
	Clients Clients
	Stores  Stores
	Scope   Scope
	Queue   *queue.Queue               // of namespaces, by name alone
	WakeRun func(types.NamespacedName) // that waits for its target to be frozen
	Events  record.EventRecorder
	Log     *slog.Logger
	Now     func() time.Time
}

// Clients reach the API server.
type Clients struct {
	Kube     kube.Interface // the agent's own
	Meta     metadata.Interface
	Accounts *client.Impersonator
}

// Stores are what is held in memory.
type Stores struct {
	Namespaces cache.Store // of their metadata
	Gates      *store.Gates
	Runs       *store.Runs
}

// Scope is who publishes freezes, and where.
type Scope struct {
	Namespace string // the agent's own
	Scoped    bool   // the agent looks at one namespace: it publishes nothing
	DryRun    bool
}

// Controller publishes freezes while the admission policy that enforces them is there.
type Controller struct {
	Config

	mu        sync.Mutex
	asked     bool // the API server has said whether the admission policy is there
	installed bool
	kinds     map[schema.GroupVersionResource]*labelledKind
	unwatched []schema.GroupVersionResource // that the admission policy names, too
	published map[string]publication
}

// publication is what was last done about a namespace.
type publication struct {
	text string // that stands on it
	err  error  // why it could not be written
}

// New publishes nothing yet.
func New(c Config) *Controller {
	return &Controller{Config: c, kinds: map[schema.GroupVersionResource]*labelledKind{}, published: map[string]publication{}}
}

// workers is how many namespaces are looked at at once (a guess: each is one request).
const workers = 4

// Run publishes until ctx ends.
func (c *Controller) Run(ctx context.Context) {
	if c.Scope.Scoped {
		return
	}
	var group sync.WaitGroup
	group.Go(func() { c.followPolicy(ctx) })
	group.Go(func() { c.Queue.Work(ctx, workers, c.reconcile) })
	group.Wait()
}

// EnqueueAll looks at every namespace that has something to do with freezes.
func (c *Controller) EnqueueAll() { c.EnqueueOf("") }

// EnqueueOf looks at a namespace whose policies have changed, if it has something to do
// with freezes. Without a namespace it looks at all.
func (c *Controller) EnqueueOf(namespace string) {
	enqueue := func(at string) {
		if namespace == "" || at == namespace {
			c.enqueue(at)
		}
	}
	for _, o := range c.Stores.Namespaces.List() {
		if m := o.(*metav1.PartialObjectMetadata); m.Annotations[annotations.StatusFrozen] != "" {
			enqueue(m.Name)
		}
	}
	for _, kind := range c.watched() {
		for _, o := range kind.informer.GetStore().List() {
			enqueue(o.(*metav1.PartialObjectMetadata).Namespace)
		}
	}
	for _, l := range c.Stores.Runs.Filter(freezes) {
		enqueue(l.Object.Namespace)
	}
}

func (c *Controller) enqueue(namespace string) { c.Queue.Add(types.NamespacedName{Name: namespace}) }

// NamespaceSeen looks at a namespace again on which something else stands than was
// published.
func (c *Controller) NamespaceSeen(m *metav1.PartialObjectMetadata) {
	c.mu.Lock()
	known, there := c.published[m.Name]
	c.mu.Unlock()
	if is := m.Annotations[annotations.StatusFrozen]; there && is != known.text || !there && is != "" {
		c.enqueue(m.Name)
	}
}

// RunSeen looks at the namespace of a run that has begun or ended.
func (c *Controller) RunSeen(k types.NamespacedName) {
	l := c.Stores.Runs.Live(k)
	c.mu.Lock()
	known := c.published[k.Namespace]
	c.mu.Unlock()
	if l != nil && freezes(l) || l == nil && known.text != "" {
		c.enqueue(k.Namespace)
	}
}

// freezes says whether a run has its target frozen, now or when it begins.
func freezes(l *store.LiveRun) bool {
	return l.Broken == nil && l.Head.Spec.FreezeTarget && l.Head.Spec.Target != nil && !l.Head.Request.DryRun
}

// Holds says whether a run's target is frozen for others. Where it never will be, why
// says so, and the run goes on without.
func (c *Controller) Holds(ctx context.Context, l *store.CachedRun) (held bool, why string) {
	f, why := c.target(ctx, l.Live())
	if why != "" || f == nil {
		return false, why
	}
	namespace := l.Object.Namespace
	c.mu.Lock()
	known := c.published[namespace]
	c.mu.Unlock()
	for _, p := range annotations.ParseFrozen(known.text) {
		if p == *f {
			return true, ""
		}
	}
	if known.err != nil {
		return false, "it could not be written on the namespace: " + known.err.Error()
	}
	c.enqueue(namespace)
	return false, ""
}

// target is the entry of a run's target; nil where it is not known yet. Who has an object
// frozen must be able to change it: a plan takes nothing from others that its account
// has no right over.
func (c *Controller) target(ctx context.Context, l *store.LiveRun) (*annotations.Frozen, string) {
	c.mu.Lock()
	asked, installed := c.asked, c.installed
	c.mu.Unlock()
	switch {
	case c.Scope.Scoped:
		return nil, "an agent that watches one namespace freezes nothing"
	case !asked:
		return nil, ""
	case !installed:
		return nil, "the admission policy " + annotations.FreezePolicyName + " is not there: 'kubectl maint install --with-admission' brings it"
	}
	mapping, err := c.Clients.Accounts.Resolve(l.Head.Spec.Target.APIVersion, l.Head.Spec.Target.Kind)
	if err != nil {
		return nil, err.Error()
	}
	if !c.enforced(mapping.Resource.GroupResource()) {
		return nil, "the admission policy " + annotations.FreezePolicyName + " does not look at " + mapping.Resource.GroupResource().String()
	}
	refused, err := c.Clients.Accounts.Refused(ctx, l.Account(), "patch", mapping.Resource, l.Head.Spec.Target.Name)
	switch {
	case err != nil: // it is asked again
		return nil, ""
	case refused != "":
		return nil, fmt.Sprintf("the ServiceAccount %s may not patch %s %q: whoever freezes an object must be able to change it", l.Account().Name, mapping.Resource.GroupResource(), l.Head.Spec.Target.Name)
	}
	return &annotations.Frozen{Resource: mapping.Resource.GroupResource().String(), Name: l.Head.Spec.Target.Name, Run: l.Object.Name}, ""
}

// warn says on a namespace what of its freezes is not kept.
func (c *Controller) warn(namespace, reason, message string) {
	about := &corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Name: namespace, Namespace: namespace}
	c.Events.Event(about, corev1.EventTypeWarning, reason, message)
}
