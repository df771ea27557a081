package follow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kubectl-maint/kubectl-maint/pkg/kube"
)

// Limits for one source of another cluster (guesses: pods and budgets take some 300 bytes each).
const (
	MostBytes   = 1 << 20 // bytes of JSON
	MostObjects = 5000    // of one list, which may repeat the same objects
	// again is the pause after an error or the end of a watch, before the next list.
	again     = time.Second
	mostPause = 30 * time.Second // after errors the pause doubles each time, up to this
)

// ErrTooMuch says that a source has more than is kept of it.
var ErrTooMuch = errors.New("the other cluster shows more than is read of it")

// Kept receives the objects of a source. Each is reduced at once to the little that is kept of it.
type Kept[O runtime.Object, V any] struct {
	Turn     func(O) V
	Key      func(V) string
	Set      func(V)
	Gone     func(V)
	Replaced func(all []V, version string)
}

// mirror is the same for a reflector.
func (k Kept[O, V]) mirror() Mirror[O] {
	return Mirror[O]{
		Set:  func(o O) { k.Set(k.Turn(o)) },
		Gone: func(o O) { k.Gone(k.Turn(o)) },
		Replaced: func(all []O, version string) {
			kept := make([]V, len(all))
			for i, o := range all {
				kept[i] = k.Turn(o)
			}
			k.Replaced(kept, version)
		},
	}
}

// Keep mirrors a source until ctx ends: with a reflector, or within limits if it belongs to another
// cluster.
func Keep[O, L runtime.Object, V any](ctx context.Context, name string, elsewhere bool, from Source[L], to Kept[O, V], example O) {
	if elsewhere {
		bounded(ctx, from, to)
		return
	}
	Reflect(ctx, name, from, to.mirror(), example)
}

// bounded lists and watches a source of another cluster until ctx ends. Its API server may be under
// anybody's control: no more than one page is in memory as received, and what is kept has a limit.
// A reflector would keep whole lists.
func bounded[O, L runtime.Object, V any](ctx context.Context, from Source[L], to Kept[O, V]) {
	pause := again
	for {
		if once(ctx, from, to) == nil {
			pause = again
		} else {
			pause = min(2*pause, mostPause)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// once lists, and watches from there until the watch ends; an error means that something could not
// be read.
func once[O, L runtime.Object, V any](ctx context.Context, from Source[L], to Kept[O, V]) error {
	kept := newWeights()
	var all []V
	version := ""
	list := func(ctx context.Context, o metav1.ListOptions) (L, error) {
		from.Trim(&o)
		page, err := from.List(ctx, o)
		if err == nil {
			version = versionOf(page)
		}
		return page, err
	}
	err := kube.EachOf(ctx, list, "", func(o O) error {
		v := to.Turn(o)
		if all = append(all, v); len(all) > MostObjects {
			return fmt.Errorf("%w: %d objects", ErrTooMuch, MostObjects)
		}
		return kept.add(to.Key(v), v)
	})
	from.Heard(err)
	if err != nil {
		return err
	}
	to.Replaced(all, version)
	err = watchFrom(ctx, from, to, version, kept)
	from.Heard(err)
	return err
}

func versionOf(list runtime.Object) string {
	l, err := meta.ListAccessor(list)
	if err != nil {
		return ""
	}
	return l.GetResourceVersion()
}

// watchFrom passes on the changes after a version, until the watch ends.
func watchFrom[O, L runtime.Object, V any](ctx context.Context, from Source[L], to Kept[O, V], version string, kept *weights) error {
	options := metav1.ListOptions{ResourceVersion: version, AllowWatchBookmarks: true}
	from.Trim(&options)
	w, err := from.Watch(ctx, options)
	if err != nil {
		return err
	}
	w = doubted(w, silence)
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case event, open := <-w.ResultChan():
			if !open {
				return nil
			}
			if err := handOn(event, to, kept); err != nil {
				return err
			}
		}
	}
}

// handOn passes on one event.
func handOn[O runtime.Object, V any](event watch.Event, to Kept[O, V], kept *weights) error {
	if event.Type == watch.Error {
		return apierrors.FromObject(event.Object)
	}
	o, is := event.Object.(O)
	if !is || event.Type == watch.Bookmark {
		return nil
	}
	v := to.Turn(o)
	if event.Type == watch.Deleted {
		kept.remove(to.Key(v))
		to.Gone(v)
		return nil
	}
	if err := kept.add(to.Key(v), v); err != nil {
		return err
	}
	to.Set(v)
	return nil
}

// weights are the sizes of what is kept of a source, by key, in bytes of JSON.
type weights struct {
	of    map[string]int
	total int
}

func newWeights() *weights { return &weights{of: map[string]int{}} }

// add counts one more object, if the limit allows it.
func (w *weights) add(key string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.remove(key)
	w.of[key] = len(key) + len(b)
	w.total += w.of[key]
	if w.total > MostBytes {
		return fmt.Errorf("%w: %d KiB", ErrTooMuch, MostBytes>>10)
	}
	return nil
}

func (w *weights) remove(key string) {
	w.total -= w.of[key]
	delete(w.of, key)
}
