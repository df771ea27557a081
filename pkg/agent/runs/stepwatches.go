package runs

import (
	"context"
	"fmt"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
)

// stepWatches watch objects for steps that wait for them, as the plan's account.
// An event only wakes the step: what it means is read live.
type stepWatches struct {
	wake    func(store.StepKey)
	silence time.Duration // longer than which a watch says something
	mu      sync.Mutex
	open    map[store.StepKey]*stepWatch
}

type stepWatch struct {
	what    executors.Watch
	account client.Account
	cluster string // that it watches, and with which credentials: executors.Clients
	conn    string
	stop    context.CancelFunc
	mu      sync.Mutex
	failure error // the API server refuses it for now
}

// keep watches one object for a run, in place of what it watched before.
func (s *stepWatches) keep(ctx context.Context, rk store.StepKey, w client.Account, as executors.Clients, what executors.Watch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if have := s.open[rk]; have != nil {
		if have.what == what && have.account == w && have.conn == as.Connection {
			return
		}
		have.stop()
	}
	ctx, cancel := context.WithCancel(ctx)
	sw := &stepWatch{what: what, account: w, cluster: as.Cluster, conn: as.Connection, stop: cancel}
	s.open[rk] = sw
	go s.follow(ctx, rk, sw, as.Dynamic)
}

// drop ends what is watched for a run.
func (s *stepWatches) drop(rk store.StepKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if have := s.open[rk]; have != nil {
		have.stop()
		delete(s.open, rk)
	}
}

// failure is the outcome of a step whose object the API server does not let its
// account watch; nil where it does. The watch is tried again all the while.
func (s *stepWatches) failure(ctx context.Context, rk store.StepKey, c executors.Clients, now time.Time) *executors.Outcome {
	s.mu.Lock()
	sw := s.open[rk]
	s.mu.Unlock()
	if sw == nil {
		return nil
	}
	sw.mu.Lock()
	failure := sw.failure
	sw.mu.Unlock()
	out, refused := executors.Refused(ctx, c.Kube, now, sw.asked(), failure)
	if !refused {
		return nil
	}
	return &out
}

// asked is the watch as it is judged when it was refused.
func (sw *stepWatch) asked() executors.Asked {
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

func (sw *stepWatch) actor() string { return sw.call().Actor() }

func (sw *stepWatch) user() string { return sw.call().User() }

// call is as whom it watches.
func (sw *stepWatch) call() executors.Call {
	return executors.Call{Namespace: sw.account.Namespace, Account: sw.account.Name, Clients: executors.Clients{Cluster: sw.cluster}}
}

// dropRun ends all that is watched for a run.
func (s *stepWatches) dropRun(k types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for at, have := range s.open {
		if at.Run == k {
			have.stop()
			delete(s.open, at)
		}
	}
}

func (s *stepWatches) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

// follow keeps one watch open until ctx ends. The step is woken once the watch
// stands, since whatever happened between its last look and now sent no event.
func (s *stepWatches) follow(ctx context.Context, rk store.StepKey, sw *stepWatch, as dynamic.Interface) {
	var from dynamic.ResourceInterface = as.Resource(sw.what.Resource)
	if sw.what.Namespace != "" {
		from = as.Resource(sw.what.Resource).Namespace(sw.what.Namespace)
	}
	options := metav1.ListOptions{LabelSelector: sw.what.Selector, AllowWatchBookmarks: true}
	if sw.what.Name != "" {
		options.FieldSelector = fields.OneTermEqualSelector("metadata.name", sw.what.Name).String()
	}
	for wait := 100 * time.Millisecond; ctx.Err() == nil; wait = min(2*wait, longestWatchPause) {
		if s.once(ctx, rk, sw, from, options) {
			wait = 100 * time.Millisecond
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// once opens a watch, and says whether it stood.
func (s *stepWatches) once(ctx context.Context, rk store.StepKey, sw *stepWatch, from dynamic.ResourceInterface, options metav1.ListOptions) bool {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	opening := time.AfterFunc(s.silence, func() { // it is not even answered
		s.wake(rk)
		stop()
	})
	w, err := from.Watch(ctx, options)
	inTime := opening.Stop()
	news := sw.answered(err)
	switch {
	case err == nil && inTime:
		s.wake(rk)
		s.events(ctx, rk, w)
	case err == nil:
		w.Stop()
	case news: // what the refusal means is for the next pass to ask
		s.wake(rk)
	}
	return err == nil
}

// longestWatchPause bounds the pause before a watch is tried again (a guess: well
// within the time after which a refusal is believed).
const longestWatchPause = 5 * time.Second

// answered notes whether the API server lets the account watch, and says whether
// that it does not is news.
func (sw *stepWatch) answered(err error) (news bool) {
	if executors.RefusalOf(err, sw.user()) == executors.NotRefused {
		err = nil
	}
	sw.mu.Lock()
	defer sw.mu.Unlock()
	news = err != nil && sw.failure == nil
	sw.failure = err
	return news
}

// events wakes the step for what a watch shows, until it ends or is silent for so long that
// it is doubted.
func (s *stepWatches) events(ctx context.Context, rk store.StepKey, w watch.Interface) {
	defer w.Stop()
	quiet := time.NewTimer(s.silence)
	defer quiet.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-quiet.C:
			s.wake(rk) // what it has missed is read
			return
		case event, open := <-w.ResultChan():
			if !open {
				return
			}
			if event.Type != watch.Bookmark {
				s.wake(rk)
			}
			quiet.Reset(s.silence)
		}
	}
}
