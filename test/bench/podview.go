package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	watchtools "k8s.io/client-go/tools/watch"
)

// podView watches all pods of a namespace and counts after every event how many
// are healthy, as the disruption controller counts: Ready, and not being deleted.
// The events of one watch come in the order of the writes, so no moment is missed.
type podView struct {
	ctx  context.Context // its life
	stop context.CancelFunc
	goes func(*corev1.Pod) // is called once for each pod that begins to go

	mu      sync.Mutex
	pods    map[types.UID]podSeen
	healthy int
	least   int // fewest healthy since it was last set
	news    chan struct{}
	over    error
}

type podSeen struct {
	node            string
	healthy, leaves bool
}

func viewPods(ctx context.Context, kube kubernetes.Interface, namespace string, goes func(*corev1.Pod)) (*podView, error) {
	ctx, cancel := context.WithCancel(ctx)
	v := &podView{ctx: ctx, stop: cancel, goes: goes, pods: map[types.UID]podSeen{}, news: make(chan struct{}, 1)}
	list, err := kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		cancel()
		return nil, err
	}
	for i := range list.Items {
		v.see(watch.Added, &list.Items[i])
	}
	w, err := watchtools.NewRetryWatcherWithContext(ctx, list.ResourceVersion, podWatcher{kube, namespace})
	if err != nil {
		cancel()
		return nil, err
	}
	go v.follow(ctx, w)
	return v, nil
}

type podWatcher struct {
	kube      kubernetes.Interface
	namespace string
}

func (p podWatcher) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	return p.kube.CoreV1().Pods(p.namespace).Watch(ctx, o)
}

func (v *podView) follow(ctx context.Context, w watch.Interface) {
	for event := range w.ResultChan() {
		if pod, ok := event.Object.(*corev1.Pod); ok {
			v.see(event.Type, pod)
		}
	}
	if ctx.Err() == nil {
		v.mu.Lock()
		v.over = fmt.Errorf("the watch of the pods has ended: what happened since was not seen")
		v.mu.Unlock()
		v.ring()
	}
}

func (v *podView) see(what watch.EventType, pod *corev1.Pod) {
	now := podSeen{node: pod.Spec.NodeName, leaves: pod.DeletionTimestamp != nil}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			now.healthy = !now.leaves
		}
	}
	v.mu.Lock()
	was := v.pods[pod.UID]
	if was.healthy {
		v.healthy--
	}
	switch what {
	case watch.Added, watch.Modified:
		v.pods[pod.UID] = now
		if now.healthy {
			v.healthy++
		}
	case watch.Deleted:
		delete(v.pods, pod.UID)
	}
	v.least = min(v.least, v.healthy)
	v.mu.Unlock()
	if what != watch.Deleted && now.leaves && !was.leaves {
		v.goes(pod)
	}
	v.ring()
}

func (v *podView) ring() {
	select {
	case v.news <- struct{}{}:
	default:
	}
}

// begin counts the fewest from now on.
func (v *podView) begin() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.least = v.healthy
}

// fewest are the fewest that were healthy at any time since begin.
func (v *podView) fewest() (int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.least, v.over
}

// all are the uids of the pods that there are.
func (v *podView) all() map[types.UID]bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	out := map[types.UID]bool{}
	for uid := range v.pods {
		out[uid] = true
	}
	return out
}

// on counts the pods of a node.
func (v *podView) on(node string) int {
	v.mu.Lock()
	defer v.mu.Unlock()
	n := 0
	for _, p := range v.pods {
		if p.node == node {
			n++
		}
	}
	return n
}

// wait returns when so many pods are there, all of them healthy, and none of the
// others.
func (v *podView) wait(ctx context.Context, n int, others map[types.UID]bool, limit time.Duration) error {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		v.mu.Lock()
		there, healthy, old, over := len(v.pods), v.healthy, 0, v.over
		for uid := range others {
			if _, still := v.pods[uid]; still {
				old++
			}
		}
		v.mu.Unlock()
		switch {
		case over != nil:
			return over
		case there == n && healthy == n && old == 0:
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timer.C:
			return fmt.Errorf("%d pods, %d healthy, %d of before, and not %d new and healthy ones within %s", there, healthy, old, n, limit)
		case <-v.news:
		}
	}
}
