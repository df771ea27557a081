// Package sleepwatches watches what the targets of HibernatePlans select, as the plans'
// accounts, and keeps nothing of it.
package sleepwatches

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/informer"
)

// Guesses: changes within gather are one; a watch that was refused is tried again after
// refusedPause; one that is silent for longer than silence is doubted, opened anew, and what
// it may have missed is looked at.
const (
	gather       = 500 * time.Millisecond
	refusedPause = 2 * time.Minute
	silence      = 10 * time.Minute
	maxWatches   = 64 // open for the plans of one namespace
)

// Watches are open on what targets select, as the plans' accounts. They say that something
// has changed, and keep nothing of it.
type Watches struct {
	connect func(client.Account) (metadata.Interface, error)
	queue   planQueue
	set     *informer.Set

	mu    sync.Mutex
	plans map[types.NamespacedName]map[string]uses // by target
}

// planQueue are the plans that are to be looked at; what is added again while it waits is
// added once.
type planQueue interface {
	AddAfter(plan types.NamespacedName, pause time.Duration)
}

type uses map[informer.Key]*informer.Use

// New has nothing open. Nobody is told of what is too much: the plan is looked at
// now and then instead.
func New(connect func(client.Account) (metadata.Interface, error), queue planQueue) *Watches {
	return &Watches{connect: connect, queue: queue, set: informer.NewSet(informer.Bound{Max: maxWatches}), plans: map[types.NamespacedName]map[string]uses{}}
}

// Keep has a target watched by what it needs and nothing else, and says whether all of that
// stands.
func (w *Watches) Keep(ctx context.Context, plan types.NamespacedName, target string, account client.Account, clients executors.Clients, list []executors.Watch) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	had, have, stand := w.plans[plan][target], uses{}, true
	for _, one := range list {
		k := account.WatchKey(one)
		k.Variant = clients.Connection
		use, known := had[k]
		if !known {
			use = w.join(ctx, plan, k, clients.Metadata)
		}
		if use == nil {
			stand = false
			continue
		}
		have[k] = use
		stand = stand && use.Synced()
	}
	for k, use := range had { // after the new ones are joined: what others share stays open
		if have[k] == nil {
			use.Leave()
		}
	}
	if w.plans[plan] == nil {
		w.plans[plan] = map[string]uses{}
	}
	w.plans[plan][target] = have
	return stand
}

// join has a plan hear of a watch; nil: there can be none now.
func (w *Watches) join(ctx context.Context, plan types.NamespacedName, k informer.Key, elsewhere metadata.Interface) *informer.Use {
	use, err := w.set.Join(ctx, k, w.source(k, elsewhere), informer.Member{Changed: func(any, bool) { w.queue.AddAfter(plan, gather) }})
	if err != nil {
		return nil
	}
	return use
}

// source opens a watch of the plan's own cluster; elsewhere is the client of another.
func (w *Watches) source(k informer.Key, elsewhere metadata.Interface) informer.Source {
	return informer.Source{
		Open: func() (*informer.ListWatch, error) {
			if elsewhere != nil {
				return k.Metadata(elsewhere), nil
			}
			c, err := w.connect(client.Account(k.As))
			if err != nil {
				return nil, err
			}
			return k.Metadata(c), nil
		},
		Pause: informer.ExponentialBackoff(time.Second, refusedPause), Silence: silence,
	}
}

// Drop ends a plan's interest in a target; an empty one is all.
func (w *Watches) Drop(plan types.NamespacedName, target string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, have := range w.plans[plan] {
		if target != "" && name != target {
			continue
		}
		for _, use := range have {
			use.Leave()
		}
		delete(w.plans[plan], name)
	}
	if len(w.plans[plan]) == 0 {
		delete(w.plans, plan)
	}
}

// Count is how many watches are open.
func (w *Watches) Count() int { return w.set.Count() }
