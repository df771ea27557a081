package watch

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	kubewatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
)

// Cache is a live picture of objects.
type Cache struct {
	store   cache.Store
	Changed chan struct{} // a change since it was last read
	active  *Cache        // the runs of all namespaces that have not ended; nil: they are not watched
}

// ConfigMap is one of the picture; nil if there is none.
func (w *Cache) ConfigMap(namespace, name string) *corev1.ConfigMap {
	o, found, err := w.store.GetByKey(namespace + "/" + name)
	if err != nil || !found {
		return nil
	}
	return o.(*corev1.ConfigMap)
}

// ByName selects the object of a name.
func ByName(name string) func(*metav1.ListOptions) {
	return func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector("metadata.name", name).String()
	}
}

// ByLabel selects objects by a label selector.
func ByLabel(selector string) func(*metav1.ListOptions) {
	return func(o *metav1.ListOptions) { o.LabelSelector = selector }
}

// ConfigMaps keeps a live picture until ctx ends. It reads once first, so that a missing right is
// an error and not an empty screen.
func ConfigMaps(ctx context.Context, k *factory.Cluster, namespace string, tweak func(*metav1.ListOptions)) (*Cache, error) {
	probe := metav1.ListOptions{Limit: 1}
	tweak(&probe)
	if err := first(ctx, k, func() error { _, err := k.ConfigMaps(namespace).List(ctx, probe); return err }); err != nil {
		return nil, k.ReadError("watch ConfigMaps", namespace, err)
	}
	return start(ctx, k, newInformer(k, k.Kube.CoreV1().ConfigMaps(namespace), &corev1.ConfigMap{}, tweak))
}

// betweenLists is how long it takes until an API server that does not answer is asked again.
const betweenLists = time.Second

// first is the list before a watch. An API server that has answered this command, and does not
// answer now, is asked again until ctx ends: what the command has asked for goes on meanwhile.
func first(ctx context.Context, k *factory.Cluster, list func() error) error {
	for told := false; ; told = true {
		err := list()
		if err == nil || ctx.Err() != nil || refused(err) || !k.Reached() {
			return err
		}
		if !told {
			outage(k, err)
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(betweenLists):
		}
	}
}

// refused says whether an error is an answer that stays the same: a right or an object that is missing.
func refused(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	code := status.Status().Code
	return code >= http.StatusBadRequest && code < http.StatusInternalServerError && code != http.StatusTooManyRequests
}

// outage says once that the API server does not answer.
func outage(k *factory.Cluster, err error) {
	switch {
	case k.Broken != nil:
		k.Broken(err)
	case k.Warn != nil:
		k.Warn("the API server does not answer; it is asked again: " + err.Error())
	}
}

// client lists and watches the objects of a kind.
type client[List runtime.Object] interface {
	List(ctx context.Context, o metav1.ListOptions) (List, error)
	Watch(ctx context.Context, o metav1.ListOptions) (kubewatch.Interface, error)
}

// newInformer watches the objects that tweak selects. The constructors of client-go's package
// informers would need clients of all API groups.
func newInformer[List runtime.Object](k *factory.Cluster, c client[List], example runtime.Object, tweak func(*metav1.ListOptions)) cache.SharedIndexInformer {
	return cache.NewSharedIndexInformer(cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			tweak(&o)
			return c.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (kubewatch.Interface, error) {
			tweak(&o)
			return c.Watch(ctx, o)
		},
	}, k.Kube), example, 0, cache.Indexers{})
}

// start runs an informer until ctx ends.
func start(ctx context.Context, k *factory.Cluster, informer cache.SharedIndexInformer) (*Cache, error) {
	return startInto(ctx, k, informer, make(chan struct{}, 1), func(_, _ any) bool { return true })
}

// startInto signals news on a channel that others use, too.
func startInto(ctx context.Context, k *factory.Cluster, informer cache.SharedIndexInformer, changed chan struct{}, news func(was, is any) bool) (*Cache, error) {
	w := &Cache{store: informer.GetStore(), Changed: changed}
	notify := func(any) {
		select {
		case w.Changed <- struct{}{}:
		default: // a signal is pending already
		}
	}
	update := func(was, is any) {
		if news(was, is) {
			notify(is)
		}
	}
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: notify, UpdateFunc: update, DeleteFunc: notify}); err != nil {
		return nil, err
	}
	if err := informer.SetWatchErrorHandlerWithContext(broken(k)); err != nil {
		return nil, err
	}
	go informer.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return nil, context.Cause(ctx)
	}
	return w, nil
}

// kindIn is the resource that a refusal names.
func kindIn(err error) string {
	var refusal apierrors.APIStatus
	if errors.As(err, &refusal) && refusal.Status().Details != nil && refusal.Status().Details.Kind != "" {
		return refusal.Status().Details.Kind
	}
	return "it"
}

// broken reports that a watch is interrupted; where nobody listens, only that it may not be begun. It
// is normal that a server ends one after a while, or has forgotten its version.
func broken(k *factory.Cluster) cache.WatchErrorHandlerWithContext {
	var once sync.Once
	return func(ctx context.Context, _ *cache.Reflector, err error) {
		if k.Broken == nil && k.Warn != nil && apierrors.IsForbidden(err) {
			once.Do(func() { k.Warn("what changes is seen up to a minute late, since you may not watch " + kindIn(err)) })
		}
		usual := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || apierrors.IsResourceExpired(err) || apierrors.IsGone(err)
		if k.Broken != nil && !usual && ctx.Err() == nil {
			k.Broken(err)
		}
	}
}
