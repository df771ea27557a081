package follow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
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
	Replaced func(all []V)
}

// Keep mirrors a source until ctx ends. What belongs to another cluster, whose API server may be under
// anybody's control, has limits. In the own cluster, too, tenants write the objects, and each may be as
// large as the API server takes it: no more than one, or one page of them, is in memory as received. A
// reflector would keep whole lists.
func Keep[O, L runtime.Object, V any](ctx context.Context, elsewhere bool, from Source[L], to Kept[O, V]) {
	f := follower[O, L, V]{from: from, to: to, elsewhere: elsewhere}
	longest := longestPause
	if elsewhere {
		longest = mostPause
	}
	pause := again
	for {
		if f.once(ctx) == nil {
			pause = again
		} else {
			pause = min(2*pause, longest)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// follower lists and watches one source.
type follower[O, L runtime.Object, V any] struct {
	from      Source[L]
	to        Kept[O, V]
	elsewhere bool
	version   string   // up to which everything was handed on; empty: the next thing to do is to list
	kept      *weights // what was
}

// once goes on from the version that it has come to, or lists, and watches from there until the watch
// ends; an error means that something could not be read. What an API server refuses, as a version that
// it does not have any more, is listed anew; one that is away has forgotten nothing.
func (f *follower[O, L, V]) once(ctx context.Context) error {
	err := f.watched(ctx)
	if err != nil && !away(err) {
		f.version = ""
	}
	return err
}

// away says whether an error is that of an API server that does not answer, or cannot now.
func away(err error) bool {
	if errors.Is(err, ErrTooMuch) {
		return false
	}
	return apierrors.IsTooManyRequests(err) || executors.Unanswered(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) && !apierrors.HasStatusCause(err, cannotDecode)
}

// cannotDecode marks what client-go says of an event that it cannot read: from the same version on the
// watch would come to it again, and no further.
const cannotDecode = "ClientWatchDecoding"

func (f *follower[O, L, V]) watched(ctx context.Context) error {
	if f.version == "" && !f.elsewhere {
		if began, err := f.streamed(ctx); began || ctx.Err() != nil {
			return err
		} // else it lists after any error, as kube.Reduced does
	}
	if f.version == "" {
		if err := f.listed(ctx); err != nil {
			return err
		}
	}
	err := f.watch(ctx)
	f.from.OnAnswer(err)
	return err
}

// listed lists in pages.
func (f *follower[O, L, V]) listed(ctx context.Context) error {
	kept := newWeights(f.elsewhere)
	var all []V
	version := ""
	list := func(ctx context.Context, o metav1.ListOptions) (L, error) {
		f.from.Trim(&o)
		page, err := f.from.List(ctx, o)
		if err == nil {
			version = versionOf(page)
		}
		return page, err
	}
	err := f.each(ctx, list, func(o O) error {
		v := f.to.Turn(o)
		if all = append(all, v); f.elsewhere && len(all) > MostObjects {
			return fmt.Errorf("%w: %d objects", ErrTooMuch, MostObjects)
		}
		return kept.add(f.to.Key(v), v)
	})
	f.from.OnAnswer(err)
	if err != nil {
		return err
	}
	f.to.Replaced(all)
	f.version, f.kept = version, kept
	return nil
}

// streamed lists and watches by one request: what there is comes object by object, and is reduced as it
// comes. An error before all has come leaves what is kept as it was, and began is false.
func (f *follower[O, L, V]) streamed(ctx context.Context) (began bool, err error) {
	options := kube.Streamed(metav1.ListOptions{})
	f.from.Trim(&options)
	w, err := f.from.Watch(ctx, options)
	if err != nil {
		return false, err
	}
	w = doubted(w, silence)
	defer w.Stop()
	all, version, err := f.initial(ctx, w)
	if err != nil {
		return false, err
	}
	f.from.OnAnswer(nil)
	f.to.Replaced(all)
	f.version, f.kept = version, newWeights(false)
	err = f.changes(ctx, w)
	f.from.OnAnswer(err)
	return true, err
}

// initial is all that there is, as a watch sends it before its first changes, or among them.
func (f *follower[O, L, V]) initial(ctx context.Context, w watch.Interface) (all []V, version string, err error) {
	there, unlimited := map[string]V{}, newWeights(false)
	to := Kept[O, V]{
		Turn: f.to.Turn, Key: f.to.Key,
		Set:  func(v V) { there[f.to.Key(v)] = v },
		Gone: func(v V) { delete(there, f.to.Key(v)) },
	}
	for {
		select {
		case <-ctx.Done():
			return nil, "", ctx.Err()
		case event, open := <-w.ResultChan():
			if !open {
				return nil, "", kube.ErrCutOff
			}
			if err := handOn(event, to, unlimited); err != nil {
				return nil, "", err
			}
			if version, ends := kube.EndsList(event); ends {
				return slices.Collect(maps.Values(there)), version, nil
			}
		}
	}
}

// each lists in pages. What bounds them is the agent's memory, of 256 MiB: the answers to its own
// requests are not weighed, and one object of a tenant may take 10 MiB. An unpaged list of the API
// server's cache (resourceVersion=0) would have them all at once. Answers of other clusters are
// bounded where they are received, and what no tenant writes is small.
func (f *follower[O, L, V]) each(ctx context.Context, list func(context.Context, metav1.ListOptions) (L, error), see func(O) error) error {
	if f.elsewhere || f.from.Small {
		return kube.EachOf(ctx, list, "", see)
	}
	return kube.EachOfLarge(ctx, list, metav1.ListOptions{}, see)
}

func versionOf(list runtime.Object) string {
	l, err := meta.ListAccessor(list)
	if err != nil {
		return ""
	}
	return l.GetResourceVersion()
}

// watch passes on the changes after the version that it has come to, until the watch ends.
func (f *follower[O, L, V]) watch(ctx context.Context) error {
	options := metav1.ListOptions{ResourceVersion: f.version, AllowWatchBookmarks: true}
	f.from.Trim(&options)
	w, err := f.from.Watch(ctx, options)
	if err != nil {
		return err
	}
	f.from.OnAnswer(nil)
	told := doubted(w, silence)
	defer told.Stop()
	err = f.changes(ctx, told)
	if told.silent.Load() { // it may be of another world than the version: a list tells
		f.version = ""
	}
	return err
}

// changes passes on what a watch sends until it ends.
func (f *follower[O, L, V]) changes(ctx context.Context, w watch.Interface) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case event, open := <-w.ResultChan():
			if !open {
				return nil
			}
			if err := handOn(event, f.to, f.kept); err != nil {
				return err
			}
			if m, is := event.Object.(metav1.Object); is && m.GetResourceVersion() != "" {
				f.version = m.GetResourceVersion()
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
	limited bool
	of      map[string]int
	total   int
}

func newWeights(limited bool) *weights { return &weights{limited: limited, of: map[string]int{}} }

// add counts one more object, if the limit allows it.
func (w *weights) add(key string, v any) error {
	if !w.limited {
		return nil
	}
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
