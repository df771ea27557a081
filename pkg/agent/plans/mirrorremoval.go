package plans

import (
	"context"
	"reflect"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

// How long a mirror that is to go is tried, and how often at the most (guesses: an API server that
// was restarted, or rights that are applied after what needs them, are there by then).
const (
	leavingFor   = 10 * time.Minute
	leavingPause = time.Minute
)

// leavingMirror is a mirror that its plan does not want any more where it stands.
type leavingMirror struct {
	store.Mirror
	until time.Time // after it, what cannot be taken away stays
	tries int
	again time.Time
}

// leavingMirrors are those of each plan that could not be taken away yet, whether or not the plan is
// there. They are in memory alone: who leads next does not know them.
type leavingMirrors struct {
	mu     sync.Mutex
	byPlan map[types.NamespacedName][]leavingMirror
}

// take is what is to be tried now; the others are kept.
func (l *leavingMirrors) take(k types.NamespacedName, now time.Time) []leavingMirror {
	l.mu.Lock()
	defer l.mu.Unlock()
	var due []leavingMirror
	l.keep(k, slices.DeleteFunc(l.byPlan[k], func(m leavingMirror) bool {
		if now.Before(m.again) {
			return false
		}
		due = append(due, m)
		return true
	}))
	return due
}

func (l *leavingMirrors) add(k types.NamespacedName, m leavingMirror) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.byPlan[k] = append(l.byPlan[k], m)
}

// wanted forgets those that stand where the plan wants its mirror now: it writes there itself.
func (l *leavingMirrors) wanted(k types.NamespacedName, at store.Mirror) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.keep(k, slices.DeleteFunc(l.byPlan[k], func(m leavingMirror) bool {
		return *m.On == *at.On && m.Prefix == at.Prefix && reflect.DeepEqual(m.Cluster, at.Cluster)
	}))
}

func (l *leavingMirrors) drop(k types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.byPlan, k)
}

func (l *leavingMirrors) keep(k types.NamespacedName, rest []leavingMirror) {
	if delete(l.byPlan, k); len(rest) > 0 {
		l.byPlan[k] = rest
	}
}

// leaveMirror takes the mirror of a plan away from where it stands, as far as this agent knows of it:
// the plan is gone, or wants it elsewhere.
func (c *Controller) leaveMirror(ctx context.Context, k types.NamespacedName) {
	if known := c.Stores.Plans.Memory(k); known != nil && known.Mirror.On != nil && known.Mirror.Digest != "" {
		c.blockers.leaving.add(k, leavingMirror{Mirror: *known.Mirror, until: c.Now().Add(leavingFor)})
	}
	c.takeMirrors(ctx, k)
}

// takeMirrors tries again what could not be taken away, after pauses that grow.
func (c *Controller) takeMirrors(ctx context.Context, k types.NamespacedName) {
	for _, m := range c.blockers.leaving.take(k, c.Now()) {
		values := map[string]any{}
		for _, suffix := range annotations.MirrorSuffixes() {
			values[annotations.Mirror(m.Prefix, k.Name, suffix)] = nil
		}
		err := c.patchMirror(ctx, k.Namespace, m.Mirror, false, values)
		if err == nil || apierrors.IsNotFound(err) { // its target went, too
			continue
		}
		now := c.Now()
		if !now.Before(m.until) {
			c.Telemetry.Log.Info("a mirror stays where its plan does not want it any more", "plan", k.String(), "why", err.Error())
			continue
		}
		pause := min(time.Second<<m.tries, leavingPause)
		m.tries, m.again = min(m.tries+1, 10), now.Add(pause)
		c.blockers.leaving.add(k, m)
		c.Queue.AddAfter(k, pause)
	}
}
