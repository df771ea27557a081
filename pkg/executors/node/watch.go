package node

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// mirror keeps what a reflector sees, each object turned into a value at once:
// nothing of the object itself is kept.
type mirror[O runtime.Object] struct {
	set     func(O)
	gone    func(O)
	replace func(all []O, version string)
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
			from.heard(err)
			return w, err
		},
	}
	cache.NewReflectorWithOptions(lw, example, m, cache.ReflectorOptions{Name: name}).RunWithContext(ctx)
}

func podsOn(kube kubernetes.Interface, node string, heard func(error)) source[*corev1.PodList] {
	return source[*corev1.PodList]{
		list: kube.CoreV1().Pods("").List, watch: kube.CoreV1().Pods("").Watch, heard: heard,
		trim: func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", node).String()
		},
	}
}

func allBudgets(kube kubernetes.Interface, heard func(error)) source[*policyv1.PodDisruptionBudgetList] {
	in := kube.PolicyV1().PodDisruptionBudgets("")
	return source[*policyv1.PodDisruptionBudgetList]{list: in.List, watch: in.Watch, heard: heard, trim: func(*metav1.ListOptions) {}}
}

func allAttachments(kube kubernetes.Interface, heard func(error)) source[*storagev1.VolumeAttachmentList] {
	in := kube.StorageV1().VolumeAttachments()
	return source[*storagev1.VolumeAttachmentList]{list: in.List, watch: in.Watch, heard: heard, trim: func(*metav1.ListOptions) {}}
}
