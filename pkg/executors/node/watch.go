package node

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/kubectl-maint/kubectl-maint/pkg/kube"
)

// mirror keeps what a reflector sees, each object turned into a value at once:
// nothing of the object itself is kept.
type mirror[O runtime.Object] struct {
	set     func(O)
	gone    func(O)
	replace func(all []O, version string)
}

// mirrorOf keeps of each object what turn makes of it.
func mirrorOf[O runtime.Object, V any](turn func(O) V, set, gone func(V), replace func(all []V, version string)) mirror[O] {
	return mirror[O]{
		set:  func(o O) { set(turn(o)) },
		gone: func(o O) { gone(turn(o)) },
		replace: func(all []O, version string) {
			kept := make([]V, len(all))
			for i, o := range all {
				kept[i] = turn(o)
			}
			replace(kept, version)
		},
	}
}

func (m mirror[O]) Add(obj any) error    { return m.with(obj, m.set) }
func (m mirror[O]) Update(obj any) error { return m.with(obj, m.set) }
func (m mirror[O]) Delete(obj any) error { return m.with(obj, m.gone) }
func (m mirror[O]) Resync() error        { return nil }

func (m mirror[O]) with(obj any, f func(O)) error {
	o, ok := obj.(O)
	if !ok {
		return fmt.Errorf("a watch of %T sent %T", o, obj)
	}
	f(o)
	return nil
}

// Replace is the whole of it, at the beginning and after a watch broke.
func (m mirror[O]) Replace(list []any, version string) error {
	all := make([]O, 0, len(list))
	for _, obj := range list {
		if err := m.with(obj, func(o O) { all = append(all, o) }); err != nil {
			return err
		}
	}
	m.replace(all, version)
	return nil
}

// source is where a reflector reads.
type source[L runtime.Object] struct {
	list  func(ctx context.Context, o metav1.ListOptions) (L, error)
	watch func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error)
	trim  func(*metav1.ListOptions)
	heard func(error) // every answer, nil for a good one
}

// reflect mirrors a source until ctx ends.
func reflect[O, L runtime.Object](ctx context.Context, name string, from source[L], m mirror[O], example O) {
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			from.trim(&o)
			l, err := from.list(ctx, o)
			from.heard(err)
			return l, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			from.trim(&o)
			w, err := from.watch(ctx, o)
			if o.SendInitialEvents == nil || !apierrors.IsInvalid(err) { // else the server knows no such list, and is asked for another at once
				from.heard(err)
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

// How long a drain waits before it asks an API server again that is away (a guess:
// that takes no longer than this to be noticed), and how long a watch may be silent:
// a bookmark comes every minute.
const (
	longestPause = 2 * time.Second
	silence      = 75 * time.Second
)

// doubtedWatch is a watch that ends when it was silent for too long: whoever reads it
// goes on where it was.
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

// pass hands events on until the watch ends, is stopped or is doubted.
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

func podsOn(kube kube.Interface, node string, heard func(error)) source[*corev1.PodList] {
	return source[*corev1.PodList]{
		list: kube.CoreV1().Pods("").List, watch: kube.CoreV1().Pods("").Watch, heard: heard,
		trim: func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", node).String()
		},
	}
}

func allBudgets(kube kube.Interface, heard func(error)) source[*policyv1.PodDisruptionBudgetList] {
	in := kube.PolicyV1().PodDisruptionBudgets("")
	return source[*policyv1.PodDisruptionBudgetList]{list: in.List, watch: in.Watch, heard: heard, trim: func(*metav1.ListOptions) {}}
}

func allAttachments(kube kube.Interface, heard func(error)) source[*storagev1.VolumeAttachmentList] {
	in := kube.StorageV1().VolumeAttachments()
	return source[*storagev1.VolumeAttachmentList]{list: in.List, watch: in.Watch, heard: heard, trim: func(*metav1.ListOptions) {}}
}
