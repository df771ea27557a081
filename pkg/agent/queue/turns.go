package queue

import (
	"container/list"
	"math"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Turns hold what waits for a worker or a place, and hand it out namespace by namespace: the next
// is of the namespace with the fewest at work, and among several of those of the one that was ready
// first. Within a namespace the order is that of arrival. No namespace has more at work than its share.
type Turns[T any] struct {
	mu          sync.Mutex
	share       int
	byNamespace map[string]*tenant[T]
	ready       []*list.List // the namespaces that may have another at work, by how many they have
	waiting     int
}

// tenant is a namespace that has something at work or waiting.
type tenant[T any] struct {
	namespace string
	atWork    int
	waiting   []T
	ready     *list.Element // nil: nothing waits, or the namespace has its share at work
}

// NewTurns hold nothing.
func NewTurns[T any](share int) *Turns[T] {
	return &Turns[T]{share: share, byNamespace: map[string]*tenant[T]{}}
}

// Add has something wait for its turn.
func (t *Turns[T]) Add(namespace string, item T) {
	t.mu.Lock()
	defer t.mu.Unlock()
	one := t.byNamespace[namespace]
	if one == nil {
		one = &tenant[T]{namespace: namespace}
		t.byNamespace[namespace] = one
	}
	one.waiting = append(one.waiting, item)
	t.waiting++
	if one.ready == nil {
		t.place(one)
	}
}

// Next takes what is next. It is at work until Leave.
func (t *Turns[T]) Next() (item T, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, namespaces := range t.ready {
		if first := namespaces.Front(); first != nil {
			one := first.Value.(*tenant[T])
			item, one.waiting[0] = one.waiting[0], item
			one.waiting = one.waiting[1:]
			one.atWork++
			t.waiting--
			t.place(one)
			return item, true
		}
	}
	return item, false
}

// Leave notes that one of a namespace is at work no more.
func (t *Turns[T]) Leave(namespace string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	one := t.byNamespace[namespace]
	one.atWork--
	t.place(one)
}

// Drop takes away what waits in a namespace and is not wanted any more.
func (t *Turns[T]) Drop(namespace string, unwanted func(T) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	one := t.byNamespace[namespace]
	if one == nil {
		return
	}
	before := len(one.waiting)
	one.waiting = slices.DeleteFunc(one.waiting, unwanted)
	t.waiting -= before - len(one.waiting)
	if len(one.waiting) == 0 {
		t.place(one)
	}
}

// DropNewest takes away what came last in the namespace of which most waits. Of namespaces that have their share
// at work it takes nothing.
func (t *Turns[T]) DropNewest() (item T, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var most *tenant[T]
	for _, namespaces := range t.ready {
		for e := namespaces.Front(); e != nil; e = e.Next() {
			if one := e.Value.(*tenant[T]); most == nil || len(one.waiting) > len(most.waiting) {
				most = one
			}
		}
	}
	if most == nil {
		return item, false
	}
	last := len(most.waiting) - 1
	item, most.waiting[last] = most.waiting[last], item
	most.waiting = most.waiting[:last]
	t.waiting--
	if last == 0 {
		t.place(most)
	}
	return item, true
}

// Waiting is how many wait, those with them whose namespace has its share at work.
func (t *Turns[T]) Waiting() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.waiting
}

// setShare says how many of a namespace may be at work, before any is.
func (t *Turns[T]) setShare(share int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.share = share
}

// place puts a namespace behind the others that have as many at work. The lock is held.
func (t *Turns[T]) place(one *tenant[T]) {
	if one.ready != nil {
		for _, namespaces := range t.ready { // it is in one of them, and not touched by the others
			namespaces.Remove(one.ready)
		}
		one.ready = nil
	}
	switch {
	case len(one.waiting) == 0 && one.atWork == 0:
		delete(t.byNamespace, one.namespace)
	case len(one.waiting) > 0 && one.atWork < t.share:
		for len(t.ready) <= one.atWork {
			t.ready = append(t.ready, list.New())
		}
		one.ready = t.ready[one.atWork].PushBack(one)
	}
}

// order is what workqueue stores its keys in.
type order struct{ *Turns[types.NamespacedName] }

func newOrder() order { return order{NewTurns[types.NamespacedName](math.MaxInt)} }

// Touch is workqueue.Queue's.
func (o order) Touch(types.NamespacedName) {}

// Push is workqueue.Queue's.
func (o order) Push(k types.NamespacedName) { o.Add(k.Namespace, k) }

// Len is workqueue.Queue's: nothing may be popped at zero. Whoever leaves asks again afterwards.
func (o order) Len() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := 0
	for _, namespaces := range o.ready {
		n += namespaces.Len()
	}
	return n
}

// Pop is workqueue.Queue's.
func (o order) Pop() types.NamespacedName {
	k, _ := o.Next()
	return k
}
