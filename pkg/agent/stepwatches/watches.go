// Package stepwatches watches objects for the steps that wait for them, as the plans'
// accounts.
package stepwatches

import (
	"context"
	"fmt"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/informer"
)

// Watches watch objects for steps that wait for them, or for what they did. An event only
// wakes the step: what it means is read live.
type Watches struct {
	wake func(store.StepKey)
	set  *informer.Set
	mu   sync.Mutex
	open map[store.StepKey]watch
}

type watch struct {
	what    executors.Watch
	account client.Account
	cluster string // that it watches, and with which credentials: executors.Clients
	conn    string
	use     *informer.Use
}

// maxOpen is how many watches are open for the steps of one namespace (a guess: two runs
// that look after all that they did, and some steps that wait).
const maxOpen = 128

// New has nothing open.
func New(wake func(store.StepKey)) *Watches {
	return &Watches{wake: wake, set: informer.NewSet(informer.Bound{Max: maxOpen}), open: map[store.StepKey]watch{}}
}

// Keep watches one object for a run, in place of what it watched before. The step is woken
// once the watch stands, since whatever happened between its last look and now sent no
// event, and when it is refused: what that means is for the next pass to ask. Where the
// namespace has as many watches as it may, the object is not watched: then the step has to
// look by itself, and asks for the watch again each time.
func (s *Watches) Keep(ctx context.Context, rk store.StepKey, w client.Account, as executors.Clients, what executors.Watch) (watched bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	have := s.open[rk]
	if have.use != nil && have.what == what && have.account == w && have.conn == as.Connection {
		return true
	}
	k := w.WatchKey(what)
	k.Variant = rk.Run.Name + " " + as.Connection // its requests are marked as the run's
	sw := watch{what: what, account: w, cluster: as.Cluster, conn: as.Connection}
	wake := func() { s.wake(rk) }
	use, err := s.set.Join(ctx, k, source(k, sw.user(), as.Dynamic), informer.Member{Changed: func(any, bool) { wake() }, Established: wake})
	if have.use != nil { // after the other is joined: it may be the same
		have.use.Leave()
		delete(s.open, rk)
	}
	if err != nil {
		return false
	}
	sw.use = use
	s.open[rk] = sw
	return true
}

// longestWatchPause bounds the pause before a watch is tried again (a guess: well
// within the time after which a refusal is believed).
const longestWatchPause = 5 * time.Second

func source(k informer.Key, user string, as dynamic.Interface) informer.Source {
	return informer.Source{
		Open: func() (*informer.ListWatch, error) { return k.Objects(as), nil },
		Refusal: func(err error) error {
			if executors.RefusalOf(err, user) == executors.NotRefused {
				return nil
			}
			return err
		},
		Pause: informer.ExponentialBackoff(100*time.Millisecond, longestWatchPause),
	}
}

// Count is how many watches are open.
func (s *Watches) Count() int { return s.set.Count() }

// Drop ends what is watched for a step.
func (s *Watches) Drop(rk store.StepKey) {
	s.dropAll(func(at store.StepKey) bool { return at == rk })
}

// DropRun ends all that is watched for a run.
func (s *Watches) DropRun(k types.NamespacedName) {
	s.dropAll(func(at store.StepKey) bool { return at.Run == k })
}

func (s *Watches) dropAll(match func(store.StepKey) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for at, have := range s.open {
		if match(at) {
			have.use.Leave()
			delete(s.open, at)
		}
	}
}

// Failure is the outcome of a step whose object the API server does not let its
// account watch; nil where it does. The watch is tried again all the while.
func (s *Watches) Failure(ctx context.Context, rk store.StepKey, c executors.Clients, now time.Time) *executors.Outcome {
	s.mu.Lock()
	sw, is := s.open[rk]
	s.mu.Unlock()
	if !is {
		return nil
	}
	out, refused := executors.Refused(ctx, c.Kube, now, sw.asked(), sw.use.Refusal())
	if !refused {
		return nil
	}
	return &out
}

// IsSynced says whether what a step asked to watch is seen.
func (s *Watches) IsSynced(rk store.StepKey) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	sw, is := s.open[rk]
	return is && sw.use.Refusal() == nil && sw.use.Synced()
}

// asked is the watch as it is judged when it was refused.
func (sw watch) asked() executors.Asked {
	gvr, named := sw.what.Resource, ""
	if sw.what.Name != "" {
		named = fmt.Sprintf(" %q", sw.what.Name)
	}
	account := sw.actor()
	return executors.Asked{
		As: sw.user(),
		Right: authorizationv1.ResourceAttributes{
			Verb: "watch", Group: gvr.Group, Version: gvr.Version, Resource: gvr.Resource, Namespace: sw.what.Namespace, Name: sw.what.Name,
		},
		Missing: fmt.Sprintf("%s may not watch %s%s: grant watch on %s to it", account, gvr.GroupResource(), named, gvr.GroupResource()),
		Denied:  fmt.Sprintf("watch of %s%s was denied to %s", gvr.GroupResource(), named, account),
	}
}

func (sw watch) actor() string { return sw.call().Actor() }

func (sw watch) user() string { return sw.call().User() }

// call is as whom it watches.
func (sw watch) call() executors.Call {
	return executors.Call{Plan: executors.PlanRef{Namespace: sw.account.Namespace, Account: sw.account.Name}, Clients: executors.Clients{Cluster: sw.cluster}}
}
