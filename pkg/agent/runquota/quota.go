// Package runquota counts the memory that the active runs of each namespace take, and says how
// many more of them may begin.
package runquota

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// What active runs may take when another one is to begin, in bytes (guesses).
const (
	// Max bounds those of a namespace: a hundred runs of plans of 240 KB, or thousands of small ones.
	Max = 24 << 20
	// MaxTotal bounds those of all namespaces together, and leaves the agent, which has 256 MiB, as much for its caches and more.
	MaxTotal = 64 << 20
	// Reserved is what those of a namespace may take however much the others take: four large runs, or
	// hundreds of small ones.
	Reserved = 1 << 20
)

// Quota is what the active runs of each namespace take, and the claims whose runs are still to be
// created. The plans of a namespace that wait come in turn.
type Quota struct {
	mu     sync.Mutex
	usages map[string]*usage // by namespace
	total  int               // bytes of all
	wake   func(plan types.NamespacedName)
}

// Room is what a namespace may claim.
type Room struct {
	Runs    int
	OfTotal bool // what all namespaces take bounds it, and not what this one takes
}

// usage is that of one namespace.
type usage struct {
	bytes   int
	runs    map[string]int // bytes of each run
	claims  map[string]int // bytes of the claims of each plan
	waiting []string       // plans, the one that waits longest first
}

// New counts nothing yet.
func New() *Quota {
	return &Quota{usages: map[string]*usage{}, wake: func(types.NamespacedName) {}}
}

// OnFree is called with a plan that waits once there is room, before anything is counted. It must not
// wait for anybody.
func (q *Quota) OnFree(wake func(plan types.NamespacedName)) { q.wake = wake }

// Set counts what an active run takes, in place of what it took before.
func (q *Quota) Set(run types.NamespacedName, bytes int) {
	q.change(run.Namespace, func(u *usage) { u.put(u.runs, run.Name, bytes) })
}

// Remove counts a run no longer.
func (q *Quota) Remove(run types.NamespacedName) { q.Set(run, 0) }

// Pending counts what the claims of a plan will take whose runs are still to be created.
func (q *Quota) Pending(plan types.NamespacedName, bytes int) {
	q.change(plan.Namespace, func(u *usage) { u.put(u.claims, plan.Name, bytes) })
}

// Forget counts nothing for a plan any more, and has it wait no longer.
func (q *Quota) Forget(plan types.NamespacedName) {
	q.change(plan.Namespace, func(u *usage) {
		u.put(u.claims, plan.Name, 0)
		u.wait(plan.Name, false)
	})
}

// Used is how many bytes a namespace has used.
func (q *Quota) Used(namespace string) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.used(namespace)
}

// used must be called with the lock held.
func (q *Quota) used(namespace string) int {
	if u := q.usages[namespace]; u != nil {
		return u.bytes
	}
	return 0
}

// Left is how many runs of a size a namespace may claim: the last of them may pass a bound.
func (q *Quota) Left(namespace string, size int) Room {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.left(q.used(namespace), size)
}

// left must be called with the lock held.
func (q *Quota) left(used, size int) Room {
	own, total := below(Max, used, size), max(below(MaxTotal, q.total, size), below(Reserved, used, size))
	return Room{Runs: min(own, total), OfTotal: total < own}
}

// below is how many of a size there may be until a bound is reached.
func below(bound, used, size int) int {
	if used >= bound {
		return 0
	}
	return (bound-used-1)/size + 1
}

// Claim counts runs that a plan is about to claim, unless others took the room for them meanwhile.
// waits says that the plan would have claimed more: it is woken when there is room.
func (q *Quota) Claim(plan types.NamespacedName, runs, size int, waits bool) (claimed bool) {
	q.change(plan.Namespace, func(u *usage) {
		if claimed = runs <= q.left(u.bytes, size).Runs || runs == 0; claimed {
			u.put(u.claims, plan.Name, u.claims[plan.Name]+runs*size)
			u.wait(plan.Name, waits)
		}
	})
	return claimed
}

// Next wakes the plan that waits longest, if there is room. Who was woken, and leaves room, passes it on
// by this.
func (q *Quota) Next(namespace string) { q.change(namespace, func(*usage) {}) }

// change does something with the usage of a namespace, and wakes who waits, if there is room then.
func (q *Quota) change(namespace string, do func(*usage)) {
	for _, plan := range q.counted(namespace, do) {
		q.wake(plan)
	}
}

// counted does something with the usage of a namespace, and is who is to be woken: of each namespace that has
// room now the plan that waits longest.
func (q *Quota) counted(namespace string, do func(*usage)) (next []types.NamespacedName) {
	q.mu.Lock()
	defer q.mu.Unlock()
	u := q.usages[namespace]
	if u == nil {
		u = &usage{runs: map[string]int{}, claims: map[string]int{}}
		q.usages[namespace] = u
	}
	was, wasFull := u.bytes, q.total >= MaxTotal
	do(u)
	q.total += u.bytes - was
	if wasFull && q.total < MaxTotal {
		for other := range q.usages {
			next = q.appendNext(next, other)
		}
	} else {
		next = q.appendNext(next, namespace)
	}
	if len(u.runs)+len(u.claims)+len(u.waiting) == 0 {
		delete(q.usages, namespace)
	}
	return next
}

// appendNext takes out the plan of a namespace that waits longest, if there is room.
func (q *Quota) appendNext(to []types.NamespacedName, namespace string) []types.NamespacedName {
	u := q.usages[namespace]
	if len(u.waiting) == 0 || q.left(u.bytes, 1).Runs == 0 {
		return to
	}
	plan := u.waiting[0]
	u.waiting = u.waiting[1:]
	return append(to, types.NamespacedName{Namespace: namespace, Name: plan})
}

// put sets the bytes of one of those that are counted; zero takes it out.
func (u *usage) put(of map[string]int, name string, bytes int) {
	u.bytes += bytes - of[name]
	if of[name] = bytes; bytes == 0 {
		delete(of, name)
	}
}

// wait puts a plan among those that wait, where it keeps its place, or takes it out.
func (u *usage) wait(plan string, waits bool) {
	at := slices.Index(u.waiting, plan)
	switch {
	case waits && at < 0:
		u.waiting = append(u.waiting, plan)
	case !waits && at >= 0:
		u.waiting = slices.Delete(u.waiting, at, at+1)
	}
}
