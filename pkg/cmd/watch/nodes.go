package watch

import (
	"context"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
)

// Nodes keeps a live picture of nodes, with names only of those. It signals on changed when a field
// that is kept has changed: nodes also send heartbeats.
func Nodes(ctx context.Context, k *factory.Cluster, changed chan struct{}, names ...string) (*Cache, error) {
	tweak := func(*metav1.ListOptions) {}
	if len(names) == 1 {
		tweak = ByName(names[0])
	}
	probe := metav1.ListOptions{Limit: 1}
	tweak(&probe)
	if err := first(ctx, k, func() error { _, err := k.Kube.CoreV1().Nodes().List(ctx, probe); return err }); err != nil {
		return nil, k.Explain("watch nodes", err)
	}
	informer := newInformer(k, k.Kube.CoreV1().Nodes(), &corev1.Node{}, tweak)
	if err := informer.SetTransform(slimNode); err != nil {
		return nil, err
	}
	return startInto(ctx, k, informer, changed, func(was, is any) bool { return !sameNode(was.(*corev1.Node), is.(*corev1.Node)) })
}

// slimNode keeps the fields of a node that commands use.
func slimNode(o any) (any, error) {
	n, ok := o.(*corev1.Node)
	if !ok {
		return o, nil
	}
	slim := &corev1.Node{}
	slim.Name, slim.UID, slim.ResourceVersion, slim.DeletionTimestamp = n.Name, n.UID, n.ResourceVersion, n.DeletionTimestamp
	slim.Annotations, slim.Labels = annotations.OfNode(n.Annotations), n.Labels
	slim.Spec.Unschedulable = n.Spec.Unschedulable
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			slim.Status.Conditions = []corev1.NodeCondition{{Type: c.Type, Status: c.Status}}
		}
	}
	return slim, nil
}

func sameNode(a, b *corev1.Node) bool {
	return a.UID == b.UID && a.Spec.Unschedulable == b.Spec.Unschedulable && annotations.NodeReady(a) == annotations.NodeReady(b) &&
		(a.DeletionTimestamp == nil) == (b.DeletionTimestamp == nil) && maps.Equal(a.Annotations, b.Annotations)
}

// Node is a node of the picture; nil if there is none.
func (w *Cache) Node(name string) *corev1.Node {
	o, found, err := w.store.GetByKey(name)
	if err != nil || !found {
		return nil
	}
	return o.(*corev1.Node)
}

// Nodes are all nodes of the picture, by name.
func (w *Cache) Nodes() []*corev1.Node {
	var out []*corev1.Node
	for _, o := range w.store.List() {
		out = append(out, o.(*corev1.Node))
	}
	slices.SortFunc(out, func(a, b *corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// PodsOn keeps a live picture of the pods of a node.
func PodsOn(ctx context.Context, k *factory.Cluster, changed chan struct{}, node string) (*Cache, error) {
	tweak := func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", node).String()
	}
	probe := metav1.ListOptions{Limit: 1}
	tweak(&probe)
	if err := first(ctx, k, func() error { _, err := k.Kube.CoreV1().Pods("").List(ctx, probe); return err }); err != nil {
		return nil, k.Explain("watch the pods of node "+node, err)
	}
	return startInto(ctx, k, newInformer(k, k.Kube.CoreV1().Pods(""), &corev1.Pod{}, tweak), changed, func(_, _ any) bool { return true })
}

// Pods keeps a live picture of the pods of a namespace that a selector picks.
func Pods(ctx context.Context, k *factory.Cluster, namespace, selector string) (*Cache, error) {
	probe := metav1.ListOptions{LabelSelector: selector, Limit: 1}
	if err := first(ctx, k, func() error { _, err := k.Kube.CoreV1().Pods(namespace).List(ctx, probe); return err }); err != nil {
		return nil, err
	}
	return start(ctx, k, newInformer(k, k.Kube.CoreV1().Pods(namespace), &corev1.Pod{}, ByLabel(selector)))
}

// Pods are the pods of the picture that are on a node, or all where node is empty,
// by namespace and name.
func (w *Cache) Pods(node string) []*corev1.Pod {
	var out []*corev1.Pod
	for _, o := range w.store.List() {
		if p := o.(*corev1.Pod); node == "" || p.Spec.NodeName == node {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b *corev1.Pod) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	return out
}
