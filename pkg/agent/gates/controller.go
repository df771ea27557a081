// Package gates holds other controllers by their knobs while policies are restrictive, as
// the policies' accounts.
package gates

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/keys"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/queue"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/informer"
	"github.com/kubectl-maint/kubectl-maint/pkg/kube"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
)

// Controller holds other controllers by their knobs while policies are
// restrictive, as the policies' accounts.
type Controller struct {
	Config
	set    watchSet
	pauses pauses

	mu       sync.Mutex
	policies map[types.NamespacedName]*gatePolicy
	watches  map[string]*gateWatch
	sources  map[sourceKey]sourceSeen
	refused  map[types.NamespacedName]refusal // policies whose record does not count, and why
}

// watchSet are the watches, and what they keep together.
type watchSet struct {
	*informer.Set
	budget *memoryBudget
}

// gatePolicy is a policy's gates as they are recorded and watched.
type gatePolicy struct {
	record   policy.GateRecord
	watches  []*gateWatch // of the record's entries; nil where one cannot be watched
	reasons  []string     // and why
	reported string       // the last Event
}

// gateWorkers is how many objects are looked at at once (a guess: a window's
// edge moves all of them, and each is one request).
const gateWorkers = 8

// Config is what gates are kept with.
type Config struct {
	Clients  Clients
	Stores   Stores
	Queue    *queue.Queue // of objects: the watch's id, and namespace/name
	Policies interface {  // that are to be looked at
		AddAfter(types.NamespacedName, time.Duration)
	}
	Events record.EventRecorder
	Log    *slog.Logger
	Now    func() time.Time
	DryRun bool
}

// Clients reach the API server.
type Clients struct {
	Kube       kube.Interface // the agent's own
	Namespace  string         // where the agent is
	Accounts   *client.Impersonator
	ClockDoubt func() string // why the local clock is not to be trusted; empty: it is
}

// Stores are what is held in memory.
type Stores struct {
	Documents *store.Documents
	Gates     *store.Gates
	Keys      *keys.Store
}

// New holds nothing yet.
func New(c Config) *Controller {
	bound := informer.Bound{Max: maxOpen, Of: "gates", Advice: "let gates share kind, namespace and account"}
	return &Controller{Config: c, set: watchSet{informer.NewSet(bound), newMemoryBudget(c.Clients.Namespace)}, pauses: newPauses(), policies: map[types.NamespacedName]*gatePolicy{}, watches: map[string]*gateWatch{}, sources: map[sourceKey]sourceSeen{}, refused: map[types.NamespacedName]refusal{}}
}

// Run looks at objects until ctx ends.
func (g *Controller) Run(ctx context.Context) { g.Queue.Work(ctx, gateWorkers, g.reconcileObject) }

// Reconcile takes up what a policy names: nil is a policy that is gone. What it names
// is written down before anything is closed, and what it names no longer is
// opened before that is forgotten. A broken policy holds what it last named.
func (g *Controller) Reconcile(ctx context.Context, k types.NamespacedName, state *policy.State) (time.Time, error) {
	p, err := g.policy(k)
	if why, refused := refusalOf(k, err); refused {
		g.refuse(k, why)
		return time.Time{}, nil
	}
	g.counts(k)
	if err != nil || p == nil && (state == nil || len(state.Spec.Gates) == 0) {
		return time.Time{}, err
	}
	if p == nil {
		p = &gatePolicy{record: policy.GateRecord{Policy: k.Name}}
	}
	var now []policy.GateEntry
	switch {
	case state == nil:
	case len(state.Faults) > 0:
		now = p.record.InForce()
	default:
		now = state.Spec.GateEntries()
	}
	next := &gatePolicy{record: p.record.Next(now), reported: p.reported}
	if !p.record.Same(next.record) || g.overwritten(k) {
		if err := g.put(ctx, k, next.record); err != nil {
			return time.Time{}, err
		}
	}
	if err := g.attach(ctx, k, p, next); err != nil {
		return time.Time{}, err
	}
	done := g.finished(k, next)
	if len(done.Entries) < len(next.record.Entries) {
		was := next
		next = &gatePolicy{record: done, reported: p.reported}
		if err := g.put(ctx, k, done); err != nil {
			return time.Time{}, err
		}
		if err := g.attach(ctx, k, was, next); err != nil {
			return time.Time{}, err
		}
	}
	g.report(k, next)
	if len(next.record.Entries) > len(next.record.InForce()) || slices.ContainsFunc(next.reasons, func(r string) bool { return r != "" }) {
		return g.Now().Add(queue.ResyncPeriod), nil
	}
	return time.Time{}, nil
}

// maxOpen is how many watches are open for the policies of one namespace (a guess: twice what
// plans may have, since what a gate holds needs its watch).
const maxOpen = 128

// attach watches what a record's entries name, and stops what nobody needs. An
// error changes nothing.
func (g *Controller) attach(ctx context.Context, k types.NamespacedName, was, p *gatePolicy) error {
	p.watches, p.reasons = make([]*gateWatch, len(p.record.Entries)), make([]string, len(p.record.Entries))
	for i, e := range p.record.Entries {
		var err error
		if p.watches[i], p.reasons[i], err = g.describe(ctx, k, e); err != nil {
			return err
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	mine := map[*gateWatch][]policy.GateEntry{}
	for i, w := range p.watches {
		if w == nil {
			continue
		}
		if g.watches[w.id] == nil {
			err := g.open(ctx, w)
			if full := new(informer.FullError); errors.As(err, &full) {
				p.watches[i], p.reasons[i] = nil, full.Error()
				continue
			}
			if err != nil {
				return err
			}
			g.watches[w.id] = w
		}
		w = g.watches[w.id]
		p.watches[i] = w
		mine[w] = append(mine[w], p.record.Entries[i])
	}
	for w, entries := range mine {
		g.join(w, k, entries)
	}
	for _, w := range was.watches {
		if w != nil && mine[w] == nil {
			g.leave(w, k)
		}
	}
	if g.policies[k] = p; len(p.record.Entries) == 0 {
		delete(g.policies, k)
	}
	return nil
}

// join gives a watch what a policy names of its objects; they are all looked at
// where that is news.
func (g *Controller) join(w *gateWatch, k types.NamespacedName, entries []policy.GateEntry) {
	w.mu.Lock()
	was := policy.GateRecord{Entries: w.policies[k]}
	w.policies[k] = entries
	w.mu.Unlock()
	if !was.Same(policy.GateRecord{Entries: entries}) {
		g.enqueue(w)
	}
}

func (g *Controller) leave(w *gateWatch, k types.NamespacedName) {
	w.mu.Lock()
	delete(w.policies, k)
	empty := len(w.policies) == 0
	w.mu.Unlock()
	if empty && g.watches[w.id] == w {
		w.use.Leave()
		g.set.budget.drop(w)
		delete(g.watches, w.id)
	}
}

// describe is the watch that an entry needs, not opened yet, or why there can be
// none.
func (g *Controller) describe(ctx context.Context, k types.NamespacedName, e policy.GateEntry) (*gateWatch, string, error) {
	account := client.Account{Namespace: k.Namespace, Name: e.Account}
	of, err := e.GateKnob()
	if err != nil {
		return nil, err.Error(), nil
	}
	missing, err := g.Clients.Accounts.Missing(ctx, account)
	if err != nil || missing != "" {
		return nil, missing, err
	}
	resolve := g.Clients.Accounts.Resolve
	if e.Leaving { // it only opens
		resolve = g.Clients.Accounts.ResolveRecorded
	}
	mapping, err := resolve(e.APIVersion, e.Kind)
	switch {
	case client.UnknownKind(err):
		return nil, err.Error(), nil
	case err != nil:
		return nil, "", err
	case mapping.Scope.Name() == meta.RESTScopeNameNamespace:
		return newGateWatch(account, mapping, e.GateScope(k.Namespace), of), "", nil
	case e.Namespace != "":
		return nil, fmt.Sprintf("gate %s names namespace %s, and objects of this kind are in none: leave it out", e.GateRule, e.Namespace), nil
	}
	return newGateWatch(account, mapping, metav1.NamespaceAll, of), "", nil
}

// finished is a policy's record without what it has let go of.
func (g *Controller) finished(k types.NamespacedName, p *gatePolicy) policy.GateRecord {
	left := policy.GateRecord{Policy: p.record.Policy}
	for i, e := range p.record.Entries {
		if e.Leaving && g.released(k, p, i) {
			continue
		}
		left.Entries = append(left.Entries, e)
	}
	return left
}

// released says whether nothing is held any more by what an entry named, or
// whether another entry of the policy goes on with it.
func (g *Controller) released(k types.NamespacedName, p *gatePolicy, i int) bool {
	w := p.watches[i]
	if w == nil {
		return false
	}
	for j, e := range p.record.Entries {
		if !e.Leaving && p.watches[j] == w {
			return true
		}
	}
	n, settled := w.holding(k, func(o *gateObject) bool { return p.covers(w, o) })
	return settled && n == 0
}

// covers says whether a rule in force means an object by the field of a watch.
func (p *gatePolicy) covers(w *gateWatch, o *gateObject) bool {
	return len(p.naming(o, w.sameField)) > 0
}

// naming are such watches by which a rule in force means an object.
func (p *gatePolicy) naming(o *gateObject, by func(*gateWatch) bool) []*gateWatch {
	var out []*gateWatch
	for i, e := range p.record.Entries {
		if v := p.watches[i]; !e.Leaving && v != nil && by(v) && v.means(e, o) {
			out = append(out, v)
		}
	}
	return out
}

// enqueue looks at all objects of a watch.
func (g *Controller) enqueue(w *gateWatch) {
	for _, o := range w.use.Kept() {
		g.changed(w, o)
	}
}

// EnqueueOf looks at the gated objects to which it matters what a namespace says: its own,
// and those that its policies mean. Without a namespace it looks at all.
func (g *Controller) EnqueueOf(namespace string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, w := range g.watches {
		if namespace == "" || g.meantFrom(namespace, w) {
			g.enqueue(w)
			continue
		}
		for _, o := range w.use.Kept() {
			if at, err := meta.Accessor(o); err == nil && at.GetNamespace() == namespace {
				g.changed(w, o)
			}
		}
	}
}

// meantFrom says whether a policy of a namespace works the field of a watch. One whose account is
// read-only changes nothing there.
func (g *Controller) meantFrom(namespace string, w *gateWatch) bool {
	for k, p := range g.policies {
		if k.Namespace == namespace && slices.ContainsFunc(p.watches, func(v *gateWatch) bool { return v != nil && (v == w || v.sameField(w) && !v.readOnly()) }) {
			return true
		}
	}
	return false
}

// Count is how many watches are open.
func (g *Controller) Count() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.watches)
}
