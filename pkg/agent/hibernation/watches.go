package hibernation

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
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

// watches are open on what targets select, as the plans' accounts. They say that something
// has changed, and keep nothing of it.
type watches struct {
	connect func(client.Account) (metadata.Interface, error)
	changed func(plan types.NamespacedName)

	mu    sync.Mutex
	open  map[watchKey]*openWatch
	plans map[types.NamespacedName]map[string][]watchKey // by target
}

// watchKey tells watches apart: plans of one account share them.
type watchKey struct {
	account    client.Account
	connection string // of another cluster, as executors.Clients has it
	watch      executors.Watch
}

type openWatch struct {
	stop  context.CancelFunc
	from  metadata.Interface // of another cluster; nil: the plan's own
	mu    sync.Mutex
	plans map[types.NamespacedName]int // how many of its targets look at it
	works bool
	told  bool // its plans are about to hear of a change
}

func newWatches(connect func(client.Account) (metadata.Interface, error), changed func(types.NamespacedName)) *watches {
	return &watches{connect: connect, changed: changed, open: map[watchKey]*openWatch{}, plans: map[types.NamespacedName]map[string][]watchKey{}}
}

// keep has a target watched by what it needs and nothing else, and says whether all of that
// stands.
func (w *watches) keep(ctx context.Context, plan types.NamespacedName, target string, account client.Account, clients executors.Clients, list []executors.Watch) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	had := w.plans[plan][target]
	var keys []watchKey
	works := true
	for _, one := range list {
		one.Every = 0
		k := watchKey{account, clients.Connection, one}
		o := w.open[k]
		if o == nil {
			if w.full(account.Namespace) {
				works = false
				continue
			}
			o = w.start(ctx, k, clients.Metadata)
		}
		o.join(plan)
		keys = append(keys, k)
		works = works && o.stands()
	}
	for _, k := range had { // after the new ones are joined: what is in both stays open
		w.part(k, plan)
	}
	if w.plans[plan] == nil {
		w.plans[plan] = map[string][]watchKey{}
	}
	w.plans[plan][target] = keys
	return works
}

func (w *watches) full(namespace string) bool {
	n := 0
	for k := range w.open {
		if k.account.Namespace == namespace {
			n++
		}
	}
	return n >= maxWatches
}

// drop ends a plan's interest in a target; an empty one is all.
func (w *watches) drop(plan types.NamespacedName, target string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, keys := range w.plans[plan] {
		if target != "" && name != target {
			continue
		}
		for _, k := range keys {
			w.part(k, plan)
		}
		delete(w.plans[plan], name)
	}
	if len(w.plans[plan]) == 0 {
		delete(w.plans, plan)
	}
}

// count is how many watches are open.
func (w *watches) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.open)
}

func (w *watches) part(k watchKey, plan types.NamespacedName) {
	if o := w.open[k]; o != nil && o.left(plan) {
		o.stop()
		delete(w.open, k)
	}
}

func (w *watches) start(ctx context.Context, k watchKey, from metadata.Interface) *openWatch {
	ctx, stop := context.WithCancel(ctx)
	o := &openWatch{stop: stop, from: from, plans: map[types.NamespacedName]int{}}
	w.open[k] = o
	go w.run(ctx, k, o)
	return o
}

// run holds a watch open until ctx ends.
func (w *watches) run(ctx context.Context, k watchKey, o *openWatch) {
	pause := wait.Backoff{Duration: time.Second, Factor: 2, Steps: 8, Cap: refusedPause}
	for ctx.Err() == nil {
		if w.once(ctx, k, o) {
			pause = wait.Backoff{Duration: time.Second, Factor: 2, Steps: 8, Cap: refusedPause}
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause.Step()):
		}
	}
}

// once opens the watch and hears it to its end; false: it could not be opened. That it
// begins and ends is heard as a change, for nobody knows what was missed.
func (w *watches) once(ctx context.Context, k watchKey, o *openWatch) bool {
	from := o.from
	if from == nil {
		own, err := w.connect(k.account)
		if err != nil {
			return false
		}
		from = own
	}
	ctx, cancel := context.WithTimeout(ctx, silence)
	defer cancel()
	stream, err := from.Resource(k.watch.Resource).Namespace(k.watch.Namespace).Watch(ctx, metav1.ListOptions{LabelSelector: k.watch.Selector, AllowWatchBookmarks: true})
	if err != nil {
		return false
	}
	defer stream.Stop()
	o.set(true)
	w.tell(o)
	defer w.tell(o)
	defer o.set(false)
	for {
		select {
		case <-ctx.Done():
			return true
		case event, more := <-stream.ResultChan():
			if !more || event.Type == watch.Error {
				return true
			}
			if event.Type != watch.Bookmark {
				w.tell(o)
			}
		}
	}
}

// tell has the plans of a watch looked at; changes that come together are one.
func (w *watches) tell(o *openWatch) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.told {
		return
	}
	o.told = true
	time.AfterFunc(gather, func() {
		for _, plan := range o.heard() {
			w.changed(plan)
		}
	})
}

func (o *openWatch) heard() []types.NamespacedName {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.told = false
	out := make([]types.NamespacedName, 0, len(o.plans))
	for plan := range o.plans {
		out = append(out, plan)
	}
	return out
}

func (o *openWatch) set(works bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.works = works
}

func (o *openWatch) stands() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.works
}

func (o *openWatch) join(plan types.NamespacedName) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.plans[plan]++
}

// left takes one target of a plan off, and says whether nobody is left.
func (o *openWatch) left(plan types.NamespacedName) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.plans[plan]--; o.plans[plan] <= 0 {
		delete(o.plans, plan)
	}
	return len(o.plans) == 0
}
