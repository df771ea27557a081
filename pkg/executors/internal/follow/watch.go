// Package follow mirrors objects of an API server one by one, or page by page, and those of another
// cluster, which may be under anybody's control, within limits.
package follow

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// Source is where objects are read.
type Source[L runtime.Object] struct {
	List     func(ctx context.Context, o metav1.ListOptions) (L, error)
	Watch    func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error)
	Trim     func(*metav1.ListOptions)
	OnAnswer func(error) // told of every answer, nil for a good one
	Small    bool        // no tenant writes these objects
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
	silent  atomic.Bool // it was doubted
}

func doubted(w watch.Interface, silent time.Duration) *doubtedWatch {
	d := &doubtedWatch{from: w, out: make(chan watch.Event), stopped: make(chan struct{})}
	go d.pass(silent)
	return d
}

// pass passes events on until the watch ends, is stopped or is doubted.
func (d *doubtedWatch) pass(silent time.Duration) {
	defer close(d.out)
	defer d.from.Stop()
	quiet := time.NewTimer(silent)
	defer quiet.Stop()
	for {
		select {
		case <-d.stopped:
			return
		case <-quiet.C:
			d.silent.Store(true)
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
			quiet.Reset(silent)
		}
	}
}

// ResultChan is watch.Interface's.
func (d *doubtedWatch) ResultChan() <-chan watch.Event { return d.out }

// Stop is watch.Interface's.
func (d *doubtedWatch) Stop() { d.once.Do(func() { close(d.stopped) }) }
