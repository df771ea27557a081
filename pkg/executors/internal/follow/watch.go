// Package follow mirrors objects of an API server: of the agent's own cluster with a reflector, of
// another cluster, which may be under anybody's control, within limits.
package follow

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// Mirror receives what a reflector sees, and reduces each object at once: nothing of the object
// itself is kept. It is a cache.ReflectorStore.
type Mirror[O runtime.Object] struct {
	Set      func(O)
	Gone     func(O)
	Replaced func(all []O, version string)
}

// Add is the reflector's.
func (m Mirror[O]) Add(obj any) error { return m.with(obj, m.Set) }

// Update is the reflector's.
func (m Mirror[O]) Update(obj any) error { return m.with(obj, m.Set) }

// Delete is the reflector's.
func (m Mirror[O]) Delete(obj any) error { return m.with(obj, m.Gone) }

// Resync is the reflector's.
func (m Mirror[O]) Resync() error { return nil }

func (m Mirror[O]) with(obj any, f func(O)) error {
	o, ok := obj.(O)
	if !ok {
		return fmt.Errorf("a watch of %T sent %T", o, obj)
	}
	f(o)
	return nil
}

// Replace is the whole list, at the beginning and after a watch broke.
func (m Mirror[O]) Replace(list []any, version string) error {
	all := make([]O, 0, len(list))
	for _, obj := range list {
		if err := m.with(obj, func(o O) { all = append(all, o) }); err != nil {
			return err
		}
	}
	m.Replaced(all, version)
	return nil
}

// Source is where objects are read.
type Source[L runtime.Object] struct {
	List  func(ctx context.Context, o metav1.ListOptions) (L, error)
	Watch func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error)
	Trim  func(*metav1.ListOptions)
	Heard func(error) // told of every answer, nil for a good one
}

// Reflect mirrors a source until ctx ends.
func Reflect[O, L runtime.Object](ctx context.Context, name string, from Source[L], m Mirror[O], example O) {
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			from.Trim(&o)
			l, err := from.List(ctx, o)
			from.Heard(err)
			return l, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			from.Trim(&o)
			w, err := from.Watch(ctx, o)
			if o.SendInitialEvents == nil || !apierrors.IsInvalid(err) { // the server does not know such lists: ask at once for a plain one
				from.Heard(err)
			}
			if err != nil {
				return nil, err
			}
			return doubted(w, silence), nil
		},
	}
	again := wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 100, Cap: longestPause}
	cache.NewReflectorWithOptions(lw, example, m, cache.ReflectorOptions{Name: name, Backoff: &again}).RunWithContext(ctx)
}

// How long to wait before asking an API server that is away again (a guess: an outage is noticed
// within this time), and how long a watch may be silent: a bookmark comes every minute.
const (
	longestPause = 2 * time.Second
	silence      = 75 * time.Second
)

// doubtedWatch is a watch that ends when it was silent for too long; its reader continues from the
// last version.
type doubtedWatch struct {
	from    watch.Interface
	out     chan watch.Event
	stopped chan struct{}
	once    sync.Once
}

func doubted(w watch.Interface, patience time.Duration) watch.Interface {
	d := &doubtedWatch{from: w, out: make(chan watch.Event), stopped: make(chan struct{})}
	go d.pass(patience)
	return d
}

// pass passes events on until the watch ends, is stopped or is doubted.
func (d *doubtedWatch) pass(patience time.Duration) {
	defer close(d.out)
	defer d.from.Stop()
	quiet := time.NewTimer(patience)
	defer quiet.Stop()
	for {
		select {
		case <-d.stopped:
			return
		case <-quiet.C:
			return
		case event, open := <-d.from.ResultChan():
			if !open {
				return
			}
			select {
			case d.out <- event:
			case <-d.stopped:
				return
			}
			quiet.Reset(patience)
		}
	}
}

// ResultChan is watch.Interface's.
func (d *doubtedWatch) ResultChan() <-chan watch.Event { return d.out }

// Stop is watch.Interface's.
func (d *doubtedWatch) Stop() { d.once.Do(func() { close(d.stopped) }) }
