package kube

import (
	"context"
	"errors"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// ListWatcher lists and watches objects of one kind, as the typed clients do; L is the list.
type ListWatcher[L runtime.Object] interface {
	List(ctx context.Context, o metav1.ListOptions) (L, error)
	Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error)
}

// Streamed asks an API server for a list as the first events of a watch, by which one request has
// all objects and one of them is in memory as received.
func Streamed(o metav1.ListOptions) metav1.ListOptions {
	o.ResourceVersionMatch, o.SendInitialEvents, o.AllowWatchBookmarks = metav1.ResourceVersionMatchNotOlderThan, new(true), true
	return o
}

// EndsList says whether an event of such a watch is the one after which all has come.
func EndsList(event watch.Event) (version string, ends bool) {
	m, is := event.Object.(metav1.Object)
	if !is || event.Type != watch.Bookmark || m.GetAnnotations()[metav1.InitialEventsAnnotationKey] != "true" {
		return "", false
	}
	return m.GetResourceVersion(), true
}

// ErrCutOff says that the stream of a list ended before its end.
var ErrCutOff = errors.New("the watch ended before it had sent all that there is")

// Reduced is what turn makes of each object that tenants may have filled, in no order: streamed
// where the API server can, and the account may watch, else in the pages of EachOfLarge. It lists after
// any error of the stream: API servers say by several codes that they cannot stream now (an etcd that
// reports no progress, a cache that is behind), and a list's own error says best what is in the way.
func Reduced[O runtime.Object, V any, L runtime.Object](ctx context.Context, from ListWatcher[L], which metav1.ListOptions, turn func(O) V) ([]V, error) {
	all, err := reduceStream(ctx, from, which, turn)
	if err == nil || ctx.Err() != nil {
		return all, err
	}
	all = nil
	err = EachOfLarge(ctx, from.List, which, func(o O) error {
		all = append(all, turn(o))
		return nil
	})
	return all, err
}

func reduceStream[O runtime.Object, V any, L runtime.Object](ctx context.Context, from ListWatcher[L], which metav1.ListOptions, turn func(O) V) ([]V, error) {
	w, err := from.Watch(ctx, Streamed(which))
	if err != nil {
		return nil, err
	}
	defer w.Stop()
	there := map[types.NamespacedName]V{}
	for {
		var event watch.Event
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case e, open := <-w.ResultChan():
			if !open {
				return nil, errors.Join(ctx.Err(), ErrCutOff)
			}
			event = e
		}
		if event.Type == watch.Error {
			return nil, apierrors.FromObject(event.Object)
		}
		if _, ends := EndsList(event); ends {
			return slices.Collect(maps.Values(there)), nil
		}
		o, is := event.Object.(O)
		m, named := event.Object.(metav1.Object)
		if !is || !named || event.Type == watch.Bookmark {
			continue
		}
		k := types.NamespacedName{Namespace: m.GetNamespace(), Name: m.GetName()}
		if event.Type == watch.Deleted { // while the rest was sent
			delete(there, k)
		} else {
			there[k] = turn(o)
		}
	}
}
