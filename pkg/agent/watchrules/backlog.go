package watchrules

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/informer"
	"github.com/kubectl-maint/kubectl-maint/pkg/watchrule"
)

// Bounds of the bodies that wait until the rules are told of them: all that a watch shows
// at first, and what changes faster than it is told (guesses).
const (
	maxBacklog  = 32 << 20 // weight of all of them together
	maxLate     = 2        // bodies that are read late, at once
	perValue    = 48       // weight of a value beside the bytes of texts: client.answers measured it
	latePause   = time.Second
	lateRetries = 30
)

// backlog is the room for bodies that wait.
type backlog struct {
	most  int64 // weight
	taken atomic.Int64
	late  *semaphore.Weighted // bodies that are read late
}

func newBacklog() *backlog { return &backlog{most: maxBacklog, late: semaphore.NewWeighted(maxLate)} }

// keep is what is kept of an object until the rules are told: without its body where there
// is no room for that. The room is given back when it was told, or when it is forgotten.
func (b *backlog) keep(o any) any {
	object, is := o.(*ruleObject)
	if !is || object.body == nil || object.release != nil {
		return o
	}
	weight := weightOf(map[string]any(object.body))
	if b.taken.Add(weight) > b.most {
		b.taken.Add(-weight)
		object.body, object.writers, object.later = nil, nil, true
		return object
	}
	object.release = sync.OnceFunc(func() { b.taken.Add(-weight) })
	runtime.AddCleanup(object, func(release func()) { release() }, object.release)
	return object
}

// weightOf is about what a value takes in memory.
func weightOf(v any) int64 {
	sum := int64(perValue)
	switch v := v.(type) {
	case string:
		sum += int64(len(v))
	case map[string]any:
		for key, one := range v {
			sum += perValue + int64(len(key)) + weightOf(one)
		}
	case []any:
		for _, one := range v {
			sum += weightOf(one)
		}
	}
	return sum
}

// told lets go of what the rules were told.
func (o *ruleObject) told() {
	o.body, o.writers = nil, nil
	if o.release != nil {
		o.release()
		o.release = nil
	}
}

// read reads an object whose body had no room as it is now, for the rules that are told of
// it one after the other; fresh is nil where there is nothing to tell, and why says what is in
// the way. leave has to be called when it was told. What came after the change that is told
// comes as a change of its own.
func (r *Controller) read(ctx context.Context, k informer.Key, o *ruleObject) (fresh *ruleObject, leave func(), why error) {
	if r.backlog.late.Acquire(ctx, 1) != nil { // ctx has ended
		return nil, nil, nil
	}
	leave = func() { r.backlog.late.Release(1) }
	for range lateRetries {
		u, err := r.readNow(ctx, k, watchrule.ObjectKey{UID: string(o.UID), Namespace: o.Namespace, Name: o.Name})
		if u != nil {
			return ruleObjectOf(u), leave, nil
		}
		if why = err; why == nil || isTooLarge(why) || apierrors.IsForbidden(why) {
			break
		}
		select {
		case <-ctx.Done():
		case <-time.After(latePause):
		}
	}
	leave()
	return nil, nil, why
}

// readNow is an object as it is, by the right that its watch has; nil: it is not there or has
// left the selection, which is told by the watch.
func (r *Controller) readNow(ctx context.Context, k informer.Key, o watchrule.ObjectKey) (*unstructured.Unstructured, error) {
	c, err := r.Accounts.Clients(client.Account(k.As), "")
	if err != nil {
		return nil, err
	}
	return lookUp(ctx, c.Dynamic, k.Resource, k.Labels, o)
}
