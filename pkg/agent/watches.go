package agent

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
)

// stepWatches watch objects for steps that wait for them, as the plan's account.
// An event only wakes the step: what it means is read live.
type stepWatches struct {
	ring func(spot)
	mu   sync.Mutex
	open map[spot]*stepWatch
}

type stepWatch struct {
	what    executors.Watch
	account who
	stop    context.CancelFunc
	mu      sync.Mutex
	failure string
}

// keep watches one object for a run, in place of what it watched before.
func (s *stepWatches) keep(ctx context.Context, rk spot, w who, client dynamic.Interface, what executors.Watch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if have := s.open[rk]; have != nil {
		if have.what == what && have.account == w {
			return
		}
		have.stop()
	}
	ctx, cancel := context.WithCancel(ctx)
	sw := &stepWatch{what: what, account: w, stop: cancel}
	s.open[rk] = sw
	go s.follow(ctx, rk, sw, client)
}

// drop ends what is watched for a run.
func (s *stepWatches) drop(rk spot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if have := s.open[rk]; have != nil {
		have.stop()
		delete(s.open, rk)
	}
}

// failure says why a run's object cannot be watched; empty when it can.
func (s *stepWatches) failure(rk spot) string {
	s.mu.Lock()
	sw := s.open[rk]
	s.mu.Unlock()
	if sw == nil {
		return ""
	}
	sw.mu.Lock()
	defer sw.mu.Unlock()
	return sw.failure
}

// dropRun ends all that is watched for a run.
func (s *stepWatches) dropRun(k key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for at, have := range s.open {
		if at.run == k {
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

// follow keeps one watch open until ctx ends. The run is rung once the watch
// stands, since whatever happened between its last look and now sent no event.
func (s *stepWatches) follow(ctx context.Context, rk spot, sw *stepWatch, client dynamic.Interface) {
	var from dynamic.ResourceInterface = client.Resource(sw.what.Resource)
	if sw.what.Namespace != "" {
		from = client.Resource(sw.what.Resource).Namespace(sw.what.Namespace)
	}
	options := metav1.ListOptions{LabelSelector: sw.what.Selector}
	if sw.what.Name != "" {
		options.FieldSelector = fields.OneTermEqualSelector("metadata.name", sw.what.Name).String()
	}
	for wait := 100 * time.Millisecond; ctx.Err() == nil; wait = min(2*wait, 30*time.Second) {
		w, err := from.Watch(ctx, options)
		if err == nil {
			wait = 100 * time.Millisecond
			s.ring(rk)
			s.events(ctx, rk, w)
		} else if apierrors.IsForbidden(err) {
			sw.refuse(err)
			s.ring(rk)
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

func (sw *stepWatch) refuse(err error) {
	sw.mu.Lock()
	defer sw.mu.Unlock()
	sw.failure = fmt.Sprintf("serviceaccount %s/%s may not watch %s %q: grant watch on %s to it (%s)", sw.account.namespace, sw.account.name,
		sw.what.Resource.GroupResource(), sw.what.Name, sw.what.Resource.GroupResource(), err)
}

func (s *stepWatches) events(ctx context.Context, rk spot, w watch.Interface) {
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case _, open := <-w.ResultChan():
			if !open {
				return
			}
			s.ring(rk)
		}
	}
}
